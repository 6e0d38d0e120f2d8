// workload/technique/technique.h - techniques: what a software makes of a pass or of a step beyond
// computing it operator by operator, one after the other, with all tokens sent to their experts as
// they come.
//
// A technique is a row of config/software/techniques.def and a file of its own here, which says
// what it rewrites: the load of the experts, the operators of a layer, the finished list of a pass,
// or how a step is put together. What stands there afterwards is all that the Program, the prices
// and the searches see; none of them asks which technique it was. They have three ways to price it:
// a collective in pieces beside its product (Op.pipelined_with), a collective beside a whole list
// (CollectiveOp.beside), and what either takes from compute (costmodel/pass/list_price.h).
#pragma once

#include "config/job/scenario.h"

#include <stdbool.h>

typedef enum {
#define TECHNIQUE(kind, key) TECHNIQUE_##kind,
#include "config/software/techniques.def"
    NUM_TECHNIQUES
} TechniqueKind;

typedef struct Builder Builder;       // workload/pass/builder.h
typedef struct ExpertLoad ExpertLoad; // workload/pass/expert_load.h
typedef struct Op Op;                 // workload/pass/operator.h

// A finished list of a block: what is recomputed and what shards of weights need is in it.
typedef struct {
    Op *ops; // [num] of [capacity]
    int num, capacity;
    bool forward; // else the backward
} OperatorList;

// How a step is put together of its passes.
typedef struct {
    bool gathers_beside;  // updated weights are gathered beside the first forward of each chunk,
                          // else behind the optimizer
    bool reduces_beside;  // gradients are reduced beside the last backward of each chunk, else
                          // behind all
    bool begins_together; // no pipeline rank begins a step before all have done the last
    double launched_frac; // of the launches of a pass, those that are left to the host
} StepTraits;

// What a technique is. Of the rewrites at least one is there.
typedef struct {
    const char *source;                        // the software or paper that does it
    bool (*matters)(const Scenario *scenario); // of this model; NULL: of every one
    bool (*applies)(const Builder *b); // it has something to rewrite; NULL: wherever it is on
    void (*load)(const Builder *b, ExpertLoad *load);
    void (*operators)(Builder *b); // the forward's units, of which the backward is derived
    void (*list)(const Builder *b, OperatorList *list);
    void (*step)(const Execution *execution, StepTraits *traits);
} Technique;

const Technique *technique_find(TechniqueKind kind);

bool technique_matters(TechniqueKind kind, const Scenario *scenario);

// Each applies all techniques that are on, in the order of their rows.
void techniques_load(const Builder *b, ExpertLoad *load);
void techniques_operators(Builder *b);
void techniques_list(const Builder *b, OperatorList *list);
StepTraits step_traits(const Execution *execution);
