// The operators of one computation, nested in its slice. Their prices give the proportions: what
// runs beside other work is shown after it, and the whole is scaled to the slice. An operator that
// lies on the border of two pieces of a computation is shown in both.
#include "costmodel/compute.h"
#include "costmodel/exchange.h"
#include "costmodel/list_price.h"
#include "report/trace_event.h"

#include <string.h>

typedef struct {
    TraceWriter *writer;
    const Scenario *scenario; // with the machines that the stage lies on
    int tid;
    const Instruction *instruction;
    double total_s;           // sum of all prices
    double from_s, to_s;      // of it, what this piece of the computation covers
    double done_s;            // of the operators passed
    int64_t start_ns, end_ns; // of the slice
    int64_t at_ns;            // end of the last operator
    bool write;               // false: only adds up total_s
} Expansion;

static double operator_s(const Expansion *e, const Op *op) {
    if (op->hidden) return 0;
    if (op->kind != OP_COLLECTIVE)
        return op_compute_s(&e->scenario->cluster, op) + op_sync_s(e->scenario, op);
    return op_collective_s(e->scenario, e->writer->context->plan, op);
}

static void operator_write(Expansion *e, const Op *op, double time_s, const char *where) {
    double begins_s = e->done_s, ends_s = e->done_s += time_s;
    if (ends_s <= e->from_s || begins_s >= e->to_s) return; // in another piece
    double span_ns = (double)(e->end_ns - e->start_ns);
    double share = (ends_s - e->from_s) / (e->to_s - e->from_s);
    int64_t end_ns = share < 1 ? e->start_ns + (int64_t)(span_ns * share) : e->end_ns;
    trace_slice(e->writer, e->tid, op->name, STREAM_NAMES[op->stream], e->at_ns, end_ns);
    if (op->kind == OP_COLLECTIVE)
        fprintf(e->writer->stream, "\"block\": \"%s\", \"bytes\": %.15g, \"group\": \"%s\"}}",
                where, op->message_bytes, GROUP_NAMES[op->group]);
    else
        fprintf(e->writer->stream, "\"block\": \"%s\", \"flops\": %.15g, \"bytes\": %.15g}}", where,
                op->flops, op->bytes);
    e->at_ns = end_ns;
}

static bool phase_wanted(InstructionKind kind, Phase phase) {
    if (kind == INSTRUCTION_BACKWARD_INPUT) return phase != PHASE_BACKWARD_WEIGHT;
    if (kind == INSTRUCTION_BACKWARD_WEIGHT) return phase == PHASE_BACKWARD_WEIGHT;
    return true;
}

static void block_expand(Expansion *e, const Block *block) {
    InstructionKind kind = (InstructionKind)e->instruction->kind;
    bool forward = kind == INSTRUCTION_FORWARD;
    const Op *ops = forward ? block->forward : block->backward;
    int num_ops = forward ? block->num_forward : block->num_backward;
    for (int i = 0; i < num_ops; i++) {
        if (!phase_wanted(kind, ops[i].phase)) continue;
        double time_s = operator_s(e, &ops[i]);
        if (!e->write)
            e->total_s += time_s;
        else if (time_s > 0)
            operator_write(e, &ops[i], time_s, block->name);
    }
}

// Layer `index` of a chunk: recomputed ones come first.
static void layer_expand(Expansion *e, const PlanChunk *spec, int index, int num_recomputed) {
    const TraceContext *context = e->writer->context;
    const int layer = spec->first_layer + index;
    const int kind = context->scenario->model.layer_kind[layer];
    const unsigned char *recompute = context->plan->layer_recompute;
    block_expand(e, recompute
                        ? workload_recompute_block(context->workload, kind, recompute[layer])
                        : workload_layer_block(context->workload, kind, index < num_recomputed));
}

static void blocks_expand(Expansion *e, int block, int count) {
    for (int i = 0; i < count; i++) block_expand(e, &e->writer->context->workload->blocks[block]);
}

// How many layers of a chunk are recomputed.
static int chunk_recomputed(const TraceContext *context, const Chunk *chunk) {
    int num = 0;
    for (int k = 0; k < context->scenario->model.num_kinds; k++) {
        const Block *block = workload_layer_block(context->workload, k, true);
        num += chunk->num_blocks[block - context->workload->blocks];
    }
    return num;
}

// All blocks of the chunk in the order in which they run.
static void chunk_expand(Expansion *e) {
    const TraceContext *context = e->writer->context;
    int index = e->instruction->chunk;
    const Chunk *chunk = &context->workload->chunks[index];
    if (index >= context->plan->num_chunks) { // a pass over a spread vocabulary
        blocks_expand(e, BLOCK_VOCAB_INPUT, chunk->num_blocks[BLOCK_VOCAB_INPUT]);
        blocks_expand(e, BLOCK_VOCAB_OUTPUT, chunk->num_blocks[BLOCK_VOCAB_OUTPUT]);
        return;
    }
    const PlanChunk *spec = &context->plan->chunks[index];
    int num_recomputed = chunk_recomputed(context, chunk);
    if (e->instruction->kind == INSTRUCTION_FORWARD) {
        blocks_expand(e, BLOCK_EMBEDDING, chunk->num_blocks[BLOCK_EMBEDDING]);
        for (int i = 0; i < spec->num_layers; i++) layer_expand(e, spec, i, num_recomputed);
        blocks_expand(e, BLOCK_MTP, chunk->num_blocks[BLOCK_MTP]);
        blocks_expand(e, BLOCK_HEAD, chunk->num_blocks[BLOCK_HEAD]);
    } else {
        blocks_expand(e, BLOCK_HEAD, chunk->num_blocks[BLOCK_HEAD]);
        blocks_expand(e, BLOCK_MTP, chunk->num_blocks[BLOCK_MTP]);
        for (int i = spec->num_layers - 1; i >= 0; i--) layer_expand(e, spec, i, num_recomputed);
        blocks_expand(e, BLOCK_EMBEDDING, chunk->num_blocks[BLOCK_EMBEDDING]);
    }
}

void trace_operators(TraceWriter *writer, int tid, const Instruction *instruction, int64_t start_ns,
                     int64_t end_ns) {
    const TraceContext *context = writer->context;
    Scenario own = *context->scenario;
    own.cluster =
        *plan_rank_cluster(&context->scenario->cluster, context->plan, writer->row->stage);
    Expansion e = {.writer = writer,
                   .scenario = &own,
                   .tid = tid,
                   .instruction = instruction,
                   .start_ns = start_ns,
                   .end_ns = end_ns,
                   .at_ns = start_ns};
    chunk_expand(&e);
    if (e.total_s <= 0) return;
    int num_parts = instruction->num_parts > 1 ? instruction->num_parts : 1;
    e.from_s = e.total_s * instruction->part / num_parts;
    e.to_s = e.total_s * (instruction->part + 1) / num_parts;
    e.write = true;
    chunk_expand(&e);
}
