#include "import/plan_lines_read.h"

#include "launch/plan_lines.h"

#include <stdlib.h>
#include <string.h>

// A number from 0 on, and what stands behind it; -1: there is none.
static int number_take(const char **at) {
    char *end;
    const long value = strtol(*at, &end, 10);
    if (end == *at || value < 0 || value > 10000000) return -1;
    *at = end;
    return (int)value;
}

static void idle_read(const char *at, Imported *out) {
    const int idle = number_take(&at);
    if (idle <= 0 || strncmp(at, " of ", 4) != 0) return;
    at += 4;
    const int total = number_take(&at);
    if (total <= idle) return;
    out->idle_gpus = idle;
    out->idle_of = total;
}

static void placement_read(const char *at, Imported *out) {
    cJSON *list = cJSON_CreateArray();
    const char *end = at + strcspn(at, "\n");
    while (at < end) {
        const int node = number_take(&at);
        if (node < 0) break;
        cJSON_AddItemToArray(list, cJSON_CreateNumber(node));
    }
    cJSON_Delete(out->placement);
    out->placement = list;
}

void plan_lines_read(const char *text, Imported *out) {
    const size_t length = strlen(PLAN_LINE);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, PLAN_LINE, length) != 0) continue;
        const char *at = line + length;
        if (strncmp(at, PLAN_LINE_IDLE " ", sizeof PLAN_LINE_IDLE) == 0)
            idle_read(at + sizeof PLAN_LINE_IDLE, out);
        if (strncmp(at, PLAN_LINE_PLACEMENT " ", sizeof PLAN_LINE_PLACEMENT) == 0)
            placement_read(at + sizeof PLAN_LINE_PLACEMENT, out);
    }
}

int plan_lines_gpus(Imported *out, int num_gpus) {
    if (out->idle_gpus == 0 || num_gpus == out->idle_of) return num_gpus - out->idle_gpus;
    import_note(out, "It leaves %d of %d GPUs idle, --cluster has %d: taken as %d without any.",
                out->idle_gpus, out->idle_of, num_gpus, num_gpus);
    out->idle_gpus = 0;
    return num_gpus;
}

void plan_lines_finish(Imported *out) {
    cJSON *parallel = cJSON_GetObjectItemCaseSensitive(out->scenario, "parallel");
    if (out->idle_gpus > 0) cJSON_AddNumberToObject(parallel, "idle_gpus", out->idle_gpus);
    if (out->placement) cJSON_AddItemToObject(parallel, "placement", out->placement);
    out->placement = NULL;
}
