#include "whatif/change.h"

#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

#define TRAINING "{\"seq_len\": 4096, \"global_batch\": 64}"

static Scenario opened_of(const char *model, const char *parallel, Arena *arena) {
    Scenario scenario = {0};
    Status status = scenario_of(scenario_text(arena, model, "\"dgx-h100:2\"", TRAINING, parallel),
                                arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return scenario;
}

static Scenario opened(const char *parallel, Arena *arena) {
    return opened_of("\"llama-3.1-8b\"", parallel, arena);
}

static cJSON *base_of(const Scenario *scenario, const char *path, bool replan, Arena *arena) {
    const cJSON *base = NULL;
    Status status = change_base(scenario, &path, 1, replan, arena, &base);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return cJSON_Duplicate(base, true);
}

static const char *printed(const cJSON *json, Arena *arena) {
    char *text = cJSON_PrintUnformatted(json);
    const char *copy = arena_strdup(arena, text);
    cJSON_free(text);
    return copy;
}

static void a_preset_is_written_out_as_the_same_cluster(void) {
    Arena arena = {0};
    Scenario scenario = opened(NULL, &arena), again;
    cJSON *document = base_of(&scenario, "cluster.num_gpus", false, &arena);
    CU_ASSERT_TRUE(cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(document, "cluster")));
    Status status = scenario_of(printed(document, &arena), &arena, &again);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    Cluster a = scenario.cluster, b = again.cluster;
    CU_ASSERT(a.num_gpus == b.num_gpus && a.num_nodes == b.num_nodes);
    CU_ASSERT(a.pools[0].gpus_per_node == b.pools[0].gpus_per_node &&
              a.pools[0].domain_gpus == b.pools[0].domain_gpus);
    CU_ASSERT(a.pools[0].nics_per_node == b.pools[0].nics_per_node &&
              a.pools[0].nic_bytes_per_s == b.pools[0].nic_bytes_per_s);
    CU_ASSERT(a.pools[0].topology == b.pools[0].topology &&
              a.pools[0].oversubscription == b.pools[0].oversubscription);
    CU_ASSERT_EQUAL(a.pools[0].price_usd_per_gpu_hour, b.pools[0].price_usd_per_gpu_hour);
    CU_ASSERT_EQUAL(a.pools[0].power_watts_per_gpu, b.pools[0].power_watts_per_gpu);
    CU_ASSERT_STRING_EQUAL(a.pools[0].scale_up.name, b.pools[0].scale_up.name);
    CU_ASSERT_STRING_EQUAL(a.pools[0].gpu.name, b.pools[0].gpu.name);
    cJSON_Delete(document);
    arena_free(&arena);
}

static void a_preset_is_written_out_as_the_same_model(void) {
    Arena arena = {0};
    Scenario scenario = opened(NULL, &arena), again;
    cJSON *document = base_of(&scenario, "model.num_hidden_layers", false, &arena);
    Status status = scenario_of(printed(document, &arena), &arena, &again);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(model_num_parameters(&scenario.model), model_num_parameters(&again.model));
    CU_ASSERT_STRING_EQUAL(again.model.name, "llama-3.1-8b");
    cJSON_Delete(document);
    arena_free(&arena);
}

static void a_preset_that_is_replaced_stays_a_name(void) {
    Arena arena = {0};
    Scenario scenario = opened(NULL, &arena);
    cJSON *document = base_of(&scenario, "cluster", false, &arena);
    CU_ASSERT_TRUE(cJSON_IsString(cJSON_GetObjectItemCaseSensitive(document, "cluster")));
    cJSON_Delete(document);
    arena_free(&arena);
}

// Sets a number at a path of {"a": {"b": 1}, "l": [{"x": 1}, 2], "s": "text"}.
static const char *set(const char *path, Arena *arena) {
    Scenario scenario = {.file = "job.json"};
    cJSON *document = cJSON_Parse("{\"a\":{\"b\":1},\"l\":[{\"x\":1},2],\"s\":\"text\"}");
    cJSON *value = cJSON_CreateNumber(7);
    Status status = change_set(&scenario, document, path, value);
    const char *text =
        status.code == STATUS_OK ? printed(document, arena) : arena_strdup(arena, status.text);
    cJSON_Delete(document);
    cJSON_Delete(value);
    return text;
}

#define ASSERT_SET(path, expected) CU_ASSERT_STRING_EQUAL(set(path, &arena), expected)

