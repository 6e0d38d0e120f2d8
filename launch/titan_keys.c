// Every key that is ever written, with its meaning. docs/launch/torchtitan.md prints this table;
// tests/launch/test_titan.c holds the two together.
#include "launch/titan.h"

const KeyRow TITAN_KEYS[] = {
    {"job", "description", KEY_TEXT, NULL, "The plan in a line."},

    {"metrics", "log_freq", KEY_INT, "1", "Steps between log lines."},

    {"model", "name", KEY_TEXT, "llama3|deepseek_v3", "Family of the model."},
    {"model", "flavor", KEY_TEXT, "8B|70B|405B|16B|236B|671B", "Its sizes."},
    {"model", "converters", KEY_LIST, NULL, "float8 or mx: precision fp8 or mxfp8."},

    {"optimizer", "name", KEY_TEXT, "AdamW", "optimizer adam."},
    {"optimizer", "implementation", KEY_TEXT, "for-loop|foreach|fused", "One fused kernel."},

    {"training", "local_batch_size", KEY_INT, "1",
     "micro_batch; with a pipeline all sequences of a replica."},
    {"training", "global_batch_size", KEY_INT, "1", "global_batch."},
    {"training", "seq_len", KEY_INT, "1", "seq_len."},
    {"training", "mixed_precision_param", KEY_TEXT, "bfloat16|float32", "precision."},
    {"training", "mixed_precision_reduce", KEY_TEXT, "float32", "grad_reduce_dtype."},
    {"training", "compile", KEY_BOOL, NULL, "compile: blocks and loss by torch.compile."},

    {"parallelism", "data_parallel_replicate_degree", KEY_INT, "1", "dp x cp / zero_group."},
    {"parallelism", "data_parallel_shard_degree", KEY_INT, "-1", "zero_group / cp: FSDP2."},
    {"parallelism", "fsdp_reshard_after_forward", KEY_TEXT, "default|always|never",
     "zero_stage 3 with reshard_after_forward; without it, or 2."},
    {"parallelism", "tensor_parallel_degree", KEY_INT, "1", "tp, with sequence parallelism."},
    {"parallelism", "disable_loss_parallel", KEY_BOOL, NULL, "Loss over the split vocabulary."},
    {"parallelism", "enable_async_tensor_parallel", KEY_BOOL, NULL, "tp_comm_overlap."},
    {"parallelism", "pipeline_parallel_degree", KEY_INT, "1", "pp."},
    {"parallelism", "module_fqns_per_model_part", KEY_LIST, NULL, "stages: modules of a chunk."},
    {"parallelism", "pipeline_parallel_schedule", KEY_TEXT,
     "1F1B|GPipe|Interleaved1F1B|LoopedBFS|ZBVZeroBubble", "schedule."},
    {"parallelism", "pipeline_parallel_microbatch_size", KEY_INT, "1",
     "micro_batch, with a pipeline."},
    {"parallelism", "context_parallel_degree", KEY_INT, "1", "cp."},
    {"parallelism", "context_parallel_rotate_method", KEY_TEXT, "allgather|alltoall",
     "cp_method: all-gather, ring."},
    {"parallelism", "expert_parallel_degree", KEY_INT, "1", "ep."},

    {"activation_checkpoint", "mode", KEY_TEXT, "selective|full|none", "recompute."},
    {"activation_checkpoint", "selective_ac_option", KEY_TEXT, "op",
     "Every second matrix product, and what is cheap."},

    {"float8", "recipe_name", KEY_TEXT, "tensorwise|rowwise|rowwise_with_gw_hp", "fp8_recipe."},
    {"float8", "filter_fqns", KEY_LIST, NULL, "The output layer stays in bf16."},

    {"mx", "recipe_name", KEY_TEXT, "mxfp8_cublas", "precision mxfp8."},
    {"mx", "filter_fqns", KEY_LIST, NULL, "The output layer stays in bf16."},
    {0},
};

const TitanModel TITAN_MODELS[] = {
    {"llama3", "8B", "llama-3.1-8b"},
    {"llama3", "70B", "llama-3.1-70b"},
    {"llama3", "405B", "llama-3.1-405b"},
    {"deepseek_v3", "16B", "deepseek-v2-lite"},
    {"deepseek_v3", "236B", "deepseek-v2"},
    {"deepseek_v3", "671B", "deepseek-v3"},
    {0},
};
