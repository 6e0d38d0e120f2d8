// Set-up of the durations, what ends a step, and the search for a state that repeats itself.
#include "costmodel/step/step_time.h"

#include "costmodel/step/step_left.h"
#include "costmodel/step/step_run.h"
#include "workload/step/program_sync.h"
#include "workload/technique/technique.h"

#include <math.h>
#include <string.h>

// A limit is one of doubles, added up in another order.
static const double ROUNDING_FRAC = 1e-9;

// A plan and what its step is made of, in seconds.
typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const Prices *prices;
    SyncPlan sync;
    const double *collective_s; // [sync.num_collectives]
    double embedding_bytes;     // that first and last rank exchange at the end; 0: nothing
    double message_bytes;
    bool asynchronous;
    double limit_s; // a step that takes longer is of no interest
    Arena *scratch;
} Step;

static bool is_known(const Scenario *scenario, const Plan *plan) {
    return !plan->schedule_file && !plan_is_dual(plan) && !plan->vocab_barriers &&
           step_traits(&scenario->execution).begins_together;
}

// --- Durations

// More than the step can take: everything one after the other.
static double most_s(const Step *s) {
    double microbatch_s = 0, once_s = 0;
    for (int c = 0; c < s->plan->num_chunks; c++) {
        const Prices *p = s->prices;
        microbatch_s += p->forward[c].time_s + p->backward[c].time_s;
        if (p->backward_input)
            microbatch_s += p->backward_input[c].time_s + p->backward_weight[c].time_s;
        const ChunkSync *syncs[] = {&s->sync.reduce[c], &s->sync.gather[c]};
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < syncs[i]->num_collectives; k++)
                once_s += 2 * syncs[i]->num_parts * s->collective_s[syncs[i]->collectives[k]];
    }
    for (int r = 0; r < s->plan->pp; r++) {
        const ChunkSync *sum = &s->sync.sums[r];
        for (int k = 0; k < sum->num_collectives; k++)
            once_s += 2 * s->collective_s[sum->collectives[k]];
        microbatch_s += 4 * s->plan->vpp * s->prices->message_s[r];
        once_s += s->prices->optimizer_s[r];
    }
    if (s->embedding_bytes > 0)
        once_s += s->prices->message_s[s->plan->pp - 1] * s->embedding_bytes / s->message_bytes;
    return microbatch_s * (double)s->plan->num_microbatches + once_s;
}

static double ticks_per_s(double all_s) {
    int exponent;
    frexp(all_s, &exponent);
    return ldexp(1, 62 - exponent);
}

static Ticks ticks(const StepRun *run, double time_s) {
    return (Ticks)(time_s * run->ticks_per_s + 0.5);
}

// One piece's collectives, one after the other.
static Ticks sync_ticks(const Step *s, const StepRun *run, const ChunkSync *sync) {
    Ticks sum = 0;
    for (int k = 0; k < sync->num_collectives; k++)
        sum += ticks(run, s->collective_s[sync->collectives[k]]);
    return sum;
}

// What collectives beside the pieces of an item take from each: costmodel/step/price_program.c.
static double stretch_s(const Step *s, const ChunkSync *sync, double whole_s) {
    const double slowdown = s->scenario->execution.stack.communication.overlap_slowdown_frac;
    const double n = sync->num_parts;
    double piece_s = 0;
    if (sync->num_parts < 2) return 0;
    for (int part = 0; part < sync->num_parts; part++)
        for (int k = 0; k < sync->num_collectives; k++)
            piece_s =
                fmin(piece_s + slowdown * s->collective_s[sync->collectives[k]] * (n - 1) / n / n,
                     slowdown * whole_s / n);
    return piece_s;
}

static Ticks piece_ticks(const Step *s, const StepRun *run, const ChunkSync *sync, double whole_s) {
    return ticks(run, whole_s / sync->num_parts + stretch_s(s, sync, whole_s));
}

