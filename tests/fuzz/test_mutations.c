// No spoiled document makes the program crash, hang, leak or fail without a sentence.
//
// Scenarios of tests/fuzz/seeds and bundled model files are spoiled and read. Under the sanitizers
// this also proves the absence of overruns, undefined arithmetic and leaks.
#include "base/data_dir.h"
#include "costmodel/step/estimate.h"
#include "plan/plan.h"
#include "tests/fuzz/mutate.h"
#include "tests/sample.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NUM_CASES = 20000, MAX_SEEDS = 32 };
enum { MOST_WORK = 10000 }; // chunks x micro-batches of an estimate: keeps the test short
#define CASE_LIMIT_S 1.0

typedef struct {
    char *text[MAX_SEEDS];
    size_t size[MAX_SEEDS];
    int num_seeds;
} Seeds;

static void seed_add(Seeds *seeds, const char *before, const char *path, const char *after) {
    static char text[MUTATE_MAX_BYTES];
    FILE *stream = fopen(path, "r");
    if (!stream) fprintf(stderr, "%s: cannot be read\n", path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    size_t used = (size_t)snprintf(text, sizeof text, "%s", before);
    used += fread(text + used, 1, sizeof text - used - strlen(after) - 1, stream);
    used += (size_t)snprintf(text + used, sizeof text - used, "%s", after);
    fclose(stream);
    seeds->text[seeds->num_seeds] = malloc(used + 1);
    memcpy(seeds->text[seeds->num_seeds], text, used + 1); // with the NUL
    seeds->size[seeds->num_seeds++] = used;
}

static void seeds_load(Seeds *seeds) {
    static const char *const SCENARIOS[] = {
        "dense.json", "experts.json", "fsdp.json",   "long_context.json", "disturbed.json",
        "mixed.json", "small.json",   "sparse.json", "commented.jsonc",   "job.yaml"};
    static const char *const MODELS[] = {"llama-3.1-8b", "gpt2-124m",     "mixtral-8x7b",
                                         "deepseek-v3",  "qwen3-30b-a3b", "gpt-oss-120b"};
    Arena arena = {0};
    for (size_t i = 0; i < sizeof SCENARIOS / sizeof *SCENARIOS; i++)
        seed_add(seeds, "",
                 arena_printf(&arena, MESHWRIGHT_SOURCE_DIR "/tests/fuzz/seeds/%s", SCENARIOS[i]),
                 "");
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++)
        seed_add(seeds, "{\"schema\": 1, \"model\": ", data_path(&arena, "models", MODELS[i]),
                 ", \"cluster\": \"dgx-h100:1\", \"training\": {\"seq_len\": 1024, "
                 "\"global_batch\": 64}}");
    arena_free(&arena);
}

static void seeds_free(Seeds *seeds) {
    for (int i = 0; i < seeds->num_seeds; i++) free(seeds->text[i]);
}

// The name that a document's format goes by: the seed in YAML begins with a comment.
static const char *file_of(const char *text) {
    return text[0] == '#' ? MESHWRIGHT_SOURCE_DIR "/tests/fuzz/case.yaml"
                          : MESHWRIGHT_SOURCE_DIR "/tests/fuzz/case.json";
}

