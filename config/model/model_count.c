// Each count is the sum over the weight tensors of the Hugging Face code of the family
// (modeling_*.py), written once for all families; tests/config/test_model_presets.c compares it
// with the released weights.
#include "config/model/model.h"

#include "config/model/mixer.h"
#include "config/model/model_front.h"

// Rows and columns of a weight matrix, as a product that cannot overflow.
static double matrix(double inputs, double outputs) {
    return inputs * outputs;
}

static double norm_parameters(const Model *model, double width) {
    return model->norm_bias ? 2 * width : width;
}

double model_mixer_parameters(const Model *model, const Mixer *mixer) {
    return mixer_row(mixer->kind)->parameters(model, mixer);
}

static double mlp_parameters(double hidden, bool gated, double intermediate, bool bias) {
    const double num_in = gated ? 2 : 1;
    double sum = (num_in + 1) * matrix(hidden, intermediate);
    return bias ? sum + num_in * intermediate + hidden : sum;
}

double model_mlp_parameters(const Model *model, const FeedForward *ffn) {
    return mlp_parameters(model->hidden_size, ffn->gated, ffn->intermediate_size, ffn->bias);
}

double model_expert_parameters(const Model *model, const FeedForward *ffn) {
    if (ffn->num_experts == 0) return 0;
    return mlp_parameters(model->hidden_size, ffn->gated, ffn->moe_intermediate_size,
                          ffn->expert_bias);
}

double model_router_parameters(const Model *model, const FeedForward *ffn) {
    if (ffn->num_experts == 0) return 0;
    double sum = matrix(model->hidden_size, ffn->num_experts);
    if (ffn->router_bias) sum += ffn->num_experts;
    return ffn->shared_expert_gate ? sum + model->hidden_size : sum;
}

double model_shared_expert_parameters(const Model *model, const FeedForward *ffn) {
    if (ffn->shared_intermediate_size == 0) return 0;
    return mlp_parameters(model->hidden_size, ffn->gated, ffn->shared_intermediate_size, ffn->bias);
}

double model_norm_parameters(const Model *model) {
    return norm_parameters(model, model->hidden_size);
}

double model_heads_norm_parameters(const Model *model, const Mixer *mixer) {
    if (!mixer->qk_norm || mixer->qk_norm_plain) return 0;
    if (!mixer->qk_norm_whole) return 2 * norm_parameters(model, mixer->head_dim);
    const double heads = (double)mixer->num_heads + mixer->num_kv_heads;
    return norm_parameters(model, heads * mixer->head_dim);
}

double model_layer_norm_parameters(const Model *model, const Mixer *mixer) {
    return model->norms_per_layer * norm_parameters(model, model->hidden_size) +
           mixer_row(mixer->kind)->norm_parameters(model, mixer);
}

// A layer of one half has half of the norms.
double model_kind_norm_parameters(const Model *model, const LayerKind *kind) {
    const bool half = kind->mixer.kind == MIXER_NONE || kind->ffn.none;
    const double missing = half ? model->norms_per_layer / 2.0 : 0;
    return model_layer_norm_parameters(model, &kind->mixer) -
           missing * norm_parameters(model, model->hidden_size);
}

// Queries of the decoder's width, keys and values of the encoder's, which is the same, and a norm.
double model_cross_parameters(const Model *model, const Mixer *mixer) {
    return model_mixer_parameters(model, mixer) + norm_parameters(model, model->hidden_size);
}

// One layer, with all of its routed experts or those that a token is sent to.
static double layer_parameters(const Model *model, const LayerKind *kind, bool active) {
    if (kind->front) {
        LayerKind own = *kind;
        own.front = false;
        return layer_parameters(model->front->model, &own, active);
    }
    const FeedForward *ffn = &kind->ffn;
    double sum =
        model_mixer_parameters(model, &kind->mixer) + model_kind_norm_parameters(model, kind);
    if (kind->cross) sum += model_cross_parameters(model, &kind->mixer);
    if (ffn->none) return sum;
    if (!kind_is_moe(kind)) return sum + model_mlp_parameters(model, ffn);
    const double num_experts = active ? ffn->num_experts_per_tok : ffn->num_experts;
    return sum + num_experts * model_expert_parameters(model, ffn) +
           model_router_parameters(model, ffn) + model_shared_expert_parameters(model, ffn);
}

double model_layer_parameters(const Model *model, const LayerKind *kind) {
    return layer_parameters(model, kind, false);
}

double model_embedding_parameters(const Model *model) {
    const double rows = (double)model->vocab_size + model->max_position_embeddings;
    const double distances = (double)model->num_relative_buckets * model_mixer(model)->num_heads;
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
    const double hidden = model->hidden_size;
    const double one = matrix(2 * hidden, hidden) + 3 * norm_parameters(model, hidden) +
                       model_layer_parameters(model, model_mtp_kind(model));
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
    const double one = matrix(merged, inner) + inner + matrix(inner, out) + out;
    return sum + one + front->num_deep_mergers * (one + 2 * merged);
}

double model_front_parameters(const Model *model) {
    const ModelFront *front = model->front;
    if (!front) return 0;
    const Model *own = front->model;
    double sum = own->final_norm ? norm_parameters(own, own->hidden_size) : 0;
    if (front->kind == FRONT_ENCODER)
        return sum + (double)own->num_relative_buckets * model_mixer(own)->num_heads;
    return sum + vision_parameters(front, model->hidden_size);
}

static double sum_over_layers(const Model *model, bool active) {
    double sum = model_head_parameters(model);
    if (!active)
        sum += model_embedding_parameters(model);
    else if (model->tie_word_embeddings) // the head's, too
        sum += matrix(model->vocab_size, model->hidden_size);
    if (model->num_front_layers > 0) sum += model_front_parameters(model);
    for (int i = 0; i < model->num_layers; i++)
        sum += layer_parameters(model, &model->kinds[model->layer_kind[i]], active);
    return sum;
}

double model_num_parameters(const Model *model) {
    return sum_over_layers(model, false);
}

double model_active_parameters(const Model *model) {
    return sum_over_layers(model, true);
}
