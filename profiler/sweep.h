// profiler/sweep.h - which shapes are measured: those of layers of models as they are split, over
// the rows that micro-batches give them.
//
// Source of the models' dimensions: Radford et al., "Language Models are Unsupervised Multitask
//         Learners", 2019 (GPT-2 1.5B; the vocabulary padded to 50,304 as Megatron-LM pads it);
//         Grattafiori et al., "The Llama 3 Herd of Models", arXiv:2407.21783, table 3; Jiang et
//         al., "Mixtral of Experts", arXiv:2401.04088, and its 8x22B release (config.json).
#pragma once

#include "base/arena.h"
#include "profiler/gpu_plugin.h"

// In the order in which they are measured: what CUPTI would disturb comes before it.
typedef enum {
    SWEEP_LAUNCH,
    SWEEP_GEMM,          // forward, bfloat16 and fp8: what `calibrate` reads
    SWEEP_GEMM_BACKWARD, // both gradients, bfloat16 and, of fewer shapes, float16, tf32, fp8
    SWEEP_GEMM_OTHER,    // forward, float16 and tf32
    SWEEP_ATTENTION,     // forward, bfloat16: what `calibrate` reads
    SWEEP_ATTENTION_BACKWARD,
    SWEEP_MEMORY,
    SWEEP_HOST_COPY,  // between the host's memory and the GPU's
    SWEEP_NCCL,       // collectives among GPUs: what `calibrate` reads
    SWEEP_SEND_RECV,  // messages between GPUs
    SWEEP_CONTENTION, // products beside a copy or a collective
    SWEEP_SUSTAINED,  // products for seconds, with clocks and power
    NUM_SWEEPS
} SweepKind;

// As --kind and the files spell it.
extern const char *const SWEEP_NAMES[NUM_SWEEPS + 1]; // ends with NULL

typedef struct {
    GpuRequest *requests; // [num_requests]
    int num_requests;
} Sweep;

// num_gpus: that the machine has; kinds of groups have no shapes with one.
Sweep sweep_new(SweepKind kind, bool quick, int num_gpus, Arena *arena);

// The parts (sweep_gemm.c, sweep_memory.c, sweep_attention.c, sweep_team.c).
void sweep_add(Sweep *sweep, GpuRequest request, Arena *arena);
void sweep_gemm(Sweep *sweep, bool quick, Arena *arena);
void sweep_gemm_backward(Sweep *sweep, bool quick, Arena *arena);
void sweep_gemm_other(Sweep *sweep, bool quick, Arena *arena);
void sweep_sustained(Sweep *sweep, bool quick, Arena *arena);
void sweep_memory(Sweep *sweep, bool quick, Arena *arena);
void sweep_host_copy(Sweep *sweep, bool quick, Arena *arena);
void sweep_launch(Sweep *sweep, Arena *arena);
void sweep_attention(Sweep *sweep, bool quick, Arena *arena);
void sweep_attention_backward(Sweep *sweep, bool quick, Arena *arena);
void sweep_nccl(Sweep *sweep, bool quick, int num_gpus, Arena *arena);
void sweep_send_recv(Sweep *sweep, bool quick, int num_gpus, Arena *arena);
void sweep_contention(Sweep *sweep, bool quick, int num_gpus, Arena *arena);
