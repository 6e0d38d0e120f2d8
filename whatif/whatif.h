// whatif/whatif.h - a grid of changes to a scenario, each point priced or planned anew.
//
// A change sets one value of the scenario's document at a dotted path and reads the result like
// any scenario, so that whatever a scenario can say can be varied. Where the document holds a
// preset's name and the path goes inside it (cluster.num_gpus of "dgx-h100:16"), the preset is
// written out first. Where something is disturbed, every point is played in the simulator; a search
// knows nothing of disturbances. What follows from a varied key is derived again instead of kept,
// where it is not varied itself:
//   cluster, cluster.num_gpus, parallel.tp, pp, cp     dp, zero_group
//   parallel.dp                                        zero_group
//   cluster, cluster.num_gpus, gpus_per_node           placement
//   model, model.num_hidden_layers, parallel.pp, vpp   stages
//   model, model.num_hidden_layers                     layers
//   parallel.vpp                                       schedule
//
// Points are independent: threads take them as they come, and so do several processes that share
// a journal (whatif/journal.h). The result is the same, however many there are.
#pragma once

#include "base/arena.h"
#include "base/json_document.h"
#include "base/spill.h"
#include "base/status.h"
#include "config/job/scenario.h"
#include "planner/planner.h"

#include <stdbool.h>
#include <stdint.h>

enum { WHATIF_MAX_AXES = 16, WHATIF_MAX_POINTS = 1000000 };

// One --vary: a path and the values it takes.
typedef struct {
    const char *path;
    const cJSON *const *values; // [num_values] any JSON value
    int num_values;
} WhatifAxis;

// Parses "PATH=v1,v2,...": numbers, true, false, null, {...}, [...]; anything else is a string.
// Ranges of numbers: "8..64:x2" (8, 16, 32, 64), "1..10:+3" (1, 4, 7, 10), "1..4" (step 1).
Status whatif_parse_axis(const char *text, Arena *arena, WhatifAxis *out);

// What the table of people shows of a point.
typedef struct {
    double step_time_s, tokens_per_s, mfu_frac;
    double memory_device_bytes, memory_available_bytes;
    double usd_per_1e9_tokens; // 0: no price
} WhatifFigures;

// One point of the grid; the last axis varies fastest.
typedef struct {
    bool done;
    StatusCode code;     // STATUS_OK, STATUS_NO (does not fit), STATUS_INVALID (refused)
    const char *message; // why not; NULL where code is STATUS_OK
    const char *plan;    // as plan_describe has it; NULL: no answer
    const char *answer;  // the JSON of `estimate --json`, unformatted; NULL: none; empty: not kept
    const char *note;    // what was not played; NULL: nothing
    WhatifFigures figures;
} WhatifPoint;

// What playing a plan in the simulator gives.
typedef struct {
    double step_time_s; // the mean over the repetitions
    double p95_step_time_s, undisturbed_step_time_s;
    int num_repetitions;
    const char *const *not_played; // [num_not_played] sentences: what no disturbed link slows
    int num_not_played;
} WhatifPlayed;

// Plays a plan with the disturbances of its scenario. Called from any thread.
typedef Status (*WhatifPlay)(void *context, const Scenario *scenario, const Plan *plan,
                             Arena *arena, WhatifPlayed *out);

struct Journal;

typedef struct {
    WhatifPlay play; // of every point that fits; NULL: nothing is played, disturb is refused
    void *play_context;
    bool replan;             // search at every point; otherwise the scenario's plan is kept
    bool figures_only;       // answers are not wanted as documents, which are most of the memory
    PlannerOptions planner;  // for replan; its progress is called with points
    int num_threads;         // 0 or 1: the calling one only
    struct Journal *journal; // of this question (whatif_question); NULL: nothing is kept
} WhatifOptions;

typedef struct {
    const WhatifAxis *axes; // [num_axes]
    int num_axes;
    const WhatifPoint *points; // [num_points]
    int64_t num_points;
    int64_t num_kept;     // of them, found in the journal when the work began
    const Spill *answers; // where those of the points are
    bool replan;
    bool played;
    double wall_s;
} WhatifResult;

// The number of points, once the grid is checked. Refused: no axis, a path given twice or inside
// another, an unknown path (with the nearest key), more than WHATIF_MAX_POINTS points.
Status whatif_check(const Scenario *scenario, const WhatifAxis *axes, int num_axes,
                    int64_t *num_points);

// Whether some point of the grid may be disturbed: the scenario is, or an axis is of `disturb`.
bool whatif_is_disturbed(const Scenario *scenario, const WhatifAxis *axes, int num_axes);

// A number that differs where the scenario, its files, the axes or the version do.
//   replan_probability_frac  with which plans that are searched anew have to fit; 0: none are
//   num_repetitions          of what is played; 0: nothing is
uint64_t whatif_question(const Scenario *scenario, const WhatifAxis *axes, int num_axes,
                         double replan_probability_frac, int num_repetitions);

// Prices a grid, after whatif_check. A point that is refused is an entry of the result, not a
// failure. With a journal it ends when every point is done, by this process or another.
Status whatif_run(const Scenario *scenario, const WhatifAxis *axes, int num_axes,
                  const WhatifOptions *options, Arena *arena, WhatifResult *out);

// The value of an axis at a point.
const cJSON *whatif_value(const WhatifAxis *axes, int num_axes, int64_t point, int axis);

// {"schema": 1, "vary": [{"path", "values"}], "points": [{"values": {path: value}, "plan",
// "answer"} or with "error"], "timing"}; where points are played the answer is the estimate without
// disturbances, with "simulated": {"step_time_s", "tokens_per_s", "mfu_frac", "usd_per_1e9_tokens",
// "p95_step_time_s", "undisturbed_step_time_s", "num_repetitions", "not_played"}. The caller owns
// the tree.
cJSON *whatif_to_json(const WhatifResult *result);

// The document, whose points are made when it is written.
//   tree    whatif_to_frame's, to which members may be added
//   result  outlives it
JsonDocument whatif_document(const WhatifResult *result, const cJSON *tree);

// The tree without its points. The caller owns it.
cJSON *whatif_to_frame(const WhatifResult *result);

// The tree with whole points for the first num_whole alone. The others have figures (fits,
// step_time_s, tokens_per_s, usd_per_1e9_tokens), and values where a figure is the best so far. The
// caller owns it.
cJSON *whatif_to_brief_json(const WhatifResult *result, int64_t num_whole);
