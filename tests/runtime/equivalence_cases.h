// tests/runtime/equivalence_cases.h - what runtime-equivalence trains, and how it is split.
#pragma once

#include <stddef.h>

typedef struct {
    const char *subject;  // "gpt", "llama", ...
    const char *parallel; // members of the object
    int num_ranks;
    const char *mutant; // NULL: none
} Case;

static const char *const GPT =
    "{\"name\": \"gpt\", \"model_type\": \"gpt2\", \"activation_function\": \"gelu_new\", "
    "\"n_embd\": 32, \"n_layer\": 4, \"n_head\": 4, \"n_positions\": 16, \"vocab_size\": 260}";
// Layers for four stages of two chunks, heads for eight ranks.
static const char *const DEEP =
    "{\"name\": \"deep\", \"model_type\": \"gpt2\", \"activation_function\": \"gelu_new\", "
    "\"n_embd\": 32, \"n_layer\": 8, \"n_head\": 8, \"n_positions\": 16, \"vocab_size\": 260}";
static const char *const LLAMA =
    "{\"name\": \"llama\", \"model_type\": \"llama\", \"hidden_size\": 32, "
    "\"num_hidden_layers\": 6, \"num_attention_heads\": 8, \"num_key_value_heads\": 4, "
    "\"intermediate_size\": 48, \"vocab_size\": 260, \"max_position_embeddings\": 16, "
    "\"tie_word_embeddings\": false}";

static const char *const MIXTRAL =
    "{\"name\": \"mixtral\", \"model_type\": \"mixtral\", \"hidden_size\": 32, "
    "\"num_hidden_layers\": 4, \"num_attention_heads\": 8, \"num_key_value_heads\": 4, "
    "\"intermediate_size\": 24, \"num_local_experts\": 8, \"num_experts_per_tok\": 2, "
    "\"vocab_size\": 260, \"tie_word_embeddings\": false}";
static const char *const EIGHT_HEADS =
    "{\"name\": \"eight-heads\", \"model_type\": \"mixtral\", \"hidden_size\": 32, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"num_key_value_heads\": 8, "
    "\"intermediate_size\": 32, \"num_local_experts\": 8, \"num_experts_per_tok\": 2, "
    "\"vocab_size\": 260, \"tie_word_embeddings\": false}";
// A dense layer, then two with experts beside one that every token goes to; plain MLPs.
static const char *const SHARED =
    "{\"name\": \"shared\", \"model_type\": \"generic\", \"hidden_size\": 32, "
    "\"num_hidden_layers\": 4, \"num_attention_heads\": 4, \"intermediate_size\": 48, "
    "\"num_experts\": 4, \"num_experts_per_tok\": 3, \"moe_intermediate_size\": 16, "
    "\"n_shared_experts\": 1, \"first_k_dense_replace\": 1, \"linear_bias\": false, "
    "\"max_position_embeddings\": 16, \"vocab_size\": 260, \"tie_word_embeddings\": true}";

static const char *const QWEN =
    "{\"name\": \"qwen\", \"model_type\": \"qwen3_moe\", \"hidden_size\": 32, "
    "\"num_hidden_layers\": 4, \"num_attention_heads\": 8, \"num_key_value_heads\": 4, "
    "\"head_dim\": 8, \"intermediate_size\": 48, \"moe_intermediate_size\": 16, "
    "\"num_experts\": 8, \"num_experts_per_tok\": 3, \"mlp_only_layers\": [1], "
    "\"vocab_size\": 260, \"tie_word_embeddings\": false}";

// What a case trains, by which options, and further members of the plan's `training`. Norms of
// gradients are 0.5 to 1 here, so that those of "sgd" are clipped in every step; SGD, unlike Adam,
// moves weights by as much as gradients are long.
typedef struct {
    const char *name, *model, *options, *training;
} Subject;

#define CLIPPED " --clip-norm 0.2 --learning-rate 0.1"
#define SGD ", \"optimizer\": \"sgd\""
static const Subject SUBJECTS[] = {
    {"gpt", GPT, "", ""},         {"llama", LLAMA, "", ""},
    {"mixtral", MIXTRAL, "", ""}, {"shared", SHARED, "", ""},
    {"qwen", QWEN, "", ""},       {"balanced", MIXTRAL, " --routing balanced", ""},
    {"sgd", GPT, CLIPPED, SGD},   {"sgd-experts", SHARED, CLIPPED, SGD},
    {"deep", DEEP, "", ""},       {"eight-heads", EIGHT_HEADS, "", ""},
};
enum { NUM_SUBJECTS = sizeof SUBJECTS / sizeof *SUBJECTS };

