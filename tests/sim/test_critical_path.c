// Critical paths of lowered pipelines, replayed without SimGrid.
#include "plan/plan_orders.h"
#include "sim/critical_path.h"
#include "tests/sim/sim_case.h"
#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

#include <stdio.h>

typedef struct {
    PipelineCase pipeline;
    Cluster cluster;
    Lowered lowered;
    Timeline timeline;
} PathCase;

static void case_build(PathCase *c, ScheduleKind kind, int pp, int vpp, int num_microbatches) {
    c->pipeline = pipeline_new(kind, pp, vpp, num_microbatches);
    c->cluster = sim_cluster(pp);
    PipelineCase *p = &c->pipeline;
    p->plan.tp = 2;
    p->plan.dp = p->plan.zero_group = p->plan.expert_dp = 4;
    for (int rank = 0; rank < pp; rank++) {
        p->message_s[rank] = 0.25;
        p->message_alpha_s[rank] = 0.0625;
        p->optimizer_s[rank] = 0.5;
    }
    pipeline_build(p, 0.75);
    c->timeline = pipeline_run(p);
    LowerInput input = {&c->cluster, &p->plan, &p->program, &p->prices, NULL};
    Folding folding = {.num_folded = 1, .period = p->program.multiplicity};
    Status status = program_lower(&input, &folding, false, &p->arena, &c->lowered);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
}

static double given_duration_s(const void *durations_s, int node) {
    return ((const double *)durations_s)[node];
}

// As the engine would play it if each activity took duration_s[num_nodes].
static Playback playback_of(PathCase *c, const double *duration_s) {
    Arena *arena = &c->pipeline.arena;
    const Dag *dag = &c->lowered.dag;
    Playback out = {.start_s = ARENA_ARRAY(arena, dag->num_nodes, double),
                    .end_s = ARENA_ARRAY(arena, dag->num_nodes, double)};
    dag_replay(dag, given_duration_s, duration_s, out.end_s);
    for (int i = 0; i < dag->num_nodes; i++) {
        for (int k = dag->first_successor[i]; k < dag->first_successor[i + 1]; k++) {
            double *start_s = &out.start_s[dag->successors[k]];
            if (*start_s < out.end_s[i]) *start_s = out.end_s[i];
        }
    }
    return out;
}

static double *granted_durations(PathCase *c) {
    const Dag *dag = &c->lowered.dag;
    double *duration_s = ARENA_ARRAY(&c->pipeline.arena, dag->num_nodes, double);
    for (int i = 0; i < dag->num_nodes; i++)
        duration_s[i] = dag->nodes[i].delay_s + dag_flow_s(dag, i);
    return duration_s;
}

static CriticalPath path_of(PathCase *c, const Playback *playback) {
    return critical_path_find(&c->lowered, &c->pipeline.program, playback, 0.125,
                              c->timeline.step_time_s + 0.125, &c->pipeline.arena);
}

// Each begins when the one before it ends.
static bool is_a_chain(const CriticalPath *path, double end_s) {
    double at_s = 0;
    for (int i = 0; i < path->num_items; i++) {
        if (path->items[i].start_s != at_s) return false;
        at_s = path->items[i].end_s;
    }
    return at_s == end_s;
}

static double total_of(const CriticalPath *path) {
    double total_s = 0;
    for (int kind = 0; kind < NUM_PATH_KINDS; kind++) total_s += path->totals[kind].simulated_s;
    return total_s;
}

// Without contention the path is as long as the estimate and has no slack in it.
static void it_reaches_from_begin_to_end_in_all_schedules(void) {
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        const Schedule *schedule = schedule_find((ScheduleKind)kind);
        for (int vpp = 1; schedule && vpp <= 2; vpp++) {
            if (!schedule_takes((ScheduleKind)kind, 4, vpp, 8)) continue;
            PathCase c;
            case_build(&c, (ScheduleKind)kind, 4, vpp, 8);
            Playback playback = playback_of(&c, granted_durations(&c));
            CriticalPath path = path_of(&c, &playback);
            bool good = is_a_chain(&path, c.timeline.step_time_s);
            CU_ASSERT(good);
            if (!good) fprintf(stderr, "\n%s vpp %d\n", SCHEDULE_NAMES[schedule->kind], vpp);
            CU_ASSERT_DOUBLE_EQUAL(total_of(&path), c.timeline.step_time_s + 0.125, 1e-9);
            CU_ASSERT_DOUBLE_EQUAL(path.slack_s, 0, 1e-9);
            pipeline_free(&c.pipeline);
        }
    }
}

