#include "config/machine/architecture.h"

#include "base/data_dir.h"
#include "base/json.h"
#include "config/machine/profile.h"

#include <string.h>
#include <unistd.h>

static const char FOLDER[] = "hw-profiles/architectures";

#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, true }
#define SHARE(key, field, low, high, required)                                                     \
    { key, JSON_FIELD_DOUBLE, offsetof(OlderAttention, field), low, high, NULL, required }

static const JsonField FIELDS[] = {
    OTHER("schema"),
    {"name", JSON_FIELD_STRING, offsetof(GpuArchitecture, name), 0, 0, NULL, true},
    OTHER("title"),
    OTHER("attention"),
    OTHER("products"),
    {"fp8_sums_along_rows_only", JSON_FIELD_BOOL,
     offsetof(GpuArchitecture, fp8_sums_along_rows_only), 0, 0, NULL, true},
    OTHER("sources"),
};

static const JsonField ATTENTION_FIELDS[] = {
    {"backward_192_frac", JSON_FIELD_DOUBLE, offsetof(GpuArchitecture, backward_192_frac), 0.1, 1,
     NULL, true},
    OTHER("older"),
};

static const JsonField PRODUCT_FIELDS[] = {
    {"unaligned_frac", JSON_FIELD_DOUBLE, offsetof(GpuArchitecture, unaligned_frac), 0.01, 1, NULL,
     true},
    {"odd_frac", JSON_FIELD_DOUBLE, offsetof(GpuArchitecture, odd_frac), 0.01, 1, NULL, true},
};

static const JsonField OLDER_FIELDS[] = {
    {"generation", JSON_FIELD_INT, offsetof(OlderAttention, generation), 1, 100, NULL, true},
    SHARE("forward_frac", forward.frac, 0.01, 1, true),
    SHARE("forward_half_tokens", forward.half_tokens, 1, 1e6, false),
    SHARE("forward_head64_frac", forward.head64_frac, 0.1, 1, false),
    SHARE("backward_frac", backward.frac, 0.01, 1, true),
    SHARE("backward_half_tokens", backward.half_tokens, 1, 1e6, false),
    SHARE("backward_head64_frac", backward.head64_frac, 0.1, 1, false),
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static Status architecture_read(const JsonNode *root, Arena *arena, GpuArchitecture *out) {
    GpuArchitecture own = {0};
    const JsonNode schema = json_get(root, "schema"), attention = json_get(root, "attention");
    const JsonNode products = json_get(root, "products");
    const JsonNode older = json_get(&attention, "older"), sources = json_get(root, "sources");
    int version;
    TRY(json_read_object(root, FIELDS, COUNT(FIELDS), arena, &own));
    TRY(json_read_int(&schema, 1, 1, &version));
    TRY(json_read_object(&attention, ATTENTION_FIELDS, COUNT(ATTENTION_FIELDS), arena, &own));
    TRY(json_read_object(&products, PRODUCT_FIELDS, COUNT(PRODUCT_FIELDS), arena, &own));
    TRY(json_expect_items(&older, "kernels", MAX_OLDER_ATTENTION, &own.num_older));
    for (int i = 0; i < own.num_older; i++) {
        const JsonNode one = json_at(&older, i);
        TRY(json_read_object(&one, OLDER_FIELDS, COUNT(OLDER_FIELDS), arena, &own.older[i]));
    }
    TRY(json_expect_object(&sources));
    *out = own;
    return status_ok();
}

Status architecture_load(const char *name, Arena *arena, const GpuArchitecture **out) {
    const bool known = !strchr(name, '/') && access(data_path(arena, FOLDER, name), F_OK) == 0;
    JsonNode root;
    TRY(profile_load_named(NULL, "architecture", FOLDER, known ? name : "other", arena, &root));
    GpuArchitecture *own = ARENA_NEW(arena, GpuArchitecture);
    *out = own;
    return architecture_read(&root, arena, own);
}
