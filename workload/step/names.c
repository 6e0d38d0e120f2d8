#include "workload/pass/operator.h"
#include "workload/step/program.h"

#include <math.h>

double attention_op_tokens(const AttentionOp *attention) {
    return attention->window > 0 ? fmin(attention->window, attention->keys) : attention->keys;
}

const char *const STREAM_NAMES[NUM_STREAMS] = {"compute", "tp", "cp", "ep", "dp", "pp"};

const char *const COLLECTIVE_NAMES[NUM_COLLECTIVES] = {
    "all_reduce",    "all_gather", "reduce_scatter", "all_to_all",
    "ring_exchange", "broadcast",  "dispatch",       "combine",
};
