// Every flag and key that is ever written, with its meaning. docs/launch/deepspeed.md prints these
// tables; tests/launch/test_deepspeed.c holds them together.
#include "launch/deepspeed.h"

#define MODEL "Model"
#define PARALLEL "Parallelism"
#define MEMORY "Recomputation"
#define TRAINING "Training"
#define DATA "Data and checkpoints"

const FlagRow DEEPSPEED_FLAGS[] = {
    {MODEL, "--num-layers", "N", "Transformer layers."},
    {MODEL, "--hidden-size", "N", "Width of the residual stream."},
    {MODEL, "--ffn-hidden-size", "N", "Width of the MLP."},
    {MODEL, "--num-attention-heads", "N", "Query heads."},
    {MODEL, "--num-key-value-heads", "N", "Key and value heads."},
    {MODEL, "--kv-channels", "N", "Size of a head."},
    {MODEL, "--seq-length", "N", "Tokens per sequence."},
    {MODEL, "--max-position-embeddings", "N", "Longest sequence; at least --seq-length."},
    {MODEL, "--vocab-size", "N", "Vocabulary before padding: your tokenizer's has to be the same."},
    {MODEL, "--use-rotary-position-embeddings", NULL, "Rotary positions."},
    {MODEL, "--rotary-position-embeddings-theta", "N", "Base of their frequencies (rope_theta)."},
    {MODEL, "--rotary-percent", "F", "Part of a head that is rotated."},
    {MODEL, "--no-position-embedding", NULL, "No table of positions."},
    {MODEL, "--normalization", "layernorm|rmsnorm", "Norm of the layers."},
    {MODEL, "--layernorm-epsilon", "F", "Epsilon of the norms."},
    {MODEL, "--swiglu", NULL, "Gated MLP with SiLU: three matrices."},
    {MODEL, "--squared-relu", NULL, "Squared ReLU instead of GELU."},
    {MODEL, "--disable-bias-linear", NULL, "No bias in linear layers."},
    {MODEL, "--untie-embeddings-and-output-weights", NULL, "The head has weights of its own."},
    {MODEL, "--attention-dropout", "F", "Dropout after the attention's softmax."},
    {MODEL, "--hidden-dropout", "F", "Dropout on the residual branches."},

    {PARALLEL, "--tensor-model-parallel-size", "N", "tp."},
    {PARALLEL, "--sequence-parallel", NULL, "sequence_parallel."},
    {PARALLEL, "--pipeline-model-parallel-size", "N", "pp."},
    {PARALLEL, "--no-pipeline-parallel", NULL, "pp 1: DeepSpeed's engine without a pipeline."},
    {PARALLEL, "--enable-zbh1-pipeline", NULL, "schedule zb-h1."},
    {PARALLEL, "--ds-sequence-parallel-size", "N", "cp, with cp_method ulysses."},
    {PARALLEL, "--zero-stage", "0|1|2|3", "zero_stage; as in the configuration."},

    {MEMORY, "--checkpoint-activations", NULL, "recompute full."},
    {MEMORY, "--checkpoint-num-layers", "N", "Every layer by itself."},
    {MEMORY, "--deepspeed-activation-checkpointing", NULL, "By DeepSpeed's own function."},

    {TRAINING, "--deepspeed", NULL, "The engine."},
    {TRAINING, "--deepspeed_config", "$LAUNCH_DIR", "Its configuration: the table below."},
    {TRAINING, "--micro-batch-size", "N", "micro_batch."},
    {TRAINING, "--global-batch-size", "N", "global_batch."},
    {TRAINING, "--train-iters", "$TRAIN_ITERS", "Steps; yours to choose."},
    {TRAINING, "--lr", "$LR", "Learning rate; yours to choose."},
    {TRAINING, "--eval-interval", "$EVAL_INTERVAL", "Steps between evaluations."},
    {TRAINING, "--eval-iters", "$EVAL_ITERS", "Steps of one evaluation."},
    {TRAINING, "--log-interval", "N", "Steps between log lines."},
    {TRAINING, "--optimizer", "adam|sgd", "optimizer."},
    {TRAINING, "--bf16", NULL, "precision bf16."},
    {TRAINING, "--fp16", NULL, "precision fp16."},
    {TRAINING, "--use-flash-attn-v2", NULL, "attention flash."},

    {DATA, "--data-path", "$DATA_PATH", "Prefix of your indexed data."},
    {DATA, "--split", "$DATA_SPLIT", "Shares for training, validation and test."},
    {DATA, "--tokenizer-type", "$TOKENIZER_TYPE", "Tokenizer of your data."},
    {DATA, "--tokenizer-model", "$TOKENIZER_MODEL", "Its file or name."},
    {DATA, "--save", "$CHECKPOINT_PATH", "Where checkpoints are written."},
    {DATA, "--load", "$CHECKPOINT_PATH", "Where they are read at the start."},
    {DATA, "--save-interval", "$SAVE_INTERVAL", "Steps between checkpoints."},
    {0},
};

const KeyRow DEEPSPEED_KEYS[] = {
    {"", "train_batch_size", KEY_INT, "1", "global_batch."},
    {"", "train_micro_batch_size_per_gpu", KEY_INT, "1", "micro_batch."},
    {"", "gradient_accumulation_steps", KEY_INT, "1", "Micro-batches of a replica and step."},
    {"", "gradient_clipping", KEY_FLOAT, "0", "Largest norm of the gradients."},
    {"", "steps_per_print", KEY_INT, "1", "Steps between log lines of the engine."},
    {"", "communication_data_type", KEY_TEXT, "fp32|bf16", "grad_reduce_dtype."},
    {"zero_optimization", "stage", KEY_INT, "0", "zero_stage."},
    {"zero_optimization", "overlap_comm", KEY_BOOL, NULL, "overlap_grad_reduce."},
    {"zero_optimization", "contiguous_gradients", KEY_BOOL, NULL,
     "Gradients are copied into one buffer as they are made."},
    {"fp16", "enabled", KEY_BOOL, NULL, "precision fp16."},
    {"bf16", "enabled", KEY_BOOL, NULL, "precision bf16."},
    {"data_types", "grad_accum_dtype", KEY_TEXT, "fp32|bf16", "grad_reduce_dtype."},
    {0},
};