static void pieces_set(const Step *s, const StepRun *run, int c, StepChunk *chunk) {
    const StepTraits traits = step_traits(&s->scenario->execution);
    const ChunkSync *gather = &s->sync.gather[c], *reduce = &s->sync.reduce[c];
    const Ticks gathers = sync_ticks(s, run, gather), reductions = sync_ticks(s, run, reduce);
    for (int k = 0; k < NUM_COUNTS; k++) chunk->pieces[k] = (StepPieces){.special = -1};
    chunk->reduces = reduce->num_collectives > 0;
    if (!traits.gathers_beside) {
        chunk->gather_late = gathers * gather->num_parts;
    } else if (gather->num_collectives > 0) {
        chunk->pieces[COUNT_FORWARD] = (StepPieces){gather->num_parts, 0, gathers, 0};
        chunk->piece_work[WORK_FORWARD] = piece_ticks(s, run, gather, s->prices->forward[c].time_s);
    }
    if (!traits.reduces_beside) {
        chunk->reduce_late = reductions;
    } else if (chunk->reduces) {
        const int due = (int)plan_chunk_microbatches(s->plan);
        chunk->pieces[COUNT_GRADIENT] = (StepPieces){reduce->num_parts, due - 1, reductions, 0};
        chunk->piece_work[WORK_BACKWARD] =
            piece_ticks(s, run, reduce, s->prices->backward[c].time_s);
        if (s->prices->backward_weight)
            chunk->piece_work[WORK_BACKWARD_WEIGHT] =
                piece_ticks(s, run, reduce, s->prices->backward_weight[c].time_s);
    }
}

// The message between a chunk and its neighbour, where that lies on another rank.
static int64_t link_between(const StepRun *run, int chunk, int other, int direction) {
    if (other < 0 || other >= run->plan->num_chunks) return -1;
    if (plan_chunk_rank(run->plan, chunk) == plan_chunk_rank(run->plan, other)) return -1;
    return step_link(run, chunk < other ? chunk : other, direction);
}

static ItemCost item_cost(const Step *s, const StepRun *run, int c, WorkKind kind, double work_s) {
    const bool forward = kind == WORK_FORWARD;
    const int before = forward ? c - 1 : c + 1, after = forward ? c + 1 : c - 1;
    ItemCost cost = {.work = ticks(run, work_s), .in = -1, .out = -1, .direction = !forward};
    cost.counter = forward                       ? COUNT_FORWARD
                   : kind == WORK_BACKWARD_INPUT ? COUNT_INPUT
                                                 : COUNT_GRADIENT;
    if (kind == WORK_BACKWARD_WEIGHT) return cost;
    const int rank = plan_chunk_rank(run->plan, c);
    cost.in = link_between(run, c, before, !forward);
    cost.out = link_between(run, c, after, !forward);
    if (cost.in >= 0) {
        cost.sender = (int16_t)plan_chunk_rank(run->plan, before);
        cost.in_message = ticks(run, s->prices->message_s[message_boundary(rank, cost.sender)]);
    }
    if (cost.out >= 0) {
        cost.receiver = (int16_t)plan_chunk_rank(run->plan, after);
        cost.out_message = ticks(run, s->prices->message_s[message_boundary(rank, cost.receiver)]);
    }
    return cost;
}

static void chunk_set(const Step *s, const StepRun *run, int c, StepChunk *chunk) {
    const Prices *p = s->prices;
    *chunk = (StepChunk){0};
    chunk->items[WORK_FORWARD] = item_cost(s, run, c, WORK_FORWARD, p->forward[c].time_s);
    chunk->items[WORK_BACKWARD] = item_cost(s, run, c, WORK_BACKWARD, p->backward[c].time_s);
    if (p->backward_input) {
        chunk->items[WORK_BACKWARD_INPUT] =
            item_cost(s, run, c, WORK_BACKWARD_INPUT, p->backward_input[c].time_s);
        chunk->items[WORK_BACKWARD_WEIGHT] =
            item_cost(s, run, c, WORK_BACKWARD_WEIGHT, p->backward_weight[c].time_s);
    }
    pieces_set(s, run, c, chunk);
}

// Gathers at the begin of a step come one after the other, in the order of a rank's chunks.
static void rank_set(const StepRun *run, int r, const RankOrder *order, StepRank *rank) {
    *rank = (StepRank){.items = order->items, .num_items = order->num_items};
    for (int k = 0; k < run->plan->vpp; k++) {
        StepPieces *gather = &run->chunks[plan_rank_chunk(run->plan, r, k)].pieces[COUNT_FORWARD];
        gather->begin = rank->dp;
        rank->dp += gather->num_parts * gather->collectives;
    }
}

