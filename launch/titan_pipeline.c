// Pipeline and recomputation of torchtitan (pipeline_parallel.py, activation_checkpoint.py).
#include "launch/titan.h"

#include <string.h>

// ["tok_embeddings", "layers.0", ...] of one chunk.
static void add_chunk(Script *script, const PlanChunk *chunk) {
    const char *before = "";
    script_add(script, "[");
    if (chunk->embedding) {
        script_add(script, "\"tok_embeddings\"");
        before = ", ";
    }
    for (int l = 0; l < chunk->num_layers; l++) {
        script_add(script, "%s\"layers.%d\"", before, chunk->first_layer + l);
        before = ", ";
    }
    if (chunk->loss) script_add(script, "%s\"norm\", \"output\"", before);
    script_add(script, "]");
}

static const char *parts_of(const Plan *plan, Arena *arena) {
    Script script = {.arena = arena};
    script_add(&script, "[");
    for (int c = 0; c < plan->num_chunks; c++) {
        script_add(&script, "%s\n    ", c ? "," : "");
        add_chunk(&script, &plan->chunks[c]);
    }
    script_add(&script, "\n]");
    return script.text;
}

// The name of a schedule class of torch.distributed.pipelining; NULL: none runs it.
static const char *schedule_class(const Plan *plan) {
    switch ((int)plan->schedule) {
    case SCHEDULE_GPIPE:
        return "GPipe";
    case SCHEDULE_1F1B:
        return "1F1B";
    case SCHEDULE_INTERLEAVED:
        return "Interleaved1F1B";
    case SCHEDULE_BREADTH_FIRST:
        return plan->vpp > 1 ? "LoopedBFS" : "GPipe";
    case SCHEDULE_ZB_V:
        return "ZBVZeroBubble";
    default:
        return NULL;
    }
}

Status titan_pipeline_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    key_int(keys, "parallelism", "pipeline_parallel_degree", plan->pp);
    if (plan->pp == 1) {
        if (plan->vpp == 1) return status_ok();
        return titan_refuse(scenario, "parallel.vpp", "1", "vpp %d needs more than one stage",
                            plan->vpp);
    }
    if (plan->vocab_barriers)
        return titan_refuse(scenario, "parallel.vocab_parallel", "false",
                            "a vocabulary spread over stages has no key");
    const char *schedule = schedule_class(plan);
    if (!schedule)
        return titan_refuse(
            scenario, "parallel.schedule", plan->vpp > 1 ? "interleaved" : "1f1b", "%s has no key",
            plan->schedule == SCHEDULE_FILE ? "file" : SCHEDULE_NAMES[plan->schedule]);
    // torch.distributed.pipelining, schedules.py: Interleaved1F1B runs rounds of all ranks.
    if (plan->schedule == SCHEDULE_INTERLEAVED && plan->num_microbatches % plan->pp != 0)
        return titan_refuse(scenario, "parallel.schedule",
                            "a global batch that gives a multiple of pp, or vpp 1",
                            "interleaving %lld micro-batches over pp %d is not possible",
                            (long long)plan->num_microbatches, plan->pp);
    key_text(keys, "parallelism", "pipeline_parallel_schedule", schedule);
    key_list(keys, "parallelism", "module_fqns_per_model_part", parts_of(plan, keys->arena));
    key_int(keys, "parallelism", "pipeline_parallel_microbatch_size", plan->micro_batch);
    return status_ok();
}
