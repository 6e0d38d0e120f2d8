// sim/lower_wires.h - the part of a collective inside scale-up domains without a switch: flows on
// the rings that its members make (config/machine/wires.h), or between all of them.
#pragma once

#include "sim/lowering.h"

typedef struct {
    CollectiveKind kind;
    Group part;      // members of one domain
    const int *gpus; // [num_gpus] of the group in their order, part after part
    int num_gpus;    // that are played
    int num_steps;   // of a ring, each after its delay
    double step_delay_s;
    double step_s;  // at what the estimate grants the members of a part
    RankSpan ranks; // whose groups run it at the same time
} WiresPass;

// Adds its flows between begin and end.
void wires_lower(Lowering *lowering, const Pool *pool, const WiresPass *pass, int begin, int end);
