// config/model/mixer.h - one row for each kind of mixer: what it weighs, what a token costs beside
// its matrices, what it leaves behind, and how it may be split. A file of config/model/mixer/ holds
// the row of one, and config/model/mixers.def names it.
#pragma once

#include "base/arena.h"
#include "config/model/model.h"

enum { MIXER_CONFLICT = 240 };

typedef struct {
    const char *name; // "attention", as `models --json` has it

    // Weights without norms, and those of its own norms (of heads, ranks, results).
    double (*parameters)(const Model *model, const Mixer *mixer);
    double (*norm_parameters)(const Model *model, const Mixer *mixer);

    // FLOPs of the forward of a token beside those of its weights. Attention sees `keys` on
    // average.
    double (*token_flops)(const Mixer *mixer, double keys);

    // Numbers that a token leaves in the cache; and bytes of what a sequence leaves however long it
    // is, where a number of the convolution takes `width` and one of the state 4.
    double (*cache_values)(const Mixer *mixer);
    double (*state_bytes)(const Mixer *mixer, double width);

    // Whether something forbids tp ranks, or cp ranks that trade tokens for heads beside tp, and
    // then what, as a sentence.
    bool (*tp_conflict)(const Mixer *mixer, int tp, char text[MIXER_CONFLICT]);
    bool (*heads_conflict)(const Mixer *mixer, int tp, int cp, char text[MIXER_CONFLICT]);
    // cp ranks trade tokens for heads in it, whatever the method of the attention is.
    bool always_trades_heads;

    // "no published step of ...", where none of published/training.jsonl has such layers; else
    // NULL.
    const char *unmeasured;

    // "attention, 32 heads of 128 for 8 of keys and values"; and the same as keys of an object.
    const char *(*text)(const Mixer *mixer, Arena *arena);
    void (*add_json)(const Mixer *mixer, cJSON *object);
} MixerRow;

const MixerRow *mixer_row(MixerKind kind);

// Parts that rows share: nothing; and of those that keep a state (config/model/mixer/recurrent.c)
// the numbers of all keys of a token, of its values, and of what the convolution reads.
double mixer_no_norms(const Model *model, const Mixer *mixer);
double mixer_no_values(const Mixer *mixer);
double mixer_no_state(const Mixer *mixer, double width);
double recurrent_key_values(const Mixer *mixer);
double recurrent_values(const Mixer *mixer);
double recurrent_conv_values(const Mixer *mixer);
double recurrent_state_bytes(const Mixer *mixer, double width);
bool recurrent_tp_conflict(const Mixer *mixer, int tp, char text[MIXER_CONFLICT]);
bool recurrent_heads_conflict(const Mixer *mixer, int tp, int cp, char text[MIXER_CONFLICT]);
void recurrent_add_json(const Mixer *mixer, cJSON *object);
