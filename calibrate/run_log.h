// calibrate/run_log.h - step times from the log of a training run.
//
// Megatron-LM prints every so many iterations their mean time and the batch of that moment:
//    iteration       20/     100 | consumed samples: 2560 | elapsed time per iteration (ms): 1234.5
//    | learning rate: 1.0E-04 | global batch size:   128 | lm loss: ...
// (megatron/training/training.py, training_log), torchtitan a rate of one GPU, in colours:
//    step: 10  loss: 8.1  memory: 50.20GiB(63.41%)  tps: 5,762  tflops: 300.12  mfu: 30.35%
// (torchtitan/components/metrics.py; `wps` before 2025), the bundled runtime a JSON object a step:
//    {"step": 3, "loss": 8.1, ..., "step_time_s": 0.0645, "tokens_per_s": 507911, ...}
// and, where a router chooses between ranks, "moe_imbalance" and "moe_imbalance_of_rank".
// All other lines are skipped.
// The first two lines of steps are warm-up (compilation, autotuning, the allocator) and dropped.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/job/scenario.h"
#include "plan/plan.h"

typedef enum { RUN_LOG_MEGATRON, RUN_LOG_TORCHTITAN, RUN_LOG_RUNTIME, NUM_RUN_LOGS } RunLogKind;

extern const char *const RUN_LOG_NAMES[NUM_RUN_LOGS + 1]; // ends with NULL

enum { RUN_LOG_WARM_UP = 2, RUN_LOG_LEAST_STEPS = 5 };

// Of a longer line the beginning counts: what is no line of a step may be as long as it likes.
enum { RUN_LOG_MAX_LINE_BYTES = 1 << 16 };
#define RUN_LOG_MAX_BYTES ((size_t)256 << 20)

typedef struct {
    RunLogKind kind;
    int num_lines;     // of steps
    double step_s;     // median without the warm-up
    double spread;     // robust standard deviation of the log of one line's
    int64_t num_steps; // the last step's number
    int line;          // of the file: the first step after the warm-up of at most step_s
    // Of the bundled runtime's learned routing (runtime/expert_load.h); 0 where none is said.
    double moe_imbalance;         // median without the warm-up, as training.moe_routing.imbalance
    double moe_imbalance_of_rank; // the largest of all steps
    double memory_peak_bytes;     // of the rank that held most; 0 where the log does not say
} RunLog;

// Reads a log ("-" is standard input) of a run of this plan of a scenario, which says what
// torchtitan's rate is of. Refusals are STATUS_INVALID, with FILE:LINE where there is one. A file
// is refused that is unreadable, too long, has a NUL byte, no or too few lines of steps, or lines
// of several programs. So is one with a line that ends before its time, a time or rate that is not
// a positive number, or a time in another unit. A global batch or another size
// (calibrate/run_claims.h) that is not that of the plan is refused as well.
Status run_log_load(const char *path, const Scenario *scenario, const Plan *plan, Arena *arena,
                    RunLog *out);
