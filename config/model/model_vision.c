// Towers that make tokens of images, by vision_config.
#include "config/model/model_draft.h"
#include "config/model/model_front.h"
#include "config/model/model_keys.h"
#include "config/model/model_limits.h"

#define KEYS(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

const char *const MODEL_VISION_KEYS[] = {
    "depth",
    "hidden_size",
    "embed_dim",
    "intermediate_size",
    "mlp_ratio",
    "num_heads",
    "num_attention_heads",
    "num_hidden_layers",
    "patch_size",
    "image_size",
    "spatial_merge_size",
    "temporal_patch_size",
    "window_size",
    "num_position_embeddings",
    "vt_hidden_size",
    "vt_intermediate_size",
    "vt_num_attention_heads",
    "vt_num_hidden_layers",
    "init_pos_emb_height",
    "init_pos_emb_width",
    NULL,
};

enum { MAX_PIXELS = 1 << 14 };

// What an absent key means (configuration_*.py of Hugging Face transformers 4.57).
static const struct {
    int width, depth, heads, intermediate;
} DEFAULTS[] = {
    [VISION_SIGLIP] = {768, 12, 12, 3072},   [VISION_QWEN2] = {1280, 32, 16, 0},
    [VISION_QWEN2_5] = {3584, 32, 16, 3420}, [VISION_QWEN3] = {1152, 27, 16, 4304},
    [VISION_MOONVIT] = {1152, 27, 16, 4304}, // configuration_*.py of Kimi-VL and Kimi-K2.5
};

// Width, depth and heads. The layers of all families have norms before both halves, biases, and as
// many key and value heads as query heads.
static Status tower_sizes(const JsonNode *config, VisionKind kind, ModelDraft *draft) {
    KEYS(WIDTH, "hidden_size", "vt_hidden_size");
    KEYS(EMBED, "embed_dim"); // of Qwen2-VL, whose hidden_size is the text's
    KEYS(DEPTH, "depth", "num_hidden_layers", "vt_num_hidden_layers");
    KEYS(HEADS, "num_heads", "num_attention_heads", "vt_num_attention_heads");
    KEYS(INTERMEDIATE, "intermediate_size", "vt_intermediate_size");
    KEYS(RATIO, "mlp_ratio");
    const bool qwen2 = kind == VISION_QWEN2;
    int ratio = 4;
    TRY(key_read_size_or(config, qwen2 ? EMBED : WIDTH, MODEL_MAX_WIDTH, DEFAULTS[kind].width,
                         &draft->model.hidden_size));
    TRY(key_read_size_or(config, DEPTH, MODEL_MAX_LAYERS / 2, DEFAULTS[kind].depth,
                         &draft->model.num_layers));
    TRY(key_read_size_or(config, HEADS, MODEL_MAX_HEADS, DEFAULTS[kind].heads,
                         &draft->mixer.num_heads));
    if (qwen2) TRY(key_read_size_or(config, RATIO, 64, 4, &ratio));
    const int otherwise = qwen2 ? ratio * draft->model.hidden_size : DEFAULTS[kind].intermediate;
    TRY(key_read_size_or(config, INTERMEDIATE, MODEL_MAX_INTERMEDIATE, otherwise,
                         &draft->ffn.intermediate_size));
    if (draft->model.hidden_size % draft->mixer.num_heads != 0) {
        JsonNode heads = key_find(config, HEADS);
        return json_error(&heads, "%d does not divide the tower's width %d", draft->mixer.num_heads,
                          draft->model.hidden_size);
    }
    draft->mixer.num_kv_heads = draft->mixer.num_heads;
    draft->mixer.head_dim = draft->model.hidden_size / draft->mixer.num_heads;
    return status_ok();
}

static ModelDraft tower_traits(VisionKind kind) {
    const bool siglip = kind == VISION_SIGLIP, rms = kind == VISION_QWEN2_5;
    return (ModelDraft){.model = {.name = "vision tower",
                                  .norm = rms ? NORM_RMSNORM : NORM_LAYERNORM,
                                  .norm_bias = !rms,
                                  .norms_per_layer = 2,
                                  .final_norm = siglip || kind == VISION_MOONVIT,
                                  .position = siglip ? POSITION_LEARNED : POSITION_ROPE},
                        .mixer = {.qkv_bias = true, .out_bias = true},
                        .ffn = {.gated = rms, .bias = true}};
}