static void a_path_leads_through_objects_and_lists(void) {
    Arena arena = {0};
    ASSERT_SET("a.b", "{\"a\":{\"b\":7},\"l\":[{\"x\":1},2],\"s\":\"text\"}");
    ASSERT_SET("a.c", "{\"a\":{\"b\":1,\"c\":7},\"l\":[{\"x\":1},2],\"s\":\"text\"}");
    ASSERT_SET("a", "{\"a\":7,\"l\":[{\"x\":1},2],\"s\":\"text\"}");
    ASSERT_SET("l[0].x", "{\"a\":{\"b\":1},\"l\":[{\"x\":7},2],\"s\":\"text\"}");
    ASSERT_SET("l[1]", "{\"a\":{\"b\":1},\"l\":[{\"x\":1},7],\"s\":\"text\"}");
    ASSERT_SET("n.m", "{\"a\":{\"b\":1},\"l\":[{\"x\":1},2],\"s\":\"text\",\"n\":{\"m\":7}}");
    ASSERT_SET("s.t", "{\"a\":{\"b\":1},\"l\":[{\"x\":1},2],\"s\":{\"t\":7}}");
    arena_free(&arena);
}

static void a_path_that_leads_nowhere_is_refused(void) {
    Arena arena = {0};
    ASSERT_SET("", "job.json: not a path; expected keys joined by dots");
    ASSERT_SET("a.", "job.json: a.: not a path; expected keys joined by dots");
    ASSERT_SET(".a", "job.json: .a: not a path; expected keys joined by dots");
    ASSERT_SET("a..b", "job.json: a..b: not a path; expected keys joined by dots");
    ASSERT_SET("l[x]", "job.json: l[x]: not a path; expected keys joined by dots");
    ASSERT_SET("a.b.c", "job.json: a.b.c: leads into something that is no object or list");
    ASSERT_SET("l[2]", "job.json: l[2]: leads beyond the end of a list, or into no list");
    ASSERT_SET("a[0]", "job.json: a[0]: leads beyond the end of a list, or into no list");
    ASSERT_SET("m[0].x", "job.json: m[0].x: leads into something that is no object or list");
    arena_free(&arena);
}

static const char *derived(const char *path, Arena *arena) {
    cJSON *document = cJSON_Parse("{\"parallel\":{\"tp\":2,\"dp\":4,\"zero_group\":4,\"vpp\":1,"
                                  "\"schedule\":\"1f1b\",\"stages\":[]}}");
    change_derive(document, &path, 1);
    const char *text = printed(cJSON_GetObjectItemCaseSensitive(document, "parallel"), arena);
    cJSON_Delete(document);
    return text;
}

#define ASSERT_DERIVED(path, expected) CU_ASSERT_STRING_EQUAL(derived(path, &arena), expected)

static void what_follows_from_a_varied_key_is_left_out(void) {
    Arena arena = {0};
    ASSERT_DERIVED("cluster.num_gpus", "{\"tp\":2,\"vpp\":1,\"schedule\":\"1f1b\",\"stages\":[]}");
    ASSERT_DERIVED("parallel.pp", "{\"tp\":2,\"vpp\":1,\"schedule\":\"1f1b\"}");
    ASSERT_DERIVED("parallel.vpp", "{\"tp\":2,\"dp\":4,\"zero_group\":4,\"vpp\":1}");
    ASSERT_DERIVED("model", "{\"tp\":2,\"dp\":4,\"zero_group\":4,\"vpp\":1,\"schedule\":\"1f1b\"}");
    ASSERT_DERIVED("training.seq_len", "{\"tp\":2,\"dp\":4,\"zero_group\":4,\"vpp\":1,"
                                       "\"schedule\":\"1f1b\",\"stages\":[]}");
    arena_free(&arena);
}

static void what_is_varied_itself_stays(void) {
    Arena arena = {0};
    cJSON *document = cJSON_Parse("{\"parallel\":{\"tp\":2,\"dp\":4,\"zero_group\":4}}");
    change_derive(document, (const char *const[]){"parallel.tp", "parallel.dp"}, 2);
    CU_ASSERT_STRING_EQUAL(printed(document, &arena), "{\"parallel\":{\"tp\":2,\"dp\":4}}");
    cJSON_Delete(document);
    arena_free(&arena);
}

static Status checked_of(const char *model, const char *path, const char *value, Arena *arena) {
    Scenario scenario = opened_of(model, NULL, arena);
    cJSON *base = base_of(&scenario, path, false, arena), *json = cJSON_Parse(value);
    Status status = change_check_path(&scenario, base, path, json);
    cJSON_Delete(base);
    cJSON_Delete(json);
    return status;
}

static Status checked(const char *path, const char *value, Arena *arena) {
    return checked_of("\"llama-3.1-8b\"", path, value, arena);
}