// One stage, 2 micro-batches of F 1 s, B 2 s: 6 s; gradients scattered 0.75 s, the optimizer 0.5 s,
// weights gathered 0.75 s; all of it is on the path. 3 collectives' latency and transfer.
static void all_work_of_one_stage_is_on_it(void) {
    PathCase c;
    case_build(&c, SCHEDULE_1F1B, 1, 1, 2);
    Playback playback = playback_of(&c, granted_durations(&c));
    CriticalPath path = path_of(&c, &playback);
    CU_ASSERT_EQUAL(path.totals[PATH_FORWARD].count, 2);
    CU_ASSERT_DOUBLE_EQUAL(path.totals[PATH_FORWARD].simulated_s, 2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(path.totals[PATH_BACKWARD].simulated_s, 4, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(path.totals[PATH_OPTIMIZER].simulated_s, 0.5, 1e-12);
    CU_ASSERT_EQUAL(path.totals[PATH_COLLECTIVE_LATENCY].count, 2);
    CU_ASSERT_DOUBLE_EQUAL(path.totals[PATH_COLLECTIVE_LATENCY].simulated_s +
                               path.totals[PATH_COLLECTIVE_TRANSFER].simulated_s,
                           1.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(path.totals[PATH_HOST].simulated_s, 0.125, 1e-12);
    CU_ASSERT_EQUAL(path.num_items, 7);
    pipeline_free(&c.pipeline);
}

// Each message is held up by 1 s on its way: so long is what the messages on the path took beyond
// what was granted, less the slack that the estimate had.
static void what_messages_lost_is_theirs(void) {
    PathCase c;
    case_build(&c, SCHEDULE_1F1B, 4, 1, 8);
    const Dag *dag = &c.lowered.dag;
    double *duration_s = granted_durations(&c);
    for (int rank = 0; rank < 4; rank++) {
        const RankProgram *program = &c.pipeline.program.ranks[rank];
        for (int slot = 0; slot < program->num_instructions * c.lowered.num_lanes; slot++) {
            if (program->instructions[slot % program->num_instructions].kind == INSTRUCTION_SEND)
                duration_s[c.lowered.begin_node[rank][slot]] += 1;
        }
    }
    Playback playback = playback_of(&c, duration_s);
    CriticalPath path = path_of(&c, &playback);
    const PathTotal *transfer = &path.totals[PATH_MESSAGE_TRANSFER];
    CU_ASSERT(transfer->count > 0);
    CU_ASSERT_DOUBLE_EQUAL(transfer->simulated_s - transfer->estimated_s, transfer->count, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(path.totals[PATH_FORWARD].simulated_s,
                           path.totals[PATH_FORWARD].estimated_s, 1e-9);
    CU_ASSERT(path.slack_s >= -1e-9);
    double last_s = 0;
    for (int i = 0; i < dag->num_nodes; i++)
        if (playback.end_s[i] > last_s) last_s = playback.end_s[i];
    CU_ASSERT_DOUBLE_EQUAL(last_s - c.timeline.step_time_s, transfer->count - path.slack_s, 1e-9);
    pipeline_free(&c.pipeline);
}

CU_TestInfo critical_path_tests[] = {
    {"it_reaches_from_begin_to_end_in_all_schedules",
     it_reaches_from_begin_to_end_in_all_schedules},
    {"all_work_of_one_stage_is_on_it", all_work_of_one_stage_is_on_it},
    {"what_messages_lost_is_theirs", what_messages_lost_is_theirs},
    CU_TEST_INFO_NULL,
};