// Which layers see whole images, and how many patches the others see: of Qwen2.5-VL all but those
// of fullatt_block_indexes look at squares of window_size pixels.
static Status tower_layers(const JsonNode *config, VisionKind kind, int patch_size, Arena *arena,
                           ModelDraft *draft) {
    KEYS(WINDOW, "window_size");
    Model *out = &draft->model;
    uint8_t *layer_kind = ARENA_ARRAY(arena, out->num_layers, uint8_t);
    out->layer_kind = layer_kind;
    out->num_kinds = 1;
    out->kinds[0] = out->kinds[1] = (LayerKind){.mixer = draft->mixer, .ffn = draft->ffn};
    if (kind != VISION_QWEN2_5) return status_ok();
    int pixels;
    TRY(key_read_size_or(config, WINDOW, MAX_PIXELS, 112, &pixels));
    const int side = pixels / patch_size > 0 ? pixels / patch_size : 1;
    JsonNode list = json_get(config, "fullatt_block_indexes");
    out->kinds[0].mixer.window = side * side;
    out->num_kinds = 2; // the second sees all
    if (!json_is_present(&list)) {
        for (int layer = 7; layer < out->num_layers; layer += 8) layer_kind[layer] = 1;
        return status_ok();
    }
    TRY(json_expect_array(&list));
    for (int i = 0; i < json_size(&list); i++) {
        JsonNode node = json_at(&list, i);
        int layer;
        TRY(json_read_int(&node, 0, out->num_layers - 1, &layer));
        layer_kind[layer] = 1;
    }
    return status_ok();
}

static Status patches_read(const JsonNode *config, VisionKind kind, ModelFront *front) {
    KEYS(PATCH, "patch_size");
    KEYS(FRAMES, "temporal_patch_size");
    KEYS(CHANNELS, "num_channels", "in_channels", "in_chans");
    const bool siglip = kind == VISION_SIGLIP, wide = siglip || kind == VISION_QWEN3;
    TRY(key_read_size_or(config, PATCH, 256, wide ? 16 : 14, &front->patch_size));
    TRY(key_read_size_or(config, CHANNELS, 64, 3, &front->num_channels));
    // MoonViT cuts every frame for itself, and takes the mean over a video's only behind its
    // layers.
    const bool single = siglip || kind == VISION_MOONVIT;
    return key_read_size_or(config, FRAMES, 16, single ? 1 : 2, &front->temporal_patch_size);
}

// SigLIP's images are all of one size, and a fixed number of tokens is averaged from each.
static Status siglip_read(const JsonNode *vision, const JsonNode *config, ModelFront *front) {
    KEYS(IMAGE, "image_size");
    KEYS(TOKENS, "mm_tokens_per_image");
    TRY(key_read_size_or(vision, IMAGE, MAX_PIXELS, 224, &front->image_size));
    TRY(key_read_size_or(config, TOKENS, 1 << 16, 256, &front->tokens_per_image));
    front->num_positions = (int)front_image_patches(front, front->image_size);
    JsonNode tokens = key_find(config, TOKENS);
    if (front->num_positions < front->tokens_per_image)
        return json_error(&tokens, "%d is more than the %d patches of an image",
                          front->tokens_per_image, front->num_positions);
    // Squares of patches are averaged (Gemma3MultiModalProjector).
    const int side = front->image_size / front->patch_size;
    int tokens_side = 1;
    while (tokens_side * tokens_side < front->tokens_per_image) tokens_side++;
    if (tokens_side * tokens_side == front->tokens_per_image && side % tokens_side == 0)
        return status_ok();
    return json_error(&tokens, "%d tokens are not squares of the %d x %d patches of an image",
                      front->tokens_per_image, side, side);
}

// Its tokens take their place among the words, so they are as wide.
static Status width_check(const JsonNode *vision, VisionKind kind, int text_hidden_size) {
    const char *key = kind == VISION_QWEN2     ? "hidden_size"
                      : kind == VISION_MOONVIT ? "text_hidden_size"
                                               : "out_hidden_size";
    JsonNode node = json_get(vision, key);
    int width;
    if (!json_is_present(&node)) return status_ok();
    TRY(json_read_int(&node, 1, MODEL_MAX_WIDTH, &width));
    if (width == text_hidden_size) return status_ok();
    return json_error(&node, "%d is not the hidden_size %d of the text", width, text_hidden_size);
}

