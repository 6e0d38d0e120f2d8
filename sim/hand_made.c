#include "sim/hand_made.h"

static Status links_read(const JsonNode *root, Arena *arena, Network *network) {
    JsonNode list = json_get(root, "link_bytes_per_s");
    TRY(json_expect_array(&list));
    network->num_links = json_size(&list);
    network->link_bytes_per_s = ARENA_ARRAY(arena, network->num_links, double);
    for (int i = 0; i < network->num_links; i++) {
        JsonNode link = json_at(&list, i);
        TRY(json_read_double(&link, 1, 1e15, &network->link_bytes_per_s[i]));
    }
    return status_ok();
}

static Status flaps_read(const JsonNode *root, Arena *arena, Network *network) {
    JsonNode list = json_get(root, "flaps");
    if (!json_is_present(&list)) return status_ok();
    TRY(json_expect_array(&list));
    network->num_flaps = json_size(&list);
    network->flaps = ARENA_ARRAY(arena, network->num_flaps, LinkFlap);
    const JsonField fields[] = {
        {"link", JSON_FIELD_INT, offsetof(LinkFlap, link), 0, network->num_links - 1, NULL, true},
        {"period_s", JSON_FIELD_DOUBLE, offsetof(LinkFlap, period_s), 1e-6, 1e6, NULL, true},
        {"down_s", JSON_FIELD_DOUBLE, offsetof(LinkFlap, down_s), 0, 1e6, NULL, true},
        {"first_down_s", JSON_FIELD_DOUBLE, offsetof(LinkFlap, first_down_s), -1e6, 1e6, NULL,
         true},
    };
    for (int i = 0; i < network->num_flaps; i++) {
        JsonNode flap = json_at(&list, i);
        LinkFlap *out = &network->flaps[i];
        TRY(json_read_object(&flap, fields, sizeof fields / sizeof *fields, arena, out));
        out->bytes_per_s = network->link_bytes_per_s[out->link];
    }
    return status_ok();
}

// Reads a list of at most max_size indices below `end`.
static Status indices_read(const JsonNode *list, int max_size, int end, int *indices, int *size) {
    *size = 0;
    if (!json_is_present(list)) return status_ok();
    TRY(json_expect_array(list));
    if (json_size(list) > max_size) return json_error(list, "more than %d entries", max_size);
    for (int i = 0; i < json_size(list); i++) {
        JsonNode index = json_at(list, i);
        TRY(json_read_int(&index, 0, end - 1, &indices[(*size)++]));
    }
    return status_ok();
}

static Status activity_read(const JsonNode *value, int num_activities, const Network *network,
                            Arena *arena, DagBuilder *builder) {
    struct {
        double delay_s, bytes;
    } activity = {0};
    const JsonField fields[] = {
        {.key = "delay_s", .kind = JSON_FIELD_DOUBLE, .offset = 0, .max = 1e9},
        {.key = "bytes", .kind = JSON_FIELD_DOUBLE, .offset = sizeof(double), .max = 1e18},
        {.key = "links", .kind = JSON_FIELD_OTHER},
        {.key = "after", .kind = JSON_FIELD_OTHER},
    };
    TRY(json_read_object(value, fields, sizeof fields / sizeof *fields, arena, &activity));
    DagRoute route = {0};
    JsonNode links = json_get(value, "links"), after = json_get(value, "after");
    TRY(indices_read(&links, MAX_HOPS, network->num_links, route.links, &route.num_links));
    int index = route.num_links > 0 ? dag_add_links(builder, &route) : NO_ROUTE;
    int node = dag_add_flow(builder, activity.delay_s, activity.bytes, index);
    int *before = ARENA_ARRAY(arena, num_activities, int), num_before;
    TRY(indices_read(&after, num_activities, num_activities, before, &num_before));
    for (int i = 0; i < num_before; i++) dag_add_wait(builder, before[i], node);
    return status_ok();
}

Status hand_made_read(const JsonNode *root, Arena *arena, Network *network, Dag *dag) {
    *network = (Network){0};
    static const JsonField fields[] = {
        {.key = "link_bytes_per_s", .kind = JSON_FIELD_OTHER, .required = true},
        {.key = "activities", .kind = JSON_FIELD_OTHER, .required = true},
        {.key = "flaps", .kind = JSON_FIELD_OTHER},
    };
    TRY(json_read_object(root, fields, sizeof fields / sizeof *fields, arena, NULL));
    TRY(links_read(root, arena, network));
    TRY(flaps_read(root, arena, network));
    JsonNode list = json_get(root, "activities");
    TRY(json_expect_array(&list));
    DagBuilder builder = {.arena = arena};
    for (int i = 0; i < json_size(&list); i++) {
        JsonNode activity = json_at(&list, i);
        TRY(activity_read(&activity, json_size(&list), network, arena, &builder));
    }
    *dag = dag_finish(&builder);
    return status_ok();
}
