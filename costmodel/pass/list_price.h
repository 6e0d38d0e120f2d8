// costmodel/pass/list_price.h - one list of operators of a block on the streams of one rank.
//
// Model:  streams run side by side, each in order; an operator begins when its stream is free and
//         what it waits for is done. The price is the compute stream's: busy, and idle by what it
//         waited for. Collectives beside compute take overlap_slowdown_frac of their time from it.
//         Shards of ZeRO 2 and 3 on the DP stream, and exchanges that are hidden behind another
//         micro-batch, run beside the whole list; what outlasts it is exposed.
#pragma once

#include "costmodel/pass/price.h"
#include "plan/work_item.h"

#include <stdbool.h>

enum { MAX_LIST_OPS = 512 };

// When an operator of the list ran; 0 and -1 of those on the DP stream, beside another
// micro-batch or of other phases.
typedef struct {
    double start_s, end_s;
    double free_s; // when its stream was done with what came before
    int before;    // the operator whose end it began at; -1: none
} OpRun;

typedef struct {
    const PricingContext *context;
    const Op *ops; // [num_ops]
    int num_ops;
    int num_forward;       // length of the block's forward list
    int phases;            // bit p: operators of Phase p run here
    const double *factors; // [num_ops] times as long as priced that each takes; NULL: 1
    OpRun *runs;           // [num_ops] to be filled; NULL: nobody asks
} OpList;

typedef struct {
    Price price;     // of the device
    double host_s;   // to launch it
    double edge_s;   // ZeRO-3: the first gather and last scatter have nothing to hide behind
    double serial_s; // until all streams but DP are done, without what overlap takes from compute
    double busy_s;   // the same with it: what runs beside the whole list may take so long
    int last[NUM_STREAMS]; // the operator that each stream ran last; -1: none
} ListPrice;

ListPrice list_price(const OpList *list);

// Those of a plan's blocks on one pool, filled in as they are asked for.
struct BlockPrices {
    bool known[NUM_WORK_KINDS];
    ListPrice lists[NUM_WORK_KINDS][MAX_BLOCKS]; // of a block without operators nothing
    ListPrice *more[NUM_WORK_KINDS];             // [Workload.num_blocks - MAX_BLOCKS] those behind
    Arena *arena;                                // of `more`
};

// Seconds of one operator alone.
double op_price_s(const PricingContext *context, const Op *op);

// Seconds for which the device is idle after an operator because the host waited for it.
double op_sync_s(const PricingContext *context, const Op *op);

double terms_sum(const double *term_s);
