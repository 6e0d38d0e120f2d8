// How layers and micro-batches are laid over the pipeline, and what is recomputed.
#include "launch/megatron.h"

#include <string.h>

const char *megatron_layout(const Plan *plan, Arena *arena) {
    size_t size = 1;
    for (int c = 0; c < plan->num_chunks; c++)
        size += 3 + (size_t)(plan->chunks[c].num_layers + plan->chunks[c].num_mtp);
    char *text = arena_alloc(arena, size), *at = text;
    for (int c = 0; c < plan->num_chunks; c++) {
        const PlanChunk *chunk = &plan->chunks[c];
        if (c > 0) *at++ = '|';
        if (chunk->embedding) *at++ = 'E';
        memset(at, 't', (size_t)chunk->num_layers);
        at += chunk->num_layers;
        memset(at, 'm', (size_t)chunk->num_mtp);
        at += chunk->num_mtp;
        if (chunk->loss) *at++ = 'L';
    }
    return text;
}

// Layers of a chunk where the embedding and the loss count as `extra` layers each.
static bool split_is_even(const Plan *plan, int num_layers, int extra) {
    int total = num_layers + 2 * extra, last = plan->num_chunks - 1;
    if (total % plan->num_chunks != 0) return false;
    for (int c = 0; c <= last; c++) {
        const PlanChunk *chunk = &plan->chunks[c];
        if (chunk->embedding != (c == 0) || chunk->loss != (c == last)) return false;
        if (chunk->num_mtp > 0 && c != last) return false;
        int counted = chunk->num_layers + extra * (chunk->embedding + chunk->loss);
        if (counted != total / plan->num_chunks) return false;
    }
    return true;
}

// True where only the first and the last of pp stages differ from the rest.
static bool split_is_even_between(const Plan *plan) {
    if (plan->vpp > 1 || plan->num_chunks < 3) return false;
    int last = plan->num_chunks - 1;
    for (int c = 0; c <= last; c++) {
        const PlanChunk *chunk = &plan->chunks[c];
        if (chunk->embedding != (c == 0) || chunk->loss != (c == last)) return false;
        if (chunk->num_mtp > 0 && c != last) return false;
        if (c > 1 && c < last && chunk->num_layers != plan->chunks[1].num_layers) return false;
    }
    return plan->chunks[0].num_layers > 0 && plan->chunks[last].num_layers > 0 &&
           plan->chunks[1].num_layers > 0;
}

static void split_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    int num_layers = scenario->model.num_layers;
    bool even = split_is_even(plan, num_layers, 0), with_ends = split_is_even(plan, num_layers, 1);
    if (even || with_ends) {
        if (plan->vpp > 1) flag_int(flags, "--num-virtual-stages-per-pipeline-rank", plan->vpp);
        if (even) return;
        flag_switch(flags, "--account-for-embedding-in-pipeline-split");
        flag_switch(flags, "--account-for-loss-in-pipeline-split");
        return;
    }
    if (split_is_even_between(plan)) {
        flag_int(flags, "--decoder-first-pipeline-num-layers", plan->chunks[0].num_layers);
        flag_int(flags, "--decoder-last-pipeline-num-layers",
                 plan->chunks[plan->num_chunks - 1].num_layers);
        return;
    }
    flag_text(flags, "--pipeline-model-parallel-layout", megatron_layout(plan, flags->arena));
    return;
}

void megatron_pipeline_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    if (plan->pp == 1) return; // one stage: every schedule is the same
    flag_int(flags, "--pipeline-model-parallel-size", plan->pp);
    split_flags(scenario, plan, flags);
}

static void selective_flags(const Plan *plan, FlagList *flags) {
    const char *names = "";
    for (int m = 0; RECOMPUTE_MODULE_NAMES[m]; m++)
        if (plan->recompute_modules & (1 << m))
            names = arena_printf(flags->arena, "%s%s%s", names, names[0] ? " " : "",
                                 RECOMPUTE_MODULE_NAMES[m]);
    flag_text(flags, "--recompute-granularity", "selective");
    flag_words(flags, "--recompute-modules", names);
}

// `block` counts the layers of each chunk; a stage has one where only some are recomputed.
void megatron_recompute_flags(const Plan *plan, FlagList *flags) {
    const bool all = plan->recompute_layers == ABSENT;
    if (plan->recompute == RECOMPUTE_NONE || plan->recompute_layers == 0) return;
    if (plan->recompute == RECOMPUTE_SELECTIVE) {
        selective_flags(plan, flags);
        return;
    }
    flag_text(flags, "--recompute-granularity", "full");
    flag_text(flags, "--recompute-method", all ? "uniform" : "block");
    flag_int(flags, "--recompute-num-layers", all ? 1 : plan->recompute_layers);
}
