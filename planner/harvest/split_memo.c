#include "planner/harvest/split_memo.h"

#include "costmodel/step/step_time.h"

#include <math.h>

// --- Entries

static int bucket_of(const Plan *plan, int most_layers) {
    const int shape = (plan->tp * 31 + plan->pp) * 31 + plan->cp * 7 + plan->micro_batch;
    return (shape * 31 + plan->vpp * 7 + (int)plan->recompute + most_layers) % SPLIT_MEMO_BUCKETS;
}

// Whether plans differ in ZeRO stage 0 or 1 and its group at most.
static bool are_alike(const Plan *a, const Plan *b) {
    return plans_share_blocks(a, b) && a->vpp == b->vpp && a->schedule == b->schedule &&
           a->node_order == b->node_order && a->recompute_layers == b->recompute_layers;
}

SplitMemoEntry *split_memo_entry(SplitMemo *memo, const Plan *plan, int most_layers, Arena *arena) {
    if (plan->zero_stage > 1 || group_plan_is_staged(plan)) return NULL;
    SplitMemoEntry **first = &memo->buckets[bucket_of(plan, most_layers)];
    for (SplitMemoEntry *e = *first; e; e = e->next)
        if (e->most_layers == most_layers && are_alike(&e->asked, plan)) return e;
    SplitMemoEntry *made = ARENA_NEW(arena, SplitMemoEntry);
    *made = (SplitMemoEntry){.next = *first, .asked = *plan, .most_layers = most_layers};
    *first = made;
    return made;
}

// --- Searches

// The plan with the most shards of those alike: of a split that any has room for, it has, too.
static Plan leanest(const Plan *plan) {
    Plan lean = *plan;
    lean.zero_stage = 1;
    lean.zero_group = plan->dp * plan->cp;
    return lean;
}

static const GroupSplit NOTHING = {.step_time_s = INFINITY, .open_s = INFINITY};

// The plan with the split that is known.
//   returns  false where that does not fit, or its step time alone is not known
static bool known_price(const SplitMemoEntry *entry, GroupPricing *pricing, const Plan *plan,
                        Arena *arena, GroupSplit *out) {
    const Scenario *scenario = pricing->scenario;
    Arena scratch = {0};
    Plan split = *plan;
    double missing_bytes, step_time_s = NAN;
    split.chunks = entry->found.chunks;
    split.recompute_layers = entry->found.recompute_layers;
    split.recompute = entry->found.recompute;
    const Workload workload = pieces_workload(&pricing->pieces, &split, &scratch);
    const RankMemory memory = estimate_memory(scenario, &split, &workload, &missing_bytes);
    if (missing_bytes <= 0) {
        const Prices prices = pieces_prices(&pricing->pieces, &split, &workload, &scratch);
        step_time_s = plan_step_time_s(scenario, &split, &workload, &prices, &scratch);
    }
    arena_free(&scratch);
    if (isnan(step_time_s)) return false;
    *out = (GroupSplit){.verdict = GROUP_PRICED,
                        .has_room = true,
                        .plan = plan_copy(&split, arena),
                        .step_time_s = step_time_s,
                        .memory_bytes = memory.device_bytes,
                        .open_s = INFINITY,
                        .num_splits = 1};
    return true;
}

// Whatever the limit of whoever asks first: what is found must not hang on it.
static Status entry_search(SplitMemoEntry *entry, GroupPricing *pricing, const Plan *plan,
                           const SplitTask *task, Arena *arena) {
    const SplitTask all = {task->most_layers, INFINITY, task->deadline};
    const Plan lean = leanest(plan);
    GroupSplit found;
    TRY(split_search(pricing, &lean, &all, arena, &found));
    entry->found = found.verdict == GROUP_PRICED ? found.plan : lean;
    entry->verdict = found.verdict;
    entry->known = true;
    return status_ok();
}

Status split_memo_search(SplitMemoEntry *entry, GroupPricing *pricing, const Plan *plan,
                         const SplitTask *task, Arena *arena, GroupSplit *out) {
    if (!entry) return split_search(pricing, plan, task, arena, out);
    *out = NOTHING;
    if (split_is_out(pricing, plan, task)) return status_ok();
    if (!entry->known) TRY(entry_search(entry, pricing, plan, task, arena));
    if (entry->verdict != GROUP_PRICED) {
        out->verdict = entry->verdict;
        return status_ok();
    }
    if (known_price(entry, pricing, plan, arena, out)) return status_ok();
    return split_search(pricing, plan, task, arena, out);
}
