// Mixers that keep a state a head, of key by value numbers: heads of values share keys and queries
// in groups, and a short convolution runs over all three.
#include "config/model/mixer.h"

#include <stdio.h>

double recurrent_key_values(const Mixer *mixer) {
    return (double)mixer->num_kv_heads * mixer->head_dim;
}

double recurrent_values(const Mixer *mixer) {
    return (double)mixer->num_heads * mixer->v_head_dim;
}

double recurrent_conv_values(const Mixer *mixer) {
    return 2 * recurrent_key_values(mixer) + recurrent_values(mixer);
}

// Of the convolution all but the newest of its inputs; the state in fp32 (`mamba_ssm_dtype`).
double recurrent_state_bytes(const Mixer *mixer, double width) {
    const double state = (double)mixer->num_heads * mixer->head_dim * mixer->v_head_dim;
    return 4 * state + width * (mixer->conv_kernel - 1) * recurrent_conv_values(mixer);
}

bool recurrent_tp_conflict(const Mixer *mixer, int tp, char text[MIXER_CONFLICT]) {
    if (mixer->num_kv_heads % tp == 0 && mixer->num_heads % tp == 0) return false;
    const bool keys = mixer->num_kv_heads % tp != 0;
    snprintf(text, MIXER_CONFLICT, "%d does not divide the %d %s of %s", tp,
             keys ? mixer->num_kv_heads : mixer->num_heads,
             keys ? "groups of keys" : "heads of values", mixer_row(mixer->kind)->name);
    return true;
}

bool recurrent_heads_conflict(const Mixer *mixer, int tp, int cp, char text[MIXER_CONFLICT]) {
    if (mixer->num_kv_heads / tp % cp == 0 && mixer->num_heads / tp % cp == 0) return false;
    const bool keys = mixer->num_kv_heads / tp % cp != 0;
    snprintf(text, MIXER_CONFLICT,
             "%d does not divide the %d %s of %s / tp %d: its ranks trade tokens for heads", cp,
             keys ? mixer->num_kv_heads : mixer->num_heads,
             keys ? "groups of keys" : "heads of values", mixer_row(mixer->kind)->name, tp);
    return true;
}

void recurrent_add_json(const Mixer *mixer, cJSON *object) {
    cJSON_AddNumberToObject(object, "num_heads", mixer->num_heads);
    cJSON_AddNumberToObject(object, "num_key_heads", mixer->num_kv_heads);
    cJSON_AddNumberToObject(object, "key_head_dim", mixer->head_dim);
    cJSON_AddNumberToObject(object, "value_head_dim", mixer->v_head_dim);
    cJSON_AddNumberToObject(object, "conv_kernel", mixer->conv_kernel);
    cJSON_AddNumberToObject(object, "scan_chunk", mixer->scan_chunk);
}
