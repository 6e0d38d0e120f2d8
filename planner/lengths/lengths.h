// planner/lengths/lengths.h - the best plans for sequences of many lengths: one size of groups, or
// several.
//
// Method: for every shape (planner/lengths/lengths_shapes.h) a linear program bounds what any
// schedule can
//         take (planner/lengths/lengths_bound.h); in the order of these bounds schedules are worked
//         out (planner/lengths/lengths_schedule.h) until the next bound is above the best found.
//         The answer is at most gap_frac slower than the best schedule of any shape.
// Limits: no pipeline and no expert parallelism; software that runs groups of several sizes has to
//         be brought along (FlexSP's own, Megatron-Core's dynamic context parallelism).
#pragma once

#include "base/json.h"
#include "config/job/scenario.h"
#include "plan/plan.h"
#include "planner/lengths/lengths_problem.h"
#include "planner/planner.h"

enum { LENGTHS_MAX_BUCKETS = 128 };

// One answer. Its sizes are those of its problem.
typedef struct {
    const Plan *const *plans; // [problem.num_sizes] the shape with each size's cp
    LengthsProblem problem;
    LengthsSchedule schedule; // num_rounds 0: none was found
} LengthsAnswer;

typedef struct {
    const LengthBucket *buckets; // [num_buckets] longest first
    int num_buckets;
    const int64_t *left_out; // [num_left_out] lengths of which a step has less than one sequence
    int num_left_out;
    double num_tokens;        // of a step, without padding
    LengthsAnswer one_size;   // the best static plan: all groups of one size
    LengthsAnswer many_sizes; // never slower
    double bound_s;           // no schedule of any shape is shorter
    double gap_frac;          // how much better than many_sizes one could be at most
    int num_shapes, num_bounded, num_scheduled; // left open; that hold all sequences; worked out
    double longest_tokens; // the longest sequence that some group holds; 0 where the model does not
                           // fit
    bool stopped_early;    // by end_soon: the best of the shapes looked at; the bound is of all
    double wall_s;
} LengthsResult;

typedef struct {
    double max_memory_bytes;     // of one GPU; 0: what it has
    double fit_probability_frac; // as PlannerOptions
    int num_threads;
    PlannerProgress progress; // of shapes worked out, out of those that hold every length; NULL
    void *progress_context;
    const atomic_bool *end_soon; // set from elsewhere: look at no further shape; or NULL
} LengthsOptions;

// Plans a scenario that has training.sequence_lengths. The result lives in the arena.
//   returns  STATUS_OK, also where some sequence fits on no group (no rounds, an answer);
//            STATUS_INVALID where the constraints cannot be kept, naming them
Status lengths_search(const Scenario *scenario, const LengthsOptions *options, Arena *arena,
                      LengthsResult *out);

// Whether the answer holds every sequence.
bool lengths_fits(const LengthsResult *result);

// How much longer a step takes with groups of one size; 0 where that does not fit, or is no slower.
double lengths_gain_frac(const LengthsResult *result);

// "training.sequence_lengths: length 1048576 fits on no group of ...": why it does not.
Status lengths_refuse(const Scenario *scenario, const LengthsResult *result);

// The document of `plan --json` (docs/planning.md). The caller owns the tree.
cJSON *lengths_to_json(const LengthsResult *result);
