// Each rank goes through its list until it needs the end of a message that is not known yet; the
// rank that makes it known wakes it. Every instruction is visited once, so a run takes time
// proportional to the number of instructions.
//
// A group of messages is launched when its waits and the group before it are done. Whichever end
// of a message launches second moves it, and the rank whose last message moved closes its group.
// A rank has at most one group open, because the next one waits for it.
//
// A collective among the pipeline ranks is joined by each of them as its waits are done; the last
// that joins runs it and tells the others.
#include "costmodel/step/timeline_run.h"

#include <math.h>

static const double UNKNOWN_S = -1; // the end of a message that has not moved yet

static void wake(Run *run, int r) {
    RankRun *rank = &run->ranks[r];
    if (rank->awaited < 0 || rank->end_s[rank->awaited] < 0) return;
    rank->awaited = -1;
    run->ready[run->num_ready++] = r;
}

// Latest end of what an instruction waits for, at least *ready_s. False where one is not known.
static inline bool waits_done(RankRun *rank, const Instruction *instruction, double *ready_s) {
    for (int i = 0; i < 2; i++) {
        const int wait = instruction->waits[i];
        if (wait < 0) continue;
        const double end_s = rank->end_s[wait];
        if (end_s < 0) {
            rank->awaited = wait;
            return false;
        }
        if (end_s > *ready_s) *ready_s = end_s;
    }
    return true;
}

// Moves an asynchronous message; tells the receiver.
static bool send_asynchronous(Run *run, int r) {
    RankRun *rank = &run->ranks[r];
    const Instruction *send = &rank->list[rank->next];
    double *egress_free_s = &rank->egress_free_s[send->phase != PHASE_FORWARD];
    double start_s = *egress_free_s;
    if (!waits_done(rank, send, &start_s)) return false;
    const double end_s = start_s + message_s(run, send, r);
    *egress_free_s = end_s;
    RankRun *peer = &run->ranks[send->peer];
    rank->start_s[rank->next] = peer->start_s[send->match] = start_s;
    rank->end_s[rank->next] = peer->end_s[send->match] = end_s;
    if (peer->awaited == send->match) wake(run, send->peer);
    rank->next++;
    return true;
}

// One message of the rank's open group has moved; the last one closes the group.
static void group_moved(Run *run, int r, int index, double start_s, double end_s) {
    RankRun *rank = &run->ranks[r];
    rank->start_s[index] = start_s;
    if (end_s > rank->group_end_s) rank->group_end_s = end_s;
    if (--rank->group_open > 0) return;
    for (int i = 0; i < rank->group_count; i++)
        rank->end_s[rank->group_first + i] = rank->group_end_s;
    rank->free_s[STREAM_PP] = rank->group_end_s;
    wake(run, r);
}

// Launches the group that begins at `next`, moves what the other ends have launched already.
static bool group_launch(Run *run, int r) {
    RankRun *rank = &run->ranks[r];
    if (rank->group_open > 0) {
        rank->awaited = rank->group_first;
        return false;
    }
    const int first = rank->next, count = group_size(rank, first);
    double launch_s = rank->free_s[STREAM_PP];
    for (int i = first; i < first + count; i++)
        if (!waits_done(rank, &rank->list[i], &launch_s)) return false;
    rank->group_first = first;
    rank->group_count = rank->group_open = count;
    rank->group_launch_s = rank->group_end_s = launch_s;
    rank->next = first + count;
    for (int i = first; i < first + count; i++) {
        const Instruction *message = &rank->list[i];
        const RankRun *peer = &run->ranks[message->peer];
        const int place = message->match - peer->group_first;
        if (peer->group_open == 0 || place < 0 || place >= peer->group_count) continue;
        const double start_s = fmax(launch_s, peer->group_launch_s);
        const double end_s = start_s + message_s(run, message, r);
        group_moved(run, r, i, start_s, end_s);
        group_moved(run, message->peer, message->match, start_s, end_s);
    }
    return true;
}

// Runs the next collectives of a queue that all ranks have joined.
static void meetings_run(Run *run, int queue) {
    for (; run->num_run[queue] < run->max_meetings; run->num_run[queue]++) {
        const int place = queue * run->max_meetings + run->num_run[queue];
        const Meeting *meeting = &run->meetings[place];
        if (meeting->num_ranks < run->program->num_ranks) return;
        const double start_s = fmax(run->free_s[queue], meeting->ready_s);
        run->free_s[queue] = start_s + run->prices->collective_s[meeting->collective];
        for (int r = 0; r < run->program->num_ranks; r++) {
            const int index = run->ranks[r].joined[place];
            run->ranks[r].start_s[index] = start_s;
            run->ranks[r].end_s[index] = run->free_s[queue];
            if (run->ranks[r].awaited == index) wake(run, r);
        }
    }
}

