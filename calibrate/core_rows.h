// calibrate/core_rows.h - the tables of `meshwright profile --device cpu` as rows to fit to.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/machine/core.h"

typedef enum { CORE_FP32, CORE_FP64, NUM_CORE_DTYPES } CoreDtype; // "float32", "float64"

typedef struct {
    CoreDtype dtype;
    int layout; // 0 forward, 1 backward_input, 2 backward_weight, as workload/pass/operator.h's
                // phases
    double m, n, k, time_s;
} ProductRow;

typedef struct {
    CoreDtype dtype;
    bool backward;
    double flops, tokens, head_dim, time_s;
} AttentionRow;

typedef struct {
    CoreDtype dtype;
    CoreLoop loop;
    bool forward, backward; // which direction of the loop it tells of; or both
    bool copy;              // tells of the memory alone
    double bytes, angles, time_s;
} LoopRow;

// Kinds of rows of comm.csv, in the order of their names in the table.
typedef enum {
    COMM_ALL_GATHER,
    COMM_ALL_REDUCE,
    COMM_ALL_TO_ALL,
    COMM_REDUCE_SCATTER,
    COMM_EXCHANGE,
    COMM_SEND_RECV,
    NUM_COMM_OPS
} CommOp; // the first four as NcclOp

typedef struct {
    CommOp op;
    int num_ranks;
    double bytes, time_s;
} CommRow;

typedef struct {
    ProductRow *products;
    AttentionRow *attention;
    LoopRow *loops;
    CommRow *comm;
    int num_products, num_attention, num_loops, num_comm;
    double call_s; // of a call that does nothing
} CoreRows;

// Reads launch.csv, gemm_other.csv, gemm_backward.csv, attention.csv, memory_bound.csv and comm.csv
// of a folder; refuses one that is missing or holds what profile never writes.
Status core_rows_load(const char *folder, Arena *arena, CoreRows *out);
