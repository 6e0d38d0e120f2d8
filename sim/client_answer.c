#include "sim/client_answer.h"

#include "sim/client_times.h"

#include <limits.h>
#include <string.h>

static const double LARGE = 1e300; // no bound

typedef struct {
    const char *key;
    double *number;
} NumberField;

static Status fields_read(const JsonNode *object, double least, const NumberField *fields,
                          size_t num_fields) {
    for (size_t i = 0; i < num_fields; i++) {
        JsonNode node = json_get(object, fields[i].key);
        TRY(json_read_double(&node, least, LARGE, fields[i].number));
    }
    return status_ok();
}

static Status string_read(const JsonNode *object, const char *key, Arena *arena, const char **out) {
    JsonNode node = json_get(object, key);
    return json_read_string(&node, arena, out);
}

static Status int_read(const JsonNode *object, const char *key, int least, int *out) {
    JsonNode node = json_get(object, key);
    return json_read_int(&node, least, INT_MAX, out);
}

typedef Status (*ElementRead)(const JsonNode *node, Arena *arena, void *out);

// A list of objects, each read into one element of a new array. (json_at would search each from the
// first.)
static Status list_read(const JsonNode *parent, const char *key, size_t element_size,
                        ElementRead read, Arena *arena, void **out, int *num) {
    JsonNode list = json_get(parent, key);
    TRY(json_expect_array(&list));
    *num = json_size(&list);
    char *elements = arena_array(arena, (size_t)*num, element_size);
    const cJSON *item = list.item->child;
    for (int i = 0; i < *num; i++, item = item->next) {
        JsonNode node = {.file = list.file, .item = item, .parent = &list, .index = i};
        TRY(read(&node, arena, elements + (size_t)i * element_size));
    }
    *out = elements;
    return status_ok();
}

static Status number_element(const JsonNode *node, Arena *arena, void *out) {
    (void)arena;
    return json_read_double(node, 0, LARGE, out);
}

static Status sentence_element(const JsonNode *node, Arena *arena, void *out) {
    return json_read_string(node, arena, (const char **)out);
}

static Status link_element(const JsonNode *node, Arena *arena, void *out) {
    SimLink *link = out;
    const NumberField fields[] = {{"utilization_frac", &link->utilization_frac}};
    TRY(string_read(node, "name", arena, &link->name));
    return fields_read(node, 0, fields, 1);
}

// --- The critical path

static Status path_total_element(const JsonNode *node, Arena *arena, void *out) {
    SimPathTotal *total = out;
    const NumberField fields[] = {
        {"simulated_s", &total->simulated_s},
        {"estimated_s", &total->estimated_s},
    };
    TRY(string_read(node, "kind", arena, &total->kind));
    TRY(int_read(node, "count", 1, &total->count));
    return fields_read(node, -LARGE, fields, sizeof fields / sizeof *fields);
}

static Status path_item_element(const JsonNode *node, Arena *arena, void *out) {
    SimPathItem *item = out;
    const NumberField fields[] = {{"start_s", &item->start_s}, {"end_s", &item->end_s}};
    TRY(string_read(node, "instruction", arena, &item->instruction));
    TRY(int_read(node, "rank", 0, &item->rank));
    TRY(int_read(node, "stage", 0, &item->stage));
    TRY(int_read(node, "chunk", -1, &item->chunk));
    TRY(int_read(node, "micro_batch", -1, &item->microbatch));
    return fields_read(node, 0, fields, sizeof fields / sizeof *fields);
}

static Status path_read(const JsonNode *root, Arena *arena, SimPath *out) {
    JsonNode path = json_get(root, "critical_path");
    const NumberField slack[] = {{"slack_s", &out->slack_s}};
    void *totals, *items;
    TRY(json_expect_object(&path));
    TRY(list_read(&path, "totals", sizeof *out->totals, path_total_element, arena, &totals,
                  &out->num_totals));
    TRY(fields_read(&path, -LARGE, slack, 1));
    TRY(int_read(&path, "num_instructions", 0, &out->num_instructions));
    TRY(list_read(&path, "instructions", sizeof *out->items, path_item_element, arena, &items,
                  &out->num_items));
    out->totals = totals;
    out->items = items;
    return status_ok();
}

// --- Figures

static Status difference_read(const JsonNode *root, SimDifference *out) {
    JsonNode object = json_get(root, "difference_s");
    const NumberField effects[] = {
        {"model", &out->model_s},           {"spare_bandwidth", &out->spare_bandwidth_s},
        {"contention", &out->contention_s}, {"stragglers", &out->stragglers_s},
        {"jitter", &out->jitter_s},         {"network", &out->network_s},
    };
    return fields_read(&object, -LARGE, effects, sizeof effects / sizeof *effects);
}

