// The norm of all gradients is looked at after the optimizer's step, which is taken back in the
// rare step that it condemns: pipeline ranks need not wait for it, or for each other, in between.
#include "workload/technique/technique_rows.h"

static void step(const Execution *execution, StepTraits *traits) {
    (void)execution;
    traits->begins_together = false;
}

const Technique TECHNIQUE_ROW_OPTIMIZER_POST_VALIDATION = {
    .source = "Qi et al., \"Zero Bubble Pipeline Parallelism\", 2023, arXiv:2401.10241, section 4",
    .step = step,
};
