#include "calibrate/run_claims.h"

#include "base/quantity.h"

#include <string.h>

// Where a size stands: in the sentence behind its name and a colon, in the list behind `argument`.
typedef struct {
    const char *name, *argument, *key;
    double expected;
} Size;

// The number behind a label, over the dots of the list. False where there is none ("None").
static bool size_read(const char *line, const char *label, double *out) {
    const char *at = strstr(line, label);
    if (!at) return false;
    at += strlen(label);
    at += strspn(at, " :.");
    char *end;
    *out = decimal_read(at, &end);
    return end != at && strchr(" ,\r\n", *end);
}

bool run_claim_differs(const char *line, const Scenario *scenario, const Plan *plan,
                       RunClaim *out) {
    // Behind a space: virtual_pipeline_model_parallel_size is another argument.
    const Size sizes[] = {
        {"world size", " world_size .", "cluster.num_gpus", scenario->cluster.num_gpus},
        {"tensor-model-parallel size", " tensor_model_parallel_size .", "parallel.tp", plan->tp},
        {"pipeline-model-parallel size", " pipeline_model_parallel_size .", "parallel.pp",
         plan->pp},
        {"context-parallel size", " context_parallel_size .", "parallel.cp", plan->cp},
        {"expert-model-parallel size", " expert_model_parallel_size .", "parallel.ep", plan->ep},
        {"virtual-pipeline-model-parallel size", " virtual_pipeline_model_parallel_size .",
         "parallel.vpp", plan->vpp},
        {"micro-batch size", " micro_batch_size .", "parallel.micro_batch", plan->micro_batch},
        {"sequence length", " seq_length .", "training.seq_len",
         (double)scenario->training.seq_len},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const Size *size = &sizes[i];
        char label[64] = " ";
        strcat(strcat(label, size->name), ":");
        double said;
        if (!size_read(line, size->argument, &said) && !size_read(line, label, &said)) continue;
        if (said == size->expected) continue;
        *out = (RunClaim){size->name, size->key, said, size->expected};
        return true;
    }
    return false;
}
