#include "sim/client_answer.h"

#include <limits.h>
#include <string.h>

static const double LARGE = 1e300; // no bound

static Status links_read(const JsonNode *root, Arena *arena, SimResult *out) {
    JsonNode list = json_get(root, "links");
    TRY(json_expect_array(&list));
    out->num_links = json_size(&list);
    SimLink *links = ARENA_ARRAY(arena, out->num_links, SimLink);
    for (int i = 0; i < out->num_links; i++) {
        JsonNode link = json_at(&list, i);
        JsonNode name = json_get(&link, "name"), frac = json_get(&link, "utilization_frac");
        TRY(json_read_string(&name, arena, &links[i].name));
        TRY(json_read_double(&frac, 0, LARGE, &links[i].utilization_frac));
    }
    out->links = links;
    return status_ok();
}

// start_s and end_s of all instructions, as one sequence of pairs in the third file.
static Status times_read(const JsonNode *root, FILE *file, Arena *arena, SimResult *out) {
    JsonNode counts = json_get(root, "num_instructions");
    TRY(json_expect_array(&counts));
    out->num_ranks = json_size(&counts);
    int *num_instructions = ARENA_ARRAY(arena, out->num_ranks, int);
    double **start_s = ARENA_ARRAY(arena, out->num_ranks, double *);
    double **end_s = ARENA_ARRAY(arena, out->num_ranks, double *);
    rewind(file);
    for (int rank = 0; rank < out->num_ranks; rank++) {
        JsonNode count = json_at(&counts, rank);
        TRY(json_read_int(&count, 0, INT_MAX, &num_instructions[rank]));
        start_s[rank] = ARENA_ARRAY(arena, num_instructions[rank], double);
        end_s[rank] = ARENA_ARRAY(arena, num_instructions[rank], double);
        for (int i = 0; i < num_instructions[rank]; i++) {
            double pair[2];
            if (fread(pair, sizeof pair, 1, file) != 1)
                return json_error(&count, "times are missing");
            start_s[rank][i] = pair[0];
            end_s[rank][i] = pair[1];
        }
    }
    out->num_instructions = num_instructions;
    out->start_s = (const double *const *)start_s;
    out->end_s = (const double *const *)end_s;
    return status_ok();
}

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
    JsonNode steps = json_get(&object, "step_times_s");
    TRY(json_expect_array(&steps));
    out->num_repetitions = json_size(&steps);
    double *step_times_s = ARENA_ARRAY(arena, out->num_repetitions, double);
    const cJSON *item = steps.item->child;
    for (int i = 0; i < out->num_repetitions; i++, item = item->next) {
        JsonNode step = {.file = steps.file, .item = item, .parent = &steps, .index = i};
        TRY(json_read_double(&step, 0, LARGE, &step_times_s[i]));
    }
    out->step_times_s = step_times_s;
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

static Status result_read(const JsonNode *root, FILE *times, Arena *arena, SimResult *out) {
    TRY(numbers_read(root, out));
    TRY(disturbed_read(root, arena, &out->disturbed));
    JsonNode folding = json_get(root, "folding"), reason = json_get(root, "folding_reason");
    JsonNode contended = json_get(root, "contended");
    TRY(json_read_string(&folding, arena, &out->folding));
    TRY(json_read_string(&reason, arena, &out->folding_reason));
    TRY(json_read_bool(&contended, &out->contended));
    TRY(links_read(root, arena, out));
    return times ? times_read(root, times, arena, out) : status_ok();
}

Status sim_answer_read(const char *text, size_t size, FILE *times, Arena *arena, SimResult *out) {
    JsonNode root;
    TRY(json_parse(text, size, "answer of meshwright-sim", arena, &root));
    JsonNode version = json_get(&root, "version");
    const char *theirs;
    TRY(json_read_string(&version, arena, &theirs));
    if (strcmp(theirs, MESHWRIGHT_VERSION) != 0) {
        return json_error(&version, "it is of version %s, this program of %s", theirs,
                          MESHWRIGHT_VERSION);
    }
    return result_read(&root, times, arena, out);
}
