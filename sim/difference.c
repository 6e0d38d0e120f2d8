#include "sim/difference.h"

#include "sim/outcome.h"

#include <math.h>

const char *const EFFECT_NAMES[NUM_EFFECTS] = {"model", "spare_bandwidth", "contention"};

// The step if no flow takes longer than granted, and each less where it did and may_gain says so.
static double replay_step_s(const Dag *dag, const Playback *playback, bool may_gain,
                            double step_s) {
    Arena arena = {0};
    double *duration_s = ARENA_ARRAY(&arena, dag->num_nodes, double);
    Playback replay = {.end_s = ARENA_ARRAY(&arena, dag->num_nodes, double)};
    for (int i = 0; i < dag->num_nodes; i++) {
        duration_s[i] = dag->nodes[i].delay_s + dag_flow_s(dag, i);
        if (!may_gain) continue;
        duration_s[i] = fmin(duration_s[i], playback->end_s[i] - playback->start_s[i]);
    }
    dag_replay(dag, duration_s, &arena, replay.end_s);
    double replayed_s = playback_step_s(dag, &replay, step_s);
    arena_free(&arena);
    return replayed_s;
}

Difference playback_difference(const Dag *dag, const Playback *playback, double step_s,
                               double estimate_step_s) {
    double granted_s = replay_step_s(dag, playback, false, step_s);
    double gained_s = replay_step_s(dag, playback, true, step_s);
    return (Difference){.effect_s = {
                            [EFFECT_MODEL] = granted_s - estimate_step_s,
                            [EFFECT_SPARE_BANDWIDTH] = gained_s - granted_s,
                            [EFFECT_CONTENTION] = playback_step_s(dag, playback, step_s) - gained_s,
                        }};
}
