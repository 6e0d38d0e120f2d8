// plan/plan.h - one complete way to split and schedule a training job, legal for its scenario.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/cluster/node_order.h"
#include "config/job/scenario.h"
#include "plan/schedule_file.h"

#include <stdbool.h>
#include <stdint.h>

// One chunk of consecutive layers.
typedef struct {
    int first_layer;
    int num_layers;
    bool embedding;
    int num_mtp;
    bool loss;
} PlanChunk;

// How ranks are numbered, the fastest first (plan/rank_place.h).
typedef enum { ORDER_DP_PP, ORDER_PP_DP, NUM_PLAN_ORDERS } PlanOrder;

// "tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"; ends with NULL.
extern const char *const PLAN_ORDER_NAMES[NUM_PLAN_ORDERS + 1];

typedef struct LayerPlans LayerPlans; // plan/layer_plans.h

typedef struct Plan {
    int tp, pp, dp, cp, ep, etp, vpp;
    int micro_batch; // sequences
    bool sequence_parallel;
    int zero_stage;
    int zero_group; // ranks of dp x cp that share the shards
    bool reshard_after_forward;
    // What each layer does is asked of plan/layer_plans.h, which reads these:
    Recompute recompute;
    int recompute_modules;    // MODULE_* bits; what `selective` means here
    int recompute_layers;     // the first k of each chunk's rank; all layers where it is ABSENT
    const LayerPlans *layers; // of layers that differ in other ways; NULL: none does
    ScheduleKind schedule;
    const ScheduleFile *schedule_file; // of SCHEDULE_FILE; else NULL
    CpMethod cp_method;
    PlanOrder order;
    // 0: the vocabulary is split by tp alone. Else over all pipeline ranks too, with this many
    // communication barriers (1 or 2) in the passes of the output layer.
    int vocab_barriers;
    int num_chunks;          // pp x vpp; of dual pipelines both copies
    const PlanChunk *chunks; // [num_chunks] in pipeline order

    // Derived
    int idle_gpus;               // of the cluster's, beside tp x cp x dp x pp
    int expert_dp;               // tp x cp x dp / (ep x etp)
    int domain_gpus;             // of the cluster's scale-up domains; 0: not told
    const NodeOrder *node_order; // the cluster's (its `order` or `placed`), or NULL
    int64_t num_microbatches;    // per data-parallel replica
    // ZeRO-2 and -3 add whole gradients up and reduce them once (plan_scatters_gradients)
    bool reduces_once;
} Plan;

// Completes the scenario's `parallel` by the contract's defaults and checks the whole against
// model, cluster and training. Refusals name the field of the scenario.
Status plan_resolve(const Scenario *scenario, Arena *arena, Plan *out);

// Checks a plan whose degrees a search proposed: STATUS_INVALID says what no plan can be, or is not
// supported yet, in that order. What its software can run is plan/rule_check.h's.
// plan->chunks must be set (plan_default_chunks).
Status plan_check(const Scenario *scenario, const Plan *plan);
Status plan_check_degrees(const Scenario *scenario, const Plan *plan);
Status plan_check_supported(const Scenario *scenario, const Plan *plan);

// The rule of pp and vpp alone: no more chunks than layers + 2.
Status plan_check_chunks(const Scenario *scenario, const Plan *plan);

// The rules of tp alone: what it must divide.
Status plan_check_tp(const Scenario *scenario, const Plan *plan);

// The order that the scenario states, else tp-cp-ep-dp-pp. Refuses one that no stack can run.
Status plan_order_find(const Scenario *scenario, PlanOrder *out);

// Sets the derived fields of a plan whose degrees are legal.
void plan_derive(const Scenario *scenario, Plan *plan);

// The plan with all that it points to, in this arena.
Plan plan_copy(const Plan *plan, Arena *arena);

// Ranks that share the shards under dp and cp: as the scenario states, else all. Where the software
// always shards over cp too, a group that is all of dp is all of dp x cp.
int plan_zero_group(const Scenario *scenario, int dp, int cp);

// Whether chunks go there and back over the ranks: chunk c and chunk 2 pp - 1 - c on rank c (the V
// schedules). Else they go round: chunk c on rank c % pp.
bool plan_is_v(const Plan *plan);

// Whether two pipelines run against each other over the same ranks, each with a whole model and
// half of the micro-batches (DualPipe). Chunks 0 to pp - 1 are the first, from rank 0 on, chunks pp
// to 2 pp - 1 its copy, from the last rank on: each lies where a chunk of a V does.
bool plan_is_dual(const Plan *plan);

// Whether one rank has embedding and loss, and so one word table where they are tied: without a
// pipeline, and where chunks go there and back.
bool plan_joins_ends(const Plan *plan);

// Chunks that make up one model: pp of dual pipelines, else all.
int plan_num_stages(const Plan *plan);

// Layers of one model, in all its chunks.
int plan_num_layers(const Plan *plan);

// Most layers of a pipeline rank.
int plan_fullest_rank(const Plan *plan);

