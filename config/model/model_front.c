#include "config/model/model_front.h"

#include <stdio.h>
#include <string.h>

int64_t front_image_patches(const ModelFront *front, int image_size) {
    const int64_t side = image_size / front->patch_size;
    return side * side;
}

int64_t front_image_tokens(const ModelFront *front, int image_size) {
    if (front->tokens_per_image > 0) return front->tokens_per_image;
    return front_image_patches(front, image_size) / (front->merge_size * front->merge_size);
}

// Kinds are numbered in the order of the layers: memory is added up in that of the kinds
// (workload/pass/chunk.c).
void model_add_front(Arena *arena, Model *model) {
    const Model *front = model->front->model;
    const int num_front = front->num_layers, num_kinds = front->num_kinds;
    uint8_t *layer_kind = ARENA_ARRAY(arena, num_front + model->num_layers, uint8_t);
    memcpy(layer_kind, front->layer_kind, (size_t)num_front);
    for (int i = 0; i < model->num_layers; i++)
        layer_kind[num_front + i] = (uint8_t)(num_kinds + model->layer_kind[i]);
    memmove(model->kinds + num_kinds, model->kinds,
            (size_t)model->num_kinds * sizeof *model->kinds);
    for (int k = 0; k < num_kinds; k++) {
        model->kinds[k] = front->kinds[k];
        model->kinds[k].front = true;
    }
    model->num_kinds += num_kinds;
    model->layer_kind = layer_kind;
    model->num_layers += num_front;
    model->num_front_layers = num_front;
}

const char *front_layers_text(const Model *model, char text[FRONT_LAYERS_TEXT]) {
    const int own = model_own_layers(model), front = model->num_front_layers;
    if (front == 0)
        snprintf(text, FRONT_LAYERS_TEXT, "num_hidden_layers %d", own);
    else if (model->front->kind == FRONT_ENCODER)
        snprintf(text, FRONT_LAYERS_TEXT, "the encoder's %d + the decoder's %d", front, own);
    else
        snprintf(text, FRONT_LAYERS_TEXT, "the tower's %d + num_hidden_layers %d", front, own);
    return text;
}
