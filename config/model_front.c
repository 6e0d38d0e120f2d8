#include "config/model_front.h"

#include <string.h>

int64_t front_image_patches(const ModelFront *front, int image_size) {
    const int64_t side = image_size / front->patch_size;
    return side * side;
}

int64_t front_image_tokens(const ModelFront *front, int image_size) {
    if (front->tokens_per_image > 0) return front->tokens_per_image;
    return front_image_patches(front, image_size) / (front->merge_size * front->merge_size);
}

void model_add_front(Arena *arena, Model *model) {
    const Model *front = model->front->model;
    const int num_front = front->num_layers, first_kind = model->num_kinds;
    uint8_t *layer_kind = ARENA_ARRAY(arena, num_front + model->num_layers, uint8_t);
    for (int k = 0; k < front->num_kinds; k++) {
        model->kinds[first_kind + k] = front->kinds[k];
        model->kinds[first_kind + k].front = true;
    }
    for (int i = 0; i < num_front; i++)
        layer_kind[i] = (uint8_t)(first_kind + front->layer_kind[i]);
    memcpy(layer_kind + num_front, model->layer_kind, (size_t)model->num_layers);
    model->num_kinds += front->num_kinds;
    model->layer_kind = layer_kind;
    model->num_layers += num_front;
    model->num_front_layers = num_front;
}
