// The log of a training run.
#include "calibrate/run_log.h"
#include "config/job/scenario.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static const char JOB[] =
    "{\"schema\": 1, \"model\": \"llama-3.1-8b\", \"cluster\": \"dgx-h100:1\","
    " \"training\": {\"seq_len\": 4096, \"global_batch\": 128, \"precision\": \"bf16\"},"
    " \"parallel\": {\"tp\": 8, \"pp\": 1, \"dp\": 1, \"micro_batch\": 1}}";

void fuzz_read(char *text, size_t size, Arena *arena) {
    static Arena lasting;
    static Scenario scenario;
    static Plan plan;
    static bool ready;
    JsonNode root;
    RunLog log;
    (void)text;
    (void)size;
    if (!ready) {
        ready = json_parse(JOB, strlen(JOB), "job.json", &lasting, &root).code == STATUS_OK &&
                scenario_read(&root, &lasting, &scenario).code == STATUS_OK &&
                plan_resolve(&scenario, &lasting, &plan).code == STATUS_OK;
        if (!ready) abort(); // our own mistake
    }
    run_log_load(fuzz_path(), &scenario, &plan, arena, &log);
}
