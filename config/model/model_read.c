#include "config/model/model_read.h"

#include "config/model/model_keys.h"
#include "config/model/model_limits.h"

#include <string.h>

#define KEYS(name, ...) const char *const name[] = {__VA_ARGS__, NULL}

KEYS(HIDDEN_KEYS, "hidden_size", "n_embd", "n_embed", "d_model");
KEYS(LAYERS_KEYS, "num_hidden_layers", "n_layer", "n_layers");
KEYS(HEADS_KEYS, "num_attention_heads", "n_head", "n_heads");
KEYS(KV_HEADS_KEYS, "num_key_value_heads", "num_kv_heads", "n_head_kv", "num_attention_groups");
KEYS(HEAD_DIM_KEYS, "head_dim", "attention_head_dim");
KEYS(VOCAB_KEYS, "vocab_size");
KEYS(INTERMEDIATE_KEYS, "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size");
KEYS(POSITIONS_KEYS, "max_position_embeddings", "n_positions");
KEYS(EXPERTS_KEYS, "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts");
KEYS(EXPERTS_PER_TOKEN_KEYS, "num_experts_per_tok", "experts_per_token", "moe_k", "moe_top_k");
KEYS(WINDOW_KEYS, "sliding_window");

static int or_required(int size) {
    return size > 0 ? size : KEY_REQUIRED;
}

// Reads a size whose default is what *out holds; 0 is "required".
static Status read_size(const JsonNode *config, const char *const *keys, int max, int *out) {
    int otherwise = or_required(*out);
    return key_read_size(config, &(SizeKey){keys, 1, max, otherwise, otherwise}, out);
}

Status model_read_sizes(const JsonNode *config, ModelDraft *draft) {
    TRY(read_size(config, HIDDEN_KEYS, MODEL_MAX_WIDTH, &draft->model.hidden_size));
    TRY(read_size(config, LAYERS_KEYS, MODEL_MAX_LAYERS, &draft->model.num_layers));
    TRY(read_size(config, HEADS_KEYS, MODEL_MAX_HEADS, &draft->mixer.num_heads));
    return read_size(config, VOCAB_KEYS, MODEL_MAX_VOCAB, &draft->model.vocab_size);
}

// MLA (DeepSeek-V2, arXiv:2405.04434, section 2.1). q_lora_rank null: no query compression.
// The indexer of DeepSeek-V3.2 and GLM-5. Its queries are made of the query's latent.
static Status read_indexer(const JsonNode *config, ModelDraft *draft) {
    static KEYS(HEADS, "index_n_heads");
    static KEYS(DIM, "index_head_dim");
    static KEYS(TOPK, "index_topk");
    Mixer *m = &draft->mixer;
    TRY(read_size(config, HEADS, MODEL_MAX_HEADS, &m->index_num_heads));
    TRY(read_size(config, DIM, MODEL_MAX_HEAD_DIM, &m->index_head_dim));
    TRY(read_size(config, TOPK, MODEL_MAX_POSITIONS, &m->index_topk));
    const JsonNode node = json_get(config, "q_lora_rank");
    if (m->q_lora_rank > 0) return status_ok();
    return json_error(&node,
                      "an indexer makes its queries of the query's latent, which is missing");
}

static Status read_mla(const JsonNode *config, ModelDraft *draft) {
    static KEYS(Q_RANK, "q_lora_rank");
    static KEYS(KV_RANK, "kv_lora_rank");
    static KEYS(NOPE, "qk_nope_head_dim");
    static KEYS(ROPE, "qk_rope_head_dim");
    static KEYS(VALUE, "v_head_dim");
    const int q_rank = draft->mixer.q_lora_rank;
    TRY(key_read_size(config, &(SizeKey){Q_RANK, 1, MODEL_MAX_WIDTH, q_rank, 0},
                      &draft->mixer.q_lora_rank));
    TRY(read_size(config, KV_RANK, MODEL_MAX_WIDTH, &draft->mixer.kv_lora_rank));
    TRY(read_size(config, NOPE, MODEL_MAX_HEAD_DIM, &draft->mixer.qk_nope_head_dim));
    TRY(read_size(config, ROPE, MODEL_MAX_HEAD_DIM, &draft->mixer.qk_rope_head_dim));
    TRY(read_size(config, VALUE, MODEL_MAX_HEAD_DIM, &draft->mixer.v_head_dim));
    if (draft->mixer.kind == MIXER_SPARSE_LATENT_ATTENTION) TRY(read_indexer(config, draft));
    draft->mixer.num_kv_heads = draft->mixer.num_heads;
    draft->mixer.head_dim = draft->mixer.qk_nope_head_dim + draft->mixer.qk_rope_head_dim;
    return status_ok();
}