static const Case ALONE[] = {
    {"gpt", "\"recompute\": \"full\"", 1, NULL},
    {"llama", "\"recompute\": \"selective\"", 1, NULL},
    {"gpt", "\"micro_batch\": 4", 1, NULL},
    {"gpt", "\"tp\": 2, \"sequence_parallel\": false", 2, NULL},
    {"gpt", "\"tp\": 2", 2, NULL},
    {"gpt", "\"tp\": 4", 4, NULL},
    {"llama", "\"tp\": 4, \"sequence_parallel\": false", 4, NULL},
    {"llama", "\"tp\": 4", 4, NULL},
    {"gpt", "\"dp\": 4, \"zero_stage\": 0", 4, NULL},
    {"gpt", "\"dp\": 2, \"zero_stage\": 1", 2, NULL},
    {"llama", "\"dp\": 4, \"zero_stage\": 1", 4, NULL},
    {"gpt", "\"dp\": 4, \"zero_stage\": 1, \"zero_group\": 2", 4, NULL},
    {"gpt", "\"dp\": 2, \"zero_stage\": 2", 2, NULL},
    {"llama", "\"dp\": 4, \"zero_stage\": 2, \"zero_group\": 2", 4, NULL},
    {"gpt", "\"dp\": 4, \"zero_stage\": 3", 4, NULL},
    {"llama", "\"dp\": 4, \"zero_stage\": 3, \"zero_group\": 2, \"recompute\": \"full\"", 4, NULL},
    {"gpt", "\"pp\": 4", 4, NULL},
    {"llama", "\"pp\": 2, \"recompute\": \"full\", \"recompute_layers\": 2", 2, NULL},
    {"gpt", "\"cp\": 2", 2, NULL},
    {"llama", "\"cp\": 4, \"cp_method\": \"ring\", \"recompute\": \"full\"", 4, NULL},
    {"gpt", "\"cp\": 4, \"cp_method\": \"all-gather\"", 4, NULL},
    {"llama", "\"cp\": 2, \"cp_method\": \"all-gather\", \"micro_batch\": 2", 2, NULL},
    {"llama", "\"cp\": 4, \"cp_method\": \"ulysses\", \"micro_batch\": 2", 4, NULL},
    {"gpt", "\"cp\": 2, \"cp_method\": \"ulysses\", \"recompute\": \"selective\"", 2, NULL},
    {"sgd", "\"micro_batch\": 4, \"recompute\": \"full\"", 1, NULL},
    {"sgd", "\"tp\": 2, \"sequence_parallel\": false", 2, NULL},
    {"sgd", "\"tp\": 2", 2, NULL},
    {"sgd", "\"dp\": 2, \"zero_stage\": 0", 2, NULL},
    {"sgd", "\"dp\": 4, \"zero_stage\": 1, \"zero_group\": 2", 4, NULL},
    {"sgd", "\"dp\": 4, \"zero_stage\": 2", 4, NULL},
    {"sgd", "\"dp\": 4, \"zero_stage\": 3", 4, NULL},
    {"sgd", "\"pp\": 2, \"schedule\": \"zb-h1\"", 2, NULL},
    {"gpt", "\"dp\": 2, \"schedule\": \"zb-h1\", \"zero_stage\": 3", 2, NULL},
    {"gpt", "\"dp\": 2, \"vpp\": 2, \"schedule\": \"interleaved\", \"zero_stage\": 3", 2, NULL},
    {"sgd", "\"cp\": 2", 2, NULL},
};

