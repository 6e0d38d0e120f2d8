// Each count is the sum over the weight tensors of the Hugging Face code of the family
// (modeling_*.py), written once for all families; tests/config/test_model_presets.c compares it
// with the released weights.
#include "config/model/model.h"

#include "config/model/model_front.h"

// Rows and columns of a weight matrix, as a product that cannot overflow.
static double matrix(double inputs, double outputs) {
    return inputs * outputs;
}

static double norm_parameters(const Model *model, double width) {
    return model->norm_bias ? 2 * width : width;
}

// Query, key, value and output projections; one logit per head where there are sinks.
static double gqa_parameters(const Model *model) {
    const double hidden = model->hidden_size;
    const double query = (double)model->num_heads * model->head_dim;
    const double key_value = 2.0 * model->num_kv_heads * model->head_dim;
    double sum = matrix(hidden, query + key_value) + matrix(query, hidden);
    if (model->qkv_bias) sum += query + key_value;
    if (model->attention_out_bias) sum += hidden;
    return model->attention_sinks ? sum + model->num_heads : sum;
}

// DeepSeek-V2, arXiv:2405.04434, section 2.1 and appendix C: W^DQ, W^UQ with W^QR, W^DKV with
// W^KR, W^UK with W^UV, W^O. Biases, where a file has them, are on the down-projections and W^O.
static double mla_parameters(const Model *model) {
    const double hidden = model->hidden_size, heads = model->num_heads;
    const double query = heads * (model->qk_nope_head_dim + model->qk_rope_head_dim);
    const double q_rank = model->q_lora_rank;
    const double kv_down = model->kv_lora_rank + model->qk_rope_head_dim;
    const double kv_up = heads * (model->qk_nope_head_dim + model->v_head_dim);
    double sum =
        q_rank > 0 ? matrix(hidden, q_rank) + matrix(q_rank, query) : matrix(hidden, query);
    sum += matrix(hidden, kv_down) + matrix(model->kv_lora_rank, kv_up);
    sum += matrix(heads * model->v_head_dim, hidden);
    if (model->qkv_bias) sum += q_rank + kv_down;
    return model->attention_out_bias ? sum + hidden : sum;
}

double model_attention_parameters(const Model *model) {
    return model->attention == ATTENTION_MLA ? mla_parameters(model) : gqa_parameters(model);
}

static double feed_forward_parameters(const Model *model, double intermediate, bool bias) {
    const double hidden = model->hidden_size, num_in = model->gated_mlp ? 2 : 1;
    double sum = (num_in + 1) * matrix(hidden, intermediate);
    return bias ? sum + num_in * intermediate + hidden : sum;
}

double model_mlp_parameters(const Model *model) {
    return feed_forward_parameters(model, model->intermediate_size, model->mlp_bias);
}

double model_expert_parameters(const Model *model) {
    if (model->num_experts == 0) return 0;
    return feed_forward_parameters(model, model->moe_intermediate_size, model->expert_bias);
}

double model_router_parameters(const Model *model) {
    if (model->num_experts == 0) return 0;
    double sum = matrix(model->hidden_size, model->num_experts);
    if (model->router_bias) sum += model->num_experts;
    return model->shared_expert_gate ? sum + model->hidden_size : sum;
}

double model_shared_expert_parameters(const Model *model) {
    if (model->shared_intermediate_size == 0) return 0;
    return feed_forward_parameters(model, model->shared_intermediate_size, model->mlp_bias);
}

double model_norm_parameters(const Model *model) {
    return norm_parameters(model, model->hidden_size);
}

double model_heads_norm_parameters(const Model *model) {
    return model->qk_norm ? 2 * norm_parameters(model, model->head_dim) : 0;
}

double model_layer_norm_parameters(const Model *model) {
    double sum = model->norms_per_layer * norm_parameters(model, model->hidden_size) +
                 model_heads_norm_parameters(model);
    if (model->attention == ATTENTION_MLA)
        sum += norm_parameters(model, model->q_lora_rank) +
               norm_parameters(model, model->kv_lora_rank);
    return sum;
}

