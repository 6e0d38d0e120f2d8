// whatif/compare.h - two plans or scenarios side by side, term by term.
#pragma once

#include "base/json.h"
#include "costmodel/step/estimate.h"
#include "planner/planner.h"

// One of the two.
typedef struct {
    const Scenario *scenario;
    Plan plan;
    Estimate estimate; // also where it does not fit
    const char *miss;  // why there is no plan; NULL: there is one
} CompareSide;

typedef enum { COMPARE_SECONDS, COMPARE_BYTES, COMPARE_NUMBER } CompareUnit;

// A figure of both.
typedef struct {
    const char *name; // key of the answers
    CompareUnit unit;
    double a, b;
} CompareRow;

// A key of the scenarios, or of the complete `parallel`, that differs.
typedef struct {
    const char *path;
    const char *a, *b; // as JSON; NULL: absent
} CompareChange;

typedef struct {
    CompareSide a, b;
    const CompareChange *changes; // [num_changes]
    int num_changes;
    const CompareRow *rows; // [num_rows]; none where one side has no plan
    int num_rows;
    double tokens_ratio; // tokens/s of b over a
    bool same_job;       // they differ in `parallel` alone
    bool within_noise;   // of the same job: the estimate cannot tell them apart
} Comparison;

// Prices the plan that a scenario describes, or with options (not NULL) searches the best.
Status compare_side(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    CompareSide *out);

Comparison compare_sides(const CompareSide *a, const CompareSide *b, Arena *arena);

// {"schema", "a": answer, "b": answer, "changes": [{"path", "a", "b"}], "terms": [{"name", "a",
// "b", "difference", "ratio"}], "tokens_per_s_ratio", ...}. The caller owns the tree.
cJSON *compare_to_json(const Comparison *comparison);

// What stands in the way of the comparison, a sentence of which side has no room; "" where both
// have.
const char *compare_misfit_text(bool a_fits, bool b_fits);