static const Case PAIRS[] = {
    {"gpt", "\"tp\": 2, \"pp\": 4", 8, NULL},
    {"llama", "\"tp\": 4, \"pp\": 2, \"schedule\": \"zb-h1\"", 8, NULL},
    {"gpt", "\"tp\": 2, \"pp\": 2, \"schedule\": \"zb-v\", \"vpp\": 2, \"recompute\": \"full\"", 4,
     NULL},
    {"llama", "\"tp\": 2, \"dp\": 4, \"zero_stage\": 1", 8, NULL},
    {"gpt", "\"tp\": 4, \"dp\": 2, \"zero_stage\": 0, \"sequence_parallel\": false", 8, NULL},
    {"gpt", "\"pp\": 4, \"dp\": 2, \"zero_stage\": 1", 8, NULL},
    {"llama", "\"pp\": 2, \"dp\": 4, \"zero_stage\": 1, \"zero_group\": 2", 8, NULL},
    {"gpt", "\"pp\": 2, \"dp\": 2, \"schedule\": \"dualpipe\", \"vpp\": 2, \"zero_stage\": 1", 4,
     NULL},
    {"gpt", "\"tp\": 2, \"pp\": 2, \"dp\": 2, \"zero_stage\": 1", 8, NULL},
    {"llama",
     "\"tp\": 2, \"pp\": 2, \"dp\": 2, \"vpp\": 2, \"schedule\": \"interleaved\", "
     "\"zero_stage\": 1, \"recompute\": \"selective\"",
     8, NULL},
    {"gpt", "\"tp\": 2, \"dp\": 4, \"zero_stage\": 3", 8, NULL},
    {"llama", "\"pp\": 2, \"dp\": 4, \"zero_stage\": 2", 8, NULL},
    {"llama", "\"pp\": 2, \"dp\": 2, \"zero_stage\": 3, \"vpp\": 2, \"schedule\": \"interleaved\"",
     4, NULL},
    {"gpt", "\"pp\": 4, \"dp\": 2, \"zero_stage\": 3", 8, NULL},
    {"gpt",
     "\"tp\": 2, \"pp\": 2, \"dp\": 2, \"zero_stage\": 2, \"sequence_parallel\": false, "
     "\"schedule\": \"zb-h1\"",
     8, NULL},
    {"gpt",
     "\"pp\": 2, \"dp\": 4, \"zero_stage\": 2, \"zero_group\": 2, \"vpp\": 2, \"schedule\": "
     "\"zb-v\"",
     8, NULL},
    {"gpt",
     "\"pp\": 2, \"dp\": 4, \"zero_stage\": 3, \"zero_group\": 2, \"vpp\": 2, \"schedule\": "
     "\"dualpipe\"",
     8, NULL},
    {"llama",
     "\"tp\": 2, \"pp\": 2, \"dp\": 2, \"zero_stage\": 3, \"schedule\": \"zb-h1\", "
     "\"recompute\": \"full\"",
     8, NULL},
    {"sgd", "\"pp\": 2, \"dp\": 2, \"zero_stage\": 3, \"schedule\": \"zb-h2\"", 4, NULL},
    {"gpt", "\"cp\": 2, \"dp\": 4, \"zero_stage\": 3", 8, NULL},
    {"gpt", "\"cp\": 2, \"tp\": 4", 8, NULL},
    {"llama", "\"cp\": 2, \"tp\": 2, \"cp_method\": \"ulysses\"", 4, NULL},
    {"deep", "\"cp\": 2, \"tp\": 4, \"cp_method\": \"ulysses\"", 8, NULL},
    {"deep", "\"cp\": 4, \"tp\": 2, \"cp_method\": \"ulysses\", \"micro_batch\": 4", 8, NULL},
    {"gpt", "\"cp\": 2, \"pp\": 4, \"schedule\": \"zb-h2\"", 8, NULL},
    {"llama", "\"cp\": 2, \"dp\": 4, \"cp_method\": \"all-gather\"", 8, NULL},
    {"llama", "\"cp\": 2, \"tp\": 4, \"cp_method\": \"all-gather\"", 8, NULL},
    {"gpt", "\"cp\": 4, \"pp\": 2, \"cp_method\": \"ulysses\", \"recompute\": \"selective\"", 8,
     NULL},
    {"llama", "\"cp\": 4, \"pp\": 2, \"cp_method\": \"all-gather\"", 8, NULL},
    {"gpt", "\"cp\": 2, \"dp\": 4, \"zero_stage\": 2, \"cp_method\": \"ulysses\"", 8, NULL},
    {"sgd", "\"tp\": 2, \"pp\": 2, \"dp\": 2, \"zero_stage\": 1", 8, NULL},
    {"llama", "\"cp\": 2, \"tp\": 2, \"dp\": 2, \"pp\": 2", 16, NULL},
    {"llama", "\"tp\": 2, \"pp\": 4, \"dp\": 2, \"zero_stage\": 3, \"recompute\": \"full\"", 16,
     NULL},
    {"llama", "\"cp\": 2, \"tp\": 2, \"dp\": 4, \"zero_stage\": 2, \"cp_method\": \"ulysses\"", 16,
     NULL},
    {"gpt", "\"tp\": 2, \"pp\": 2, \"dp\": 2, \"order\": \"tp-cp-ep-pp-dp\"", 8, NULL},
    {"llama",
     "\"pp\": 2, \"dp\": 4, \"zero_stage\": 1, \"zero_group\": 2, \"vpp\": 2, "
     "\"schedule\": \"interleaved\", \"order\": \"tp-cp-ep-pp-dp\"",
     8, NULL},
};