// Everything that is done with a document, as far as it goes.
static Status document_use(const char *text, size_t size, Arena *arena) {
    JsonNode root;
    Scenario scenario;
    Plan plan;
    TRY(json_parse(text, size, file_of(text), arena, &root));
    TRY(scenario_read(&root, arena, &scenario));
    TRY(plan_resolve(&scenario, arena, &plan));
    CU_ASSERT_EQUAL(plan_check(&scenario, &plan).code, STATUS_OK);
    CU_ASSERT_EQUAL((int64_t)plan.tp * plan.cp * plan.dp * plan.pp, scenario.cluster.num_gpus);
    CU_ASSERT(strlen(plan_describe(&plan, arena)) > 0);
    cJSON *document = plan_document(&scenario, &plan, NULL);
    CU_ASSERT_PTR_NOT_NULL(document);
    cJSON_Delete(document);
    TRY(scenario_refuse_unsupported(&scenario));
    if (plan.num_microbatches * plan.num_chunks > MOST_WORK) return status_ok();
    Estimate estimate;
    TRY(estimate_plan(&scenario, &plan, arena, &estimate, NULL));
    CU_ASSERT(isfinite(estimate.step_time_s) && estimate.step_time_s > 0);
    CU_ASSERT(isfinite(estimate.memory.device_bytes) && estimate.memory.device_bytes > 0);
    bool is_within = estimate.step_time_low_s <= estimate.step_time_s &&
                     estimate.step_time_s <= estimate.step_time_high_s;
    CU_ASSERT_TRUE(is_within);
    if (!is_within)
        fprintf(stderr, "%.9g s, not within %.9g to %.9g, for\n%.*s\n", estimate.step_time_s,
                estimate.step_time_low_s, estimate.step_time_high_s, (int)size, text);
    return status_ok();
}

// One case: an answer or a refusal with a sentence, soon.
//   returns  whether the document was accepted
static bool case_run(const char *text, size_t size) {
    Arena arena = {0};
    clock_t start = clock();
    Status status = document_use(text, size, &arena);
    double took_s = (double)(clock() - start) / CLOCKS_PER_SEC;
    arena_free(&arena);
    bool answered = status.code == STATUS_OK;
    bool refused = status.code == STATUS_INVALID && strlen(status.text) > 10;
    CU_ASSERT_TRUE(answered || refused);
    CU_ASSERT(took_s < CASE_LIMIT_S);
    if ((!answered && !refused) || took_s >= CASE_LIMIT_S)
        fprintf(stderr, "%.3f s, code %d, \"%s\" for\n%.*s\n", took_s, status.code, status.text,
                (int)size, text);
    return answered;
}

static void seeds_themselves_are_read(void) {
    Seeds seeds = {0};
    seeds_load(&seeds);
    for (int i = 0; i < seeds.num_seeds; i++) {
        Arena arena = {0};
        JsonNode root;
        Scenario scenario;
        Plan plan;
        Status status =
            json_parse(seeds.text[i], seeds.size[i], file_of(seeds.text[i]), &arena, &root);
        if (status.code == STATUS_OK) status = scenario_read(&root, &arena, &scenario);
        if (status.code == STATUS_OK) status = plan_resolve(&scenario, &arena, &plan);
        CU_ASSERT_EQUAL(status.code, STATUS_OK);
        if (status.code != STATUS_OK) fprintf(stderr, "seed %d: %s\n", i, status.text);
        arena_free(&arena);
    }
    seeds_free(&seeds);
}

static void spoiled_documents_are_answered_or_refused(void) {
    static char text[MUTATE_MAX_BYTES + 1];
    Seeds seeds = {0};
    seeds_load(&seeds);
    Random random = {.state = 2024 + (uint64_t)sample_seed()};
    int num_accepted = 0;
    const int num_cases = sample_first(NUM_CASES, 2);
    for (int i = 0; i < num_cases; i++) {
        size_t seed = random_below(&random, (size_t)seeds.num_seeds), size = seeds.size[seed];
        memcpy(text, seeds.text[seed], size);
        for (size_t left = 1 + random_below(&random, 3); left > 0; left--) {
            size_t donor = random_below(&random, (size_t)seeds.num_seeds);
            text_mutate(&random, seeds.text[donor], seeds.size[donor], text, &size);
        }
        text[size] = '\0'; // as json_parse asks for
        num_accepted += case_run(text, size);
    }
    printf("\n  %d cases, %d accepted\n", num_cases, num_accepted);
    // Some spoiled documents stay legal: the cases reach past the parser.
    CU_ASSERT(num_accepted > num_cases / 100);
    CU_ASSERT(num_accepted < num_cases / 2);
    seeds_free(&seeds);
}

CU_TestInfo mutations_tests[] = {
    {"seeds_themselves_are_read", seeds_themselves_are_read},
    {"spoiled_documents_are_answered_or_refused", spoiled_documents_are_answered_or_refused},
    CU_TEST_INFO_NULL,
};
