// The gradients that a step makes are the derivatives of the loss it reports.
#include "runtime/run_setup.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLUSTER                                                                                    \
    "\"cluster\": {\"gpu\": \"h100-sxm-80g\", \"num_gpus\": 1, \"gpus_per_node\": 8, "             \
    "\"scale_up\": {\"link\": \"nvlink4\", \"domain_gpus\": 8}, \"scale_out\": "                   \
    "{\"nics_per_node\": 8, \"nic_bytes_per_s\": 50e9, \"topology\": \"fat-tree\", "               \
    "\"oversubscription\": 1.0}}"
#define GPT                                                                                        \
    "{\"model_type\": \"gpt2\", \"n_embd\": 16, \"n_layer\": 2, \"n_head\": 4, \"n_positions\": "  \
    "8, \"vocab_size\": 40, \"activation_function\": \"gelu_new\"}"
#define LLAMA                                                                                      \
    "{\"model_type\": \"llama\", \"hidden_size\": 16, \"num_hidden_layers\": 2, "                  \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 24, "          \
    "\"vocab_size\": 40, \"max_position_embeddings\": 8, \"tie_word_embeddings\": false}"

#define MIXTRAL                                                                                    \
    "{\"model_type\": \"mixtral\", \"hidden_size\": 16, \"num_hidden_layers\": 2, "                \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 12, "          \
    "\"num_local_experts\": 4, \"num_experts_per_tok\": 2, \"vocab_size\": 40, "                   \
    "\"tie_word_embeddings\": false}"
// Experts of plain MLPs beside one that every token goes to.
#define SHARED                                                                                     \
    "{\"model_type\": \"generic\", \"hidden_size\": 16, \"num_hidden_layers\": 2, "                \
    "\"num_attention_heads\": 4, \"num_experts\": 4, \"num_experts_per_tok\": 2, "                 \
    "\"moe_intermediate_size\": 12, \"n_shared_experts\": 1, \"linear_bias\": false, "             \
    "\"vocab_size\": 40, \"tie_word_embeddings\": true}"

#define QWEN                                                                                       \
    "{\"model_type\": \"qwen3_moe\", \"hidden_size\": 16, \"num_hidden_layers\": 2, "              \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 4, "                    \
    "\"moe_intermediate_size\": 12, \"num_experts\": 4, \"num_experts_per_tok\": 1, "              \
    "\"intermediate_size\": 12, \"vocab_size\": 40, \"tie_word_embeddings\": false}"

typedef struct {
    char plan[64];
    TrainOptions options;
    World world;
    Run run;
} Fixture;

static void fixture_begin(Fixture *f, const char *model, const char *recompute) {
    *f = (Fixture){.plan = "/tmp/meshwright-engine-XXXXXX"};
    FILE *file = fdopen(mkstemp(f->plan), "w");
    fprintf(file,
            "{\"schema\": 1, \"model\": %s, " CLUSTER ", \"training\": {\"seq_len\": 8, "
            "\"global_batch\": 4, \"precision\": \"fp64\", \"stack\": \"runtime\", "
            "\"optimizer\": \"sgd\"}, \"parallel\": {\"tp\": 1, \"pp\": 1, \"dp\": 1, "
            "\"micro_batch\": 2, \"zero_stage\": 0, \"recompute\": \"%s\"}}",
            model, recompute);
    fclose(file);
    f->options = (TrainOptions){
        .plan = f->plan, .dtype = NUM_DTYPES, .seed = 7, .update = update_defaults()};
    f->options.balanced = true;          // a change must not give a token other experts
    f->options.update.learning_rate = 0; // weights stay
    CU_ASSERT_EQUAL(world_join(&f->world).code, STATUS_OK);
    const Status status = run_prepare(&f->options, &f->world, &f->run);
    CU_ASSERT_STRING_EQUAL(status.text, "");
}

static void fixture_end(Fixture *f) {
    run_free(&f->run);
    unlink(f->plan);
}

// Gradients are taken before the next step clears them.
static StepValues step(Fixture *f) {
    StepValues values = {0};
    run_upload(&f->run, 1);
    const Status status =
        engine_step(&f->run.engine, &f->options.update, 1, (EngineHook){0}, &values);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    return values;
}

static double value_of(const Fixture *f, const void *array) {
    double value = NAN;
    f->run.backend->table->download(f->run.backend, &value, array, sizeof value,
                                    f->run.backend->stream);
    return value;
}

static double loss_with(Fixture *f, void *weight, double value) {
    f->run.backend->table->upload(f->run.backend, weight, &value, sizeof value,
                                  f->run.backend->stream);
    return step(f).loss;
}

// The derivative by four losses, wrong by the fourth power of the change and by the rounding of the
// loss (1e-15) over the change.
static double derivative(Fixture *f, void *weight) {
    const double change = 1e-3, value = value_of(f, weight);
    const double near = loss_with(f, weight, value + change) - loss_with(f, weight, value - change);
    const double far =
        loss_with(f, weight, value + 2 * change) - loss_with(f, weight, value - 2 * change);
    loss_with(f, weight, value);
    return (8 * near - far) / (12 * change);
}

static double worst_error(Fixture *f) {
    enum { SAMPLES = 3, MOST = 64 };
    const ChunkState *chunk = &f->run.rank.chunks[0];
    double worst = 0, gradient[MOST * SAMPLES];
    step(f);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < chunk->list.num_parameters * SAMPLES; i++) {
            const Parameter *p = &chunk->list.parameters[i / SAMPLES];
            const int64_t element = (i % SAMPLES + 1) * parameter_count(p) / (SAMPLES + 1);
            double *weight = (double *)chunk_weight(f->run.backend, chunk, p) + element;
            const double *own = (double *)chunk_gradient(f->run.backend, chunk, p) + element;
            if (pass == 0) {
                gradient[i] = value_of(f, own);
                continue;
            }
            worst = fmax(worst, fabs(derivative(f, weight) - gradient[i]));
        }
    return worst;
}

static void gradients_are_derivatives(void) {
    static const char *const MODELS[] = {GPT, LLAMA, MIXTRAL, SHARED, QWEN};
    static const char *const RECOMPUTES[] = {"none", "selective", "full"};
    for (int m = 0; m < 5; m++)
        for (int r = 0; r < 3; r++) {
            Fixture f;
            fixture_begin(&f, MODELS[m], RECOMPUTES[r]);
            CU_ASSERT(worst_error(&f) < 1e-8);
            fixture_end(&f);
        }
}

// Nothing of a step stays allocated but the tokens, weights and their like.
static void a_step_gives_all_memory_back(void) {
    static const char *const MODELS[] = {LLAMA, SHARED};
    for (int m = 0; m < 2; m++) {
        Fixture f;
        fixture_begin(&f, MODELS[m], "none");
        const size_t before = f.run.backend->allocated_bytes;
        step(&f);
        CU_ASSERT_EQUAL(f.run.backend->allocated_bytes, before);
        CU_ASSERT(f.run.backend->peak_bytes > before);
        fixture_end(&f);
    }
}

CU_TestInfo engine_tests[] = {
    {"gradients_are_derivatives", gradients_are_derivatives},
    {"a_step_gives_all_memory_back", a_step_gives_all_memory_back},
    CU_TEST_INFO_NULL,
};
