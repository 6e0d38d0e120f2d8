#include "workload/pass/front.h"

#include "config/model/model_front.h"

#include <math.h>

// Tokens of one image, or that the encoder reads of a sequence; how many of those a sequence has.
static double item_tokens(const Scenario *scenario, int *num_items) {
    const ModelFront *front = scenario->model.front;
    const TrainingJob *training = &scenario->training;
    const bool vision = front->kind == FRONT_VISION;
    *num_items = vision ? training->images_per_sequence : 1;
    return (double)(vision ? front_image_patches(front, training->image_size)
                           : training->encoder_seq_len);
}

Split front_split(const Model *model, const Plan *plan) {
    const Model *own = model->front->model;
    Split split = plan_split(plan);
    if (model->front->kind == FRONT_ENCODER) return split;
    const int tp = plan->tp;
    const bool divides = model_mixer(own)->num_heads % tp == 0 &&
                         model_ffn(own)->intermediate_size % tp == 0 && own->hidden_size % tp == 0;
    split.tp = divides ? tp : 1;
    split.cp = 1;
    split.sequence_parallel = false;
    split.groups[GROUP_TP] = (Group){split.tp, 1};
    return split;
}

Pass front_pass(const Scenario *scenario, const Plan *plan) {
    int num_items;
    const double tokens = item_tokens(scenario, &num_items);
    Pass pass = text_pass(scenario, plan);
    pass.sequences *= num_items;
    pass.queries = pass.keys = tokens;
    pass.causal = false;
    return pass;
}

// Numbers of one patch.
static double patch_values(const ModelFront *front) {
    return (double)front->patch_size * front->patch_size * front->num_channels *
           front->temporal_patch_size;
}

// Of what becomes one token of the text: averaged patches, or those laid side by side.
static double merged_width(const ModelFront *front) {
    return (double)front->model->hidden_size * front->merge_size * front->merge_size;
}

// Patches become tokens by one product, as a convolution whose steps are its width does.
static void build_patches(Builder *b, const ModelFront *front, double patches) {
    const double width = front->model->hidden_size, act = activation_bytes(b->execution);
    const double pixels = patch_values(front);
    build_linear(b, "patch_embedding", SPLIT_NONE, patches, width, pixels, patches * pixels * act);
    if (front->num_positions == 0) return;
    MemoryWork add = {.name = "patch_positions",
                      .bytes = 3 * patches * width * act,
                      .kernels = 1,
                      .backward_bytes = patches * width * (act + 4),
                      .backward_kernels = 1,
                      .output_bytes = patches * width * act};
    build_memory(b, &add);
}

// Several patches become one token of the text: averaged, or laid side by side.
static void build_merge(Builder *b, const ModelFront *front, double patches, double tokens) {
    const double act = activation_bytes(b->execution), width = front->model->hidden_size;
    const double out = b->model->hidden_size, inner = front->merge_hidden_size;
    const double merged = merged_width(front);
    if (front->tokens_per_image > 0) {
        MemoryWork pool = {.name = "image_pool",
                           .bytes = (patches + tokens) * width * act,
                           .kernels = 1,
                           .backward_bytes = (patches + tokens) * width * act,
                           .backward_kernels = 1,
                           .output_bytes = tokens * width * act};
        build_memory(b, &pool);
    }
    build_norm(b, "image_norm", front->tokens_per_image > 0 ? tokens * width : patches * width,
               NORM_INPUT | NORM_OUTPUT);
    if (inner > 0) {
        build_linear(b, "image_fc1", SPLIT_NONE, tokens, inner, merged, 0);
        MemoryWork activation = {.name = "image_activation",
                                 .bytes = 2 * tokens * inner * act,
                                 .kernels = 1,
                                 .backward_bytes = 3 * tokens * inner * act,
                                 .backward_kernels = 1,
                                 .saved_bytes = 2 * tokens * inner * act,
                                 .product_input_bytes = tokens * inner * act,
                                 .output_bytes = tokens * inner * act};
        build_memory(b, &activation);
    }
    build_linear(b, inner > 0 ? "image_fc2" : "image_proj", SPLIT_NONE, tokens, out,
                 inner > 0 ? inner : merged, 0);
    MemoryWork place = {.name = "image_scatter", // among the words
                        .bytes = 2 * tokens * out * act,
                        .kernels = 1,
                        .backward_bytes = 2 * tokens * out * act,
                        .backward_kernels = 1,
                        .output_bytes = tokens * out * act};
    build_memory(b, &place);
}

