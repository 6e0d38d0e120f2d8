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

// The layout string holds MTP layers only where Megatron-LM's own check lets it.
static Status layout_check(const Scenario *scenario, const Plan *plan) {
    int holders = 0;
    for (int c = 0; c < plan->num_chunks; c++) {
        if (plan->chunks[c].num_mtp == 0) continue;
        holders++;
        if (c < plan->num_chunks - plan->pp || (c % plan->pp == 0 && plan->pp > 1))
            return megatron_refuse(scenario, "parallel.stages", "them beside the loss",
                                   "multi-token-prediction layers in chunk %d have no layout", c);
    }
    if (holders > 1)
        return megatron_refuse(scenario, "parallel.stages", "all of them in one chunk",
                               "multi-token-prediction layers in %d chunks have no layout",
                               holders);
    if (!plan->chunks[0].embedding || !plan->chunks[plan->num_chunks - 1].loss)
        return megatron_refuse(scenario, "parallel.stages",
                               "the embedding in the first chunk and the loss in the last",
                               "this place of embedding and loss has no layout");
    return status_ok();
}

static Status split_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    int num_layers = scenario->model.num_layers;
    bool even = split_is_even(plan, num_layers, 0), with_ends = split_is_even(plan, num_layers, 1);
    if (even || with_ends) {
        if (plan->vpp > 1) flag_int(flags, "--num-virtual-stages-per-pipeline-rank", plan->vpp);
        if (even) return status_ok();
        flag_switch(flags, "--account-for-embedding-in-pipeline-split");
        flag_switch(flags, "--account-for-loss-in-pipeline-split");
        return status_ok();
    }
    if (split_is_even_between(plan)) {
        flag_int(flags, "--decoder-first-pipeline-num-layers", plan->chunks[0].num_layers);
        flag_int(flags, "--decoder-last-pipeline-num-layers",
                 plan->chunks[plan->num_chunks - 1].num_layers);
        return status_ok();
    }
    TRY(layout_check(scenario, plan));
    flag_text(flags, "--pipeline-model-parallel-layout", megatron_layout(plan, flags->arena));
    return status_ok();
}

static Status schedule_check(const Scenario *scenario, const Plan *plan) {
    if (plan->schedule != SCHEDULE_1F1B && plan->schedule != SCHEDULE_INTERLEAVED) {
        const char *name =
            plan->schedule == SCHEDULE_FILE ? "file" : SCHEDULE_NAMES[plan->schedule];
        return megatron_refuse(scenario, "parallel.schedule",
                               plan->vpp > 1 ? "interleaved" : "1f1b", "%s has no flag", name);
    }
    if (plan->vpp == 1) return status_ok();
    long long rest = (long long)(plan->num_microbatches % plan->pp);
    if (plan->num_microbatches < plan->pp || rest != 0)
        return megatron_refuse(scenario, "parallel.schedule",
                               "a global batch that gives a multiple of pp, or vpp 1",
                               "interleaving %lld micro-batches over pp %d is not possible",
                               (long long)plan->num_microbatches, plan->pp);
    return status_ok();
}

Status megatron_pipeline_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    if (plan->pp == 1) {
        if (plan->vpp == 1) return status_ok(); // one stage: every schedule is the same
        return megatron_refuse(scenario, "parallel.vpp", "1", "vpp %d needs more than one stage",
                               plan->vpp);
    }
    if (plan->vocab_barriers)
        return megatron_refuse(scenario, "parallel.vocab_parallel", "false",
                               "a vocabulary spread over stages has no flag");
    TRY(schedule_check(scenario, plan));
    flag_int(flags, "--pipeline-model-parallel-size", plan->pp);
    return split_flags(scenario, plan, flags);
}

// Layers that chunk c recomputes: the first recompute_layers of its rank, over the rank's chunks.
static int chunk_recomputes(const Plan *plan, int c) {
    int left = plan->recompute_layers;
    for (int before = c % plan->pp; before < c; before += plan->pp)
        left -= plan->chunks[before].num_layers;
    int own = plan->chunks[c].num_layers;
    return left < 0 ? 0 : left > own ? own : left;
}

// The k for which "the first k layers of each chunk" means the same; -1 where there is none.
static int recompute_per_chunk(const Plan *plan) {
    int k = 0;
    for (int c = 0; c < plan->num_chunks; c++)
        if (chunk_recomputes(plan, c) > k) k = chunk_recomputes(plan, c);
    for (int c = 0; c < plan->num_chunks; c++) {
        int own = plan->chunks[c].num_layers;
        if (chunk_recomputes(plan, c) != (own < k ? own : k)) return -1;
    }
    return k;
}

static Status selective_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    if (plan->recompute_layers != ABSENT)
        return megatron_refuse(scenario, "parallel.recompute_layers",
                               "recompute full with recompute_layers, or selective without",
                               "selective recomputation of %d layers a stage has no flag",
                               plan->recompute_layers);
    if (scenario->training.stack.selective_per_operator || plan->recompute_modules == 0)
        return megatron_refuse(scenario, "parallel.recompute_modules", "[\"core_attn\"]",
                               "per-operator recomputation has no flag");
    const char *names = "";
    for (int m = 0; RECOMPUTE_MODULE_NAMES[m]; m++)
        if (plan->recompute_modules & (1 << m))
            names = arena_printf(flags->arena, "%s%s%s", names, names[0] ? " " : "",
                                 RECOMPUTE_MODULE_NAMES[m]);
    flag_text(flags, "--recompute-granularity", "selective");
    flag_words(flags, "--recompute-modules", names);
    return status_ok();
}

Status megatron_recompute_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    if (plan->layer_recompute)
        return megatron_refuse(scenario, "parallel.layers", "recompute for all layers alike",
                               "layers that are recomputed differently have no flag");
    if (plan->recompute == RECOMPUTE_NONE || plan->recompute_layers == 0) return status_ok();
    if (plan->recompute == RECOMPUTE_SELECTIVE) return selective_flags(scenario, plan, flags);
    bool all = plan->recompute_layers == ABSENT;
    int k = all ? 0 : recompute_per_chunk(plan);
    if (k < 0)
        return megatron_refuse(
            scenario, "parallel.recompute_layers", "vpp 1, or recompute full for all layers",
            "%d layers a stage over vpp %d chunks have no flag", plan->recompute_layers, plan->vpp);
    flag_text(flags, "--recompute-granularity", "full");
    flag_text(flags, "--recompute-method", all ? "uniform" : "block");
    flag_int(flags, "--recompute-num-layers", all ? 1 : k);
    return status_ok();
}
