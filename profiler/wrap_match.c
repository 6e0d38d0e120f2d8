#include "profiler/wrap_match.h"

#include <stdlib.h>

// A call with the kernels it launched; calls without one are left out.
typedef struct {
    uint64_t start_ns;
    double kernel_s;
    int64_t num_kernels;
    uint32_t correlation_id, thread;
} Launch;

// --- Kernels by correlation: open addressing

typedef struct {
    uint32_t correlation_id;
    int64_t num_kernels; // 0: free
    double kernel_s;
} Slot;

typedef struct {
    Slot *slots;
    size_t num_slots; // a power of two
} Sums;

static Slot *slot_of(const Sums *sums, uint32_t correlation_id) {
    size_t at = (size_t)(correlation_id * 2654435769u) & (sums->num_slots - 1);
    while (sums->slots[at].num_kernels > 0 && sums->slots[at].correlation_id != correlation_id)
        at = (at + 1) & (sums->num_slots - 1);
    return &sums->slots[at];
}

static Sums sums_new(const WrapLog *log, Arena *arena) {
    Sums sums = {.num_slots = 16};
    while (sums.num_slots < 2 * log->num_work) sums.num_slots *= 2;
    sums.slots = ARENA_ARRAY(arena, sums.num_slots, Slot);
    for (size_t i = 0; i < log->num_work; i++) {
        const ActivityRecord *work = &log->work[i];
        if (work->kind != ACTIVITY_KERNEL) continue;
        Slot *slot = slot_of(&sums, work->correlation_id);
        slot->correlation_id = work->correlation_id;
        slot->num_kernels++;
        slot->kernel_s += (double)(work->end_ns - work->start_ns) * 1e-9;
    }
    return sums;
}

// --- Launches

static int by_correlation(const void *a, const void *b) {
    const Launch *left = a, *right = b;
    if (left->correlation_id != right->correlation_id)
        return left->correlation_id < right->correlation_id ? -1 : 1;
    return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

static int by_start(const void *a, const void *b) {
    const Launch *left = a, *right = b;
    if (left->start_ns != right->start_ns) return left->start_ns < right->start_ns ? -1 : 1;
    return (left->correlation_id > right->correlation_id) -
           (left->correlation_id < right->correlation_id);
}

static int by_thread(const void *a, const void *b) {
    const Launch *left = a, *right = b;
    if (left->thread != right->thread) return left->thread < right->thread ? -1 : 1;
    return by_start(a, b);
}

// One per correlation: a call of the runtime and the driver's inside it may share theirs.
static size_t launches_new(const WrapLog *log, Arena *arena, Launch **out) {
    Sums sums = sums_new(log, arena);
    Launch *launches = ARENA_ARRAY(arena, log->num_calls, Launch);
    size_t num_found = 0;
    for (size_t i = 0; i < log->num_calls; i++) {
        const WrapCall *call = &log->calls[i];
        const Slot *slot = slot_of(&sums, call->correlation_id);
        if (slot->num_kernels == 0) continue;
        launches[num_found++] = (Launch){.start_ns = call->start_ns,
                                         .kernel_s = slot->kernel_s,
                                         .num_kernels = slot->num_kernels,
                                         .correlation_id = call->correlation_id,
                                         .thread = call->thread};
    }
    qsort(launches, num_found, sizeof *launches, by_correlation);
    size_t num_launches = 0;
    for (size_t i = 0; i < num_found; i++)
        if (i == 0 || launches[i].correlation_id != launches[i - 1].correlation_id)
            launches[num_launches++] = launches[i];
    *out = launches;
    return num_launches;
}

// The first that is not before the key.
static size_t first_from(const Launch *launches, size_t num_launches, const Launch *key,
                         int (*compare)(const void *, const void *)) {
    size_t low = 0, high = num_launches;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&launches[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static RangeTime launches_sum(const Launch *launches, size_t first, size_t end) {
    RangeTime sum = {0};
    for (size_t i = first; i < end; i++) {
        sum.kernel_s += launches[i].kernel_s;
        sum.num_kernels += launches[i].num_kernels;
    }
    return sum;
}

// The two kinds of ranges look into the same launches in two orders.
static void ranges_match(const WrapLog *log, bool all_threads, Launch *launches,
                         size_t num_launches, RangeTime *times) {
    int (*compare)(const void *, const void *) = all_threads ? by_start : by_thread;
    qsort(launches, num_launches, sizeof *launches, compare);
    for (size_t i = 0; i < log->num_ranges; i++) {
        const WrapRange *range = &log->ranges[i];
        if (range->all_threads != all_threads) continue;
        Launch start = {.start_ns = range->start_ns, .thread = range->thread};
        Launch end = {.start_ns = range->end_ns, .thread = range->thread};
        size_t first = first_from(launches, num_launches, &start, compare);
        times[i] = launches_sum(launches, first, first_from(launches, num_launches, &end, compare));
    }
}

const RangeTime *wrap_match(const WrapLog *log, Arena *arena) {
    RangeTime *times = ARENA_ARRAY(arena, log->num_ranges, RangeTime);
    Arena scratch = {0};
    Launch *launches;
    size_t num_launches = launches_new(log, &scratch, &launches);
    ranges_match(log, false, launches, num_launches, times);
    ranges_match(log, true, launches, num_launches, times);
    arena_free(&scratch);
    return times;
}
