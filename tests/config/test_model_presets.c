// Every bundled model: its parameter count against an exact one, and against what is published.
#include "base/arena.h"
#include "base/data_dir.h"
#include "config/model/model_front.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// Counted from the shapes of the tensors in modeling_*.py of Hugging Face transformers, by a
// program of its own that shares no code with config/model/model_count.c. Those of released models
// are the counts that their pages state, but for what "parameters_source" in models/ says.
static const struct {
    const char *name;
    double num_parameters;
} EXACT[] = {
    {"bloom-176b", 176247271424},
    {"bloom-7b1", 7069016064},
    {"codellama-34b", 33743970304},
    {"deepseek-r1", 671026419200},
    {"deepseek-v2", 235741434880},
    {"deepseek-v2-lite", 15706484224},
    {"deepseek-v3", 671026419200},
    {"falcon-180b", 178557088768},
    {"falcon-40b", 41303293952},
    {"falcon-7b", 6921720704},
    {"falcon-rw-1b", 1311625216},
    {"flan-t5-xxl", 11135332352},
    {"gemma-2-27b", 27227128320},
    {"gemma-2-2b", 2614341888},
    {"gemma-2-9b", 9241705984},
    {"gemma-3-12b", 11766034176},
    {"gemma-3-1b", 999885952},
    {"gemma-3-27b", 27009346304},
    {"gemma-3-4b", 3880263168},
    {"gpt-neox-20b", 20554567680},
    {"gpt-oss-120b", 116829156672},
    {"gpt-oss-20b", 20914757184},
    {"gpt2-1.5b", 1557611200},
    {"gpt2-124m", 124439808},
    {"gpt2-355m", 354823168},
    {"gpt2-774m", 774030080},
    {"gpt3-175b", 174604259328},
    {"internlm-20b", 20088714240},
    {"internlm-7b", 7321948160},
    {"kimi-k2", 1026408232448},
    {"llama-13b", 13015864320},
    {"llama-2-13b", 13015864320},
    {"llama-2-70b", 68976648192},
    {"llama-2-7b", 6738415616},
    {"llama-3-70b", 70553706496},
    {"llama-3-8b", 8030261248},
    {"llama-3.1-405b", 405853388800},
    {"llama-3.1-70b", 70553706496},
    {"llama-3.1-8b", 8030261248},
    {"llama-3.2-1b", 1235814400},
    {"llama-3.2-3b", 3212749824},
    {"llama-3.3-70b", 70553706496},
    {"llama-30b", 32528943616},
    {"llama-4-maverick", 400711848960},
    {"llama-4-scout", 107769861120},
    {"llama-65b", 65285660672},
    {"llama-7b", 6738415616},
    {"megatron-gpt-145b", 145622261760},
    {"megatron-gpt-18b", 18449756160},
    {"megatron-gpt-1t", 1008038758400},
    {"megatron-gpt-22b", 22074273792},
    {"megatron-gpt-310b", 310130540544},
    {"megatron-gpt-39b", 39096041472},
    {"megatron-gpt-7.5b", 7467786240},
    {"megatron-gpt-76b", 76050739200},
    {"mimo-7b", 7622619136},
    {"mistral-7b-v0.1", 7241732096},
    {"mistral-7b-v0.3", 7248023552},
    {"mistral-large-123b", 122610069504},
    {"mistral-nemo-12b", 12247782400},
    {"mistral-small-24b", 23572403200},
    {"mixtral-8x22b", 140620634112},
    {"mixtral-8x7b", 46702792704},
    {"mpt-30b", 29957200896},
    {"mpt-70b", 64862437376},
    {"mpt-7b", 6649286656},
    {"mt-nlg-530b", 529600819200},
    {"nemotron-3-nano-30b-a3b", 31577940288},
    {"nemotron-4-15b", 15628775424},
    {"nemotron-4-340b", 341029195776},
    {"nemotron-h-56b", 56324350464},
    {"opt-1.3b", 1315758080},
    {"opt-13b", 12853473280},
    {"opt-175b", 174604468224},
    {"opt-30b", 29974540288},
    {"opt-6.7b", 6658473984},
    {"opt-66b", 65719701504},
    {"phi-3-medium", 13960238080},
    {"phi-3-mini", 3821079552},
    {"phi-4", 14659507200},
    {"phi-4-mini", 3836021760},
    {"pythia-1.4b", 1414647808},
    {"pythia-12b", 11846072320},
    {"pythia-6.9b", 6857302016},
    {"qwen1.5-moe-a2.7b", 14315784192},
    {"qwen2-57b-a14b", 57408658944},
    {"qwen2.5-0.5b", 494032768},
    {"qwen2.5-1.5b", 1543714304},
    {"qwen2.5-14b", 14770033664},
    {"qwen2.5-32b", 32763876352},
    {"qwen2.5-3b", 3085938688},
    {"qwen2.5-72b", 72706203648},
    {"qwen2.5-7b", 7615616512},
    {"qwen2.5-vl-3b", 3085938688},
    {"qwen2.5-vl-72b", 72706203648},
    {"qwen2.5-vl-7b", 7615616512},
    {"qwen3-0.6b", 596049920},
    {"qwen3-1.7b", 1720574976},
    {"qwen3-14b", 14768307200},
    {"qwen3-235b-a22b", 235093634560},
    {"qwen3-30b-a3b", 30532122624},
    {"qwen3-32b", 32762123264},
    {"qwen3-4b", 4022468096},
    {"qwen3-8b", 8190735360},
    {"qwen3-coder-480b-a35b", 480154875392},
    {"qwen3-next-80b-a3b", 79674391296},
    {"qwen3-vl-30b-a3b", 30532122624},
    {"qwen3-vl-8b", 8190735360},
    {"qwen3.5-122b-a10b", 122111526912},
    {"qwen3.5-27b", 26895998464},
    {"qwen3.5-35b-a3b", 34660610688},
    {"qwen3.5-397b-a17b", 396346350336},
    {"step-3.7-flash", 195832712256},
    {"t5-11b", 11307321344},
    {"t5-3b", 2851598336},
    {"tinyllama-1.1b", 1100048384},
    {"yi-34b", 34388917248},
    {"yi-6b", 6061035520},
};
enum { NUM_EXACT = sizeof EXACT / sizeof *EXACT };

