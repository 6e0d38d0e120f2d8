#include "config/software/dispatcher.h"

#include "config/machine/profile.h"

#define NUMBER(key, low, high)                                                                     \
    { #key, JSON_FIELD_DOUBLE, offsetof(Dispatcher, key), low, high, NULL, true }

static const JsonField FIELDS[] = {
    {"schema", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
    {"name", JSON_FIELD_STRING, offsetof(Dispatcher, name), 0, 0, NULL, true},
    {"title", JSON_FIELD_STRING, offsetof(Dispatcher, title), 0, 0, NULL, true},
    {"sources", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
    {"num_sms", JSON_FIELD_INT, offsetof(Dispatcher, num_sms), 1, 1000, NULL, true},
    NUMBER(sm_bytes_per_s, 1e6, 1e14),
    NUMBER(sm_forward_bytes_per_s, 1e6, 1e14),
    NUMBER(sm_reduce_bytes_per_s, 1e6, 1e14),
    NUMBER(link_efficiency_frac, 0.01, 1),
    NUMBER(nic_efficiency_frac, 0.01, 1),
    NUMBER(latency_s, 0, 1),
    NUMBER(domain_latency_s, 0, 1),
    NUMBER(fill_s, 0, 1),
};

Status dispatcher_load_named(const char *name, Arena *arena, Dispatcher *out) {
    JsonNode root;
    TRY(profile_load_named(NULL, "dispatcher", "hw-profiles/dispatchers", name, arena, &root));
    Dispatcher dispatcher = {0};
    TRY(json_read_object(&root, FIELDS, sizeof FIELDS / sizeof *FIELDS, arena, &dispatcher));
    JsonNode schema = json_get(&root, "schema"), sources = json_get(&root, "sources");
    int version;
    TRY(json_read_int(&schema, 1, 1, &version));
    TRY(json_expect_object(&sources));
    *out = dispatcher;
    return status_ok();
}
