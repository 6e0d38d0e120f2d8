// calibrate/step_rows.h - published steps as the fits of whole-step parameters see them: measured,
// predicted, and how the prediction moves with each parameter.
//
// A parameter is one number of a data file that many steps share: of a GPU architecture
// (hw-profiles/gpus: efficiency) or of a software stack (stacks). It is fitted as a factor of what
// stands in the files, because all GPUs of an architecture share what is fitted.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "calibrate/published.h"
#include "calibrate/validate.h"
#include "config/job/calibration.h"
#include "config/job/scenario.h"

enum { STEP_MAX_PARAMETERS = 64, STEP_ROW_PARAMETERS = 8 };

// A number of a data file, of all GPUs of an architecture or of a stack.
typedef struct {
    const char *name; // its key there
    const char *unit;
    bool of_stack; // else of an architecture
    size_t offset;
} StepQuantity;

extern const StepQuantity STEP_QUANTITIES[];
extern const int NUM_STEP_QUANTITIES;

typedef struct {
    const StepQuantity *quantity;
    const char *owner; // architecture or stack
    double low, high;  // values in the files, over the GPUs that appear; of a stack equal
    double log_factor; // found so far; 0: as in the files
} StepParameter;

typedef struct {
    const PublishedCase *published;
    const char *site; // family and GPU: steps that share what is wrong with a prediction
    const char *gpu;  // of the first group of machines
    int num_experts;  // of a layer that has any; 0: none has
    int tp;
    double measured_s, predicted_s;
    double log_ratio; // of measured over predicted
    double part_s[NUM_PARTS];
    double known_variance;
    double num_nodes;
    int num_parameters;
    int parameter[STEP_ROW_PARAMETERS];
    double slope[STEP_ROW_PARAMETERS]; // of the log of the prediction over log_factor
} StepRow;

typedef struct {
    StepRow *rows; // [num_rows]
    int num_rows;
    int num_refused; // cases left out: refused, or without everything stated
    StepParameter parameters[STEP_MAX_PARAMETERS];
    int num_parameters;
} StepRows;

// Predicts all cases that state everything, with the parameters' factors as they stand in rows
// (zeroed before the first call), and fills in rows. Slopes are central differences of 5 %.
Status step_rows_predict(const PublishedCase *published, int num_cases, ValidateProgress progress,
                         void *context, Arena *arena, StepRows *rows);