static StepRun run_create(const Step *s, int num_microbatches) {
    const Plan *plan = s->plan;
    StepRun run = {.plan = plan,
                   .ticks_per_s = ticks_per_s(most_s(s)),
                   .num_microbatches = num_microbatches,
                   .chunks = ARENA_ARRAY(s->scratch, plan->num_chunks, StepChunk),
                   .ranks = ARENA_ARRAY(s->scratch, plan->pp, StepRank),
                   .ready = ARENA_ARRAY(s->scratch, plan->pp, int)};
    const int64_t num_messages = step_link(&run, plan->num_chunks, 0);
    run.moved = ARENA_ARRAY(s->scratch, num_messages, Ticks);
    memset(run.moved, 0xff, (size_t)num_messages * sizeof *run.moved); // NOT_YET
    for (int c = 0; c < plan->num_chunks; c++) chunk_set(s, &run, c, &run.chunks[c]);
    const ScheduleShape shape = schedule_shape(plan->pp, plan->vpp, num_microbatches);
    const RankOrder *orders = plan_orders(plan, &shape, s->scratch);
    for (int r = 0; r < plan->pp; r++) rank_set(&run, r, &orders[r], &run.ranks[r]);
    return run;
}

// --- The end of a step: workload/step/program.c, rank_build

// When the gradients of tied embeddings are exchanged: both ends launch when what they did last is
// done. [2] of the ranks with the embedding and with the loss; -1: there is no exchange.
typedef struct {
    int ranks[2];
    Ticks end;
} Tied;

static Tied tied_exchange(const Step *s, const StepRun *run) {
    Tied tied = {.ranks = {-1, -1}};
    Ticks launch = 0;
    if (s->embedding_bytes <= 0) return tied;
    for (int c = 0; c < s->plan->num_chunks; c++) {
        if (s->plan->chunks[c].embedding) tied.ranks[0] = plan_chunk_rank(s->plan, c);
        if (s->plan->chunks[c].loss) tied.ranks[1] = plan_chunk_rank(s->plan, c);
    }
    if (tied.ranks[0] < 0 || tied.ranks[1] < 0 || tied.ranks[0] == tied.ranks[1])
        return (Tied){.ranks = {-1, -1}};
    for (int i = 0; i < 2; i++) {
        const StepRank *rank = &run->ranks[tied.ranks[i]];
        const Ticks ends[] = {rank->compute, rank->pp, rank->dp};
        for (int k = 0; k < 3; k++) launch = ends[k] > launch ? ends[k] : launch;
    }
    const int boundary = message_boundary(tied.ranks[0], tied.ranks[1]);
    const double alpha_s = s->prices->message_alpha_s[boundary];
    const double transfer_s = s->prices->message_s[boundary] - alpha_s;
    tied.end = launch + ticks(run, alpha_s + transfer_s * (s->embedding_bytes / s->message_bytes));
    return tied;
}

// Reductions that nothing ran beside, in the order in which the backwards ended, and the sums over
// tp behind all of them.
static void reduce_late(const Step *s, const StepRun *run, int r) {
    StepRank *rank = &run->ranks[r];
    const Ticks sums = sync_ticks(s, run, &s->sync.sums[r]);
    for (int k = run->plan->vpp - 1; k >= 0; k--) {
        const StepChunk *chunk = &run->chunks[plan_rank_chunk(run->plan, r, k)];
        if (chunk->reduce_late > 0)
            rank->dp = (rank->dp > rank->compute ? rank->dp : rank->compute) + chunk->reduce_late;
    }
    if (sums > 0) rank->dp = (rank->dp > rank->compute ? rank->dp : rank->compute) + sums;
}

