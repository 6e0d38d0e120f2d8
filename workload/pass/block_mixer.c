// The mixer of a layer, by its kind.
#include "workload/pass/builder.h"

void build_none(Builder *b) {
    (void)b;
}

void build_mixer(Builder *b) {
    static void (*const BUILD[])(Builder *) = {
#define X(kind, name) [MIXER_##kind] = build_##name,
#include "config/model/mixers.def"
#undef X
    };
    BUILD[b->kind->mixer.kind](b);
}
