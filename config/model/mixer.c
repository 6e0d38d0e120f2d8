#include "config/model/mixer.h"

#define X(kind, name) extern const MixerRow kind##_MIXER_ROW;
#include "config/model/mixers.def"
#undef X

const MixerRow *mixer_row(MixerKind kind) {
    static const MixerRow *const ROWS[] = {
#define X(kind, name) [MIXER_##kind] = &kind##_MIXER_ROW,
#include "config/model/mixers.def"
#undef X
    };
    return ROWS[kind];
}

double mixer_no_norms(const Model *model, const Mixer *mixer) {
    (void)model, (void)mixer;
    return 0;
}

double mixer_no_values(const Mixer *mixer) {
    (void)mixer;
    return 0;
}

double mixer_no_state(const Mixer *mixer, double width) {
    (void)mixer, (void)width;
    return 0;
}
