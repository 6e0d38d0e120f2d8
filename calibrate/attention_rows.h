// calibrate/attention_rows.h - tables of attention and latent attention (MLA) as shapes.
//
// Multi-head latent attention becomes plain attention of equal flops. It has the sizes of its only
// public architecture (DeepSeek-AI, "DeepSeek-V2", arXiv:2405.04434, section 2.1): latent 512,
// rotary part 64, heads of 128 + 64 for queries and keys and 128 for values. Prompts have (192 +
// 128) / 2 = 160 per head. Generation works on the latent, one key-value head of 288, whose keys
// and values together are the 512 + 64 numbers of a cached token. There num_heads is what lies on
// the GPU (tp_size does not divide it again). The reason is that rows with num_heads x tp_size = 64
// and 128 and equal num_heads take the same time, and only this reading stays under the peak.
#pragma once

#include "calibrate/kinds.h"
#include "costmodel/kernel/kernel_attention.h"

#include <stdint.h>

typedef struct {
    int num_rows;
    bool latent;            // generation on the latent of MLA: always the shared kernel
    AttentionShape *shapes; // [num_rows]
    double *prompt_tokens;  // [num_rows], those of a step's tokens that its column does not count
    bool *heads_alone;      // [num_rows]: as many key-value heads as heads, however many
    const char **problems;  // [num_rows], why a row is no attention; NULL where it is
    const double *log_latency; // [num_rows]; NULL without measurements
    const double *latency_s;
    int *folds; // [num_rows]: rows of one (heads, kv_heads, head_dim, window) share a fold
    int num_groups;
} AttentionRows;

enum { ATTENTION_FOLDS = 5 };

// Shapes of a table; latency_s may be NULL. step: generation (keys are isl + step). Refuses numbers
// beyond bounds; what else is wrong with a row stands in problems, which the fit refuses.
typedef Status AttentionRead(const KernelTable *table, const double *latency_s, bool step,
                             Arena *arena, AttentionRows *out);
AttentionRead attention_rows, mla_rows;

// Refuses rows with a problem, formats that the GPU lacks, kernels with fewer than
// SEGMENT_FEWEST_ROWS rows, and tables of a single group.
Status attention_rows_check(const KernelTable *table, const AttentionRows *rows, const Gpu *gpu);

// Scores of left-out and of fitted predictions.
void attention_scores(const AttentionRows *rows, const double *left_out_s, const double *all_s,
                      KindFit *out);