static Ticks rank_finish(const Step *s, const StepRun *run, int r, const Tied *tied) {
    StepRank *rank = &run->ranks[r];
    Ticks begin = rank->compute, pp = rank->pp;
    bool reduces = s->sync.sums[r].num_collectives > 0;
    for (int k = 0; k < run->plan->vpp; k++)
        reduces |= run->chunks[plan_rank_chunk(run->plan, r, k)].reduces;
    if (reduces && rank->dp > begin) begin = rank->dp;
    if (tied->ranks[0] == r || tied->ranks[1] == r) {
        pp = tied->end;
        if (pp > begin) begin = pp;
    }
    rank->compute = begin + ticks(run, s->prices->optimizer_s[r]);
    for (int k = 0; k < run->plan->vpp; k++) {
        const StepChunk *chunk = &run->chunks[plan_rank_chunk(run->plan, r, k)];
        if (chunk->gather_late > 0)
            rank->dp = (rank->dp > rank->compute ? rank->dp : rank->compute) + chunk->gather_late;
    }
    Ticks end = rank->compute;
    const Ticks others[] = {rank->dp, pp, rank->egress[0], rank->egress[1]};
    for (int i = 0; i < 4; i++) end = others[i] > end ? others[i] : end;
    return end;
}

static Ticks step_finish(const Step *s, const StepRun *run) {
    Ticks end = 0;
    for (int r = 0; r < run->plan->pp; r++) reduce_late(s, run, r);
    const Tied tied = tied_exchange(s, run);
    for (int r = 0; r < run->plan->pp; r++) {
        const Ticks rank_end = rank_finish(s, run, r, &tied);
        if (rank_end > end) end = rank_end;
    }
    return end;
}

// --- Repetition

// Sets where the run stops: after so many periods, or at the end for -1.
static void limits_set(const Schedule *schedule, StepRun *run, int periods) {
    const ScheduleShape shape =
        schedule_shape(run->plan->pp, run->plan->vpp, run->num_microbatches);
    for (int r = 0; r < run->plan->pp; r++) {
        run->ranks[r].limit = run->ranks[r].num_items;
        if (periods < 0) continue;
        const SteadyOrder steady = schedule->steady(&shape, r);
        run->ranks[r].limit = steady.first + periods * steady.num_items;
    }
}

// A copy of what ranks and chunks are at.
typedef struct {
    StepRank *ranks;
    StepChunk *chunks;
} Snapshot;

static Snapshot snapshot_take(const StepRun *run, Arena *scratch) {
    const int pp = run->plan->pp, num_chunks = run->plan->num_chunks;
    Snapshot copy = {ARENA_ARRAY(scratch, pp, StepRank),
                     ARENA_ARRAY(scratch, num_chunks, StepChunk)};
    memcpy(copy.ranks, run->ranks, (size_t)pp * sizeof *copy.ranks);
    memcpy(copy.chunks, run->chunks, (size_t)num_chunks * sizeof *copy.chunks);
    return copy;
}

// Whether a stream is free `span` later, or was not used and will not make anything wait.
static bool stream_repeats(Ticks before, Ticks now, Ticks span, Ticks compute_before) {
    return now - before == span || (now == before && before <= compute_before);
}

static bool ranks_repeat(const StepRun *run, const Snapshot *before, Ticks span) {
    for (int r = 0; r < run->plan->pp; r++) {
        const StepRank *a = &before->ranks[r], *b = &run->ranks[r];
        if (b->compute - a->compute != span) return false;
        const Ticks old[] = {a->dp, a->pp, a->egress[0], a->egress[1]};
        const Ticks new[] = {b->dp, b->pp, b->egress[0], b->egress[1]};
        for (int i = 0; i < 4; i++)
            if (!stream_repeats(old[i], new[i], span, a->compute)) return false;
    }
    return true;
}

// Messages sent and not yet received a period ago have counterparts that arrive `span` later.
static bool messages_repeat(const StepRun *run, const Snapshot *before, Ticks span, int period) {
    for (int boundary = 0; boundary + 1 < run->plan->num_chunks; boundary++)
        for (int direction = 0; direction < 2; direction++) {
            const int counter = direction ? COUNT_GRADIENT : COUNT_FORWARD;
            const StepChunk *from = &before->chunks[boundary + direction];
            const StepChunk *to = &before->chunks[boundary + 1 - direction];
            if (from->items[direction ? WORK_BACKWARD : WORK_FORWARD].out < 0) continue;
            const Ticks *moved = run->moved + step_link(run, boundary, direction);
            for (int m = to->num_done[counter]; m < from->num_done[counter]; m++)
                if (moved[m + period] - moved[m] != span) return false;
        }
    return true;
}