static void every_preset_has_its_exact_count(void) {
    Arena arena = {0};
    ModelSummary *models = NULL;
    int num_models = 0;
    Status status = model_list(&arena, &models, &num_models);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(num_models, NUM_EXACT);
    for (int i = 0; i < num_models && i < NUM_EXACT; i++) {
        CU_ASSERT_STRING_EQUAL(models[i].name, EXACT[i].name);
        CU_ASSERT_EQUAL(models[i].num_parameters, EXACT[i].num_parameters);
        CU_ASSERT_TRUE(models[i].active_parameters <= models[i].num_parameters);
        CU_ASSERT_PTR_NOT_NULL(models[i].source);
    }
    arena_free(&arena);
}

static void every_published_count_is_met_within_half_a_percent(void) {
    Arena arena = {0};
    ModelSummary *models = NULL;
    int num_models = 0, num_published = 0;
    CU_ASSERT_EQUAL(model_list(&arena, &models, &num_models).code, STATUS_OK);
    for (int i = 0; i < num_models; i++) {
        const double published = models[i].published_parameters;
        if (published == 0) continue;
        const double error_frac = fabs(models[i].num_parameters / published - 1);
        if (error_frac > 0.005) fprintf(stderr, "%s: %.3f %%\n", models[i].name, 100 * error_frac);
        CU_ASSERT_TRUE(error_frac <= 0.005);
        num_published++;
    }
    CU_ASSERT_TRUE(num_published >= 95);
    arena_free(&arena);
}

static bool states(const JsonNode *root, const char *const *keys) {
    for (; *keys; keys++) {
        JsonNode node = json_get(root, *keys);
        if (cJSON_IsNumber(node.item)) return true;
    }
    return false;
}

