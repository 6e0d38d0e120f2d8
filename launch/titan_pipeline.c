// Pipeline and recomputation of torchtitan (pipeline_parallel.py, activation_checkpoint.py).
#include "launch/titan.h"

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

// The name of a schedule class of torch.distributed.pipelining; the rules leave no other.
static const char *schedule_class(const Plan *plan) {
    const Schedule *schedule = schedule_find(plan->schedule);
    const bool one = plan->vpp == 1 && schedule->torch_class_one_chunk;
    return one ? schedule->torch_class_one_chunk : schedule->torch_class;
}

void titan_pipeline_keys(const Plan *plan, KeyList *keys) {
    key_int(keys, "parallelism", "pipeline_parallel_degree", plan->pp);
    if (plan->pp == 1) return;
    key_text(keys, "parallelism", "pipeline_parallel_schedule", schedule_class(plan));
    key_list(keys, "parallelism", "module_fqns_per_model_part", parts_of(plan, keys->arena));
    key_int(keys, "parallelism", "pipeline_parallel_microbatch_size", plan->micro_batch);
}