static bool meeting_join(Run *run, int r, int queue) {
    RankRun *rank = &run->ranks[r];
    const Instruction *instruction = &rank->list[rank->next];
    double ready_s = rank->begin_s;
    if (!waits_done(rank, instruction, &ready_s)) return false;
    const int place = queue * run->max_meetings + rank->num_joined[queue]++;
    rank->joined[place] = rank->next++;
    Meeting *meeting = &run->meetings[place];
    meeting->collective = instruction->collective;
    meeting->ready_s = fmax(meeting->ready_s, ready_s);
    meeting->num_ranks++;
    meetings_run(run, queue);
    return true;
}

static double duration_s(const Run *run, const Instruction *instruction, int r) {
    if (instruction->kind == INSTRUCTION_COLLECTIVE)
        return run->prices->collective_s[instruction->collective];
    return instruction_compute_s(run->prices, instruction, r);
}

// Goes through a rank's list until the end of a message is missing.
static void rank_advance(Run *run, int r) {
    RankRun *rank = &run->ranks[r];
    while (rank->next < rank->num) {
        const Instruction *instruction = &rank->list[rank->next];
        if (instruction->kind == INSTRUCTION_SEND || instruction->kind == INSTRUCTION_RECV) {
            if (instruction->p2p_group >= 0) {
                if (!group_launch(run, r)) return;
            } else if (instruction->kind == INSTRUCTION_SEND) {
                if (!send_asynchronous(run, r)) return;
            } else {
                rank->next++; // its SEND tells when it is there
            }
            continue;
        }
        const int queue = program_pipeline_queue(run->program, instruction);
        if (queue > 0) {
            if (!meeting_join(run, r, queue)) return;
            continue;
        }
        double *free_s = &rank->free_s[instruction->stream];
        double start_s = *free_s;
        if (!waits_done(rank, instruction, &start_s)) return;
        rank->start_s[rank->next] = start_s;
        rank->end_s[rank->next] = *free_s = start_s + duration_s(run, instruction, r);
        rank->next++;
    }
}

static Run run_create(const Program *program, const Prices *prices, Arena *arena) {
    const int num_ranks = program->num_ranks;
    Run run = {.program = program, .prices = prices};
    run.ranks = ARENA_ARRAY(arena, num_ranks, RankRun);
    run.ready = ARENA_ARRAY(arena, num_ranks, int);
    for (int queue = 1; queue < NUM_PIPELINE_QUEUES; queue++) {
        const int num = program_num_meetings(program, queue);
        if (num > run.max_meetings) run.max_meetings = num;
    }
    const int all_meetings = NUM_PIPELINE_QUEUES * run.max_meetings;
    run.meetings = ARENA_ARRAY(arena, all_meetings, Meeting);
    for (int r = 0; r < num_ranks; r++) {
        const int num = program->ranks[r].num_instructions;
        run.ranks[r] = (RankRun){.list = program->ranks[r].instructions,
                                 .num = num,
                                 .joined = ARENA_ARRAY(arena, all_meetings, int),
                                 .start_s = ARENA_ARRAY(arena, num, double),
                                 .end_s = ARENA_ARRAY(arena, num, double)};
    }
    return run;
}

static void rank_begin(RankRun *rank, double begin_s) {
    *rank = (RankRun){.list = rank->list,
                      .num = rank->num,
                      .begin_s = begin_s,
                      .awaited = -1,
                      .start_s = rank->start_s,
                      .end_s = rank->end_s,
                      .egress_free_s = {begin_s, begin_s},
                      .joined = rank->joined};
    for (int s = 0; s < NUM_STREAMS; s++) rank->free_s[s] = begin_s;
    for (int i = 0; i < rank->num; i++) rank->end_s[i] = UNKNOWN_S;
}

// One step.
//   begin_s  [num_ranks] when each rank may begin; NULL: all at 0
static void run_step(Run *run, const double *begin_s) {
    const int all_meetings = NUM_PIPELINE_QUEUES * run->max_meetings;
    for (int i = 0; i < all_meetings; i++) run->meetings[i] = (Meeting){0};
    for (int queue = 0; queue < NUM_PIPELINE_QUEUES; queue++) {
        run->num_run[queue] = 0;
        run->free_s[queue] = 0;
    }
    for (int r = run->program->num_ranks - 1; r >= 0; r--) {
        rank_begin(&run->ranks[r], begin_s ? begin_s[r] : 0);
        run->ready[run->num_ready++] = r;
    }
    while (run->num_ready > 0) rank_advance(run, run->ready[--run->num_ready]);
}