// Schedules that PAIRS does not have together with tp or cp.
static const Case SCHEDULE_PAIRS[] = {
    {"gpt", "\"tp\": 2, \"pp\": 4, \"schedule\": \"gpipe\"", 8, NULL},
    {"llama", "\"cp\": 4, \"pp\": 2, \"schedule\": \"gpipe\"", 8, NULL},
    {"deep", "\"tp\": 2, \"pp\": 4, \"vpp\": 2, \"schedule\": \"breadth-first\"", 8, NULL},
    {"deep", "\"tp\": 2, \"pp\": 4, \"vpp\": 2, \"schedule\": \"v-half\"", 8, NULL},
    {"deep",
     "\"cp\": 2, \"pp\": 4, \"vpp\": 2, \"schedule\": \"v-half\", \"cp_method\": \"ulysses\"", 8,
     NULL},
    {"gpt",
     "\"tp\": 4, \"pp\": 2, \"vpp\": 2, \"schedule\": \"v-min\", \"sequence_parallel\": false", 8,
     NULL},
    {"deep", "\"cp\": 2, \"pp\": 4, \"vpp\": 2, \"schedule\": \"v-min\"", 8, NULL},
    {"llama", "\"tp\": 4, \"pp\": 2, \"vpp\": 2, \"schedule\": \"dualpipe\"", 8, NULL},
    {"gpt",
     "\"cp\": 2, \"pp\": 4, \"vpp\": 2, \"schedule\": \"dualpipe\", \"cp_method\": "
     "\"all-gather\"",
     8, NULL},
    {"deep", "\"tp\": 2, \"pp\": 4, \"vpp\": 2, \"schedule\": \"zb-v\"", 8, NULL},
    {"llama",
     "\"cp\": 4, \"pp\": 2, \"vpp\": 3, \"schedule\": \"interleaved\", \"recompute\": "
     "\"full\"",
     8, NULL},
    {"deep", "\"pp\": 2, \"vpp\": 4, \"schedule\": \"interleaved\"", 2, NULL},
    {"deep", "\"pp\": 2, \"dp\": 2, \"vpp\": 4, \"schedule\": \"interleaved\", \"zero_stage\": 3",
     4, NULL},
};