// Qwen3VLVisionConfig: a table of positions beside the rotary ones, and mergers of inner layers.
static Status qwen3_read(const JsonNode *vision, ModelFront *front) {
    KEYS(POSITIONS, "num_position_embeddings");
    const JsonNode deep = json_get(vision, "deepstack_visual_indexes");
    front->num_deep_mergers = 3;
    if (json_is_present(&deep)) {
        TRY(json_expect_array(&deep));
        front->num_deep_mergers = json_size(&deep);
    }
    return key_read_size_or(vision, POSITIONS, 1 << 24, 2304, &front->num_positions);
}

static Status qwen_read(const JsonNode *vision, VisionKind kind, int hidden_size,
                        ModelFront *front) {
    KEYS(MERGE, "spatial_merge_size");
    TRY(key_read_size_or(vision, MERGE, 16, 2, &front->merge_size));
    front->merge_hidden_size = hidden_size * front->merge_size * front->merge_size;
    return kind == VISION_QWEN3 ? qwen3_read(vision, front) : status_ok();
}

// MoonViT: a table of positions beside the rotary ones; kernels of patches of any size are merged,
// and the merger is as wide as the tower.
static Status moonvit_read(const JsonNode *vision, int hidden_size, ModelFront *front) {
    KEYS(HEIGHT, "init_pos_emb_height");
    KEYS(WIDTH, "init_pos_emb_width");
    enum { MAX_SIDE = 1 << 12 };
    int height, width, merger_width;
    TRY(key_read_size_or(vision, HEIGHT, MAX_SIDE, 64, &height));
    TRY(key_read_size_or(vision, WIDTH, MAX_SIDE, 64, &width));
    front->num_positions = height * width;
    front->merge_size = 2;
    JsonNode kernel = json_get(vision, "merge_kernel_size");
    if (json_is_present(&kernel)) {
        TRY(json_expect_array(&kernel));
        if (json_size(&kernel) != 2) return json_error(&kernel, "expected a height and a width");
        JsonNode rows = json_at(&kernel, 0), columns = json_at(&kernel, 1);
        int num_columns;
        TRY(json_read_int(&rows, 1, 16, &front->merge_size));
        TRY(json_read_int(&columns, 1, 16, &num_columns));
        if (num_columns != front->merge_size)
            return json_error(&kernel, "%d x %d: only squares of patches are merged here",
                              front->merge_size, num_columns);
    }
    JsonNode node = json_get(vision, "mm_hidden_size");
    if (json_is_present(&node)) {
        TRY(json_read_int(&node, 1, MODEL_MAX_WIDTH, &merger_width));
        if (merger_width != hidden_size)
            return json_error(&node, "%d is not the tower's width %d", merger_width, hidden_size);
    }
    front->merge_hidden_size = hidden_size * front->merge_size * front->merge_size;
    return status_ok();
}

static Status behind_layers_read(const JsonNode *vision, const JsonNode *config, VisionKind kind,
                                 int hidden_size, ModelFront *front) {
    if (kind == VISION_SIGLIP) return siglip_read(vision, config, front);
    if (kind == VISION_MOONVIT) return moonvit_read(vision, hidden_size, front);
    return qwen_read(vision, kind, hidden_size, front);
}

Status model_read_vision(const JsonNode *config, VisionKind kind, Arena *arena, Model *model) {
    JsonNode vision = json_get(config, "vision_config");
    if (kind == VISION_NONE || !json_is_present(&vision)) return status_ok();
    TRY(json_expect_object(&vision));
    Model *tower = ARENA_NEW(arena, Model);
    ModelDraft draft = tower_traits(kind);
    ModelFront *front = ARENA_NEW(arena, ModelFront);
    *front = (ModelFront){
        .kind = FRONT_VISION,
        .model = tower,
        .patch_bias = kind == VISION_SIGLIP || kind == VISION_QWEN3 || kind == VISION_MOONVIT,
        .merge_size = 1,
        .merge_norm_bias = kind == VISION_QWEN2 || kind == VISION_QWEN3 || kind == VISION_MOONVIT};
    TRY(tower_sizes(&vision, kind, &draft));
    TRY(patches_read(&vision, kind, front));
    TRY(tower_layers(&vision, kind, front->patch_size, arena, &draft));
    *tower = draft.model;
    if (kind != VISION_SIGLIP) TRY(width_check(&vision, kind, model->hidden_size));
    TRY(behind_layers_read(&vision, config, kind, tower->hidden_size, front));
    model->front = front;
    return status_ok();
}
