// runtime/rank_shape.h - how much of a model one rank computes for one micro-batch.
#pragma once

#include "base/status.h"
#include "plan/plan.h"

typedef struct {
    int64_t tokens;    // of a micro-batch, after cp
    int64_t tokens_sp; // of those, where sequence parallelism splits them over tp
    int64_t sequences; // of a micro-batch
    int64_t seq_len;   // of each, after cp
    int64_t hidden;
    int heads, kv_heads, head_dim; // of this rank
    int64_t qkv;                   // values a token: of queries, keys and values
    int64_t attended;              // of the attention's output
    int64_t inner;                 // of the MLP after its activation
    int64_t up;                    // before it: twice that where it is gated
    int experts;                   // that this rank has a part of; 0: a model without any
    int experts_per_token;
    int64_t expert_inner, expert_up; // as inner and up, of an expert's part on this rank
    int64_t shared_inner, shared_up; // and of the experts that every token goes to
    int64_t routed;                  // rows that this rank sends to experts
    int64_t vocab_rows;              // of the word table, padding of all tp ranks included
    int64_t logits;                  // columns of the logits: vocab_rows and, with one rank, more
                                     // so that their number suits the device
} RankShape;

RankShape rank_shape(const Scenario *scenario, const Plan *plan);

// Whether one matrix of this rank is word table and head: tied, and both ends lie here.
bool rank_shares_table(const Scenario *scenario, const Plan *plan, int rank);
