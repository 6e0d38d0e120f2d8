#include "sim/difference.h"

#include "sim/outcome.h"

#include <math.h>

const char *const EFFECT_NAMES[NUM_EFFECTS] = {"model", "spare_bandwidth", "contention"};

typedef struct {
    const Dag *dag;
    const Playback *playback;
} Played;

static double granted_duration_s(const void *context, int node) {
    const Dag *dag = ((const Played *)context)->dag;
    return dag->nodes[node].delay_s + dag_flow_s(dag, node);
}

// Less where it took less.
static double gained_duration_s(const void *context, int node) {
    const Playback *playback = ((const Played *)context)->playback;
    double taken_s = playback->end_s[node] - playback->start_s[node];
    return fmin(granted_duration_s(context, node), taken_s);
}

static double replay_step_s(const Played *played, DagDuration duration_s, double step_s) {
    Arena arena = {0};
    Playback replay = {.end_s = ARENA_ARRAY(&arena, played->dag->num_nodes, double)};
    dag_replay(played->dag, duration_s, played, replay.end_s);
    double replayed_s = playback_step_s(played->dag, &replay, step_s);
    arena_free(&arena);
    return replayed_s;
}

Difference playback_difference(const Dag *dag, const Playback *playback, double step_s,
                               double estimate_step_s) {
    Played played = {dag, playback};
    double granted_s = replay_step_s(&played, granted_duration_s, step_s);
    double gained_s = replay_step_s(&played, gained_duration_s, step_s);
    return (Difference){.effect_s = {
                            [EFFECT_MODEL] = granted_s - estimate_step_s,
                            [EFFECT_SPARE_BANDWIDTH] = gained_s - granted_s,
                            [EFFECT_CONTENTION] = playback_step_s(dag, playback, step_s) - gained_s,
                        }};
}