#define GEMMA                                                                                      \
    "{\"model_type\": \"gemma3\", \"text_config\": {\"num_hidden_layers\": 12}, "                  \
    "\"vision_config\": {\"image_size\": 896, \"patch_size\": 14}}"

// What is beside text_config is not read: varied, it would change nothing.
static void keys_of_a_model_are_those_that_are_read(void) {
    Arena arena = {0};
    ASSERT_REFUSED(checked_of(GEMMA, "model.num_hidden_layers", "24", &arena),
                   "job.json: model.num_hidden_layers: not read, as this model's text_config is; "
                   "expected model.text_config.num_hidden_layers");
    CU_ASSERT_EQUAL(checked_of(GEMMA, "model.text_config.hidden_size", "64", &arena).code,
                    STATUS_OK);
    CU_ASSERT_EQUAL(checked_of(GEMMA, "model.vision_config.num_hidden_layers", "3", &arena).code,
                    STATUS_OK);
    CU_ASSERT_EQUAL(checked_of(GEMMA, "model.tie_word_embeddings", "true", &arena).code, STATUS_OK);
    ASSERT_REFUSED(checked_of(GEMMA, "model.vision_config.hidden_sise", "3", &arena),
                   "job.json: model.vision_config.hidden_sise: unknown key; the nearest known one "
                   "is \"hidden_size\"");
    CU_ASSERT_EQUAL(checked_of("\"t5-3b\"", "model.num_decoder_layers", "3", &arena).code,
                    STATUS_OK);
    ASSERT_REFUSED(checked_of("\"t5-3b\"", "model.num_experts", "3", &arena),
                   "job.json: model.num_experts: unknown key; the nearest known one is "
                   "\"num_layers\"");
    arena_free(&arena);
}

static void an_unknown_key_is_refused_with_the_nearest(void) {
    Arena arena = {0};
    ASSERT_REFUSED(checked("cluster.num_gpu", "64", &arena),
                   "job.json: cluster.num_gpu: unknown key; the nearest known one is \"num_gpus\"");
    ASSERT_REFUSED(checked("traning.seq_len", "64", &arena),
                   "job.json: traning: unknown key; the nearest known one is \"training\"");
    ASSERT_REFUSED(checked("training.seqlen", "64", &arena),
                   "job.json: training.seqlen: unknown key; the nearest known one is \"seq_len\"");
    ASSERT_REFUSED(checked("model.hidden_layers", "64", &arena),
                   "job.json: model.hidden_layers: unknown key; the nearest known one is "
                   "\"num_hidden_layers\"");
    ASSERT_REFUSED(checked("cluster.scale_out.nic_bytes", "64", &arena),
                   "job.json: cluster.scale_out.nic_bytes: unknown key; the nearest known one is "
                   "\"nic_bytes_per_s\"");
    arena_free(&arena);
}

static void a_known_key_with_a_bad_value_is_no_unknown_key(void) {
    Arena arena = {0};
    CU_ASSERT_EQUAL(checked("cluster.num_gpus", "-1", &arena).code, STATUS_OK);
    CU_ASSERT_EQUAL(checked("parallel.tp", "\"x\"", &arena).code, STATUS_OK);
    CU_ASSERT_EQUAL(checked("training.moe_routing.imbalance", "2", &arena).code, STATUS_OK);
    CU_ASSERT_EQUAL(checked("model.sliding_window", "1024", &arena).code, STATUS_OK);
    arena_free(&arena);
}

CU_TestInfo change_tests[] = {
    {"a_preset_is_written_out_as_the_same_cluster", a_preset_is_written_out_as_the_same_cluster},
    {"a_preset_is_written_out_as_the_same_model", a_preset_is_written_out_as_the_same_model},
    {"a_preset_that_is_replaced_stays_a_name", a_preset_that_is_replaced_stays_a_name},
    {"a_path_leads_through_objects_and_lists", a_path_leads_through_objects_and_lists},
    {"a_path_that_leads_nowhere_is_refused", a_path_that_leads_nowhere_is_refused},
    {"what_follows_from_a_varied_key_is_left_out", what_follows_from_a_varied_key_is_left_out},
    {"what_is_varied_itself_stays", what_is_varied_itself_stays},
    {"an_unknown_key_is_refused_with_the_nearest", an_unknown_key_is_refused_with_the_nearest},
    {"keys_of_a_model_are_those_that_are_read", keys_of_a_model_are_those_that_are_read},
    {"a_known_key_with_a_bad_value_is_no_unknown_key",
     a_known_key_with_a_bad_value_is_no_unknown_key},
    CU_TEST_INFO_NULL,
};
