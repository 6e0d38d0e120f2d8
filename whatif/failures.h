// whatif/failures.h - a long run played from failure to failure: a discrete-event simulation.
//
// Model:  as whatif/checkpoint.h, with what formulas leave out: a checkpoint is written after whole
//         steps, and a last one at the end. Restarts may fail themselves. Nodes under repair come
//         back one by one and the job waits where no spare is left.
//           failures  at exponential times of mean mtbf_s while the job computes, writes or
//                     restarts; a share of them, hardware_frac, takes a node out for repair_s
// Events: the next failure, the end of what the job is doing, the return of a node. Between
//         failures intervals are counted, not walked, so that a run costs its failures.
// Failures follow from the seed and the number of the run, whatever the interval is.
#pragma once

#include <stdint.h>

typedef struct {
    double step_s;
    double write_s;   // of a checkpoint
    double restart_s; // from a failure to computing again, where a node is there
    double mtbf_s;    // of the whole job; INFINITY: none
    double hardware_frac;
    double repair_s;
    int num_spares; // < 0: a node is always there
} FailureModel;

// Seconds of one run; they add up to wall_s.
typedef struct {
    double wall_s;
    double useful_s;  // steps that stay
    double write_s;   // checkpoints that are complete
    double lost_s;    // computed or written in vain
    double restart_s; // restarting, also in vain
    double wait_s;    // for a node
    int64_t num_failures;
    int64_t num_steps; // done; fewer than asked for where the run was given up
} FailureRun;

// A run is given up after so many times its useful time, or so many failures.
enum { FAILURES_MAX_WALL = 1000, FAILURES_MAX_OF_RUN = 1000000 };

// Plays a run of num_steps with a checkpoint every interval_steps.
//   seed, run  name the random numbers
FailureRun failures_play(const FailureModel *model, int64_t num_steps, int64_t interval_steps,
                         uint64_t seed, uint32_t run);

// Means over runs, and the standard error of the mean goodput (useful over wall). Behind a run that
// was given up none is played, but the second: the long one says how little stays.
typedef struct {
    int num_runs; // played
    double goodput_frac, goodput_error_frac;
    FailureRun mean; // counts are sums over the runs
} FailureStatistics;

FailureStatistics failures_repeat(const FailureModel *model, int64_t num_steps,
                                  int64_t interval_steps, uint64_t seed, int num_runs);
