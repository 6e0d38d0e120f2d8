// One pass over each rank's schedule.
//
// Blocking messages: a step is a work item with those joined to it (plan/work_item.h). Between
// two steps one group sends what the first computed and receives what the second needs, as
// Megatron-LM's send_forward_recv_backward and, for the interleaved schedule,
// send_forward_backward_recv_forward_backward do. The pairs matter: with a group around every
// single item of the interleaved schedule, ranks wait for each other in a circle (from pp 2, 2
// chunks a rank, 4 micro-batches on).
// Asynchronous messages are received one item ahead (overlap_p2p_comm of Megatron-core).
#include "workload/step/program.h"

#include "workload/step/program_builder.h"

#include <assert.h>

const char *const INSTRUCTION_NAMES[NUM_INSTRUCTION_KINDS] = {
    "forward", "backward", "backward-input", "backward-weight",
    "send",    "recv",     "collective",     "optimizer",
};

// --- Computation and what overlaps with it

// chunk: -1 of what is of all chunks of the rank.
static int collective_emit(ProgramBuilder *b, const ChunkSync *sync, int k, int chunk, int part,
                           int wait) {
    const bool gathers = chunk >= 0 && sync == &b->sync.gather[chunk];
    Instruction collective = {
        .kind = INSTRUCTION_COLLECTIVE,
        .stream = STREAM_DP,
        .phase = gathers ? PHASE_FORWARD : PHASE_BACKWARD_WEIGHT,
        .part = (uint8_t)part,
        .num_parts = (uint8_t)sync->num_parts,
        .chunk = (int16_t)chunk,
        .peer = -1,
        .microbatch = -1,
        .p2p_group = -1,
        .match = -1,
        .collective = sync->collectives[k],
        .waits = {wait, -1},
    };
    return program_emit(b, &collective);
}

// The collectives of one piece. Returns the index of the last, or -1.
static int piece_emit(ProgramBuilder *b, const ChunkSync *sync, int chunk, int part, int wait) {
    int last = -1;
    for (int k = 0; k < sync->num_collectives; k++)
        last = collective_emit(b, sync, k, chunk, part, wait);
    return last;
}

// Emits a collective among the pipeline ranks.
static void vocab_emit(ProgramBuilder *b, VocabCollective which, int microbatch, int wait) {
    const Instruction collective =
        vocab_instruction(b->sync.num_collectives, which, microbatch, wait);
    b->vocab[which][microbatch] = program_emit(b, &collective);
}

// A rank that only receives a broadcast has nothing to wait for: it is there from the start, or
// from its own broadcast before it. All ranks have them in the order of the passes.
static void vocab_receive(ProgramBuilder *b, VocabCollective which) {
    for (const WorkItem **next = &b->vocab_next[which]; *next < b->items_end; ++*next) {
        if (vocab_awaited(b->plan, *next) != which) continue;
        if (vocab_root(b->plan, which, (*next)->microbatch) == b->rank) return;
        vocab_emit(b, which, (*next)->microbatch, -1);
    }
}

static void vocab_receive_first(ProgramBuilder *b, const WorkItem *items, int num_items) {
    if (!b->plan->vocab_barriers) return;
    b->items_end = items + num_items;
    for (int k = 0; k < NUM_VOCAB_COLLECTIVES; k++) {
        b->vocab_next[k] = items;
        if (vocab_is_broadcast((VocabCollective)k)) vocab_receive(b, (VocabCollective)k);
    }
}

static void vocab_emit_following(ProgramBuilder *b, const WorkItem *item) {
    const VocabCollectives following = vocab_following(b->plan, item);
    for (int k = 0; following.which[k] != NUM_VOCAB_COLLECTIVES; k++) {
        const VocabCollective which = following.which[k];
        vocab_emit(b, which, item->microbatch, b->last_compute);
        if (!vocab_is_broadcast(which)) continue;
        assert(b->vocab_next[which]->microbatch == item->microbatch);
        b->vocab_next[which]++;
        vocab_receive(b, which);
    }
}

static bool makes_gradients(const WorkItem *item) {
    return item->kind == WORK_BACKWARD_WEIGHT || item->kind == WORK_BACKWARD;
}

