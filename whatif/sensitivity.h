// whatif/sensitivity.h - which resource limits a job: its step with a little more and less of each.
//
// Model:  one resource at a time is multiplied by 1 + x and 1 - x (whatif/resource.h) and the step
//         is priced again, of the same plan or of the best plan for that machine. Ranked by what
//         the better machine saves, then by what the worse one costs.
#pragma once

#include "base/json.h"
#include "costmodel/step/estimate.h"
#include "planner/planner.h"
#include "whatif/resource.h"

// The job on one machine.
typedef struct {
    double factor;       // of the resource; 1 for the machine as it is
    StatusCode code;     // STATUS_OK; STATUS_NO: does not fit
    const char *message; // why not; NULL where code is STATUS_OK
    bool has_answer;     // plan and estimate are set
    Plan plan;
    Estimate estimate;
} SensitivityCase;

typedef struct {
    Resource resource;
    SensitivityCase better, worse;
    double saves_frac; // of the step, on the better machine; <= 0 where it saves nothing
    double costs_frac; // of the step, on the worse one; INFINITY where it does not fit
} SensitivityRow;

typedef struct {
    double change_frac; // x
    bool replan;
    SensitivityCase base;
    SensitivityRow rows[NUM_RESOURCES]; // ranked; none where base has no answer
    int num_rows;
    double wall_s;
} Sensitivity;

typedef struct {
    double change_frac; // in (0, 1)
    bool replan;
    PlannerOptions planner; // for replan
    int num_threads;
} SensitivityOptions;

// Less than this is nothing: a step's time is not known better.
static const double SENSITIVITY_LEAST_FRAC = 0.001;

// The plan is the scenario's own, or with replan the best within its `parallel`. A plan that does
// not fit is an answer (base.code).
Status sensitivity_run(const Scenario *scenario, const SensitivityOptions *options, Arena *arena,
                       Sensitivity *out);

// What limits most; NULL where no row saves SENSITIVITY_LEAST_FRAC.
const SensitivityRow *sensitivity_limit(const Sensitivity *sensitivity);

// {"schema", "sensitivity": {"change_frac", "replan", "limited_by", "base", "rows": [{"resource",
// "saves_frac", "costs_frac", "better": {"factor", "step_time_s", "plan", ...}, "worse"}]},
// "timing"}. The caller owns the tree.
cJSON *sensitivity_to_json(const Sensitivity *sensitivity);