// Two splits without, to show that it is the mistake that is seen.
static const Case MUTANTS[] = {
    {"gpt", "\"tp\": 2, \"pp\": 2, \"schedule\": \"zb-h1\"", 4, NULL},
    {"mixtral", "\"dp\": 2, \"ep\": 2, \"zero_stage\": 2", 2, NULL},
    {"gpt", "\"tp\": 2, \"sequence_parallel\": false", 2, "tp-no-input-sum"},
    {"gpt", "\"tp\": 2", 2, "sp-no-norm-sum"},
    {"gpt", "\"tp\": 2, \"dp\": 2, \"zero_stage\": 3", 4, "sp-no-norm-sum"},
    {"gpt", "\"tp\": 2", 2, "vocabulary-max"},
    {"gpt", "\"tp\": 2", 2, "norm-counts-all"},
    {"gpt", "\"dp\": 2, \"zero_stage\": 0", 2, "dp-no-reduce"},
    {"gpt", "\"dp\": 2, \"zero_stage\": 1", 2, "zero-stale-weights"},
    {"gpt", "\"dp\": 2, \"zero_stage\": 2", 2, "zero-no-scatter"},
    {"gpt", "\"dp\": 2, \"zero_stage\": 3", 2, "zero-no-scatter"},
    {"gpt", "\"pp\": 2", 2, "pp-first-batch"},
    {"gpt", "\"pp\": 2", 2, "pp-no-tied-sum"},
    {"gpt", "\"pp\": 2, \"dp\": 2, \"zero_stage\": 2", 4, "pp-no-tied-sum"},
    {"gpt", "\"pp\": 2, \"schedule\": \"zb-h1\"", 2, "split-drops-weight"},
    {"gpt", "\"dp\": 2, \"schedule\": \"zb-h1\", \"zero_stage\": 3", 2, "split-drops-norm"},
    {"gpt", "\"cp\": 2", 2, "cp-wrong-slice"},
    {"gpt", "\"cp\": 2, \"cp_method\": \"ulysses\"", 2, "ulysses-unsorted"},
    {"gpt", "\"cp\": 2, \"cp_method\": \"all-gather\"", 2, "gathered-keys-own"},
    {"sgd", "\"tp\": 2", 2, "clip-first-only"},
    {"mixtral", "\"dp\": 2, \"ep\": 2", 2, "ep-drops-token"},
    {"mixtral", "\"dp\": 2, \"ep\": 2", 2, "ep-unsorted"},
    {"mixtral", "\"dp\": 2, \"ep\": 2", 2, "experts-no-weights"},
    {"shared", "\"dp\": 2, \"ep\": 2", 2, "experts-no-router-gradient"},
    {"mixtral", "\"dp\": 2, \"zero_stage\": 1", 2, "experts-no-reduce"},
    {"mixtral", "\"dp\": 2, \"zero_stage\": 3", 2, "experts-no-scatter"},
    {"mixtral", "\"dp\": 2, \"etp\": 2", 2, "etp-no-sum"},
    {"mixtral", "\"dp\": 4, \"ep\": 2", 4, "ep-strided-as-replicas"},
    {"gpt", "\"recompute\": \"full\"", 1, "recompute-stale-input"},
    {"llama", "\"pp\": 2, \"recompute\": \"full\"", 2, "recompute-stale-input"},
    {"llama", "\"recompute\": \"selective\"", 1, "recompute-rotates-again"},
    {"llama", "\"micro_batch\": 1", 1, "accumulation-overwrites"},
    {"llama", "\"dp\": 2, \"zero_stage\": 1", 2, "accumulation-overwrites"},
    {"llama", "\"dp\": 2, \"zero_stage\": 2", 2, "shard-accumulation-overwrites"},
    {"gpt", "\"dp\": 4, \"zero_stage\": 1, \"zero_group\": 2", 4, "replica-sums-shards"},
    {"llama", "\"pp\": 2, \"vpp\": 3, \"schedule\": \"interleaved\"", 2, "chunks-swapped"},
    {"gpt", "\"pp\": 2, \"dp\": 2, \"order\": \"tp-cp-ep-pp-dp\"", 4, "order-other-batch"},
};

// Experts, and each dimension that they are split over.
static const Case EXPERTS[] = {
    {"mixtral", "\"recompute\": \"full\"", 1, NULL},
    {"shared", "\"micro_batch\": 4, \"recompute\": \"selective\"", 1, NULL},
    {"mixtral", "\"tp\": 2", 2, NULL},
    {"shared", "\"tp\": 4, \"recompute\": \"full\"", 4, NULL},
    {"mixtral", "\"dp\": 2, \"zero_stage\": 0", 2, NULL},
    {"shared", "\"dp\": 4, \"zero_stage\": 1, \"zero_group\": 2", 4, NULL},
    {"mixtral", "\"dp\": 2, \"zero_stage\": 2", 2, NULL},
    {"shared", "\"dp\": 2, \"zero_stage\": 3", 2, NULL},
    {"shared", "\"cp\": 2", 2, NULL},
    {"qwen", "\"cp\": 2, \"cp_method\": \"ulysses\", \"recompute\": \"full\"", 2, NULL},
    {"qwen", "\"tp\": 4, \"ep\": 2, \"recompute\": \"selective\"", 4, NULL},
    {"mixtral", "\"pp\": 2", 2, NULL},
    {"mixtral", "\"dp\": 2, \"ep\": 2, \"zero_stage\": 0", 2, NULL},
    {"shared", "\"dp\": 4, \"ep\": 4, \"recompute\": \"full\"", 4, NULL},
    {"balanced", "\"dp\": 4, \"ep\": 4", 4, NULL},
    {"mixtral", "\"tp\": 2, \"etp\": 2", 2, NULL},
    {"shared", "\"dp\": 4, \"etp\": 4, \"zero_stage\": 0", 4, NULL},
    {"sgd-experts", "\"dp\": 4, \"ep\": 2, \"zero_stage\": 1", 4, NULL},
    {"sgd-experts", "\"dp\": 4, \"etp\": 2, \"zero_stage\": 3", 4, NULL},
};