static Instruction compute_instruction(const WorkItem *item, int num_parts) {
    static const uint8_t KINDS[] = {
        [WORK_FORWARD] = INSTRUCTION_FORWARD,
        [WORK_BACKWARD] = INSTRUCTION_BACKWARD,
        [WORK_BACKWARD_INPUT] = INSTRUCTION_BACKWARD_INPUT,
        [WORK_BACKWARD_WEIGHT] = INSTRUCTION_BACKWARD_WEIGHT,
    };
    static const uint8_t PHASES[] = {
        [WORK_FORWARD] = PHASE_FORWARD,
        [WORK_BACKWARD] = PHASE_BACKWARD_INPUT,
        [WORK_BACKWARD_INPUT] = PHASE_BACKWARD_INPUT,
        [WORK_BACKWARD_WEIGHT] = PHASE_BACKWARD_WEIGHT,
    };
    return (Instruction){
        .kind = KINDS[item->kind],
        .stream = STREAM_COMPUTE,
        .phase = PHASES[item->kind],
        .num_parts = (uint8_t)num_parts,
        .chunk = item->chunk,
        .peer = -1,
        .microbatch = item->microbatch,
        .p2p_group = -1,
        .match = -1,
        .collective = -1,
        .waits = {-1, -1},
    };
}

// Emits the computation of an item, in pieces where collectives run beside it. The first piece
// waits for `message`, and for `other` unless it waits for a gather (indices or -1).
static void compute_emit(ProgramBuilder *b, const WorkItem *item, int message, int other) {
    const int chunk = item->chunk;
    const ChunkSync *gather = NULL, *reduce = NULL;
    if (item->kind == WORK_FORWARD && b->num_forwards[chunk]++ == 0 && b->first_gather[chunk] >= 0)
        gather = &b->sync.gather[chunk];
    const int num_due = chunk < b->num_chunks ? b->num_gradients_due : b->num_microbatches;
    if (makes_gradients(item) && ++b->num_gradients[chunk] == num_due && b->traits.reduces_beside)
        reduce = &b->sync.reduce[chunk];
    const int num_parts = gather ? gather->num_parts : reduce ? reduce->num_parts : 1;
    Instruction compute = compute_instruction(item, num_parts);
    for (int part = 0; part < num_parts; part++) {
        compute.part = (uint8_t)part;
        compute.waits[0] = part == 0 ? message : -1;
        compute.waits[1] = part == 0 ? other : -1;
        if (gather)
            compute.waits[1] = b->first_gather[chunk] + (part + 1) * gather->num_collectives - 1;
        b->last_compute = program_emit(b, &compute);
        if (!reduce) continue;
        int last = piece_emit(b, reduce, chunk, part, b->last_compute);
        if (last >= 0) b->last_reduce = last;
    }
}

// --- One rank

static void steps_emit_blocking(ProgramBuilder *b, const WorkItem *items, int num_items) {
    int previous = 0, step = 0;
    while (step < num_items) {
        int end = step + 1;
        while (end < num_items && items[end].joined) end++;
        int message = program_emit_group(b, items, previous, step, end);
        for (int i = step; i < end; i++) compute_emit(b, &items[i], message, -1);
        previous = step;
        step = end;
    }
    program_emit_group(b, items, previous, num_items, num_items);
}

// What one or two items that run at the same time receive.
typedef struct {
    int end; // the item after them
    int message[2];
} Received;

// What an item waits for: a collective over a spread vocabulary, or its message.
static int input_of(const ProgramBuilder *b, const WorkItem *item, int message) {
    const VocabCollective awaited = vocab_awaited(b->plan, item);
    return awaited == NUM_VOCAB_COLLECTIVES ? message : b->vocab[awaited][item->microbatch];
}

static Received step_receive(ProgramBuilder *b, const WorkItem *items, int num_items, int first) {
    Received step = {.end = first + 1, .message = {-1, -1}};
    if (first == num_items) return step;
    if (step.end < num_items && items[step.end].joined == JOINED_OVERLAP) step.end++;
    for (int i = first; i < step.end; i++)
        step.message[i - first] = program_emit_recv(b, &items[i], -1);
    return step;
}

static void steps_emit_asynchronous(ProgramBuilder *b, const WorkItem *items, int num_items) {
    Received step = step_receive(b, items, num_items, 0);
    for (int first = 0; first < num_items;) {
        const Received next = step_receive(b, items, num_items, step.end);
        const bool pair = step.end > first + 1;
        const int input = input_of(b, &items[first], step.message[0]);
        const int other = pair ? input_of(b, &items[first + 1], step.message[1]) : -1;
        compute_emit(b, &items[first], input, other);
        if (pair) compute_emit(b, &items[first + 1], other, -1);
        for (int i = first; i < step.end; i++) {
            vocab_emit_following(b, &items[i]);
            program_emit_send(b, &items[i], -1);
        }
        first = step.end;
        step = next;
    }
}

// The gathers of all chunks of the rank, in the order in which they are needed.
static void gathers_emit(ProgramBuilder *b, int wait) {
    for (int k = 0; k < plan_rank_chunks(b->plan); k++) {
        const int chunk = plan_rank_chunk(b->plan, b->rank, k);
        const ChunkSync *sync = &b->sync.gather[chunk];
        if (sync->num_collectives == 0) continue;
        b->first_gather[chunk] = b->num;
        for (int part = 0; part < sync->num_parts; part++) piece_emit(b, sync, chunk, part, wait);
    }
}