// Results of inner layers become tokens as those of the last do, and are added to the text's own.
static void build_deep_merge(Builder *b, const ModelFront *front, double patches, double tokens) {
    const double act = activation_bytes(b->execution);
    build_merge(b, front, patches, tokens);
    MemoryWork add = {.name = "image_deep_add",
                      .bytes = 2 * tokens * b->model->hidden_size * act,
                      .kernels = 1,
                      .backward_bytes = tokens * b->model->hidden_size * act,
                      .backward_kernels = 1,
                      .output_bytes = tokens * b->model->hidden_size * act};
    build_memory(b, &add);
}

// Its products are not quantized, as those beside a text's layers are not.
static void build_tower_ends(Builder *b, const TrainingJob *job) {
    const ModelFront *front = b->model->front;
    const double images = b->pass.sequences * job->images_per_sequence;
    const double patches = images * (double)front_image_patches(front, job->image_size);
    b->precision = unquantized_precision(b->execution);
    b->input_bytes_per_value = b->gathered_bytes_per_value = activation_bytes(b->execution);
    build_patches(b, front, patches);
    if (front->model->final_norm)
        build_norm(b, "tower_final_norm", patches * front->model->hidden_size, NORM_INPUT);
    const double tokens = images * (double)front_image_tokens(front, job->image_size);
    for (int i = 0; i < front->num_deep_mergers; i++) build_deep_merge(b, front, patches, tokens);
    build_merge(b, front, patches, tokens);
}

static void build_encoder_ends(Builder *b) {
    const double tokens = b->pass.sequences * b->pass.encoded;
    const double values = tokens * b->model->hidden_size;
    const double own = values / (b->split.sequence_parallel ? b->split.tp : 1);
    build_embedding_lookup(b, "encoder_embedding", tokens);
    build_norm(b, "encoder_final_norm", own, NORM_INPUT);
    // Read by every layer behind.
    b->units[b->num_units - 1].op.saved_bytes += own * activation_bytes(b->execution);
}

void build_front_ends(Builder *b, const TrainingJob *job) {
    const ModelFront *front = b->model->front;
    const double dense = b->dense_parameters, partial = b->partial_parameters;
    if (front->kind == FRONT_ENCODER)
        build_encoder_ends(b);
    else
        build_tower_ends(b, job);
    // All tp ranks work on whole images, and an encoder's biases of distances are of heads.
    b->front_parameters = model_front_parameters(b->model);
    b->num_front_units = b->num_units;
    b->dense_parameters = dense + b->front_parameters;
    b->partial_parameters = partial;
    if (front->kind == FRONT_ENCODER && front->model->final_norm)
        build_partial_parameters(b, model_norm_parameters(front->model));
}

double front_values_frac(const Scenario *scenario) {
    const Model *model = &scenario->model;
    if (model->num_front_layers == 0) return 0;
    int num_items;
    const double values = item_tokens(scenario, &num_items) * model->front->model->hidden_size;
    return values * num_items / ((double)scenario->training.seq_len * model->hidden_size);
}

double front_model_flops(const Scenario *scenario) {
    const ModelFront *front = scenario->model.front;
    const Model *own = front->model;
    int num_items;
    const double seq = item_tokens(scenario, &num_items), tokens = seq * num_items;
    const Mixer *mixer = model_mixer(own);
    const FeedForward *ffn = model_ffn(own);
    const double width = own->hidden_size, heads = (double)mixer->num_heads * mixer->head_dim;
    const double mlp = (ffn->gated ? 3.0 : 2.0) * width * ffn->intermediate_size;
    const double matrix = 4 * width * heads + mlp; // as many key and value heads as others
    double attention = 0;
    for (int i = 0; i < own->num_layers; i++) {
        const double window = own->kinds[own->layer_kind[i]].mixer.window;
        const double keys = window > 0 ? fmin(window, seq) : seq;
        attention += 4 * keys * mixer->num_heads * mixer->head_dim;
    }
    double flops = tokens * (6 * own->num_layers * matrix + 3 * attention);
    if (front->kind == FRONT_ENCODER) return flops;
    const double text = (double)front_image_tokens(front, scenario->training.image_size);
    const double merged = merged_width(front), inner = front->merge_hidden_size;
    const double out = scenario->model.hidden_size;
    const double one = inner > 0 ? merged * inner + inner * out : merged * out;
    const double merge = (1 + front->num_deep_mergers) * one;
    return flops + 6 * (tokens * patch_values(front) * own->hidden_size + num_items * text * merge);
}
