#include "cli/sim_timeline.h"

Status sim_timeline_check(const SimResult *result, const Program *program) {
    bool same = result->num_ranks == program->num_ranks;
    for (int r = 0; same && r < program->num_ranks; r++)
        same = result->num_instructions[r] == program->ranks[r].num_instructions;
    if (result->lane_of)
        same = same && result->num_blocks * result->num_folded == program->multiplicity;
    if (same) return status_ok();
    return status_error(STATUS_MACHINE,
                        "meshwright: the simulator played another program; are meshwright and "
                        "meshwright-sim of one version?");
}

static Status simulated_read(const void *context, const TraceRow *row, double *start_s,
                             double *end_s) {
    const SimResult *result = context;
    return sim_times_read(result, row->stage, sim_lane_of(result, row->replica), start_s, end_s);
}

TraceTimeline sim_timeline(const SimResult *result, const Program *program, double host_s,
                           const bool *shown, Arena *arena) {
    const bool repeated = result->disturbed.num_repetitions > 0;
    const int num_gpus = program->num_ranks * program->multiplicity;
    int last = 0; // the first replica in the last lane
    while (last < program->multiplicity && sim_lane_of(result, last) != result->last_lane)
        last += result->num_folded;
    TraceRow *rows = ARENA_ARRAY(arena, num_gpus, TraceRow);
    int num_rows = 0;
    for (int gpu = 0; gpu < num_gpus; gpu++) {
        const RankPlace place = program_place(program, gpu);
        const TraceRow row = {.stage = place.stage, .replica = (int)place.lane};
        if (shown ? shown[gpu] : row.replica == last) rows[num_rows++] = row;
    }
    return (TraceTimeline){
        .name = "simulation",
        .step_time_s = repeated ? result->disturbed.step_times_s[0] : result->step_time_s,
        .host_s = host_s,
        .rows = rows,
        .num_rows = num_rows,
        .read = simulated_read,
        .context = result,
    };
}
