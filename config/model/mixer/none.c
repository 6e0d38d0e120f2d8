// A layer that is its feed-forward alone (Nemotron-H: "-" and "E" of hybrid_override_pattern).
#include "config/model/mixer.h"

static double token_flops(const Mixer *mixer, double keys) {
    (void)mixer, (void)keys;
    return 0;
}

static bool tp_conflict(const Mixer *mixer, int tp, char text[MIXER_CONFLICT]) {
    (void)mixer, (void)tp, (void)text;
    return false;
}

static bool heads_conflict(const Mixer *mixer, int tp, int cp, char text[MIXER_CONFLICT]) {
    (void)mixer, (void)tp, (void)cp, (void)text;
    return false;
}

static const char *text(const Mixer *mixer, Arena *arena) {
    (void)mixer, (void)arena;
    return "no mixer";
}

static void add_json(const Mixer *mixer, cJSON *object) {
    (void)mixer, (void)object;
}

const MixerRow NONE_MIXER_ROW = {
    .name = "none",
    .parameters = mixer_no_norms,
    .norm_parameters = mixer_no_norms,
    .token_flops = token_flops,
    .cache_values = mixer_no_values,
    .state_bytes = mixer_no_state,
    .tp_conflict = tp_conflict,
    .heads_conflict = heads_conflict,
    .text = text,
    .add_json = add_json,
};