Status model_read_attention(const JsonNode *config, ModelDraft *draft) {
    if (mixer_is_latent(&draft->mixer)) return read_mla(config, draft);
    const int heads = draft->mixer.num_heads;
    const int kv_heads = draft->mixer.num_kv_heads > 0 ? draft->mixer.num_kv_heads : heads;
    TRY(key_read_size(config, &(SizeKey){KV_HEADS_KEYS, 1, MODEL_MAX_HEADS, kv_heads, heads},
                      &draft->mixer.num_kv_heads));
    const int even = draft->model.hidden_size / heads; // that it divides is checked where it counts
    JsonNode head_dim = key_find(config, HEAD_DIM_KEYS);
    // Null asks for hidden_size / heads; a family's own default stands where the key is absent.
    const bool is_even = key_is_null(config, HEAD_DIM_KEYS) ||
                         (!json_is_present(&head_dim) && draft->mixer.head_dim == 0);
    if (is_even && draft->model.hidden_size % heads) {
        JsonNode node = key_find(config, HEADS_KEYS);
        return json_error(&node, "%d does not divide %s %d", heads,
                          key_find(config, HIDDEN_KEYS).key, draft->model.hidden_size);
    }
    const int otherwise = draft->mixer.head_dim > 0 ? draft->mixer.head_dim : even;
    return key_read_size(config, &(SizeKey){HEAD_DIM_KEYS, 1, MODEL_MAX_HEAD_DIM, otherwise, even},
                         &draft->mixer.head_dim);
}

// The shared experts, as their number (DeepSeek) or as the size of all together (Qwen).
static Status read_shared_experts(const JsonNode *config, int num_shared, ModelDraft *draft) {
    static KEYS(NUMBER, "n_shared_experts", "moe_num_shared_experts");
    static KEYS(SIZE, "shared_expert_intermediate_size", "share_expert_dim");
    static KEYS(WIDTH, "moe_shared_expert_intermediate_size"); // of one, however many they are
    const int size_default = draft->ffn.shared_intermediate_size;
    int size, number;
    TRY(key_read_size(config, &(SizeKey){NUMBER, 0, 1024, num_shared, 0}, &number));
    TRY(key_read_size(config, &(SizeKey){SIZE, 0, MODEL_MAX_INTERMEDIATE, size_default, 0}, &size));
    JsonNode number_node = key_find(config, NUMBER), size_node = key_find(config, SIZE);
    int width = draft->ffn.moe_intermediate_size;
    TRY(key_read_size_or(config, WIDTH, MODEL_MAX_INTERMEDIATE, width, &width));
    const double product = (double)number * width;
    if (product > MODEL_MAX_INTERMEDIATE)
        return json_error(&number_node, "%d x moe_intermediate_size %d is more than %d", number,
                          draft->ffn.moe_intermediate_size, MODEL_MAX_INTERMEDIATE);
    if (json_is_present(&number_node) && json_is_present(&size_node) && (int)product != size)
        return json_error(&size_node,
                          "%d contradicts n_shared_experts %d x moe_intermediate_size %d", size,
                          number, draft->ffn.moe_intermediate_size);
    draft->ffn.shared_intermediate_size = size > 0 ? size : (int)product;
    return status_ok();
}

Status model_read_experts(const JsonNode *config, int moe_size, int num_shared, ModelDraft *draft) {
    static KEYS(SIZE, "moe_intermediate_size");
    draft->ffn.moe_intermediate_size = moe_size;
    TRY(read_size(config, EXPERTS_PER_TOKEN_KEYS, MODEL_MAX_EXPERTS,
                  &draft->ffn.num_experts_per_tok));
    TRY(read_size(config, SIZE, MODEL_MAX_INTERMEDIATE, &draft->ffn.moe_intermediate_size));
    TRY(key_read_bool(config, "norm_topk_prob", &draft->ffn.norm_topk_prob));
    return read_shared_experts(config, num_shared, draft);
}