static const Case EXPERT_PAIRS[] = {
    {"eight-heads", "\"tp\": 8, \"ep\": 4", 8, NULL},
    {"eight-heads", "\"tp\": 8, \"etp\": 4", 8, NULL},
    {"eight-heads", "\"tp\": 8, \"ep\": 2, \"etp\": 2, \"recompute\": \"full\"", 8, NULL},
    {"qwen", "\"tp\": 2, \"dp\": 4, \"ep\": 4", 8, NULL},
    {"shared", "\"tp\": 4, \"dp\": 2, \"ep\": 4, \"zero_stage\": 0", 8, NULL},
    {"shared", "\"cp\": 4, \"dp\": 2, \"ep\": 4", 8, NULL},
    {"mixtral", "\"cp\": 2, \"dp\": 4, \"ep\": 8, \"cp_method\": \"ulysses\"", 8, NULL},
    {"mixtral", "\"dp\": 8, \"ep\": 2, \"zero_stage\": 1, \"zero_group\": 2", 8, NULL},
    {"mixtral", "\"dp\": 8, \"ep\": 2, \"zero_stage\": 2", 8, NULL},
    {"shared", "\"dp\": 8, \"ep\": 4, \"zero_stage\": 3, \"recompute\": \"full\"", 8, NULL},
    {"qwen", "\"pp\": 2, \"dp\": 4, \"ep\": 4, \"schedule\": \"zb-h1\"", 8, NULL},
    {"shared", "\"pp\": 4, \"dp\": 2, \"ep\": 2", 8, NULL},
    {"mixtral", "\"dp\": 8, \"ep\": 4, \"etp\": 2", 8, NULL},
    {"balanced", "\"tp\": 2, \"dp\": 4, \"ep\": 2, \"etp\": 4", 8, NULL},
    {"mixtral", "\"tp\": 2, \"dp\": 4, \"etp\": 2", 8, NULL},
    {"mixtral", "\"cp\": 4, \"tp\": 2, \"etp\": 4, \"zero_stage\": 0", 8, NULL},
    {"shared", "\"dp\": 8, \"etp\": 2, \"zero_stage\": 3", 8, NULL},
    {"qwen",
     "\"tp\": 2, \"pp\": 2, \"dp\": 2, \"ep\": 2, \"zero_stage\": 2, \"schedule\": \"zb-h2\"", 8,
     NULL},
    {"sgd-experts",
     "\"pp\": 2, \"dp\": 4, \"etp\": 2, \"zero_stage\": 3, \"vpp\": 2, \"schedule\": \"v-half\"", 8,
     NULL},
    {"mixtral", "\"pp\": 2, \"dp\": 4, \"etp\": 2, \"vpp\": 2, \"schedule\": \"interleaved\"", 8,
     NULL},
    {"mixtral", "\"tp\": 2, \"cp\": 2, \"dp\": 4, \"ep\": 4, \"etp\": 2", 16, NULL},
    {"mixtral", "\"tp\": 2, \"pp\": 2, \"dp\": 4, \"ep\": 2, \"etp\": 2, \"zero_stage\": 2", 16,
     NULL},
    {"mixtral",
     "\"tp\": 2, \"cp\": 2, \"pp\": 2, \"dp\": 2, \"ep\": 4, \"etp\": 2, \"schedule\": "
     "\"zb-v\", \"vpp\": 2",
     16, NULL},
    {"mixtral",
     "\"tp\": 2, \"pp\": 2, \"dp\": 2, \"ep\": 2, \"zero_stage\": 2, "
     "\"order\": \"tp-cp-ep-pp-dp\"",
     8, NULL},
};
