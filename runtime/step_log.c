#include "runtime/step_log.h"

#include <errno.h>
#include <string.h>

Status step_log_open(const char *path, bool goes_on, bool speaks, StepLog *out) {
    *out = (StepLog){.speaks = speaks, .path = path};
    if (!path || !speaks) return status_ok();
    out->file = fopen(path, goes_on ? "a" : "w");
    if (!out->file) return status_error(STATUS_INVALID, "%s: %s", path, strerror(errno));
    return status_ok();
}

Status step_log_write(StepLog *log, const StepLine *line) {
    if (!log->speaks) return status_ok();
    printf("step %lld: loss %.6f, gradient norm %.4f, %.4g s, %.0f tokens/s\n",
           (long long)line->step, line->values.loss, line->values.gradient_norm, line->step_time_s,
           line->tokens_per_s);
    fflush(stdout);
    if (!log->file) return status_ok();
    fprintf(log->file,
            "{\"step\": %lld, \"loss\": %.17g, \"gradient_norm\": %.17g, \"step_time_s\": %.6g, "
            "\"tokens_per_s\": %.6g, \"memory_peak_bytes\": %.0f, \"program_peak_bytes\": %.0f, "
            "\"memory_off_frac\": %.4g",
            (long long)line->step, line->values.loss, line->values.gradient_norm, line->step_time_s,
            line->tokens_per_s, line->memory_peak_bytes, line->program_peak_bytes,
            line->memory_off_frac);
    if (line->imbalance.of_layers > 0)
        fprintf(log->file, ", \"moe_imbalance\": %.6g, \"moe_imbalance_of_rank\": %.6g",
                line->imbalance.of_layers, line->imbalance.of_rank);
    fprintf(log->file, "}\n");
    if (fflush(log->file) != 0)
        return status_error(STATUS_MACHINE, "%s: %s", log->path, strerror(errno));
    return status_ok();
}

Status step_log_close(StepLog *log) {
    const bool failed = log->file && fclose(log->file) != 0;
    log->file = NULL;
    if (failed) return status_error(STATUS_MACHINE, "%s: %s", log->path, strerror(errno));
    return status_ok();
}

void step_log_head(const Scenario *scenario, const char *plan, const Backend *backend) {
    printf("%s on %s in %s\n%s; %.0f parameters, %lld sequences of %lld tokens a step\n",
           scenario->model.name, backend->name, dtype_name(backend->act), plan,
           model_num_parameters(&scenario->model), (long long)scenario->training.global_batch,
           (long long)scenario->training.seq_len);
    fflush(stdout);
}
