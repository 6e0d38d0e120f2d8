// config/job/parallel.h - the `parallel` object of a scenario as given: each field may be absent.
//
// For `plan` a given field is a constraint and an absent one is free; plan/plan.h makes a complete
// Plan of it for every other command.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>

enum { ABSENT = -1 }; // of any int or tri-state below

typedef enum { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, NUM_RECOMPUTES } Recompute;

// Bits of recompute_modules, in the order of RECOMPUTE_MODULE_NAMES (Megatron-LM's names).
enum {
    MODULE_CORE_ATTN = 1,
    MODULE_MLA_UP_PROJ = 2,
    MODULE_LAYERNORM = 4,
    MODULE_MLP = 8,
    MODULE_MOE = 16,
    MODULE_MOE_ACT = 32,
    MODULE_SHARED_EXPERTS = 64,
};

typedef enum {
#define X(kind, name) SCHEDULE_##kind,
#include "config/job/schedules.def"
#undef X
    NUM_SCHEDULES,
    SCHEDULE_FILE = NUM_SCHEDULES
} ScheduleKind;

typedef enum { CP_RING, CP_ULYSSES, CP_ALL_GATHER, NUM_CP_METHODS } CpMethod;

extern const char *const RECOMPUTE_NAMES[];        // ends with NULL
extern const char *const RECOMPUTE_MODULE_NAMES[]; // ends with NULL
extern const char *const SCHEDULE_NAMES[];         // ends with NULL
extern const char *const CP_METHOD_NAMES[];        // ends with NULL

// One chunk of the pipeline, in pipeline order.
typedef struct {
    int layers; // transformer layers, >= 0
    bool embedding;
    int mtp; // multi-token-prediction layers
    bool loss;
} StageSpec;

// What layers [from, to] do differently; every other field may be ABSENT.
typedef struct {
    int from, to;
    int tp, cp, ep, etp, zero_stage;
    int recompute;         // Recompute
    int recompute_modules; // MODULE_* bits
    int cp_method;         // CpMethod
    signed char sequence_parallel;
} LayerOverride;

typedef struct {
    int tp, pp, dp, cp, ep, etp, vpp; // >= 1 or ABSENT
    int idle_gpus;                    // of the cluster's, on which no rank runs
    int micro_batch;                  // sequences
    signed char sequence_parallel;    // ABSENT, 0, 1
    int zero_stage;                   // 0-3
    int zero_group;
    signed char reshard_after_forward;
    int recompute;         // Recompute
    int recompute_modules; // MODULE_* bits
    int recompute_layers;  // the first k of each stage
    int schedule;          // ScheduleKind; SCHEDULE_FILE with schedule_file
    const char *schedule_file;
    int cp_method;           // CpMethod
    const char *order;       // NULL where absent
    const StageSpec *stages; // NULL where absent
    int num_stages;          // entries of stages
    signed char vocab_parallel;
    int vocab_barriers;          // communication barriers of its output layer: 1 or 2
    int num_placement;           // entries of placement; 0 where absent
    const int *placement;        // nodes in the order of the ranks that they run
    const LayerOverride *layers; // [num_layer_overrides] ascending, without overlap
    int num_layer_overrides;     // entries of layers; 0 where absent
} ParallelSpec;

// Reads the parallel object (an absent one leaves every field absent): types, ranges and the
// consistency of the fields among themselves.
Status parallel_load(const JsonNode *value, Arena *arena, ParallelSpec *out);

// Checks what only model and cluster can tell of the lists: nodes of placement, layers of layers.
Status parallel_check_lists(const JsonNode *value, int num_nodes, int num_layers);

// "stages", in parallel_stages.c.
Status parallel_stages_read(const JsonNode *node, Arena *arena, ParallelSpec *out);

// Whether tp, cp, dp and pp are all stated.
bool parallel_degrees_stated(const ParallelSpec *spec);