// A step of few periods.
typedef struct {
    Ticks end;
    Ticks span; // of a period more
    double per_s;
    bool above; // the limit, however it goes on: no more is known
} Periods;

// Where it goes on, a step can end within the limit.
static bool run_to(const Step *s, StepRun *run, int periods, int64_t left_out, Periods *out) {
    limits_set(schedule_find(s->plan->schedule), run, periods);
    if (!step_run(run, s->asynchronous)) return false;
    const double optimizer = s->prices->optimizer_s[0] * run->ticks_per_s;
    const double limit = s->limit_s * run->ticks_per_s;
    out->above = isfinite(limit) && step_least_ticks(run, (double)left_out) + optimizer > limit;
    return true;
}

// Runs a step of so few micro-batches that it has `periods` periods, at least one. Returns whether
// its state was the same at the end of the last two, but for the span, or is above the limit.
static bool run_periods(const Step *s, int periods, const SteadyOrder *steady, Periods *out) {
    const int64_t left_out = (int64_t)(steady->num_periods - periods) * steady->num_microbatches;
    // The first forward and the last backward of a chunk are told by their number.
    Plan fewer = *s->plan;
    fewer.num_microbatches -= left_out;
    Step part = *s;
    part.plan = &fewer;
    StepRun run = run_create(&part, (int)fewer.num_microbatches);
    out->per_s = run.ticks_per_s;
    if (!run_to(&part, &run, periods - 1, left_out, out)) return false;
    if (out->above) return true;
    const Snapshot before = snapshot_take(&run, s->scratch);
    if (!run_to(&part, &run, periods, left_out, out)) return false;
    if (out->above) return true;
    out->span = run.ranks[0].compute - before.ranks[0].compute;
    if (!ranks_repeat(&run, &before, out->span)) return false;
    if (s->asynchronous && !messages_repeat(&run, &before, out->span, steady->num_microbatches))
        return false;
    limits_set(NULL, &run, -1);
    if (!step_run(&run, s->asynchronous)) return false;
    out->end = step_finish(&part, &run);
    return true;
}

static double run_whole(const Step *s) {
    StepRun run = run_create(s, (int)s->plan->num_microbatches);
    limits_set(NULL, &run, -1);
    if (!step_run(&run, s->asynchronous)) return NAN;
    return (double)step_finish(s, &run) / run.ticks_per_s;
}

enum { FIRST_PERIODS = 2 }; // most pipelines run evenly after so many

static double step_run_s(const Step *s) {
    const Schedule *schedule = schedule_find(s->plan->schedule);
    const ScheduleShape shape =
        schedule_shape(s->plan->pp, s->plan->vpp, (int)s->plan->num_microbatches);
    const SteadyOrder steady = schedule->steady ? schedule->steady(&shape, 0) : (SteadyOrder){0};
    for (int n = FIRST_PERIODS; n < steady.num_periods; n *= 2) {
        Periods few;
        if (!run_periods(s, n, &steady, &few)) continue;
        if (few.above) return INFINITY;
        return ((double)few.end + (double)(steady.num_periods - n) * (double)few.span) / few.per_s;
    }
    return run_whole(s);
}

double plan_step_time_s(const Scenario *scenario, const Plan *plan, const Workload *workload,
                        const Prices *prices, Arena *scratch) {
    return plan_step_time_below_s(scenario, plan, workload, prices, INFINITY, scratch);
}

double plan_step_time_below_s(const Scenario *scenario, const Plan *plan, const Workload *workload,
                              const Prices *prices, double limit_s, Arena *scratch) {
    if (!is_known(scenario, plan)) return NAN;
    Step s = {.scenario = scenario,
              .plan = plan,
              .prices = prices,
              .sync = sync_plan(scenario, plan, workload, scratch),
              .embedding_bytes = sync_embedding_bytes(scenario, plan),
              .message_bytes = workload->message_bytes,
              .asynchronous = program_hides_messages(scenario, plan),
              .limit_s = limit_s * (1 + ROUNDING_FRAC) - prices->step_s,
              .scratch = scratch};
    s.collective_s = collectives_price(scenario, plan, s.sync.collectives, s.sync.num_collectives,
                                       scratch, &(const StepPart *){NULL});
    return step_run_s(&s) + prices->step_s;
}