Status model_read_expert_groups(const JsonNode *config, ModelDraft *draft) {
    static KEYS(GROUPS, "n_group");
    static KEYS(CHOSEN, "topk_group");
    int groups, chosen;
    JsonNode groups_node = key_find(config, GROUPS), chosen_node = key_find(config, CHOSEN);
    TRY(key_read_size(config, &(SizeKey){GROUPS, 1, MODEL_MAX_EXPERTS, 1, 1}, &groups));
    TRY(key_read_size(config, &(SizeKey){CHOSEN, 1, MODEL_MAX_EXPERTS, groups, groups}, &chosen));
    if (draft->ffn.num_experts == 0 || chosen >= groups) return status_ok();
    if (draft->ffn.num_experts % groups)
        return json_error(&groups_node, "%d does not divide the %d experts", groups,
                          draft->ffn.num_experts);
    if (draft->ffn.num_experts / groups * chosen < draft->ffn.num_experts_per_tok)
        return json_error(&chosen_node, "%d of %d groups hold fewer than %d experts", chosen,
                          groups, draft->ffn.num_experts_per_tok);
    draft->ffn.num_expert_groups = groups;
    draft->ffn.expert_groups_per_tok = chosen;
    return status_ok();
}

Status model_read_mtp(const JsonNode *config, ModelDraft *draft) {
    static KEYS(MTP, "num_nextn_predict_layers", "mtp_num_hidden_layers");
    return key_read_size(config, &(SizeKey){MTP, 0, MODEL_MAX_MTP_LAYERS, 0, 0},
                         &draft->model.num_mtp_layers);
}

// True where a key says something: not absent, null, false, 0 or empty.
static bool says_something(const JsonNode *node) {
    const cJSON *item = node->item;
    if (!item || cJSON_IsFalse(item)) return false;
    if (cJSON_IsNumber(item)) return item->valuedouble > 0 || item->valuedouble < 0;
    if (cJSON_IsArray(item) || cJSON_IsObject(item)) return item->child != NULL;
    return true;
}

Status model_refuse_unsupported(const JsonNode *config, const char *but, Arena *arena) {
    static const struct {
        const char *key, *what;
    } REFUSED[] = {
        {"attention_chunk_size", "attention in chunks"},
        {"index_topk", "sparse attention with an indexer"},
        {"compress_ratios", "compressed attention"},
        {"linear_attn_config", "Kimi's delta attention"},
        {"num_kv_shared_layers", "layers that share keys and values"},
        {"hc_mult", "several residual streams"},
        {"moe_latent_size", "experts of a latent width"},
        {"zero_expert_num", "experts that compute nothing"},
        {"hidden_size_per_layer_input", "an embedding for each layer"},
    };
    const JsonNode decodes = json_get(config, "is_encoder_decoder"),
                   crosses = json_get(config, "add_cross_attention");
    if (says_something(&decodes))
        return json_error(&decodes, "an encoder with a decoder is not supported yet");
    if (says_something(&crosses))
        return json_error(&crosses, "cross attention is not supported yet");
    JsonNode first = {0};
    const char *all = NULL;
    bool several = false;
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        const char *key = REFUSED[i].key, *what = REFUSED[i].what;
        JsonNode node = json_get(config, key);
        if (!says_something(&node) || (but && strcmp(but, key) == 0)) continue;
        several = all != NULL;
        if (!all) first = node;
        all = all ? arena_printf(arena, "%s, %s (%s)", all, what, key)
                  : arena_printf(arena, "%s (%s)", what, key);
    }
    if (!all) return status_ok();
    return json_error(&first, "%s %s not modelled yet", all, several ? "are" : "is");
}

static Status kind_check(const JsonNode *config, const LayerKind *kind) {
    const Mixer *mixer = &kind->mixer;
    const FeedForward *ffn = &kind->ffn;
    if (mixer->kind == MIXER_ATTENTION && mixer->num_heads % mixer->num_kv_heads) {
        JsonNode node = key_find(config, KV_HEADS_KEYS);
        return json_error(&node, "%d does not divide %s %d", mixer->num_kv_heads,
                          key_find(config, HEADS_KEYS).key, mixer->num_heads);
    }
    if (ffn->num_experts_per_tok > ffn->num_experts) {
        JsonNode node = key_find(config, EXPERTS_PER_TOKEN_KEYS);
        return json_error(&node, "%d is more than the %d experts", ffn->num_experts_per_tok,
                          ffn->num_experts);
    }
    return status_ok();
}

Status model_check(const JsonNode *config, const Model *model) {
    for (int i = 0; i < model->num_kinds; i++) TRY(kind_check(config, &model->kinds[i]));
    const double total = model_num_parameters(model) + model_mtp_parameters(model);
    if (total > MODEL_MAX_PARAMETERS)
        return json_error(config, "the sizes give %.3g parameters; expected at most %.0e", total,
                          MODEL_MAX_PARAMETERS);
    return status_ok();
}
