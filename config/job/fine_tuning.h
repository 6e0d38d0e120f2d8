// config/job/fine_tuning.h - which of a model's weights a job trains: all of them, or low-rank
// adapters beside products whose own weights are frozen.
//
// Sources: adapters W + B A of rank r: Hu et al. 2021, arXiv:2106.09685, section 4.1; with a
// magnitude for each output: Liu et al. 2024, arXiv:2402.09353; a base of 4-bit numbers: Dettmers
// et al. 2023, arXiv:2305.14314, section 3. Names of targets: huggingface/peft, LoraConfig,
// target_modules.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/model/model.h"
#include "config/software/execution.h"

#include <stdbool.h>

// Matrices that adapters may stand beside, as PEFT names them.
typedef enum {
    TARGET_Q_PROJ,
    TARGET_K_PROJ,
    TARGET_V_PROJ,
    TARGET_O_PROJ,
    TARGET_GATE_PROJ,
    TARGET_UP_PROJ,
    TARGET_DOWN_PROJ,
    TARGET_Q_A_PROJ,
    TARGET_Q_B_PROJ,
    TARGET_KV_A_PROJ,
    TARGET_KV_B_PROJ,
    TARGET_IN_PROJ,  // of a state-space mixer
    TARGET_OUT_PROJ, // of a mixer that keeps a state
    NUM_TARGETS
} AdapterTarget;
extern const char *const TARGET_NAMES[]; // ends with NULL

// Parts of a model, a bit set.
enum {
    FROZEN_EMBEDDING = 1,
    FROZEN_HEAD = 2,  // with the last norm
    FROZEN_MIXER = 4, // attention or what stands in its place
    FROZEN_MLP = 8,   // dense ones and shared experts
    FROZEN_ROUTER = 16,
    FROZEN_EXPERTS = 32, // the routed ones
    FROZEN_NORMS = 64,   // of the layers
    FROZEN_FRONT = 128,  // a tower for images, or an encoder
};
extern const char *const FROZEN_NAMES[]; // of `frozen`, in this order, with two for the front

typedef struct {
    int kind;          // AdapterKind; ADAPTER_NONE: there are none
    int rank;          // >= 1
    unsigned targets;  // bit 1 << AdapterTarget
    int base_dtype;    // BaseDtype of the frozen matrices that layers multiply by
    bool double_quant; // of a 4-bit base: its scales are quantized, too
    double dropout;    // before A; 0: none
} Adapters;

typedef struct {
    Adapters adapters; // with them all of the model's own weights are frozen
    unsigned frozen;   // PART_* without adapters
} FineTuning;

// Whether some of the model's own weights are not trained; whether those of a part are not.
bool fine_tuning_freezes(const FineTuning *tuning);
bool fine_tuning_freezes_part(const FineTuning *tuning, unsigned part);

// Reads the keys `adapters` and `frozen` of the training object; what the stack cannot do is
// refused.
Status fine_tuning_read(const JsonNode *training, const Execution *execution, Arena *arena,
                        FineTuning *out);

// Refuses targets that no layer of the model has, ranks beyond their matrices, and what adapters
// are not priced with yet.
Status fine_tuning_check(const JsonNode *training, const Model *model, const Execution *execution,
                         const FineTuning *tuning, Arena *arena);

// A matrix that a target names: y [n] = W x [k], in so many copies.
typedef struct {
    double n, k, copies;
} TargetMatrix;
enum { TARGET_MATRICES = 2 };

// Of a layer of one kind; beside routed experts there may be shared ones. Returns how many.
int target_matrices(const Model *model, const LayerKind *kind, AdapterTarget target,
                    TargetMatrix matrices[TARGET_MATRICES]);

// Weights that are trained; all of the model's where nothing is frozen. And of a layer's adapters
// those that a token passes.
double fine_tuning_trained_parameters(const Model *model, const FineTuning *tuning);
// Of a layer's own matrices, those of frozen parts that a token multiplies.
double frozen_active_parameters(const Model *model, const LayerKind *kind,
                                const FineTuning *tuning);
double adapters_active_parameters(const Model *model, const LayerKind *kind,
                                  const Adapters *adapters);

// Bytes that one frozen number is stored in: of a matrix that layers multiply by, and of all else.
// A 4-bit number has half a byte and its part of the scale that a block of 64 has. A scale has 4
// bytes; where scales are quantized 1 byte, and 4 more for 256 of them (bitsandbytes,
// functional.py, quantize_4bit; Dettmers et al. 2023, section 3: 0.5 and 0.127 bits).
double base_matrix_bytes(const FineTuning *tuning);
double base_other_bytes(const FineTuning *tuning);