// Queries of the decoder's width, keys and values of the encoder's, which is the same, and a norm.
double model_cross_parameters(const Model *model) {
    return model_attention_parameters(model) + norm_parameters(model, model->hidden_size);
}

// One layer that holds num_experts of its routed experts.
static double layer_parameters(const Model *model, const LayerKind *kind, double num_experts) {
    if (kind->front) {
        const LayerKind own = {.window = kind->window};
        return layer_parameters(model->front->model, &own, 0);
    }
    double sum = model_attention_parameters(model) + model_layer_norm_parameters(model);
    if (kind->cross) sum += model_cross_parameters(model);
    if (!kind->moe) return sum + model_mlp_parameters(model);
    return sum + num_experts * model_expert_parameters(model) + model_router_parameters(model) +
           model_shared_expert_parameters(model);
}

double model_layer_parameters(const Model *model, const LayerKind *kind) {
    return layer_parameters(model, kind, model->num_experts);
}

double model_embedding_parameters(const Model *model) {
    const double rows = (double)model->vocab_size + model->max_position_embeddings;
    const double distances = (double)model->num_relative_buckets * model->num_heads;
    const double sum = rows * model->hidden_size + distances;
    return model->embedding_norm ? sum + norm_parameters(model, model->hidden_size) : sum;
}

double model_head_parameters(const Model *model) {
    double sum = model->final_norm ? norm_parameters(model, model->hidden_size) : 0;
    if (!model->tie_word_embeddings) sum += matrix(model->hidden_size, model->vocab_size);
    return model->lm_head_bias ? sum + model->vocab_size : sum;
}

// DeepSeek-V3, arXiv:2412.19437, section 2.2: norms of the hidden state and of the embedding, a
// projection of both to one, a layer like the last one, a norm; embedding and head are shared.
double model_mtp_parameters(const Model *model) {
    if (model->num_mtp_layers == 0) return 0;
    const LayerKind *last = &model->kinds[model->layer_kind[model->num_layers - 1]];
    const double hidden = model->hidden_size;
    const double one = matrix(2 * hidden, hidden) + 3 * norm_parameters(model, hidden) +
                       model_layer_parameters(model, last);
    return model->num_mtp_layers * one;
}

// Patches and their positions, and what makes tokens of the text of them.
static double vision_parameters(const ModelFront *front, int hidden_size) {
    const double width = front->model->hidden_size, out = hidden_size;
    const double pixels = (double)front->patch_size * front->patch_size * front->num_channels *
                          front->temporal_patch_size;
    double sum = matrix(pixels, width) + matrix(front->num_positions, width);
    if (front->patch_bias) sum += width;
    sum += front->merge_norm_bias ? 2 * width : width;
    const double merged = width * front->merge_size * front->merge_size;
    const double inner = front->merge_hidden_size;
    if (inner <= 0) return sum + matrix(merged, out);
    return sum + matrix(merged, inner) + inner + matrix(inner, out) + out;
}

double model_front_parameters(const Model *model) {
    const ModelFront *front = model->front;
    if (!front) return 0;
    const Model *own = front->model;
    double sum = own->final_norm ? norm_parameters(own, own->hidden_size) : 0;
    if (front->kind == FRONT_ENCODER)
        return sum + (double)own->num_relative_buckets * own->num_heads;
    return sum + vision_parameters(front, model->hidden_size);
}

static double sum_over_layers(const Model *model, double num_experts) {
    double sum = model_embedding_parameters(model) + model_head_parameters(model);
    if (model->num_front_layers > 0) sum += model_front_parameters(model);
    for (int i = 0; i < model->num_layers; i++)
        sum += layer_parameters(model, &model->kinds[model->layer_kind[i]], num_experts);
    return sum;
}

double model_num_parameters(const Model *model) {
    return sum_over_layers(model, model->num_experts);
}

double model_active_parameters(const Model *model) {
    return sum_over_layers(model, model->num_experts_per_tok);
}
