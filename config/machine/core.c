#include "config/machine/core.h"

const char *const CORE_LOOP_NAMES[NUM_CORE_LOOPS + 1] = {
    "add",  "rmsnorm",   "layernorm",     "activation", "gated_activation",
    "rope", "embedding", "cross_entropy", "optimizer",  NULL};

const char *const CORE_PRODUCT_NAMES[CORE_NUM_PRODUCTS + 1] = {"forward", "backward_input",
                                                               "backward_weight", NULL};

static const char *const DIRECTIONS[] = {"forward", "backward", NULL};

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define NUMBER(type, key, low, high)                                                               \
    { #key, JSON_FIELD_DOUBLE, offsetof(type, key), low, high, NULL, true }
#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, true }

static const JsonField PRODUCT_FIELDS[] = {
    NUMBER(CoreProduct, flops_per_s, 1e6, 1e16), NUMBER(CoreProduct, half_m, 0, 1e5),
    NUMBER(CoreProduct, half_n, 0, 1e5),         NUMBER(CoreProduct, half_k, 0, 1e5),
    NUMBER(CoreProduct, call_s, 0, 1),
};

static const JsonField ATTENTION_FIELDS[] = {
    NUMBER(CoreAttention, flops_per_s, 1e6, 1e16),
    NUMBER(CoreAttention, half_tokens, 0, 1e6),
    NUMBER(CoreAttention, half_head_dim, 0, 1e5),
    NUMBER(CoreAttention, call_s, 0, 1),
};

static const JsonField LAWS_FIELDS[] = {
    OTHER("products"),
    OTHER("attention"),
    OTHER("loops_bytes_per_s"),
    NUMBER(CoreLaws, angle_s, 0, 1),
    NUMBER(CoreLaws, call_s, 0, 1),
};

// Members by name, each read by a table; all are there and no others.
static Status members_read(const JsonNode *node, const char *const *names, const JsonField *fields,
                           size_t num_fields, Arena *arena, char *out, size_t size) {
    JsonField known[3] = {OTHER(NULL), OTHER(NULL), OTHER(NULL)};
    size_t num_names = 0;
    for (; names[num_names]; num_names++) known[num_names].key = names[num_names];
    TRY(json_expect_object(node));
    TRY(json_refuse_unknown(node, known, num_names));
    for (size_t i = 0; i < num_names; i++) {
        JsonNode member = json_get(node, names[i]);
        if (!json_is_present(&member)) return json_error(&member, "missing");
        TRY(json_read_object(&member, fields, num_fields, arena, out + i * size));
    }
    return status_ok();
}

static Status loops_read(const JsonNode *node, CoreLaws *out) {
    JsonField known[NUM_CORE_LOOPS];
    for (int i = 0; i < NUM_CORE_LOOPS; i++) known[i] = (JsonField)OTHER(CORE_LOOP_NAMES[i]);
    TRY(json_expect_object(node));
    TRY(json_refuse_unknown(node, known, NUM_CORE_LOOPS));
    for (int i = 0; i < NUM_CORE_LOOPS; i++) {
        JsonNode loop = json_get(node, CORE_LOOP_NAMES[i]);
        TRY(json_read_numbers(&loop, DIRECTIONS, 2, 1e5, 1e14, true, out->bytes_per_s[i]));
    }
    return status_ok();
}

static Status laws_read(const JsonNode *node, Arena *arena, CoreLaws *out) {
    JsonNode products = json_get(node, "products"), attention = json_get(node, "attention");
    JsonNode loops = json_get(node, "loops_bytes_per_s");
    TRY(json_read_object(node, LAWS_FIELDS, COUNT(LAWS_FIELDS), arena, out));
    TRY(members_read(&products, CORE_PRODUCT_NAMES, PRODUCT_FIELDS, COUNT(PRODUCT_FIELDS), arena,
                     (char *)out->products, sizeof(CoreProduct)));
    TRY(members_read(&attention, DIRECTIONS, ATTENTION_FIELDS, COUNT(ATTENTION_FIELDS), arena,
                     (char *)out->attention, sizeof(CoreAttention)));
    TRY(loops_read(&loops, out));
    out->present = true;
    return status_ok();
}

Status core_read(const JsonNode *node, const char *const *precisions, Arena *arena, CoreLaws *out) {
    TRY(json_expect_object(node));
    enum { MOST = 16 };
    JsonField known[MOST];
    size_t num = 0;
    for (; precisions[num] && num < MOST; num++) known[num] = (JsonField)OTHER(precisions[num]);
    TRY(json_refuse_unknown(node, known, num));
    for (size_t i = 0; i < num; i++) {
        JsonNode laws = json_get(node, precisions[i]);
        if (json_is_present(&laws)) TRY(laws_read(&laws, arena, &out[i]));
    }
    return status_ok();
}

// --- Writing

static void fields_add(cJSON *object, const JsonField *fields, size_t num_fields,
                       const void *from) {
    for (size_t i = 0; i < num_fields; i++) {
        const double *number =
            (const double *)(const void *)((const char *)from + fields[i].offset);
        json_add_number(object, fields[i].key, *number);
    }
}

cJSON *core_to_json(const CoreLaws *laws) {
    cJSON *tree = cJSON_CreateObject();
    cJSON *products = cJSON_AddObjectToObject(tree, "products");
    for (int i = 0; i < CORE_NUM_PRODUCTS; i++)
        fields_add(cJSON_AddObjectToObject(products, CORE_PRODUCT_NAMES[i]), PRODUCT_FIELDS,
                   COUNT(PRODUCT_FIELDS), &laws->products[i]);
    cJSON *attention = cJSON_AddObjectToObject(tree, "attention");
    for (int i = 0; i < 2; i++)
        fields_add(cJSON_AddObjectToObject(attention, DIRECTIONS[i]), ATTENTION_FIELDS,
                   COUNT(ATTENTION_FIELDS), &laws->attention[i]);
    cJSON *loops = cJSON_AddObjectToObject(tree, "loops_bytes_per_s");
    for (int i = 0; i < NUM_CORE_LOOPS; i++) {
        cJSON *loop = cJSON_AddObjectToObject(loops, CORE_LOOP_NAMES[i]);
        for (int d = 0; d < 2; d++) json_add_number(loop, DIRECTIONS[d], laws->bytes_per_s[i][d]);
    }
    json_add_number(tree, "angle_s", laws->angle_s);
    json_add_number(tree, "call_s", laws->call_s);
    return tree;
}
