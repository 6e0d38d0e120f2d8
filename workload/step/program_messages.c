// Messages are matched by a table with one entry for each (boundary between chunks, direction,
// micro-batch): the end that is emitted first leaves its place there.
#include "workload/step/program_builder.h"

static int chunk_rank(const ProgramBuilder *b, int chunk) {
    return plan_chunk_rank(b->plan, chunk);
}

// Emits one end of a message and links it with the other, if that one is there.
static int message_emit(ProgramBuilder *b, Instruction message, int32_t *place) {
    message.stream = STREAM_PP;
    message.num_parts = 1;
    message.match = -1;
    message.collective = -1;
    const int index = b->num;
    if (*place) {
        message.match = *place - 1;
        b->all[b->base[message.peer] + message.match].match = index;
    } else {
        *place = index + 1;
    }
    return program_emit(b, &message);
}

static bool is_message_work(const ProgramBuilder *b, const WorkItem *item) {
    return item->kind != WORK_BACKWARD_WEIGHT && item->chunk < b->num_chunks;
}

// One end of the message that crosses the boundary between chunks `boundary` and `boundary` + 1.
static int boundary_emit(ProgramBuilder *b, InstructionKind kind, const WorkItem *item,
                         int boundary, int p2p_group) {
    const bool forward = item->kind == WORK_FORWARD;
    const int other_chunk = item->chunk == boundary ? boundary + 1 : boundary;
    Instruction message = {
        .kind = (uint8_t)kind,
        .phase = forward ? PHASE_FORWARD : PHASE_BACKWARD_INPUT,
        .chunk = item->chunk,
        .peer = (int16_t)chunk_rank(b, other_chunk),
        .microbatch = item->microbatch,
        .p2p_group = p2p_group,
        // A group is launched behind the computation before it, receives too.
        .waits = {kind == INSTRUCTION_SEND || p2p_group >= 0 ? b->last_compute : -1, -1},
    };
    if (message.peer == b->rank) return -1;
    const int64_t direction = 2 * (int64_t)boundary + !forward;
    return message_emit(b, message, &b->places[direction * b->num_microbatches + item->microbatch]);
}

int program_emit_send(ProgramBuilder *b, const WorkItem *item, int p2p_group) {
    const int boundary = item->kind == WORK_FORWARD ? item->chunk : item->chunk - 1;
    if (!is_message_work(b, item) || boundary < 0 || boundary == b->num_chunks - 1) return -1;
    return boundary_emit(b, INSTRUCTION_SEND, item, boundary, p2p_group);
}

int program_emit_recv(ProgramBuilder *b, const WorkItem *item, int p2p_group) {
    const int boundary = item->kind == WORK_FORWARD ? item->chunk - 1 : item->chunk;
    if (!is_message_work(b, item) || boundary < 0 || boundary == b->num_chunks - 1) return -1;
    return boundary_emit(b, INSTRUCTION_RECV, item, boundary, p2p_group);
}

int program_emit_group(ProgramBuilder *b, const WorkItem *items, int begin, int middle, int end) {
    const int before = b->num;
    for (int i = begin; i < middle; i++) program_emit_send(b, &items[i], b->num_p2p_groups);
    for (int i = middle; i < end; i++) program_emit_recv(b, &items[i], b->num_p2p_groups);
    if (b->num == before) return -1;
    b->num_p2p_groups++;
    return before;
}

// --- At the end of a step

int program_emit_tied(ProgramBuilder *b) {
    int message = -1;
    for (int side = 0; side < 2; side++) {
        const int chunk = b->tied_chunks[side];
        if (chunk < 0 || chunk_rank(b, chunk) != b->rank) continue;
        for (int received = 0; received < 2; received++) {
            Instruction end = {
                .kind = received ? INSTRUCTION_RECV : INSTRUCTION_SEND,
                .phase = PHASE_BACKWARD_WEIGHT,
                .embedding = 1,
                .chunk = (int16_t)chunk,
                .peer = (int16_t)chunk_rank(b, b->tied_chunks[!side]),
                .microbatch = -1,
                .p2p_group = b->num_p2p_groups,
                .waits = {b->last_compute, b->last_reduce},
            };
            message = message_emit(b, end, &b->tied_places[received ? !side : side]);
        }
        b->num_p2p_groups++;
    }
    return message;
}

int program_emit_copies(ProgramBuilder *b) {
    int message = -1;
    for (int k = 0; k < b->plan->vpp; k++) {
        const int chunk = plan_rank_chunk(b->plan, b->rank, k);
        const int copy = (chunk + b->plan->pp) % b->num_chunks;
        for (int received = 0; received < 2; received++) {
            Instruction end = {
                .kind = received ? INSTRUCTION_RECV : INSTRUCTION_SEND,
                .phase = PHASE_BACKWARD_WEIGHT,
                .copies = 1,
                .chunk = (int16_t)chunk,
                .peer = (int16_t)chunk_rank(b, copy),
                .microbatch = -1,
                .p2p_group = b->num_p2p_groups,
                .waits = {b->last_compute, b->last_reduce},
            };
            message = message_emit(b, end, &b->copies_places[received ? copy : chunk]);
        }
    }
    b->num_p2p_groups++;
    return message;
}