// What launch writes of positions and norms is the published figure, not a default. Presets from
// the table of a paper (generic) have what the table has.
static void presets_state_what_a_launch_file_writes(void) {
    static const char *const EPSILON[] = {"rms_norm_eps", "layer_norm_epsilon", NULL};
    static const char *const BASE[] = {"rope_theta", "rotary_emb_base", NULL};
    Arena arena = {0};
    const char *const *names;
    int num_names, num_rms = 0, num_rope = 0;
    CU_ASSERT_EQUAL_FATAL(data_list(&arena, "models", &names, &num_names).code, STATUS_OK);
    for (int i = 0; i < num_names; i++) {
        Model model;
        JsonNode root;
        CU_ASSERT_EQUAL(model_load_preset(names[i], &arena, &model).code, STATUS_OK);
        CU_ASSERT_EQUAL(json_load(data_path(&arena, "models", names[i]), &arena, &root).code,
                        STATUS_OK);
        if (strcmp(model.model_type, "generic") == 0) continue;
        const bool rms = model.norm == NORM_RMSNORM, rope = model.position == POSITION_ROPE;
        if ((rms && !states(&root, EPSILON)) || (rope && !states(&root, BASE)))
            fprintf(stderr, "%s states no epsilon or no base\n", names[i]);
        CU_ASSERT_TRUE(!rms || states(&root, EPSILON));
        CU_ASSERT_TRUE(!rope || states(&root, BASE));
        num_rms += rms;
        num_rope += rope;
    }
    CU_ASSERT_TRUE(num_rms >= 60 && num_rope >= 60);
    arena_free(&arena);
}

// Figures of the released files; Qwen2.5's base models differ by size.
static void norms_and_positions_are_the_published_ones(void) {
    static const struct {
        const char *name;
        double epsilon, base;
    } ROWS[] = {
        {"llama-7b", 1e-6, 1e4},     {"llama-65b", 1e-5, 1e4},   {"llama-2-70b", 1e-5, 1e4},
        {"llama-3-8b", 1e-5, 5e5},   {"qwen2.5-7b", 1e-6, 1e6},  {"qwen2.5-72b", 1e-5, 1e6},
        {"qwen3-8b", 1e-6, 1e6},     {"gemma-2-9b", 1e-6, 1e4},  {"gemma-3-27b", 1e-6, 1e6},
        {"mixtral-8x7b", 1e-5, 1e6}, {"phi-4", 1e-5, 2.5e5},     {"yi-34b", 1e-5, 5e6},
        {"gpt-neox-20b", 1e-5, 1e4}, {"deepseek-v3", 1e-6, 1e4}, {"t5-11b", 1e-6, 1e4},
        {"internlm-7b", 1e-6, 1e4},
    };
    Arena arena = {0};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Model model;
        CU_ASSERT_EQUAL_FATAL(model_load_preset(ROWS[i].name, &arena, &model).code, STATUS_OK);
        CU_ASSERT_EQUAL(model.functions.norm_epsilon, ROWS[i].epsilon);
        CU_ASSERT_EQUAL(model.functions.rope_theta, ROWS[i].base);
    }
    Model gemma, pythia;
    CU_ASSERT_EQUAL(model_load_preset("gemma-3-4b", &arena, &gemma).code, STATUS_OK);
    CU_ASSERT_EQUAL(gemma.functions.rope_factor, 8);
    CU_ASSERT_EQUAL(model_load_preset("pythia-12b", &arena, &pythia).code, STATUS_OK);
    CU_ASSERT_EQUAL(pythia.functions.rotary_frac, 0.25);
    arena_free(&arena);
}

// With the word table, which model_active_parameters leaves out; or without.
static double active_parameters(const char *name, bool with_table) {
    Arena arena = {0};
    Model model = {0};
    CU_ASSERT_EQUAL(model_load_preset(name, &arena, &model).code, STATUS_OK);
    const double active = model_active_parameters(&model);
    const double table = (double)model.vocab_size * model.hidden_size;
    CU_ASSERT_FALSE(model.tie_word_embeddings);
    arena_free(&arena);
    return with_table ? active + table : active;
}

