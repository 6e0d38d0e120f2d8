// calibrate/moe_rows.h - a table of measured expert layers as shapes and their loads.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "calibrate/kernel_table.h"
#include "costmodel/kernel/kernel_moe.h"

#include <stdint.h>

typedef struct {
    int moe_dtype;             // MoeDtype, or -1 where unknown
    const char *kernel_source; // as in the table
    MoeShape shape;            // without group_limited, which is the kernel's
    double num_splits;         // of inter_size, moe_tp_size
    uint64_t group;            // of its hidden_size, inter_size, topk, num_experts
    const char *problem;       // why it is no layer, or NULL
} MoeRow;

// All rows. Refuses numbers beyond bounds; what else is wrong with a row stands in its problem.
Status moe_rows_read(const KernelTable *table, Arena *arena, MoeRow **out);

// Loads of shapes, remembering those computed before.
typedef struct MoeLoadCache MoeLoadCache;

MoeLoadCache *moe_load_cache_new(Arena *arena);
MoeLoad moe_load_cached(MoeLoadCache *cache, const MoeRouting *routing);
