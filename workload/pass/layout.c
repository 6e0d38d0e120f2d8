#include "workload/pass/layout.h"

#include "plan/layer_plans.h"
#include "workload/pass/bytes.h"
#include "workload/pass/front.h"

#include <math.h>

double layout_boundary_bytes(const Scenario *scenario, const Plan *plan) {
    const double tokens = (double)plan->micro_batch * (double)scenario->training.seq_len / plan->cp;
    const double values =
        tokens * scenario->model.hidden_size / (plan->sequence_parallel ? plan->tp : 1);
    return values * activation_bytes(&scenario->execution);
}

// Whether each rank holds a part of the tokens that no other holds.
static bool is_split(const Plan *plan) {
    return plan->sequence_parallel || plan->tp == 1;
}

// Whether a rank holds all that it holds under the other layout: whole sequences are cut further.
static bool holds_all(const Plan *from, const Plan *to) {
    const bool same_cut = from->cp == to->cp && (to->cp == 1 || from->cp_method == to->cp_method);
    return (from->cp == 1 && to->cp == 1 && from->tp % to->tp == 0) ||
           (same_cut && from->tp == to->tp);
}

static Op change_op(const Scenario *scenario, const Plan *from, const Plan *to, GroupKind kind,
                    Phase phase) {
    const bool of_cp = from->tp == to->tp && from->sequence_parallel == to->sequence_parallel;
    const double front = fmax(1, front_values_frac(scenario));
    const double held = front * layout_boundary_bytes(scenario, from);
    const double wanted = front * layout_boundary_bytes(scenario, to);
    Op op = {.name = "layout_change",
             .kind = OP_COLLECTIVE,
             .phase = phase,
             .stream = of_cp ? STREAM_CP : STREAM_TP,
             .wait = WAIT_PREVIOUS,
             .precision = scenario->execution.precision,
             .num_kernels = 1,
             .collective.group = kind,
             .pipelined_with = -1,
             .transient_bytes = held + wanted};
    if (is_split(from) && is_split(to)) {
        op.collective.kind = COLLECTIVE_ALL_TO_ALL;
        op.collective.message_bytes = held;
    } else if (!is_split(from) && holds_all(from, to)) {
        op.kind = OP_MEMORY; // its own part is copied
        op.collective = (CollectiveOp){0};
        op.stream = STREAM_COMPUTE;
        op.bytes = 2 * wanted;
    } else {
        op.collective.kind = COLLECTIVE_ALL_GATHER;
        op.collective.message_bytes =
            held * plans_layout_span(from, to) / (is_split(from) ? 1 : from->tp);
    }
    return op;
}

Block layout_change_block(const Scenario *scenario, const Plan *from, const Plan *to,
                          GroupKind kind, Arena *arena) {
    Op *ops = ARENA_ARRAY(arena, 2, Op);
    ops[0] = change_op(scenario, from, to, kind, PHASE_FORWARD);
    ops[1] = change_op(scenario, to, from, kind, PHASE_BACKWARD_INPUT);
    return (Block){.name = "layout_change",
                   .forward = &ops[0],
                   .num_forward = 1,
                   .backward = &ops[1],
                   .num_backward = 1,
                   .forward_peak_bytes = ops[0].transient_bytes,
                   .backward_peak_bytes = ops[1].transient_bytes,
                   .input_peak_bytes = ops[1].transient_bytes};
}