// The reductions of all chunks of the rank in the order in which their backwards ended.
static void reduces_emit(ProgramBuilder *b) {
    for (int k = plan_rank_chunks(b->plan) - 1; k >= 0; k--) {
        const int chunk = plan_rank_chunk(b->plan, b->rank, k);
        int last = piece_emit(b, &b->sync.reduce[chunk], chunk, 0, b->last_compute);
        if (last >= 0) b->last_reduce = last;
    }
}

// The sums over tp, behind the reductions of all chunks.
static void sums_emit(ProgramBuilder *b) {
    const int last = piece_emit(b, &b->sync.sums[b->rank], -1, 0, b->last_compute);
    if (last >= 0) b->last_reduce = last;
}

static void optimizer_emit(ProgramBuilder *b, int tied_message) {
    Instruction optimizer = {
        .kind = INSTRUCTION_OPTIMIZER,
        .stream = STREAM_COMPUTE,
        .phase = PHASE_BACKWARD_WEIGHT,
        .num_parts = 1,
        .chunk = -1,
        .peer = -1,
        .microbatch = -1,
        .p2p_group = -1,
        .match = -1,
        .collective = -1,
        .waits = {tied_message, b->last_reduce},
    };
    const int index = program_emit(b, &optimizer);
    if (!b->traits.gathers_beside) gathers_emit(b, index);
}

static void rank_build(ProgramBuilder *b, const WorkItem *items, int num_items, bool asynchronous) {
    b->num = 0;
    b->num_p2p_groups = 0;
    b->last_compute = b->last_reduce = -1;
    const int all_chunks = plan_all_chunks(b->plan);
    for (int chunk = 0; chunk < all_chunks; chunk++) {
        b->first_gather[chunk] = -1;
        b->num_forwards[chunk] = b->num_gradients[chunk] = 0;
    }
    vocab_receive_first(b, items, num_items);
    if (b->traits.gathers_beside) gathers_emit(b, -1);
    if (asynchronous)
        steps_emit_asynchronous(b, items, num_items);
    else
        steps_emit_blocking(b, items, num_items);
    if (!b->traits.reduces_beside) reduces_emit(b);
    sums_emit(b);
    optimizer_emit(b, b->copies_bytes ? program_emit_copies(b) : program_emit_tied(b));
}

// --- All ranks

// At least as many as rank_build emits in all.
static size_t max_instructions(const ProgramBuilder *b, const RankOrder *orders) {
    size_t messages = 4 * (size_t)(b->num_chunks - 1) * (size_t)b->num_microbatches;
    size_t others = (size_t)b->plan->pp + 4 + (b->copies_bytes ? 2 * (size_t)b->num_chunks : 0);
    for (int c = 0; c < plan_all_chunks(b->plan); c++) {
        const ChunkSync *reduce = &b->sync.reduce[c], *gather = &b->sync.gather[c];
        const size_t holders = c < b->num_chunks ? 1 : (size_t)b->plan->pp;
        others += holders * (size_t)(reduce->num_parts * (1 + reduce->num_collectives));
        others += holders * (size_t)(gather->num_parts * (1 + gather->num_collectives));
    }
    for (int rank = 0; rank < b->plan->pp; rank++)
        others += (size_t)(orders[rank].num_items + b->sync.sums[rank].num_collectives);
    if (b->plan->vocab_barriers)
        others += (size_t)(NUM_VOCAB_COLLECTIVES * b->plan->pp) * (size_t)b->num_microbatches;
    return (b->plan->pp > 1 ? messages : 0) + others;
}

static void tied_find(ProgramBuilder *b, double embedding_bytes) {
    b->tied_chunks[0] = b->tied_chunks[1] = -1;
    if (embedding_bytes <= 0) return;
    for (int c = 0; c < b->num_chunks; c++) {
        if (b->plan->chunks[c].embedding) b->tied_chunks[0] = c;
        if (b->plan->chunks[c].loss) b->tied_chunks[1] = c;
    }
    if (b->tied_chunks[0] < 0 || b->tied_chunks[1] < 0 ||
        plan_chunk_rank(b->plan, b->tied_chunks[0]) == plan_chunk_rank(b->plan, b->tied_chunks[1]))
        b->tied_chunks[0] = b->tied_chunks[1] = -1;
}

