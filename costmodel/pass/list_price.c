#include "costmodel/pass/list_price.h"

#include "costmodel/kernel/compute.h"
#include "costmodel/network/exchange.h"
#include "workload/technique/technique.h"

#include <math.h>
#include <string.h>

static const Term STREAM_TERM[NUM_STREAMS] = {TERM_COMPUTE, TERM_TP, TERM_CP,
                                              TERM_EP,      TERM_DP, TERM_PP};

// The streams of one rank while it runs a list of operators.
typedef struct {
    const PricingContext *context;
    const OpList *list;
    int last[NUM_STREAMS];      // operator that each ran last; -1
    double free_s[NUM_STREAMS]; // when each stream is done with what it has
    double end_s[MAX_LIST_OPS]; // of each operator
    double term_s[NUM_TERMS];   // of the compute stream: busy, and idle by what it waited for
    double part_s[NUM_PARTS];   // the same seconds
    StepPart part[NUM_STREAMS]; // of what ran last on each stream
    double communication_s;     // of collectives in the flow of data
    double hidden_s;            // of those beside another micro-batch's compute
    double sharding_s;          // of ZeRO-3 on the DP stream
    double first_gather_s, last_scatter_s;
    double num_kernels;
    double num_expert_products; // that are kernels of their own
    int num_again;              // operators that are recomputed
} Streams;

static StepPart op_part(const PricingContext *context, const Op *op) {
    switch (op->kind) {
    case OP_GEMM:
    case OP_EXPERTS:
        return PART_PRODUCTS;
    case OP_ATTENTION:
    case OP_SCAN:
        return PART_ATTENTION;
    case OP_MEMORY:
        return PART_MEMORY;
    case OP_COLLECTIVE:
        break;
    }
    return group_part(context->machines.pool, context_group(context, op->collective.group));
}

double op_price_s(const PricingContext *context, const Op *op) {
    double time_s = op->kind == OP_COLLECTIVE ? op_collective_s(context, op)
                                              : op_compute_s(context->machines.pool, op);
    return time_s * part_factor(context->calibration, op_part(context, op));
}

double op_sync_s(const PricingContext *context, const Op *op) {
    if (!op->awaited_by_host) return 0;
    return context->execution->stack.launch.moe_sync_s *
           part_factor(context->calibration, PART_HOST);
}

static double op_s(const Streams *s, int i) {
    double time_s = op_price_s(s->context, &s->list->ops[i]);
    return s->list->factors ? time_s * s->list->factors[i] : time_s;
}

static void streams_add(Streams *s, Term term, StepPart part, double time_s) {
    s->term_s[term] += time_s;
    s->part_s[part] += time_s;
}

// What is left exposed of a collective that runs piece by piece beside its product: the longer of
// the two hides the shorter, but for one piece.
static double pipelined_s(const Streams *s, const Op *op, double duration_s) {
    int pieces = context_group(s->context, op->collective.group).size;
    double product_s = op_s(s, op->pipelined_with);
    return fmax(0, duration_s - product_s) + fmin(duration_s, product_s) / pieces;
}

static void sharding_run(Streams *s, const Op *op, double duration_s) {
    if (op_beside(op) == BESIDE_NOTHING) {
        streams_add(s, TERM_DP, s->part[STREAM_DP], duration_s);
        return;
    }
    s->sharding_s += duration_s;
    if (op->collective.kind == COLLECTIVE_ALL_GATHER)
        s->first_gather_s += duration_s;
    else
        s->last_scatter_s += duration_s;
}

// Notes when an operator ran, and what it began after.
static void run_note(Streams *s, int i, int waited, double ready_s, double start_s) {
    const Stream stream = s->list->ops[i].stream;
    if (s->list->runs)
        s->list->runs[i] = (OpRun){
            .start_s = start_s,
            .end_s = s->end_s[i],
            .free_s = s->free_s[stream],
            .before = ready_s > s->free_s[stream] ? waited : s->last[stream],
        };
    s->last[stream] = i;
}

