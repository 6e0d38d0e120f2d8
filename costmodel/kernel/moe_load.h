// costmodel/kernel/moe_load.h - which rows of tokens the experts of the busiest rank get.
//
// Model:  balanced: token t chooses expert (t + i s) mod E for i below topk, s = ceil(E / topk);
// with
//         fewer than s tokens they spread over s. Skewed: the experts' shares are drawn from the
//         density x^-a between 1 and 0.8 num_tokens (between 0.01 and 2 where tokens choose fewer
//         pairs than there are experts). Here they are its E mid-quantiles in a fixed shuffle,
//         scaled to the pairs, rounded, at most num_tokens each. What rounding leaves goes round
//         the ranks, to the emptiest expert (or from the fullest). The rank with most rows counts;
//         several shuffles are averaged. Group-limited routing: 8 groups of experts, the 4 with
//         most of a token's choices (two count, ties to the first) are kept; choices lost go to the
//         first free experts there.
// Source: the routing of the public kernel tables: aiconfigurator (NVIDIA), collector/helper.py;
//         group limit: DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv:2412.19437,
//         section 2.1.2.
// Limits: loads are expectations; a single draw differs.
#pragma once

#include <stdbool.h>

enum { MOE_MAX_EXPERTS = 4096, MOE_MAX_TOPK = 64, MOE_NUM_TILES = 6 };

// Rows of a tile of the grouped product: 8, 16, ... 256.
extern const double MOE_TILE_ROWS[MOE_NUM_TILES];

typedef struct {
    double num_tokens;  // entering the layer, whole, >= 1
    int topk;           // 1 to min(MOE_MAX_TOPK, num_experts)
    int num_experts;    // of the layer, 1 to MOE_MAX_EXPERTS
    int num_ranks;      // the experts are split over, divides num_experts
    double skew;        // exponent a; 0 is balanced
    bool group_limited; // without effect below 16 experts
} MoeRouting;

// Of the busiest rank; means over shuffles.
typedef struct {
    double num_active;               // experts with rows
    double num_rows;                 // pairs of token and expert
    double num_tiles[MOE_NUM_TILES]; // sum over experts of ceil(rows / tile rows)
} MoeLoad;

MoeLoad moe_load(const MoeRouting *routing);
