// Schedule and stages.
#include "import/torchtitan.h"

#include "plan/schedule/schedule.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

// The classes that some schedule is.
static const char *classes_text(Arena *arena) {
    const char *text = "";
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        const char *name = schedule_find((ScheduleKind)kind)->torch_class;
        if (name) text = arena_printf(arena, "%s%s%s", text, *text ? ", " : "", name);
    }
    return text;
}

static Status schedule_read(TitanRead *read, bool *looped) {
    const char *name;
    TRY(titan_text(read, "parallelism", "pipeline_parallel_schedule", "1F1B", &name));
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        const Schedule *schedule = schedule_find((ScheduleKind)kind);
        if (!schedule->torch_class || strcasecmp(schedule->torch_class, name) != 0) continue;
        cJSON_AddStringToObject(read->parallel, "schedule", SCHEDULE_NAMES[kind]);
        *looped = schedule->num_chunks != 1;
        return status_ok();
    }
    return import_refuse(read->out, "parallelism.pipeline_parallel_schedule",
                         "\"%.40s\" is not supported yet; expected one of %s", name,
                         classes_text(read->out->arena));
}

static void stage_add(cJSON *stages, int layers, bool embedding, bool loss) {
    cJSON *stage = cJSON_CreateObject();
    cJSON_AddNumberToObject(stage, "layers", layers);
    if (embedding) cJSON_AddTrueToObject(stage, "embedding");
    if (loss) cJSON_AddTrueToObject(stage, "loss");
    cJSON_AddItemToArray(stages, stage);
}

// [["tok_embeddings", "layers.0"], ...]
static Status parts_read(TitanRead *read, const cJSON *parts, cJSON *stages) {
    const cJSON *part, *name;
    cJSON_ArrayForEach(part, parts) {
        int layers = 0;
        bool embedding = false, loss = false;
        cJSON_ArrayForEach(name, part) {
            const char *text = cJSON_IsString(name) ? name->valuestring : "";
            layers += strncmp(text, "layers.", 7) == 0;
            embedding |= strcmp(text, "tok_embeddings") == 0;
            loss |= strcmp(text, "output") == 0;
        }
        stage_add(stages, layers, embedding, loss);
    }
    if (cJSON_GetArraySize(stages) % read->pp == 0 && cJSON_GetArraySize(stages) > 0)
        return status_ok();
    return import_refuse(read->out, "parallelism.module_fqns_per_model_part",
                         "%d parts are not a multiple of pp %d", cJSON_GetArraySize(stages),
                         read->pp);
}

// Layers over stages where the ends count as so many layers more.
static Status even_stages(TitanRead *read, int num_stages, int first, int last, cJSON *stages) {
    int counted = read->num_layers + first + last;
    int each = counted / num_stages, extra = counted % num_stages;
    for (int s = 0; s < num_stages; s++) {
        int layers = each + (s < extra);
        if (s == 0) layers -= first;
        if (s == num_stages - 1) layers -= last;
        if (layers < 0)
            return import_refuse(read->out, "parallelism.pipeline_parallel_degree",
                                 "%d stages are too many for %d layers", num_stages,
                                 read->num_layers);
        stage_add(stages, layers, s == 0, s == num_stages - 1);
    }
    return status_ok();
}

static Status count_stages(TitanRead *read, bool looped, int first, int last, int *num_stages) {
    int each;
    TRY(titan_int(read, "parallelism", "pipeline_parallel_layers_per_stage", 1, 0, &each));
    *num_stages = read->pp * (looped ? 2 : 1);
    if (each == 0) return status_ok();
    *num_stages = (read->num_layers + first + last + each - 1) / each;
    if (*num_stages % read->pp == 0) return status_ok();
    return import_refuse(read->out, "parallelism.pipeline_parallel_layers_per_stage",
                         "%d gives %d stages, no multiple of pp %d", each, *num_stages, read->pp);
}

Status titan_read_pipeline(TitanRead *read) {
    int first, last, num_stages;
    bool looped = false;
    if (read->pp == 1) return status_ok();
    TRY(schedule_read(read, &looped));
    TRY(titan_int(read, "parallelism", "pipeline_parallel_first_stage_less_layers", 0, 1, &first));
    TRY(titan_int(read, "parallelism", "pipeline_parallel_last_stage_less_layers", 0, 1, &last));
    if (first > read->num_layers || last > read->num_layers)
        return import_refuse(read->out, "parallelism.pipeline_parallel_first_stage_less_layers",
                             "is more than the model's %d layers", read->num_layers);
    if (cJSON_GetArraySize(titan_key(read, "parallelism", "pipeline_parallel_split_points")) > 0)
        return import_refuse(read->out, "parallelism.pipeline_parallel_split_points",
                             "is not supported yet; expected module_fqns_per_model_part");
    cJSON *stages = cJSON_AddArrayToObject(read->parallel, "stages");
    const cJSON *parts = titan_key(read, "parallelism", "module_fqns_per_model_part");
    if (parts) {
        TRY(parts_read(read, parts, stages));
    } else {
        TRY(count_stages(read, looped, first, last, &num_stages));
        TRY(even_stages(read, num_stages, first, last, stages));
    }
    int vpp = cJSON_GetArraySize(stages) / read->pp;
    if (vpp > 1) cJSON_AddNumberToObject(read->parallel, "vpp", vpp);
    return status_ok();
}
