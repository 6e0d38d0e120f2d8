// tests/costmodel/made_up.h - a GPU, a cluster and models of round numbers, and cases made of them,
// so that expected values can be worked out by hand and do not move with the bundled profiles.
#pragma once

#include "config/job/scenario.h"
#include "costmodel/step/estimate.h"
#include "plan/plan.h"
#include "tests/support.h"
#include "workload/pass/block.h"

// 100 SMs with output tiles of 100 x 100; 1e14 flop/s in 16 bits, 2e14 in 8, half of it in tf32, a
// quarter in fp32 and fp64; 1e12 B/s and 80e9 bytes of memory. Nothing takes longer than that: no
// launch, no ramp. Attention reaches half the peak forward, a quarter backward.
Gpu made_up_gpu(void);

// Nodes (and scale-up domains) of 8 such GPUs, with links of 1e11 B/s in a node and a NIC of 1e10
// B/s for each GPU. A collective costs 1e-5 s inside and 1e-4 s across domains, each step 1e-6 s
// and 1e-5 s, a message 2e-6 s and 2e-5 s. All bytes move at the nominal rate.
Cluster made_up_cluster(int num_gpus);

// A case has the factors 1 and the spreads 0.1 (products), 0.2 (attention, memory, optimizer), 0.3
// (host, inside), 0.4 (across), 0.03 (step).
typedef struct {
    Arena arena;
    Scenario scenario;
    Plan plan;
    Workload workload;
} Case;

// Builds the workload of a case; model, training and parallel as they stand in a scenario. On
// failure prints why, fails the test and returns false (the arena still has to be freed).
bool case_make(Case *c, const char *model, int num_gpus, const char *training,
               const char *parallel);

// Plan and workload again, after a change of c->scenario.
bool case_resolve(Case *c);

// Its estimate; fails the test where there is none.
Estimate case_estimate(Case *c, EstimateParts *parts);

void case_free(Case *c);

// Sets what the stack adds to bare work to zero: host time, slowdown by overlap, slack, context.
void stack_bare(Stack *stack);

// GPT of 2 layers: hidden size 1024, 16 heads, vocabulary 1024, no table of positions.
extern const char *const MADE_UP_GPT;
// Mixture of experts of 4 layers, the first dense: hidden size 1024, 16 heads over 4 key-value
// heads, gated; 8 experts of 512, 2 a token, shared 512.
extern const char *const MADE_UP_MOE;
// The experts of MADE_UP_MOE with latent attention and one MTP layer.
extern const char *const MADE_UP_MLA;
