// Interleaved 1F1B in the order of Megatron-LM (schedules.py,
// forward_backward_pipelining_with_interleaving, get_schedule_table with
// microbatch_group_size_per_vp_stage = pp): micro-batches go in groups of pp, a rank runs a whole
// group through its first chunk, then through its next; backwards the same with the chunks
// reversed. After 2 (pp - rank - 1) + (vpp - 1) pp forwards, one forward and one backward in turn.
//
// Where the vocabulary is spread over the ranks, each barrier puts the backwards one forward later,
// as it does in 1F1B: from a micro-batch's forward in the last chunk to its backward there then lie
// a backward and a forward of every rank, in which all of them get to their pass. Here these are of
// one chunk, so a barrier keeps one chunk input more, not vpp: 1 / vpp of a micro-batch.
//
// Megatron-LM refuses a last group of fewer than pp micro-batches: with its table and warm-up the
// ranks can wait for each other in a circle (at pp >= 4). Here the slots of the missing ones are
// kept and nothing is done in them. Any order of this kind is legal: micro-batches do not depend
// on each other, so leaving some out of a legal order leaves a legal order. Where pp divides the
// number of micro-batches the order is Megatron-LM's.
#include "plan/schedule/schedule_rows.h"

// A position in the order of the forwards (or backwards) of one rank, missing ones included.
typedef struct {
    int first_microbatch; // of its group
    int chunk;            // k-th of the rank; backwards count from the last
    int index;            // in the group
} Slot;

static void slot_advance(const ScheduleShape *shape, Slot *slot) {
    if (++slot->index < shape->pp) return;
    slot->index = 0;
    if (++slot->chunk < shape->vpp) return;
    slot->chunk = 0;
    slot->first_microbatch += shape->pp;
}

static int num_slots(const ScheduleShape *shape) {
    const int num_groups = (shape->num_microbatches + shape->pp - 1) / shape->pp;
    return num_groups * shape->pp * shape->vpp;
}

// Not limited by the number of slots.
static int warmup(const ScheduleShape *shape, int rank) {
    return 2 * (shape->pp - rank - 1) + (shape->vpp - 1) * shape->pp + shape->vocab.barriers;
}

// Writes the work of a slot, if any, and goes to the next. Returns the number of items written.
static int slot_take(const ScheduleShape *shape, int rank, WorkKind kind, Slot *slot,
                     WorkItem *item) {
    const int microbatch = slot->first_microbatch + slot->index;
    const int k = kind == WORK_FORWARD ? slot->chunk : shape->vpp - 1 - slot->chunk;
    slot_advance(shape, slot);
    if (microbatch >= shape->num_microbatches) return 0;
    *item = (WorkItem){
        .kind = (uint8_t)kind, .chunk = (int16_t)(k * shape->pp + rank), .microbatch = microbatch};
    return 1;
}

static void interleaved_order(const ScheduleShape *shape, int rank, WorkItem *items) {
    if (shape->pp == 1 || shape->vpp == 1) {
        SCHEDULE_ROW_1F1B.order(shape, rank, items);
        return;
    }
    const int end = num_slots(shape), ahead = warmup(shape, rank);
    const int num_warmup = ahead < end ? ahead : end;
    Slot forward = {0}, backward = {0};
    for (int p = 0; p < end + num_warmup; p++) {
        int num_forward = 0;
        if (p < end) num_forward = slot_take(shape, rank, WORK_FORWARD, &forward, items);
        items += num_forward;
        if (p < num_warmup) continue;
        int num_backward = slot_take(shape, rank, WORK_BACKWARD, &backward, items);
        if (num_forward && num_backward) items->joined = 1;
        items += num_backward;
    }
}

// A group of pp micro-batches through all chunks of a rank, forward and backward in turn. As in
// 1F1B a period begins one pair later on each rank. The first and the last whole group are not in
// it.
static SteadyOrder interleaved_steady(const ScheduleShape *shape, int rank) {
    if (shape->pp == 1 || shape->vpp == 1) return SCHEDULE_ROW_1F1B.steady(shape, rank);
    const int num_groups = shape->num_microbatches / shape->pp;
    return (SteadyOrder){.num_microbatches = shape->pp,
                         .num_items = 2 * shape->vpp * shape->pp,
                         .first = warmup(shape, rank) + 2 * rank,
                         .num_periods = num_groups > 2 ? num_groups - 2 : 0};
}

// How many of the first `count` slots hold work.
static int num_real(const ScheduleShape *shape, int count) {
    const int num_full = shape->num_microbatches / shape->pp * shape->pp * shape->vpp;
    const int rest = shape->num_microbatches % shape->pp;
    if (count <= num_full) return count;
    const int tail = count - num_full, last = tail % shape->pp;
    return num_full + tail / shape->pp * rest + (last < rest ? last : rest);
}

// A rank holds the forwards of warm-up + 1 consecutive slots; those at the start hold most work.
static int interleaved_in_flight(const ScheduleShape *shape, int rank) {
    if (shape->pp == 1 || shape->vpp == 1) return SCHEDULE_ROW_1F1B.in_flight(shape, rank);
    const int end = num_slots(shape), window = warmup(shape, rank) + 1;
    return num_real(shape, window < end ? window : end);
}

// (pp - 1) / (vpp m) where pp divides m. A last group of g < pp micro-batches leaves pp - g of its
// slots idle in each chunk, and fill and drain end g - 1 instead of pp - 1 slots after it. Exact
// also for m < pp; with full groups before the last it is an upper bound, as the idle slots let
// other ranks start earlier.
static double interleaved_bubble_frac(const ScheduleShape *shape) {
    if (shape->pp == 1 || shape->vpp == 1) return SCHEDULE_ROW_1F1B.bubble_frac(shape);
    const double work = (double)shape->vpp * shape->num_microbatches;
    const int last_group = (shape->num_microbatches - 1) % shape->pp + 1;
    return (num_slots(shape) - work + last_group - 1) / work;
}

const Schedule SCHEDULE_ROW_INTERLEAVED = {
    .kind = SCHEDULE_INTERLEAVED,
    .with_one_chunk = &SCHEDULE_ROW_1F1B,
    .holds_in_groups = true,
    .takes_turns = true,
    .torch_class = "Interleaved1F1B",
    .first_holds_most = true,
    .num_items = schedule_num_items_fb,
    .order = interleaved_order,
    .steady = interleaved_steady,
    .in_flight = interleaved_in_flight,
    .bubble_frac = interleaved_bubble_frac,
    .source = "Narayanan et al. 2021, arXiv:2104.04473, section 2.2.2 and figure 4 (bottom); "
              "order: Megatron-LM, megatron/core/pipeline_parallel/schedules.py",
};