static ProgramBuilder builder_start(const Scenario *scenario, const Plan *plan,
                                    const Workload *workload, double embedding_bytes,
                                    Arena *arena) {
    ProgramBuilder b = {
        .plan = plan,
        .traits = step_traits(&scenario->execution),
        .sync = sync_plan(scenario, plan, workload, arena),
        .num_chunks = plan->num_chunks,
        .num_microbatches = (int)plan->num_microbatches,
        .num_gradients_due = (int)plan_chunk_microbatches(plan),
        .copies_bytes = sync_copies_bytes(scenario, plan, workload, arena),
    };
    tied_find(&b, embedding_bytes);
    b.base = ARENA_ARRAY(arena, plan->pp, int64_t);
    b.places = ARENA_ARRAY(arena, 2 * (size_t)b.num_chunks * (size_t)b.num_microbatches, int32_t);
    if (b.copies_bytes) b.copies_places = ARENA_ARRAY(arena, b.num_chunks, int32_t);
    b.num_forwards = ARENA_ARRAY(arena, workload->num_chunks, int);
    b.num_gradients = ARENA_ARRAY(arena, workload->num_chunks, int);
    b.first_gather = ARENA_ARRAY(arena, workload->num_chunks, int);
    for (int k = 0; k < NUM_VOCAB_COLLECTIVES && plan->vocab_barriers; k++)
        b.vocab[k] = ARENA_ARRAY(arena, b.num_microbatches, int32_t);
    return b;
}

// Megatron-LM hides messages of the interleaved schedule only. Its fork with zero-bubble schedules
// (sail-sg/zero-bubble-pipeline-parallelism, zerobubble/runtime.py) never blocks on a send.
bool program_hides_messages(const Scenario *scenario, const Plan *plan) {
    return plan->vocab_barriers || plan_schedule_traits(plan).receives_ahead ||
           (scenario->execution.stack.communication.p2p_overlap && plan->vpp > 1);
}

Program program_build(const Scenario *scenario, const Plan *plan, const Workload *workload,
                      Arena *arena) {
    assert(workload->num_chunks == plan_all_chunks(plan));
    const ScheduleShape shape = program_shape(scenario, plan, workload);
    const bool asynchronous = program_hides_messages(scenario, plan);
    const double embedding_bytes = sync_embedding_bytes(scenario, plan);
    ProgramBuilder b = builder_start(scenario, plan, workload, embedding_bytes, arena);
    const RankOrder *orders = plan_orders(plan, &shape, arena);
    RankProgram *ranks = ARENA_ARRAY(arena, plan->pp, RankProgram);
    b.all = ARENA_ARRAY(arena, max_instructions(&b, orders), Instruction);
    for (int rank = 0; rank < plan->pp; rank++) {
        b.rank = rank;
        b.out = b.all + b.base[rank];
        rank_build(&b, orders[rank].items, orders[rank].num_items, asynchronous);
        if (rank + 1 < plan->pp) b.base[rank + 1] = b.base[rank] + b.num;
        ranks[rank] = (RankProgram){b.out, b.num};
    }
    return (Program){
        .num_ranks = plan->pp,
        .multiplicity = plan->tp * plan->cp * plan->dp,
        .block_gpus = (int)plan_block_gpus(plan),
        .ranks = ranks,
        .collectives = vocab_join_collectives(plan, workload, b.sync.collectives,
                                              b.sync.num_collectives, arena),
        .num_collectives =
            b.sync.num_collectives + (plan->vocab_barriers ? NUM_VOCAB_COLLECTIVES : 0),
        .message_bytes = workload->message_bytes,
        .embedding_message_bytes = embedding_bytes,
        .copies_bytes = b.copies_bytes,
    };
}

RankSpan program_collective_ranks(const Plan *plan, const ProgramCollective *collective,
                                  const Pool *pool) {
    if (collective->stage > 0) return plan_stage_span(plan, collective->stage - 1);
    return (RankSpan){.num = pool->num_gpus};
}

double program_message_bytes(const Program *program, const Instruction *message) {
    if (message->copies) return program->copies_bytes[message->chunk];
    return message->embedding ? program->embedding_message_bytes : program->message_bytes;
}

int program_num_meetings(const Program *program, int queue) {
    int num = 0;
    bool used = false;
    for (int i = 0; i < program->num_collectives; i++)
        used |= program->collectives[i].pipeline_queue == queue;
    for (int i = 0; used && i < program->ranks[0].num_instructions; i++)
        num += program_pipeline_queue(program, &program->ranks[0].instructions[i]) == queue;
    return num;
}

int program_gpu(const Program *program, int stage, int lane) {
    return (int)rank_at(program->block_gpus, program->num_ranks, stage, lane);
}

RankPlace program_place(const Program *program, int gpu) {
    return rank_place(program->block_gpus, program->num_ranks, gpu);
}
