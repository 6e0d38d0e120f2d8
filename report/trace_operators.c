// The operators of one computation, nested in its slice. Their prices give the proportions: what
// runs beside other work is shown after it, and the whole is scaled to the slice. An operator that
// lies on the border of two pieces of a computation is shown in both.
#include "costmodel/kernel/compute.h"
#include "costmodel/network/exchange.h"
#include "costmodel/pass/list_price.h"
#include "report/trace_event.h"

#include <string.h>

typedef struct {
    TraceWriter *writer;
    const PricingContext *context; // with the machines that the stage lies on
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
    if (op_beside(op) == BESIDE_MICROBATCH) return 0;
    if (op->kind != OP_COLLECTIVE)
        return op_compute_s(e->context->machines.pool, op) + op_sync_s(e->context, op);
    return op_collective_s(e->context, op);
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
                where, op->collective.message_bytes, group_name(op->collective.group));
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

// All blocks of the chunk in the order in which they run.
static void chunk_expand(Expansion *e, const BlockRun *runs, int num_runs) {
    const Block *blocks = e->writer->context->workload->blocks;
    const bool forward = e->instruction->kind == INSTRUCTION_FORWARD;
    for (int i = 0; i < num_runs; i++) {
        const BlockRun *run = &runs[forward ? i : num_runs - 1 - i];
        for (int k = 0; k < run->count; k++) block_expand(e, &blocks[run->block]);
    }
}

void trace_operators(TraceWriter *writer, int tid, const Instruction *instruction, int64_t start_ns,
                     int64_t end_ns) {
    const Scenario *scenario = writer->context->scenario;
    const Plan *plan = writer->context->plan;
    Arena scratch = {0};
    const int pool = plan_rank_pool(&scenario->cluster, plan, writer->row->stage);
    const PricingContext context = pricing_context(scenario, plan, pool, &scratch);
    Expansion e = {.writer = writer,
                   .context = &context,
                   .tid = tid,
                   .instruction = instruction,
                   .start_ns = start_ns,
                   .end_ns = end_ns,
                   .at_ns = start_ns};
    const BlockRun *runs;
    const int num_runs = workload_runs(scenario, plan, instruction->chunk, &scratch, &runs);
    chunk_expand(&e, runs, num_runs);
    int num_parts = instruction->num_parts > 1 ? instruction->num_parts : 1;
    e.from_s = e.total_s * instruction->part / num_parts;
    e.to_s = e.total_s * (instruction->part + 1) / num_parts;
    e.write = true;
    if (e.total_s > 0) chunk_expand(&e, runs, num_runs);
    arena_free(&scratch);
}