// Micro-batches that each chunk runs: half of them in dual pipelines, of which the first half is
// that of chunks 0 to pp - 1.
int64_t plan_chunk_microbatches(const Plan *plan);

// What every rank holds beside its chunks where the vocabulary is spread over the pipeline: its
// rows of the word table, and of the matrix of the logits with the loss. They are numbered behind
// the chunks, num_chunks + VOCAB_INPUT and num_chunks + VOCAB_OUTPUT, and are of no one rank.
// Chunks with these, where there are any: of the plan, and of one rank.
int plan_all_chunks(const Plan *plan);
int plan_rank_chunks(const Plan *plan);

// Pipeline rank of a chunk below num_chunks; the k-th chunk of a rank, k < plan_rank_chunks: vpp in
// pipeline order, then those of the vocabulary.
int plan_chunk_rank(const Plan *plan, int chunk);
int plan_rank_chunk(const Plan *plan, int rank, int k);

// Barriers of the vocabulary's output layer as the scenario states: 0 where it is not spread, and
// where there is no pipeline to spread it over.
int plan_vocab_barriers(const Scenario *scenario, int pp);

// The ZeRO stage that the scenario states, else its software's own. Of FSDP2 over one rank 0: with
// nobody to share with it wraps nothing.
int plan_zero_stage(const Scenario *scenario, int dp, int cp);

// Whether every backward scatters the gradients that it makes, so that none is kept whole: ZeRO-2
// and -3, but where a step of several micro-batches reduces once (`grad_reduce`).
bool plan_scatters_gradients(const Plan *plan);

// Whether layers gather weights or scatter gradients of ZeRO in every pass.
bool plan_exchanges_shards(const Plan *plan);

// What a rank keeps whole under ZeRO, the most first: stages 0, 1 and 2, stage 3 whose gathered
// weights stay after the forward (reshard_after_forward false; FSDP's SHARD_GRAD_OP), and stage 3.
enum { ZERO_LEVEL_KEPT = 3, ZERO_LEVEL_RESHARDED, NUM_ZERO_LEVELS };

int plan_zero_level(const Plan *plan);

// Gives a plan the stage of a level, and from ZERO_LEVEL_KEPT on what becomes of gathered weights.
void plan_set_zero_level(Plan *plan, int level);

// "1f1b", "file:order.txt".
const char *plan_schedule_name(const Plan *plan);

// GPUs of one pipeline rank: tp x cp x dp.
int64_t plan_stage_gpus(const Plan *plan);

// The group that a pipeline rank lies in, and its machines (config/cluster/cluster.h); 0 and the
// cluster itself where all nodes are alike.
int plan_rank_pool(const Cluster *cluster, const Plan *plan, int rank);
Machines plan_rank_machines(const Cluster *cluster, const Plan *plan, int rank);

// The contract's default split of layers over chunks: num_chunks entries.
//   C chunks, L layers: L / C each where it divides; else, where C divides L + 2, embedding and
//   loss count as a layer each; else floor(L / C) and one more from the second chunk on.
// MTP layers go with the loss. Fails where num_chunks > layers + 2.
Status plan_default_chunks(const Model *model, int num_chunks, Arena *arena, const PlanChunk **out);

// The chunks of dual pipelines: pp stages, and their copies.
const PlanChunk *plan_dual_chunks(const PlanChunk *stages, int pp, Arena *arena);

// What `selective` recomputes on this stack, as MODULE_* bits, where the scenario names no modules.
// 0 with stack.selective_per_operator.
int plan_default_modules(const Scenario *scenario);

// Whether sequence parallelism is on: as stated, else where tp > 1 and the stack has it on.
bool plan_splits_sequence(const Scenario *scenario, int tp);

// The plan as the complete `parallel` object of an answer. The caller owns the tree.
cJSON *plan_to_json(const Plan *plan);

// Short text: "tp 8 pp 4 vpp 5 dp 4 mb 1 zero1 selective interleaved". Degrees of 1 other than tp
// and pp, no recomputation, shards on all replicas and the ring of cp go without saying: "zero1:8"
// is on 8 of them, "(32 idle)": GPUs of the cluster's and in no degree, "full:3" of the first 3
// layers of each stage, "pp-dp" is order tp-cp-ep-pp-dp where that makes a difference.
const char *plan_describe(const Plan *plan, Arena *arena);

// The same of a `parallel` object; where layers differ it says no more than that.
const char *parallel_describe(const cJSON *parallel, Arena *arena);

// plan.json: the scenario with a complete `parallel` and the given provenance (both copied; NULL
// for none); the model is written in full where it came from a file. The caller owns the tree.
cJSON *plan_document(const Scenario *scenario, const Plan *plan, const cJSON *provenance);

// Names a plan of a job, as what is written of it does: 16 hexadecimal digits that differ where
// plan.json would, but for its provenance, or the version.
const char *plan_id(const Scenario *scenario, const Plan *plan, Arena *arena);
