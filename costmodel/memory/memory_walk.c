#include "costmodel/memory/memory_walk.h"

// What is held now and was at most.
typedef struct {
    double held, peak;
} Held;

// Adds one unit of work.
//   messages_bytes  on their way then
static inline void work_add(const Chunk *chunk, WorkKind kind, double messages_bytes, Held *sum) {
    double most = messages_bytes, kept = 0;
    switch (kind) {
    case WORK_FORWARD:
        most += chunk->forward_peak_bytes;
        kept = chunk->saved_bytes;
        break;
    case WORK_BACKWARD:
        most += chunk->backward_peak_bytes;
        kept = -chunk->saved_bytes;
        break;
    case WORK_BACKWARD_INPUT:
        most += chunk->input_peak_bytes;
        kept = chunk->deferred_bytes - chunk->saved_bytes;
        break;
    case WORK_BACKWARD_WEIGHT:
        most += chunk->weight_peak_bytes;
        kept = -chunk->deferred_bytes;
        break;
    case NUM_WORK_KINDS:
        break;
    }
    if (sum->held + most > sum->peak) sum->peak = sum->held + most; // fmax is a call
    sum->held += kept;
}

// All that a chunk without layers has.
static inline void messages_add(const HeldMessages *messages, Held *sum) {
    const double most = sum->held + held_messages_bytes(messages);
    if (most > sum->peak) sum->peak = most;
}

static void work_run(const Workload *workload, int chunk, WorkKind kind, HeldMessages *messages,
                     Held *sum) {
    if (messages) message_take(messages, chunk, kind);
    work_add(&workload->chunks[chunk], kind, messages ? held_messages_bytes(messages) : 0, sum);
    if (!messages) return;
    message_make(messages, chunk, kind);
    messages_add(messages, sum);
}

// --- Along the order, whose messages are those that workload/step/program.c makes of it

// The item behind the step that begins with item `first`.
static int step_end(const RankOrder *order, int first, bool beside) {
    int end = first < order->num_items ? first + 1 : first;
    if (beside)
        return end < order->num_items && order->items[end].joined == JOINED_OVERLAP ? end + 1 : end;
    while (end < order->num_items && order->items[end].joined) end++;
    return end;
}

static void step_receive(const RankOrder *order, int first, int end, HeldMessages *messages,
                         Held *sum) {
    for (int i = first; i < end; i++)
        message_receive(messages, order->items[i].chunk, (WorkKind)order->items[i].kind);
    messages_add(messages, sum);
}

static void step_send(const RankOrder *order, int first, int end, HeldMessages *messages) {
    for (int i = first; i < end; i++)
        message_send(messages, order->items[i].chunk, (WorkKind)order->items[i].kind);
}

double memory_order_peak(const Workload *workload, const RankOrder *order, HeldMessages *messages) {
    Held sum = {0};
    const bool beside = messages && messages->beside;
    int end = step_end(order, 0, beside);
    if (messages) step_receive(order, 0, end, messages, &sum);
    for (int first = 0; first < order->num_items;) {
        const int next = step_end(order, end, beside);
        if (beside) step_receive(order, end, next, messages, &sum);
        for (int i = first; i < end; i++)
            work_run(workload, order->items[i].chunk, (WorkKind)order->items[i].kind, messages,
                     &sum);
        if (messages && !beside) step_receive(order, end, next, messages, &sum);
        if (messages) step_send(order, first, end, messages);
        first = end;
        end = next;
    }
    return sum.peak;
}

// --- Along the Program

// The work of an instruction that computes, and that whose result or input a message is.
static WorkKind work_of(const Instruction *instruction) {
    static const WorkKind WORK[] = {
        [INSTRUCTION_FORWARD] = WORK_FORWARD,
        [INSTRUCTION_BACKWARD] = WORK_BACKWARD,
        [INSTRUCTION_BACKWARD_INPUT] = WORK_BACKWARD_INPUT,
        [INSTRUCTION_BACKWARD_WEIGHT] = WORK_BACKWARD_WEIGHT,
    };
    if (instruction->kind <= INSTRUCTION_BACKWARD_WEIGHT) return WORK[instruction->kind];
    return instruction->phase == PHASE_FORWARD ? WORK_FORWARD : WORK_BACKWARD;
}

// Whether it is a message between two chunks, not of weights that both ends hold.
static bool is_between_chunks(const Instruction *instruction) {
    return (instruction->kind == INSTRUCTION_SEND || instruction->kind == INSTRUCTION_RECV) &&
           !instruction->embedding && !instruction->copies;
}

// The messages that are started together from instruction `first` on: what comes has room before
// what goes has left. Returns the last of them.
static int group_run(const RankProgram *program, int first, HeldMessages *messages, Held *sum) {
    const Instruction *list = program->instructions;
    int last = first;
    while (list[first].p2p_group >= 0 && last + 1 < program->num_instructions &&
           list[last + 1].p2p_group == list[first].p2p_group)
        last++;
    for (int i = first; i <= last; i++)
        if (is_between_chunks(&list[i]) && list[i].kind == INSTRUCTION_RECV)
            message_receive(messages, list[i].chunk, work_of(&list[i]));
    messages_add(messages, sum);
    for (int i = first; i <= last; i++)
        if (is_between_chunks(&list[i]) && list[i].kind == INSTRUCTION_SEND)
            message_send(messages, list[i].chunk, work_of(&list[i]));
    return last;
}

double memory_program_peak(const Workload *workload, const RankProgram *program,
                           HeldMessages *messages) {
    Held sum = {0};
    for (int i = 0; i < program->num_instructions; i++) {
        const Instruction *in = &program->instructions[i];
        const bool last_part = in->part + 1 >= in->num_parts;
        if (in->kind <= INSTRUCTION_BACKWARD_WEIGHT && last_part)
            work_run(workload, in->chunk, work_of(in), messages, &sum);
        else if (messages && is_between_chunks(in))
            i = group_run(program, i, messages, &sum);
    }
    return sum.peak;
}
