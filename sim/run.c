#include "sim/run.h"

#include "sim/children.h"
#include "sim/disturb_compute.h"
#include "sim/disturb_network.h"
#include "sim/not_played.h"

#include <string.h>

static LowerInput lower_input(const Run *run) {
    return (LowerInput){
        .cluster = &run->scenario.cluster,
        .plan = &run->plan,
        .program = &run->parts.program,
        .prices = &run->parts.prices,
        .inner = inner_is_played(&run->scenario.cluster) ? &run->inner : NULL,
    };
}

static Difference difference_find(const Run *run, const Playback *playback) {
    return playback_difference(&run->lowered.dag, playback, run->parts.prices.step_s,
                               run->estimate.step_time_s);
}

// --- Several runs

// What the children share with their parent.
typedef struct {
    Run *run;
    RunPlan plan;
    double *step_s;          // [num_runs]
    double *start_s, *end_s; // [num_nodes] of the shown run
    int64_t *num_activities; // of the shown run
    Difference *difference;  // of the undisturbed run
} SharedRuns;

static Status repeated_open(Run *run, int num_repetitions, SharedRuns *out) {
    *out = (SharedRuns){.run = run};
    out->plan = runs_plan(run->scenario.disturb, run->scenario.num_disturb, num_repetitions);
    size_t num_nodes = (size_t)run->lowered.dag.num_nodes, num_runs = (size_t)out->plan.num_runs;
    void *memory;
    size_t size = (num_runs + 2 * num_nodes + 1) * sizeof(double) + sizeof(Difference);
    TRY(shared_open(size, &memory));
    out->step_s = memory;
    out->start_s = out->step_s + num_runs;
    out->end_s = out->start_s + num_nodes;
    out->num_activities = (int64_t *)(out->end_s + num_nodes);
    out->difference = (Difference *)(out->num_activities + 1);
    return status_ok();
}

// Puts what happens to the network in the place of the network.
static void network_take(Run *run, int repetition) {
    run->lowered.network = run->disturbed;
    network_draw_flaps(&run->scenario, repetition, &run->lowered.network);
    if (run->disturbed.nic_taken_by) dag_reroute(&run->lowered.dag, &run->disturbed);
}

// In a child, whose copy of the run is its own.
static Status repeated_play(void *context, int number) {
    const SharedRuns *shared = context;
    Run *run = shared->run;
    Arena arena = {0};
    int repetition;
    DisturbCause cause = run_cause(&shared->plan, number, &repetition);
    LowerInput input = lower_input(run);
    if (cause == CAUSE_NETWORK) network_take(run, repetition);
    computations_disturb(&input, run->scenario.disturb, run->scenario.num_disturb,
                         shared->plan.kinds[cause], repetition, &arena, &run->lowered);
    Playback playback;
    TRY(dag_play(&run->lowered.network, &run->lowered.dag, &arena, &playback));
    shared->step_s[number] =
        playback_step_s(&run->lowered.dag, &playback, run->parts.prices.step_s);
    if (cause == CAUSE_NONE) *shared->difference = difference_find(run, &playback);
    if (number != shared->plan.shown_run) return status_ok();
    size_t size = (size_t)run->lowered.dag.num_nodes * sizeof(double);
    memcpy(shared->start_s, playback.start_s, size);
    memcpy(shared->end_s, playback.end_s, size);
    *shared->num_activities = playback.num_activities;
    return status_ok();
}

static Status run_repeat(int num_repetitions, Arena *arena, Run *run) {
    SharedRuns shared;
    TRY(repeated_open(run, num_repetitions, &shared));
    TRY(children_run(shared.plan.num_runs, repeated_play, &shared));
    run->repeated = true;
    run->num_repetitions = num_repetitions;
    run->summary = runs_summarize(&shared.plan, shared.step_s, arena);
    run->difference = *shared.difference;
    run->playback = (Playback){
        .start_s = shared.start_s,
        .end_s = shared.end_s,
        .num_activities = *shared.num_activities,
    };
    return status_ok();
}

// --- The whole

static Status run_prepare(const RunOptions *options, const JsonNode *root, Arena *arena, Run *run) {
    TRY(scenario_read(root, arena, &run->scenario));
    TRY(scenario_refuse_unsimulated(&run->scenario));
    TRY(plan_resolve(&run->scenario, arena, &run->plan));
    TRY(estimate_plan(&run->scenario, &run->plan, arena, &run->estimate, &run->parts));
    if (inner_is_played(&run->scenario.cluster))
        run->inner = inner_prepare(&run->scenario, &run->plan, &run->parts.workload, arena);
    LowerInput input = lower_input(run);
    TRY(folding_choose(options->fold, &run->scenario, &input, options->stepwise, arena,
                       &run->folding));
    TRY(program_lower(&input, &run->folding, options->stepwise, arena, &run->lowered));
    return network_disturb(&run->scenario, &run->lowered.network, arena, &run->disturbed);
}

Status run_play(const RunOptions *options, const JsonNode *root, Arena *arena, Run *run) {
    TRY(run_prepare(options, root, arena, run));
    if (run->scenario.num_disturb > 0 || options->num_repetitions > 1) {
        TRY(run_repeat(options->num_repetitions, arena, run));
    } else {
        TRY(dag_play(&run->lowered.network, &run->lowered.dag, arena, &run->playback));
        run->difference = difference_find(run, &run->playback);
    }
    network_take(run, 0);
    run->outcome = playback_outcome(&run->lowered, &run->parts.program, &run->playback,
                                    run->parts.prices.step_s, arena);
    run->path = critical_path_find(&run->lowered, &run->parts.program, &run->playback,
                                   run->parts.prices.step_s, run->estimate.step_time_s, arena);
    return status_ok();
}
