#include "base/key_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { MAX_KEY = 64, MAX_OTHERS = 8 };

typedef struct {
    const char *place;              // as our documents have it
    const char *others[MAX_OTHERS]; // in small letters with "_"; the leaf of `place` is one, too
} KeyName;

// Megatron-LM's, torchtitan's, DeepSpeed's and the Hugging Face Trainer's names.
static const KeyName KEY_NAMES[] = {
    {"training.seq_len",
     {"seq_length", "sequence_length", "max_seq_len", "max_seq_length", "context_length",
      "max_length"}},
    {"training.global_batch",
     {"batch", "batch_size", "global_batch_size", "train_batch_size", "gbs"}},
    {"training.precision", {"dtype", "torch_dtype", "mixed_precision"}},
    {"training.stack", {"framework", "software", "backend"}},
    {"training.cuda_graphs", {"cuda_graph", "cuda_graph_scope"}},
    {"training.moe_dispatcher", {"dispatcher", "moe_token_dispatcher_type"}},
    {"parallel.tp",
     {"tensor_parallel", "tensor_parallel_size", "tensor_parallel_degree",
      "tensor_model_parallel_size"}},
    {"parallel.pp",
     {"pipeline_parallel", "pipeline_parallel_size", "pipeline_parallel_degree",
      "pipeline_model_parallel_size"}},
    {"parallel.dp",
     {"data_parallel", "data_parallel_size", "data_parallel_degree", "data_parallel_shard_degree"}},
    {"parallel.cp", {"context_parallel", "context_parallel_size", "context_parallel_degree"}},
    {"parallel.ep",
     {"expert_parallel", "expert_parallel_size", "expert_parallel_degree",
      "expert_model_parallel_size"}},
    {"parallel.etp", {"expert_tensor_parallel_size", "expert_tensor_parallel_degree"}},
    {"parallel.vpp", {"virtual_pipeline_model_parallel_size", "virtual_stages", "num_chunks"}},
    {"parallel.micro_batch",
     {"micro_batch_size", "local_batch_size", "per_device_train_batch_size", "mbs",
      "train_micro_batch_size_per_gpu"}},
    {"parallel.sequence_parallel", {"sp"}},
    {"parallel.zero_stage", {"zero", "zero_level", "fsdp"}},
    {"parallel.recompute",
     {"activation_checkpointing", "activation_checkpoint", "gradient_checkpointing",
      "recompute_granularity"}},
    {"parallel.schedule", {"pipeline_schedule", "pipeline_parallel_schedule"}},
    {"cluster.num_gpus", {"gpus", "world_size"}},
    {"cluster.gpus_per_node", {"nproc_per_node", "gpus_per_host"}},
    {"cluster.price_usd_per_gpu_hour", {"price", "price_per_hour", "cost_per_gpu_hour"}},
};

static const char *leaf_of(const char *place) {
    return strrchr(place, '.') + 1;
}

static void key_normalize(const char *key, char *out) {
    size_t i = 0;
    for (; key[i] && i < MAX_KEY - 1; i++)
        out[i] = key[i] == '-' ? '_' : (char)tolower((unsigned char)key[i]);
    out[i] = '\0';
}

static bool row_has(const KeyName *row, const char *normal) {
    if (strcmp(leaf_of(row->place), normal) == 0) return true;
    for (int i = 0; i < MAX_OTHERS && row->others[i]; i++)
        if (strcmp(row->others[i], normal) == 0) return true;
    return false;
}

const char *key_place(const char *key) {
    char normal[MAX_KEY];
    key_normalize(key, normal);
    for (size_t i = 0; i < sizeof KEY_NAMES / sizeof *KEY_NAMES; i++)
        if (row_has(&KEY_NAMES[i], normal)) return KEY_NAMES[i].place;
    return NULL;
}

const char *key_meant(const char *key, const char *const *known) {
    char normal[MAX_KEY];
    const char *place = key_place(key);
    key_normalize(key, normal);
    for (int i = 0; known[i]; i++)
        if (strcmp(known[i], normal) == 0 || (place && strcmp(known[i], leaf_of(place)) == 0))
            return known[i];
    return NULL;
}
