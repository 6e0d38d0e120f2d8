#include "config/job/scenario_front.h"

#include "config/model/model_front.h"

// Refuses what is said of a part that the model lacks.
static Status refuse_others(const JsonNode *training, const Model *model) {
    static const struct {
        const char *key;
        FrontKind kind;
        const char *what;
    } KEYS[] = {
        {"images_per_sequence", FRONT_VISION,
         "no tower for images (vision_config of gemma3, "
         "qwen2_vl, qwen2_5_vl)"},
        {"image_size", FRONT_VISION, "no tower for images"},
        {"encoder_seq_len", FRONT_ENCODER, "no encoder"},
    };
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        JsonNode node = json_get(training, KEYS[i].key);
        if (!json_is_present(&node) || (model->front && model->front->kind == KEYS[i].kind))
            continue;
        return json_error(&node, "%s has %s", model->name, KEYS[i].what);
    }
    return status_ok();
}

static Status image_size_take(const JsonNode *training, const ModelFront *front, TrainingJob *out) {
    JsonNode node = json_get(training, "image_size");
    const int unit = front->patch_size * front->merge_size;
    if (out->image_size == 0) out->image_size = front->image_size;
    if (out->image_size == 0)
        return json_error(&node, "missing; expected the images' pixels a side, a multiple of %d",
                          unit);
    if (front->image_size > 0 && out->image_size != front->image_size)
        return json_error(&node, "%d; the tower's positions are of images of %d pixels a side",
                          out->image_size, front->image_size);
    if (out->image_size % unit != 0)
        return json_error(&node, "%d is not a multiple of %d, the pixels of a token",
                          out->image_size, unit);
    return status_ok();
}

static Status images_take(const JsonNode *training, const Model *model, TrainingJob *out) {
    const ModelFront *front = model->front;
    TRY(image_size_take(training, front, out));
    const int64_t tokens = front_image_tokens(front, out->image_size);
    JsonNode node = json_get(training, "images_per_sequence");
    if (tokens * out->images_per_sequence > out->seq_len)
        return json_error(&node, "%d images of %lld tokens are more than seq_len %lld",
                          out->images_per_sequence, (long long)tokens, (long long)out->seq_len);
    if (front->model->num_layers + model->num_layers > MODEL_MAX_LAYERS)
        return json_error(&node, "a tower of %d layers before a text of %d; expected at most %d",
                          front->model->num_layers, model->num_layers, MODEL_MAX_LAYERS);
    return status_ok();
}

Status scenario_take_front(const JsonNode *root, Arena *arena, Scenario *scenario) {
    JsonNode training = json_get(root, "training");
    TrainingJob *out = &scenario->training;
    const ModelFront *front = scenario->model.front;
    TRY(refuse_others(&training, &scenario->model));
    if (!front) return status_ok();
    if (front->kind == FRONT_ENCODER) {
        if (out->encoder_seq_len == 0) out->encoder_seq_len = out->seq_len;
        return status_ok();
    }
    JsonNode size = json_get(&training, "image_size");
    if (out->images_per_sequence == 0)
        return json_is_present(&size)
                   ? json_error(&size, "given, but not images_per_sequence, without which the "
                                       "tower is left out")
                   : status_ok();
    TRY(images_take(&training, &scenario->model, out));
    model_add_front(arena, &scenario->model);
    return status_ok();
}

// Degrees that must be 1.
static Status refuse_degrees(const JsonNode *parallel, const Scenario *scenario) {
    static const char *const KEYS[] = {"pp", "cp"};
    const int given[] = {scenario->parallel.pp, scenario->parallel.cp};
    for (int i = 0; i < 2; i++) {
        JsonNode node = json_get(parallel, KEYS[i]);
        if (given[i] != ABSENT && given[i] > 1)
            return json_error(&node,
                              "%d with an encoder and a decoder is legal, but not supported "
                              "yet; expected 1",
                              given[i]);
    }
    return status_ok();
}

static Status refuse_spread_tower(const JsonNode *parallel, const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    const int num_front = scenario->model.num_front_layers;
    if (spec->num_stages == 0 || spec->stages[0].layers >= num_front) return status_ok();
    JsonNode stages = json_get(parallel, "stages");
    return json_error(&stages,
                      "the first holds %d layers; the tower's %d, which count first, all lie there",
                      spec->stages[0].layers, num_front);
}

Status scenario_check_front(const JsonNode *root, const Scenario *scenario) {
    const Model *model = &scenario->model;
    JsonNode parallel = json_get(root, "parallel");
    if (model->num_front_layers == 0) return status_ok();
    if (scenario->cluster.num_pools > 1) {
        JsonNode cluster = json_get(root, "cluster"), groups = json_get(&cluster, "groups");
        return json_error(&groups, "of different machines with %s are legal, but not supported yet",
                          model->front->kind == FRONT_ENCODER ? "an encoder" : "a tower");
    }
    if (model->front->kind == FRONT_ENCODER) return refuse_degrees(&parallel, scenario);
    return refuse_spread_tower(&parallel, scenario);
}

Status scenario_refuse_front(const Scenario *scenario, const char *what) {
    const Model *model = &scenario->model;
    if (model->num_front_layers == 0) return status_ok();
    if (model->front->kind == FRONT_ENCODER)
        return status_at(STATUS_INVALID, scenario->file, "model",
                         "%s: an encoder is legal, but %s does not support it yet", model->name,
                         what);
    return status_at(STATUS_INVALID, scenario->file, "training.images_per_sequence",
                     "%d: a tower is legal, but %s does not support it yet; without this key its "
                     "text is taken alone",
                     scenario->training.images_per_sequence, what);
}
