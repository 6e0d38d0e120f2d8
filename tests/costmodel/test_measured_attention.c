// Attention of passes that do not train is priced by the measured kernels of engines.
#include "costmodel/kernel/measured_attention.h"

#include "costmodel/kernel/compute.h"
#include "costmodel/kernel/kernel_context.h"
#include "costmodel/kernel/kernel_generation.h"

#include <CUnit/CUnit.h>

#include <math.h>

static Arena arena;

static const CalibratedKernels *kernels_of(const char *name) {
    Gpu gpu;
    const CalibratedKernels *kernels = NULL;
    CU_ASSERT_EQUAL(gpu_load_named(name, &arena, &gpu).code, STATUS_OK);
    CU_ASSERT_EQUAL(kernels_load_whole(&gpu, &arena, &kernels).code, STATUS_OK);
    return kernels;
}

// Llama 3.1 8B: 32 query heads of 128 for 8 of keys and values.
static Op served(double sequences, double queries, double keys) {
    return (Op){.kind = OP_ATTENTION,
                .num_kernels = 1,
                .precision = PRECISION_BF16,
                .flops = 4 * sequences * queries * keys * 32 * 128,
                .attention = {.sequences = sequences,
                              .heads = 32,
                              .kv_heads = 8,
                              .queries = queries,
                              .keys = keys,
                              .head_dim = 128,
                              .v_head_dim = 128,
                              .causal = true,
                              .served = true,
                              .generation = 4}};
}

// DeepSeek-V3 on 8 ranks: 16 heads of 128 + 64 for scores and 128 for values, 512 + 64 cached.
static Op latent(double sequences, double queries, double keys) {
    Op op = served(sequences, queries, keys);
    op.attention.heads = op.attention.kv_heads = 16;
    op.attention.head_dim = 192;
    op.attention.latent_dim = 576;
    return op;
}

static const AttentionVariant PLAIN = {ATTENTION_BFLOAT16, ATTENTION_BFLOAT16, 128, 0};

static void prompts_and_steps_are_priced_by_their_tables(void) {
    const CalibratedKernels *k = kernels_of("h100-sxm-80g");
    const KernelProfile *p = &k->profile;
    const Op prompt = served(2, 4096, 4096), step = served(64, 1, 4096);
    const AttentionShape prompt_shape = {PLAIN, 2, 4096, 32, 8},
                         step_shape = {PLAIN, 64, 4096, 32, 8};
    CU_ASSERT_EQUAL(measured_attention_s(k, &prompt),
                    kernel_context_s(&k->gpu, &p->context_attention, &prompt_shape));
    CU_ASSERT_EQUAL(measured_attention_s(k, &step),
                    kernel_generation_s(&k->gpu, &p->generation_attention, &step_shape));
    arena_free(&arena);
}

static void latent_attention_has_tables_of_its_own(void) {
    const CalibratedKernels *k = kernels_of("h100-sxm-80g");
    const KernelProfile *p = &k->profile;
    const Op prompt = latent(2, 4096, 4096), step = latent(64, 1, 4096);
    AttentionShape shape = {PLAIN, 2, 4096, 16, 1};
    shape.variant.head_dim = 160; // (192 + 128) / 2
    CU_ASSERT_EQUAL(measured_attention_s(k, &prompt),
                    kernel_context_s(&k->gpu, &p->context_mla, &shape));
    shape = (AttentionShape){PLAIN, 64, 4096, 16, 1};
    shape.variant.head_dim = 288; // 576 / 2
    CU_ASSERT_EQUAL(measured_attention_s(k, &step),
                    kernel_generation_s(&k->gpu, &p->generation_mla, &shape));
    arena_free(&arena);
}

