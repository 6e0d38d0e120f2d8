#include "planner/harvest/harvest_family.h"

#include "plan/plan_orders.h"

#include <math.h>

// Sums in another order: a floor counts as a miss only beyond their rounding.
static const double ROUNDING_FRAC = 1e-9;

void family_start(FamilyParts *parts, const SpaceFamily *family) {
    parts->family = family;
    parts->blocks_key = -1;
}

// Chunks of dual pipelines are never those of another schedule (space.h), but lie like a V's.
static int placement_key(const Plan *plan) {
    return plan_is_dual(plan) ? 2 : plan_is_v(plan);
}

static FamilyLevel *level_of(FamilyParts *parts, const Plan *plan) {
    const int zero =
        plan->zero_stage < 2 ? 0 : NUM_ZERO_LEVELS * plan->zero_group + plan_zero_level(plan);
    const int key = 3 * zero + placement_key(plan);
    if (parts->blocks_key != key) {
        const int num_levels = parts->family->most_layers + 1;
        parts->levels = ARENA_ARRAY(parts->arena, num_levels, FamilyLevel);
        for (int i = 0; i < FAMILY_PRICES; i++) parts->prices_known[i] = false;
        parts->blocks_key = key;
    }
    const bool some = parts->family->most_layers > 0 && plan->recompute_layers > 0;
    FamilyLevel *level = &parts->levels[some ? plan->recompute_layers : 0];
    if (!level->workload) {
        level->workload = ARENA_NEW(parts->arena, Workload);
        *level->workload = pieces_workload(parts->pieces, plan, parts->arena);
    }
    return level;
}

const Workload *family_workload(FamilyParts *parts, const Plan *plan) {
    return level_of(parts, plan)->workload;
}

Prices family_prices(FamilyParts *parts, const Plan *plan) {
    const Schedule *schedule = schedule_find(plan->schedule);
    const FamilyLevel *level = level_of(parts, plan);
    int key = 2 * schedule->mixes_backwards + schedule->splits_backward;
    key = 2 * key + program_hides_messages(parts->scenario, plan);
    key = 3 * key + placement_key(plan);
    if (level != parts->levels)
        return pieces_prices(parts->pieces, plan, level->workload, parts->arena);
    if (!parts->prices_known[key]) {
        parts->prices[key] = pieces_prices(parts->pieces, plan, level->workload, parts->arena);
        parts->prices_known[key] = true;
        return parts->prices[key];
    }
    Prices prices = parts->prices[key];
    prices.optimizer_s = optimizers_price(parts->scenario, plan, level->workload, parts->arena);
    return prices;
}

static RankMemory account(FamilyParts *parts, const Plan *plan, const Workload *workload,
                          const double **activations, double *missing_bytes) {
    int rank;
    if (!*activations)
        *activations = memory_activations(parts->scenario, plan, workload, parts->arena);
    const RankMemory memory = memory_worst_of(parts->scenario, plan, workload, *activations, &rank);
    const double available = rank_memory_available_bytes(parts->scenario, plan, rank);
    *missing_bytes = fmax(0, memory.counted_bytes - available);
    return memory;
}

RankMemory family_memory(FamilyParts *parts, const Plan *plan, double *missing_bytes) {
    FamilyLevel *level = level_of(parts, plan);
    return account(parts, plan, level->workload, &level->activations[plan->schedule],
                   missing_bytes);
}

bool family_all_miss(FamilyParts *parts, const Plan *plan) {
    double missing;
    FamilyLevel *level = level_of(parts, plan);
    account(parts, plan, level->workload, &level->activations[plan->schedule], &missing);
    return missing > 0 && memory_all_miss(parts->scenario, plan, level->workload,
                                          level->activations[plan->schedule]);
}

static const Workload *floor_of(FamilyParts *parts, const Plan *plan, FamilyLevel *level) {
    if (!level->floor) {
        level->floor = ARENA_NEW(parts->arena, Workload);
        *level->floor = workload_layers_floor(parts->scenario, plan, level->workload, parts->arena);
    }
    return level->floor;
}

bool family_floor_all_misses(FamilyParts *parts, const Plan *plan) {
    FamilyLevel *level = level_of(parts, plan);
    const Workload *floor = floor_of(parts, plan, level);
    return family_floor_missing(parts, plan) > 0 &&
           memory_all_miss(parts->scenario, plan, floor, level->floor_activations[plan->schedule]);
}

double family_floor_missing(FamilyParts *parts, const Plan *plan) {
    FamilyLevel *level = level_of(parts, plan);
    double missing;
    const RankMemory memory = account(parts, plan, floor_of(parts, plan, level),
                                      &level->floor_activations[plan->schedule], &missing);
    return missing > ROUNDING_FRAC * memory.counted_bytes ? missing : 0;
}