// Published: DeepSeek-V3 37B (arXiv:2412.19437), DeepSeek-V2 21B (arXiv:2405.04434), Mixtral 12.9B
// and 39B (mistral.ai), Qwen3 3.3B and 22B (arXiv:2505.09388), Kimi K2 32B (model card), with the
// word table; Llama 4 17B (model card), Qwen3.5 10B and 17B (model pages). GPT-OSS
// (arXiv:2508.10925, table 1) leaves the embedding of 201,088 x 2,880 out: 5.13B and 3.61B;
// Nemotron 3 Nano has 3.2B, and 3.6B with it (model card).
static void active_counts_of_mixtures_are_the_published_ones(void) {
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("deepseek-v3", true), 37.5e9, 0.1e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("deepseek-v2", true), 21e9, 0.5e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("mixtral-8x7b", true), 12.9e9, 0.05e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("mixtral-8x22b", true), 39e9, 0.5e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("qwen3-30b-a3b", true), 3.3e9, 0.06e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("qwen3-235b-a22b", true), 22e9, 0.5e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("kimi-k2", true), 32.5e9, 0.5e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("gpt-oss-120b", false), 5.13e9, 0.01e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("gpt-oss-20b", false), 3.61e9, 0.01e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("llama-4-scout", true), 17e9, 0.5e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("llama-4-maverick", true), 17e9, 0.5e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("qwen3.5-122b-a10b", true), 10e9, 0.5e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("qwen3.5-397b-a17b", true), 17e9, 0.5e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("nemotron-3-nano-30b-a3b", false), 3.2e9, 0.05e9);
    CU_ASSERT_DOUBLE_EQUAL(active_parameters("nemotron-3-nano-30b-a3b", true), 3.6e9, 0.05e9);
}

// 2 x 7168 x 7168 + 3 x 7168 and one MoE layer of 11,507,286,272: the 11.5B of the README of
// DeepSeek-V3 and its projection. The layer: experts 257 x 3 x 7168 x 2048 = 11,318,329,344,
// router 7168 x 256 + 256 = 1,835,264, norms 2 x 7168 + 1536 + 512 = 16,384, attention
// 7168 x 1536 + 1536 x 24576 + 7168 x 576 + 512 x 32768 + 16384 x 7168 = 187,105,280. With
// projection and norms of 102,760,448 + 21,504 the sum is 11,610,068,224.
static void mtp_layer_of_deepseek_v3_is_counted_apart(void) {
    Arena arena = {0};
    Model model = {0};
    CU_ASSERT_EQUAL(model_load_preset("deepseek-v3", &arena, &model).code, STATUS_OK);
    CU_ASSERT_EQUAL(model.num_mtp_layers, 1);
    CU_ASSERT_EQUAL(model_mtp_parameters(&model), 11610068224.0);
    arena_free(&arena);
}

static void parts_add_up_to_the_whole(void) {
    Arena arena = {0};
    for (int i = 0; i < NUM_EXACT; i++) {
        Model model = {0};
        CU_ASSERT_EQUAL(model_load_preset(EXACT[i].name, &arena, &model).code, STATUS_OK);
        double sum = model_embedding_parameters(&model) + model_head_parameters(&model);
        if (model.num_front_layers > 0) sum += model_front_parameters(&model);
        for (int layer = 0; layer < model.num_layers; layer++) {
            const LayerKind *kind = &model.kinds[model.layer_kind[layer]];
            const Model *own = kind->front ? model.front->model : &model;
            double part =
                model_mixer_parameters(own, &kind->mixer) + model_kind_norm_parameters(own, kind);
            if (kind->cross) part += model_cross_parameters(&model, model_mixer(&model));
            if (kind_is_moe(kind))
                part += model_ffn(&model)->num_experts *
                            model_expert_parameters(&model, model_ffn(&model)) +
                        model_router_parameters(&model, model_ffn(&model)) +
                        model_shared_expert_parameters(&model, model_ffn(&model));
            else if (!kind->ffn.none)
                part += model_mlp_parameters(own, &kind->ffn);
            CU_ASSERT_EQUAL(part, model_layer_parameters(&model, kind));
            sum += part;
        }
        CU_ASSERT_EQUAL(sum, model_num_parameters(&model));
        arena_reset(&arena);
    }
    arena_free(&arena);
}

CU_TestInfo model_presets_tests[] = {
    {"every_preset_has_its_exact_count", every_preset_has_its_exact_count},
    {"presets_state_what_a_launch_file_writes", presets_state_what_a_launch_file_writes},
    {"norms_and_positions_are_the_published_ones", norms_and_positions_are_the_published_ones},
    {"every_published_count_is_met_within_half_a_percent",
     every_published_count_is_met_within_half_a_percent},
    {"active_counts_of_mixtures_are_the_published_ones",
     active_counts_of_mixtures_are_the_published_ones},
    {"mtp_layer_of_deepseek_v3_is_counted_apart", mtp_layer_of_deepseek_v3_is_counted_apart},
    {"parts_add_up_to_the_whole", parts_add_up_to_the_whole},
    CU_TEST_INFO_NULL,
};