static void what_no_table_covers_is_left_to_the_compact_formula(void) {
    const CalibratedKernels *k = kernels_of("h100-sxm-80g");
    Op trained = served(2, 4096, 4096), backward = trained, chunk = served(1, 512, 4096),
       both_ways = trained;
    trained.attention.served = false;
    backward.backward = true;
    both_ways.attention.causal = false;
    CU_ASSERT_TRUE(isnan(measured_attention_s(k, &trained)));
    CU_ASSERT_TRUE(isnan(measured_attention_s(k, &backward)));
    CU_ASSERT_TRUE(isnan(measured_attention_s(k, &chunk)));
    CU_ASSERT_TRUE(isnan(measured_attention_s(k, &both_ways)));
    const Op prompt = served(2, 4096, 4096);
    CalibratedKernels others = *k;
    others.foreign = true;
    CU_ASSERT_TRUE(isnan(measured_attention_s(&others, &prompt)));
    CU_ASSERT_TRUE(isnan(measured_attention_s(NULL, &prompt)));
    others = *k; // as a training step has it read
    others.profile.context_attention.num_kernels = 0;
    CU_ASSERT_TRUE(isnan(measured_attention_s(&others, &prompt)));
    arena_free(&arena);
}

// A window that is longer than the prompt hides nothing.
static void windows_count_where_they_hide_something(void) {
    const CalibratedKernels *k = kernels_of("h100-sxm-80g");
    const Op plain = served(1, 8192, 8192);
    Op wide = plain, narrow = plain;
    wide.attention.window = 8192;
    narrow.attention.window = 128;
    CU_ASSERT_EQUAL(measured_attention_s(k, &wide), measured_attention_s(k, &plain));
    CU_ASSERT_TRUE(measured_attention_s(k, &narrow) < 0.7 * measured_attention_s(k, &plain));
    arena_free(&arena);
}

// Through the ends of the measured sizes and far beyond: 1 % more takes no more than 5 % longer,
// but for a prompt's further tile of 128 queries (one of 9 at 1,024 tokens), and never 2 % less.
static void no_size_makes_the_price_jump(void) {
    const CalibratedKernels *k = kernels_of("h100-sxm-80g");
    double before_prompt = 0, before_step = 0;
    for (double tokens = 1024; tokens < 2e6; tokens = ceil(tokens * 1.01)) {
        const Op prompt = served(2, tokens, tokens), step = served(64, 1, tokens);
        const double prompt_s = measured_attention_s(k, &prompt);
        const double step_s = measured_attention_s(k, &step);
        if (before_prompt > 0) {
            CU_ASSERT_TRUE(prompt_s < (1.04 + 128 / tokens) * before_prompt);
            CU_ASSERT_TRUE(prompt_s > 0.98 * before_prompt);
            CU_ASSERT_TRUE(step_s < 1.05 * before_step && step_s > 0.98 * before_step);
        }
        before_prompt = prompt_s;
        before_step = step_s;
    }
    arena_free(&arena);
}

// The power limit stretches them as it does other kernels of a long run; launches are theirs.
static void the_price_of_an_operator_is_the_tables(void) {
    const CalibratedKernels *k = kernels_of("h100-sxm-80g");
    const Pool pool = {.gpu = k->gpu, .kernels = k, .power_watts_per_gpu = 350};
    const Op prompt = served(2, 4096, 4096);
    CU_ASSERT_DOUBLE_EQUAL(op_compute_s(&pool, &prompt) * sustained_frac(&pool, true),
                           measured_attention_s(k, &prompt), 1e-12);
    CU_ASSERT_TRUE(sustained_frac(&pool, true) < 1);
    arena_free(&arena);
}

CU_TestInfo measured_attention_tests[] = {
    {"prompts_and_steps_are_priced_by_their_tables", prompts_and_steps_are_priced_by_their_tables},
    {"latent_attention_has_tables_of_its_own", latent_attention_has_tables_of_its_own},
    {"what_no_table_covers_is_left_to_the_compact_formula",
     what_no_table_covers_is_left_to_the_compact_formula},
    {"windows_count_where_they_hide_something", windows_count_where_they_hide_something},
    {"no_size_makes_the_price_jump", no_size_makes_the_price_jump},
    {"the_price_of_an_operator_is_the_tables", the_price_of_an_operator_is_the_tables},
    CU_TEST_INFO_NULL,
};
