// Attention of training: whole causal sequences, heads as they lie on one GPU.
//
// Limit: the backend keeps cuDNN's plans of 256 shapes (backend/cuda/cudnn_attention.c) and has its
// own kernels for all others; a backward needs a plan of each direction.
#include "profiler/sweep.h"

typedef struct {
    int heads, kv_heads, head_dim;
} AttentionHeads;

// Llama 3.1 8B whole and split in two and four, 70B whole; without sharing; GPT-2 124M and 1.5B;
// small heads that share. The first of each list are the quick ones.
static const AttentionHeads FORWARD_HEADS[] = {
    {32, 8, 128}, {12, 12, 64},  {16, 4, 128}, {8, 2, 128},
    {64, 8, 128}, {32, 32, 128}, {25, 25, 64}, {32, 8, 64},
};
static const AttentionHeads BACKWARD_HEADS[] = {
    {32, 8, 128}, {12, 12, 64}, {8, 2, 128}, {32, 32, 128}};
enum {
    NUM_FORWARD = sizeof FORWARD_HEADS / sizeof *FORWARD_HEADS,
    NUM_BACKWARD = sizeof BACKWARD_HEADS / sizeof *BACKWARD_HEADS,
    NUM_QUICK = 2,
    LEAST_TOKENS = 1024, // of all sequences together
    MOST_TOKENS = 32768,
};

// All lists end with 0.
static void add_heads(Sweep *sweep, Arena *arena, bool backward, const AttentionHeads *heads,
                      const int *tokens, const int *batches) {
    for (const int *t = tokens; *t; t++) {
        for (const int *b = batches; *b; b++) {
            if (*t * *b < LEAST_TOKENS || *t * *b > MOST_TOKENS) continue;
            AttentionRequest attention = {.backward = backward,
                                          .batch = *b,
                                          .tokens = *t,
                                          .heads = heads->heads,
                                          .kv_heads = heads->kv_heads,
                                          .head_dim = heads->head_dim};
            sweep_add(sweep, (GpuRequest){.kind = GPU_WORK_ATTENTION, .attention = attention},
                      arena);
        }
    }
}

static const int QUICK_BATCHES[] = {1, 4, 0}, BATCHES[] = {1, 2, 4, 8, 16, 0};

void sweep_attention(Sweep *sweep, bool quick, Arena *arena) {
    static const int TOKENS[] = {256, 512, 1024, 2048, 4096, 8192, 16384, 0};
    static const int QUICK_TOKENS[] = {1024, 2048, 4096, 8192, 0};
    for (int i = 0; i < (quick ? NUM_QUICK : NUM_FORWARD); i++)
        add_heads(sweep, arena, false, &FORWARD_HEADS[i], quick ? QUICK_TOKENS : TOKENS,
                  quick ? QUICK_BATCHES : BATCHES);
}

void sweep_attention_backward(Sweep *sweep, bool quick, Arena *arena) {
    static const int TOKENS[] = {1024, 2048, 4096, 8192, 0};
    static const int QUICK_TOKENS[] = {2048, 8192, 0};
    for (int i = 0; i < (quick ? NUM_QUICK : NUM_BACKWARD); i++)
        add_heads(sweep, arena, true, &BACKWARD_HEADS[i], quick ? QUICK_TOKENS : TOKENS,
                  quick ? QUICK_BATCHES : BATCHES);
}
