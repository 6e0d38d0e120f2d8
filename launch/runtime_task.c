// The bundled runtime: it reads the plan itself.
#include "base/json.h"
#include "launch/task.h"
#include "workload/step/runtime_limits.h"

#include <stdio.h>
#include <stdlib.h>

#define PLAN_FILE "launch.plan.json"

static Status plan_text(const Scenario *scenario, const Plan *plan, Arena *arena,
                        const char **text) {
    char *buffer = NULL;
    size_t size;
    FILE *stream = open_memstream(&buffer, &size);
    if (!stream) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    cJSON *document = plan_document(scenario, plan, NULL);
    Status status = json_write(document, stream);
    fclose(stream);
    cJSON_Delete(document);
    *text = arena_strdup(arena, buffer);
    free(buffer);
    return status;
}

static Status runtime_task(const Scenario *scenario, const Plan *plan, Arena *arena,
                           LaunchTask *out) {
    static const char settings[] =
        "# The runtime, where it is not on the PATH; every node needs it at the same place.\n"
        "MESHWRIGHT_RUN=${MESHWRIGHT_RUN:-meshwright-run}\n"
        "# DATA_PATH: a file of text, a token for each byte. Empty trains on made-up tokens.\n"
        "DATA_PATH=${DATA_PATH:-}\n"
        "# DEVICE: cuda or cpu. STEP_LOG: a file that gets a JSON line for each step.\n"
        "DEVICE=${DEVICE:-%s}\n"
        "STEPS=${STEPS:-10}\n"
        "STEP_LOG=${STEP_LOG:-}\n";
    static const char arguments[] =
        "ARGS=(\n"
        "    \"$LAUNCH_DIR/" PLAN_FILE "\"\n"
        "    --steps \"$STEPS\"\n"
        "    --device \"$DEVICE\"\n"
        ")\n"
        "if [ -n \"$DATA_PATH\" ]; then ARGS+=(--data \"$DATA_PATH\"); fi\n"
        "if [ -n \"$STEP_LOG\" ]; then ARGS+=(--log \"$STEP_LOG\"); fi\n";
    const char *text = NULL;
    TRY(runtime_supports(scenario, plan));
    TRY(plan_text(scenario, plan, arena, &text));
    bool cpu = cluster_only_pool(&scenario->cluster)->gpu.core != NULL;
    *out = (LaunchTask){.software = "the bundled runtime, meshwright " MESHWRIGHT_VERSION,
                        .settings = arena_printf(arena, settings, cpu ? "cpu" : "cuda"),
                        .arguments = arguments,
                        .program = "\"$MESHWRIGHT_RUN\"",
                        .files = {{PLAN_FILE, text, false}},
                        .num_files = 1};
    return status_ok();
}

const Target TARGET_RUNTIME = {.make = runtime_task, .files = {PLAN_FILE}, .mpi = true};