// The instruction that keeps a rank from its end: of an open group, the first message whose other
// end has not been launched.
static int culprit(const Run *run, const RankRun *rank) {
    const bool in_group =
        rank->group_open > 0 && (rank->awaited < 0 || rank->list[rank->awaited].p2p_group >= 0);
    if (!in_group) return rank->awaited;
    int i = rank->group_first;
    while (rank->list[i].match < run->ranks[rank->list[i].peer].next) i++;
    return i;
}

// Refuses a Program in which a rank could not reach its end. Names a rank that is stuck in its
// micro-batches, if there is one: others may only wait for that at the end of the step.
static Status circle_check(const Run *run, Timeline *out) {
    const Instruction *stuck = NULL;
    for (int r = 0; r < run->program->num_ranks && (!stuck || stuck->microbatch < 0); r++) {
        const RankRun *rank = &run->ranks[r];
        if (rank->next == rank->num && rank->group_open == 0) continue;
        const int at = culprit(run, rank);
        if (stuck && rank->list[at].microbatch < 0) continue;
        stuck = &rank->list[at];
        out->stuck_rank = r;
        out->stuck_at = at;
    }
    if (!stuck) return status_ok();
    return status_error(STATUS_INVALID,
                        "messages wait for each other in a circle: pipeline rank %d waits at its "
                        "instruction %d (%s of chunk %d, micro-batch %d) for rank %d",
                        out->stuck_rank, out->stuck_at, INSTRUCTION_NAMES[stuck->kind],
                        stuck->chunk, stuck->microbatch, stuck->peer);
}

// --- The whole

static void times_keep(const Run *run, Arena *arena, Timeline *out) {
    const int num_ranks = run->program->num_ranks;
    out->start_s = ARENA_ARRAY(arena, num_ranks, const double *);
    out->end_s = ARENA_ARRAY(arena, num_ranks, const double *);
    for (int r = 0; r < num_ranks; r++) {
        out->start_s[r] = run->ranks[r].start_s;
        out->end_s[r] = run->ranks[r].end_s;
    }
}

// What a step that was run says.
static void step_read(const Run *run, bool keep_times, Arena *arena, Timeline *out) {
    for (int r = 0; r < run->program->num_ranks; r++) {
        out->step_time_s = fmax(out->step_time_s, rank_span_s(&run->ranks[r]));
        out->begin_s = fmax(out->begin_s, run->ranks[r].begin_s);
    }
    timeline_breakdown(run, out);
    out->step_time_s += run->prices->step_s;
    out->term_s[TERM_OTHER] += run->prices->step_s;
    if (keep_times) times_keep(run, arena, out);
}

Status timeline_run(const Program *program, const Prices *prices, bool keep_times, Arena *arena,
                    Timeline *out) {
    Run run = run_create(program, prices, arena);
    run_step(&run, NULL);
    *out = (Timeline){.slowest_rank = 0};
    TRY(circle_check(&run, out));
    step_read(&run, keep_times, arena, out);
    return status_ok();
}

// --- Steps one after the other

enum { MAX_STEPS = 64 };
static const double SAME_FRAC = 1e-9; // spans of ranks that count as equal

// Moves the begin of each rank to its end. Returns whether all spans were the same.
static bool begin_next(const Run *run, double *begin_s) {
    const int num_ranks = run->program->num_ranks;
    double shortest_s = INFINITY, longest_s = 0, first_s = INFINITY;
    for (int r = 0; r < num_ranks; r++) {
        const double span_s = rank_span_s(&run->ranks[r]);
        shortest_s = fmin(shortest_s, span_s);
        longest_s = fmax(longest_s, span_s);
        first_s = fmin(first_s, rank_end_s(&run->ranks[r]));
    }
    for (int r = 0; r < num_ranks; r++) begin_s[r] = rank_end_s(&run->ranks[r]) - first_s;
    return longest_s - shortest_s <= SAME_FRAC * longest_s;
}

Status timeline_run_steady(const Program *program, const Prices *prices, bool keep_times,
                           Arena *arena, Timeline *out) {
    double *begin_s = ARENA_ARRAY(arena, program->num_ranks, double);
    Run run = run_create(program, prices, arena);
    *out = (Timeline){.slowest_rank = 0};
    for (int step = 0; step < MAX_STEPS; step++) {
        run_step(&run, begin_s);
        TRY(circle_check(&run, out));
        if (begin_next(&run, begin_s)) break;
    }
    step_read(&run, keep_times, arena, out);
    return status_ok();
}