static Status disturbed_read(const JsonNode *root, Arena *arena, SimDisturbed *out) {
    JsonNode object = json_get(root, "disturbed");
    if (!json_is_present(&object)) return status_ok();
    const NumberField figures[] = {
        {"undisturbed_step_time_s", &out->undisturbed_step_time_s},
        {"mean_step_time_s", &out->mean_step_time_s},
        {"p95_step_time_s", &out->p95_step_time_s},
    };
    TRY(fields_read(&object, 0, figures, sizeof figures / sizeof *figures));
    const NumberField causes[] = {
        {"stragglers", &out->stragglers_s},
        {"jitter", &out->jitter_s},
        {"network", &out->network_s},
    };
    JsonNode differences = json_get(&object, "difference_s");
    TRY(fields_read(&differences, -LARGE, causes, sizeof causes / sizeof *causes));
    void *steps;
    TRY(list_read(&object, "step_times_s", sizeof(double), number_element, arena, &steps,
                  &out->num_repetitions));
    out->step_times_s = steps;
    return status_ok();
}

static Status numbers_read(const JsonNode *root, SimResult *out) {
    const NumberField fields[] = {
        {"step_time_s", &out->step_time_s},
        {"estimate_step_time_s", &out->estimate_step_time_s},
        {"flow_lost_frac", &out->flow_lost_frac},
        {"flow_gained_frac", &out->flow_gained_frac},
    };
    TRY(fields_read(root, 0, fields, sizeof fields / sizeof *fields));
    JsonNode activities = json_get(root, "activities");
    return json_read_int64(&activities, 0, INT64_MAX, &out->num_activities);
}

static Status lane_element(const JsonNode *node, Arena *arena, void *out) {
    (void)arena;
    return json_read_int(node, 0, INT_MAX, out);
}

// Every block is in a lane, every lane has a block.
static Status lanes_check(const JsonNode *list, const SimResult *result) {
    Arena scratch = {0};
    bool *has_block = ARENA_ARRAY(&scratch, result->num_lanes, bool);
    bool right = true;
    for (int i = 0; right && i < result->num_blocks; i++) {
        right = result->lane_of[i] < result->num_lanes;
        if (right) has_block[result->lane_of[i]] = true;
    }
    for (int lane = 0; right && lane < result->num_lanes; lane++) right = has_block[lane];
    arena_free(&scratch);
    return right ? status_ok() : json_error(list, "it does not name %d lanes", result->num_lanes);
}

static Status lanes_read(const JsonNode *root, Arena *arena, SimResult *out) {
    TRY(int_read(root, "num_folded", 1, &out->num_folded));
    TRY(int_read(root, "num_lanes", 1, &out->num_lanes));
    JsonNode list = json_get(root, "lane_of");
    if (json_is_present(&list)) {
        void *lanes;
        TRY(list_read(root, "lane_of", sizeof(int), lane_element, arena, &lanes, &out->num_blocks));
        out->lane_of = lanes;
        TRY(lanes_check(&list, out));
    }
    return int_read(root, "last_lane", 0, &out->last_lane);
}

static Status result_read(const JsonNode *root, SimKeep keep, FILE *times, Arena *arena,
                          SimResult *out) {
    TRY(numbers_read(root, out));
    TRY(difference_read(root, &out->difference));
    TRY(disturbed_read(root, arena, &out->disturbed));
    JsonNode contended = json_get(root, "contended");
    TRY(string_read(root, "folding", arena, &out->folding));
    TRY(string_read(root, "folding_reason", arena, &out->folding_reason));
    TRY(json_read_bool(&contended, &out->contended));
    void *links, *sentences;
    TRY(list_read(root, "not_played", sizeof(const char *), sentence_element, arena, &sentences,
                  &out->num_not_played));
    out->not_played = sentences;
    TRY(list_read(root, "links", sizeof(SimLink), link_element, arena, &links, &out->num_links));
    out->links = links;
    TRY(path_read(root, arena, &out->path));
    TRY(lanes_read(root, arena, out));
    return times ? sim_times_open(root, times, keep, arena, out) : status_ok();
}

// The document, which has to be of this version.
static Status root_read(const char *text, size_t size, Arena *arena, JsonNode *root) {
    TRY(json_parse(text, size, "answer of meshwright-sim", arena, root));
    JsonNode version = json_get(root, "version");
    const char *theirs;
    TRY(json_read_string(&version, arena, &theirs));
    if (strcmp(theirs, MESHWRIGHT_VERSION) == 0) return status_ok();
    return json_error(&version, "it is of version %s, this program of %s", theirs,
                      MESHWRIGHT_VERSION);
}

bool sim_answer_refuses(const char *text, size_t size, Arena *arena) {
    JsonNode root;
    if (root_read(text, size, arena, &root).code != STATUS_OK) return false;
    return cJSON_IsTrue(json_get(&root, "refused").item);
}

Status sim_answer_read(const char *text, size_t size, SimKeep keep, FILE *times, Arena *arena,
                       SimResult *out) {
    JsonNode root;
    TRY(root_read(text, size, arena, &root));
    return result_read(&root, keep, times, arena, out);
}
