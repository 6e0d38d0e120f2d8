#include "config/job/scenario_warn.h"

#include "base/data_dir.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WARNINGS = 32 };

typedef struct {
    const Scenario *scenario;
    Arena *arena;
    const char **texts; // [MAX_WARNINGS]
    int num_texts;
} Warnings;

static void warn(Warnings *w, const char *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void warn(Warnings *w, const char *file, const char *format, ...) {
    if (w->num_texts == MAX_WARNINGS) return;
    char text[500];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    w->texts[w->num_texts++] = arena_printf(w->arena, "%s: %s", file, text);
}

// --- The batch

// The largest published batches are some 1e8 tokens (DeepSeek-V3, arXiv:2412.19437, section 4.2:
// 15,360 sequences of 4,096 tokens are 6.3e7); four times that is no batch but a slip.
static void warn_batch(Warnings *w) {
    static const double MOST_TOKENS = 2.5e8;
    const TrainingJob *t = &w->scenario->training;
    const double tokens = (double)t->global_batch * (double)t->seq_len;
    if (tokens < MOST_TOKENS || t->global_batch < t->seq_len) return;
    warn(w, w->scenario->file,
         "training.global_batch: %lld counts sequences, of %lld tokens each: %.3g tokens a step, "
         "more than any published run. Is this tokens? Then write %lld",
         (long long)t->global_batch, (long long)t->seq_len, tokens,
         (long long)((t->global_batch + t->seq_len - 1) / t->seq_len));
}

// --- Positions

// What the model's file says of the longest sequence, with its scaling of rotary frequencies; 0
// where it says nothing. A factor extends what was there before: original_max_position_embeddings
// where that is stated, else max_position_embeddings (transformers, modeling_rope_utils.py).
static double longest_sequence(const Model *model) {
    const ModelFunctions *f = &model->functions;
    if (model->position == POSITION_LEARNED) return model->stated_positions;
    if (model->position != POSITION_ROPE || f->max_positions == 0) return 0;
    const double before = f->scaled_from > 0 ? f->scaled_from : f->max_positions;
    const double scaled = f->rope == ROPE_PLAIN ? 0 : before * f->stated_factor;
    return scaled > f->max_positions ? scaled : f->max_positions;
}

static void warn_positions(Warnings *w) {
    const Scenario *s = w->scenario;
    const double longest = longest_sequence(&s->model);
    if (longest == 0 || (double)s->training.seq_len <= longest) return;
    const bool learned = s->model.position == POSITION_LEARNED;
    warn(w, s->file, "training.seq_len: %lld tokens on a model of %.0f positions (%s of %s)%s",
         (long long)s->training.seq_len, longest,
         learned ? "its table" : "max_position_embeddings and rope_scaling", s->model.name,
         learned ? ": one of as many rows as seq_len is priced, and launched"
                 : "; it was not made for them unless you extend it");
}

// --- Keys of the model's file

// Keys that change price or memory, or that launch writes.
static const char *const MATTER[] = {"hidden_size",
                                     "n_embd",
                                     "n_embed",
                                     "d_model",
                                     "num_hidden_layers",
                                     "n_layer",
                                     "n_layers",
                                     "num_attention_heads",
                                     "n_head",
                                     "n_heads",
                                     "num_key_value_heads",
                                     "num_kv_heads",
                                     "n_head_kv",
                                     "head_dim",
                                     "vocab_size",
                                     "intermediate_size",
                                     "n_inner",
                                     "ffn_dim",
                                     "ffn_hidden_size",
                                     "max_position_embeddings",
                                     "n_positions",
                                     "num_experts",
                                     "num_local_experts",
                                     "n_routed_experts",
                                     "num_experts_per_tok",
                                     "experts_per_token",
                                     "sliding_window",
                                     "use_sliding_window",
                                     "layer_types",
                                     "mlp_only_layers",
                                     "moe_intermediate_size",
                                     "n_shared_experts",
                                     "shared_expert_intermediate_size",
                                     "first_k_dense_replace",
                                     "decoder_sparse_step",
                                     "num_nextn_predict_layers",
                                     "q_lora_rank",
                                     "kv_lora_rank",
                                     "qk_nope_head_dim",
                                     "qk_rope_head_dim",
                                     "v_head_dim",
                                     "tie_word_embeddings",
                                     "n_group",
                                     "topk_group",
                                     "rope_theta",
                                     "rope_scaling",
                                     "rms_norm_eps",
                                     "layer_norm_eps",
                                     "partial_rotary_factor",
                                     NULL};

// Published keys of their own that are near one of those (T5, Nemotron-H, DeepSeek-V4).
static const char *const OTHERS[] = {"num_heads", "num_layers",  "n_groups",
                                     "o_groups",  "o_lora_rank", NULL};

static bool is_one_of(const char *key, const char *const *keys) {
    for (; *keys; keys++)
        if (strcmp(key, *keys) == 0) return true;
    return false;
}

// How many letters a key may differ in and still be a slip.
static int slip_letters(const char *key) {
    size_t n = strlen(key);
    return n < 6 ? 0 : n < 8 ? 1 : n < 14 ? 2 : 3;
}

// The key that matters, is not in the file, and that this one nearly is; NULL where there is none.
static const char *slip_of(const cJSON *config, const char *key) {
    const char *best = NULL;
    int most = slip_letters(key);
    if (is_one_of(key, MATTER) || is_one_of(key, OTHERS)) return NULL;
    for (const char *const *m = MATTER; *m; m++) {
        if (abs((int)strlen(*m) - (int)strlen(key)) > most) continue;
        const int letters = name_distance(key, *m);
        if (letters > most || cJSON_GetObjectItemCaseSensitive(config, *m)) continue;
        best = *m;
        most = letters - 1;
    }
    return best;
}

static void warn_keys(Warnings *w, const cJSON *config, const char *file, const char *path) {
    const cJSON *member;
    cJSON_ArrayForEach(member, config) {
        const char *near = slip_of(config, member->string);
        if (near)
            warn(w, file, "%s%s: not read, and \"%s\" is missing; is that meant?", path,
                 member->string, near);
    }
}

static void warn_model(Warnings *w) {
    const Scenario *s = w->scenario;
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(s->document, "model");
    const cJSON *config = s->model_document;
    if (!cJSON_IsObject(config)) return; // a preset
    const bool file = cJSON_IsString(given);
    const char *name = file ? path_beside(w->arena, s->file, given->valuestring) : s->file;
    const char *path = file ? "" : "model.";
    warn_keys(w, config, name, path);
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(config, "text_config");
    if (cJSON_IsObject(text))
        warn_keys(w, text, name, arena_printf(w->arena, "%stext_config.", path));
}

// --- NICs

// ConnectX-8 and its like reach 800 Gbit/s, one direction: twice that is to come.
static void warn_nics(Warnings *w) {
    static const double FASTEST_BYTES_PER_S = 2e11;
    const Cluster *cluster = &w->scenario->cluster;
    for (int i = 0; i < cluster->num_pools; i++) {
        const double rate = cluster->pools[i].nic_bytes_per_s;
        if (rate > FASTEST_BYTES_PER_S)
            warn(w, w->scenario->file,
                 "cluster: nic_bytes_per_s %g is %.0f Gbit/s, more than any NIC: are these bits?",
                 rate, 8e-9 * rate);
    }
}

// --- GPUs

static void warn_architectures(Warnings *w) {
    const Cluster *cluster = &w->scenario->cluster;
    for (int i = 0; i < cluster->num_pools; i++) {
        const Gpu *gpu = &cluster->pools[i].gpu;
        if (strcmp(gpu->architecture, gpu->shared->name) != 0)
            warn(w, gpu->file,
                 "architecture \"%.60s\" has no file in hw-profiles/architectures: older kernels "
                 "of attention, large heads and operands of 8 bits are priced as \"%s\" has them",
                 gpu->architecture, gpu->shared->name);
    }
}

int scenario_warnings(const Scenario *scenario, Arena *arena, const char *const **out) {
    Warnings w = {.scenario = scenario, .arena = arena};
    w.texts = ARENA_ARRAY(arena, MAX_WARNINGS, const char *);
    warn_architectures(&w);
    warn_nics(&w);
    warn_batch(&w);
    warn_positions(&w);
    warn_model(&w);
    *out = w.texts;
    return w.num_texts;
}