static void op_run(Streams *s, int i) {
    const Op *ops = s->list->ops, *op = &ops[i];
    double duration_s = op_s(s, i), previous_s = i > 0 ? s->end_s[i - 1] : 0;
    s->end_s[i] = previous_s;
    s->part[op->stream] = op_part(s->context, op);
    s->num_kernels += op->num_kernels;
    if (op->kind == OP_GEMM && op->gemm.separate) s->num_expert_products += op->num_kernels;
    s->num_again += op->again;
    if (op->stream == STREAM_DP) {
        sharding_run(s, op, duration_s);
        return;
    }
    if (op_beside(op) == BESIDE_MICROBATCH) {
        s->hidden_s += duration_s;
        return;
    }
    int waited = op->wait == WAIT_PREVIOUS ? i - 1 : op->wait;
    double ready_s = waited >= 0 ? s->end_s[waited] : 0;
    double start_s = fmax(s->free_s[op->stream], ready_s);
    if (op->kind == OP_COLLECTIVE) {
        s->communication_s += duration_s;
        // A split backward may run the product in its other part.
        if (op->pipelined_with >= 0 && s->list->phases & 1 << ops[op->pipelined_with].phase)
            duration_s = pipelined_s(s, op, duration_s);
    } else {
        // The compute stream was idle until what it waited for was there.
        double idle_s = start_s - s->free_s[STREAM_COMPUTE];
        Stream cause = waited >= 0 ? ops[waited].stream : STREAM_COMPUTE;
        streams_add(s, STREAM_TERM[cause], s->part[cause], idle_s);
        streams_add(s, TERM_COMPUTE, s->part[STREAM_COMPUTE], duration_s);
    }
    double sync_s = op_sync_s(s->context, op);
    streams_add(s, TERM_OTHER, PART_HOST, sync_s);
    duration_s += sync_s;
    s->end_s[i] = start_s + duration_s;
    run_note(s, i, waited, ready_s, start_s);
    s->free_s[op->stream] = s->end_s[i];
}

// Collectives still running when the list's compute is done.
static void tail_run(Streams *s) {
    double done_s = s->free_s[STREAM_COMPUTE];
    for (int stream = STREAM_TP; stream <= STREAM_EP; stream++)
        if (s->free_s[stream] > done_s) {
            streams_add(s, STREAM_TERM[stream], s->part[stream], s->free_s[stream] - done_s);
            done_s = s->free_s[stream];
        }
}

double terms_sum(const double *term_s) {
    double sum = 0;
    for (int t = 0; t < NUM_TERMS; t++) sum += term_s[t];
    return sum;
}

// What runs beside compute takes SMs and bandwidth from it.
static void compute_slow_down(Streams *s, double time_s) {
    static const StepPart COMPUTE[] = {PART_PRODUCTS, PART_ATTENTION, PART_MEMORY};
    double compute_s = s->term_s[TERM_COMPUTE];
    if (compute_s == 0 || time_s == 0) return;
    for (int i = 0; i < 3; i++) s->part_s[COMPUTE[i]] *= 1 + time_s / compute_s;
    s->term_s[TERM_COMPUTE] += time_s;
}

// Host time of one pass over a block. Recomputed kernels are a pass of their own. Graphs of other
// scopes leave the experts' products as they are.
static double host_s(const Streams *s, double num_passes) {
    const Execution *execution = s->context->execution;
    const StackLaunch *launch = &execution->stack.launch;
    const double launched_frac = step_traits(execution).launched_frac;
    const double time_s =
        s->num_kernels * launch->host_launch_s + num_passes * launch->host_layer_s;
    const double experts_s = s->num_expert_products * launch->host_expert_s;
    return launched_frac * time_s + (launched_frac > 0 ? experts_s : 0);
}

ListPrice list_price(const OpList *list) {
    const PricingContext *context = list->context;
    Streams s = {.context = context, .list = list};
    for (int stream = 0; stream < NUM_STREAMS; stream++) s.last[stream] = -1;
    for (int i = 0; i < list->num_ops; i++) {
        if (list->runs) list->runs[i] = (OpRun){.before = -1};
        if (list->phases & 1 << list->ops[i].phase)
            op_run(&s, i);
        else
            s.end_s[i] = i > 0 ? s.end_s[i - 1] : 0;
    }
    tail_run(&s);
    const Stack *stack = &context->execution->stack;
    double serial_s = terms_sum(s.term_s);
    double exposed_s = s.term_s[TERM_TP] + s.term_s[TERM_CP] + s.term_s[TERM_EP];
    double beside_s = fmax(0, s.communication_s - exposed_s) + fmin(s.hidden_s, serial_s) +
                      fmin(s.sharding_s, serial_s);
    compute_slow_down(&s, stack->communication.overlap_slowdown_frac * fmin(beside_s, serial_s));
    double busy_s = terms_sum(s.term_s);
    streams_add(&s, TERM_EP, s.part[STREAM_EP], fmax(0, s.hidden_s - busy_s));
    streams_add(&s, TERM_DP, s.part[STREAM_DP], fmax(0, s.sharding_s - busy_s));
    ListPrice out = {
        .price.time_s = terms_sum(s.term_s),
        .edge_s = s.first_gather_s + s.last_scatter_s,
        .serial_s = serial_s,
        .busy_s = busy_s,
        .host_s = host_s(&s, 1 + (double)s.num_again / list->num_forward) *
                  part_factor(context->calibration, PART_HOST),
    };
    memcpy(out.price.term_s, s.term_s, sizeof s.term_s);
    memcpy(out.price.part_s, s.part_s, sizeof s.part_s);
    memcpy(out.last, s.last, sizeof s.last);
    return out;
}
