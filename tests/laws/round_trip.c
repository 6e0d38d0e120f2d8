#include "tests/laws/round_trip.h"

#include "base/data_dir.h"
#include "base/json.h"
#include "costmodel/step/estimate.h"
#include "tests/laws/scenario_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const TripWay TRIP_WAYS[NUM_TRIP_WAYS] = {
    {LAUNCH_MEGATRON, IMPORT_MEGATRON, "megatron-core", NULL},
    {LAUNCH_NEMO, IMPORT_NEMO, "megatron-core", "megatron_bridge.yaml"},
    {LAUNCH_DEEPSPEED, IMPORT_DEEPSPEED, "megatron-2021", NULL},
    {LAUNCH_TORCHTITAN, IMPORT_TORCHTITAN, "torchtitan", "torchtitan.toml"},
};

// The keys of stacks/no_flag/TARGET.json.
static Status no_flag_load(TripPlace *place, int way) {
    JsonNode root;
    const char *name = LAUNCH_TARGET_NAMES[TRIP_WAYS[way].target];
    TRY(json_load(data_path(&place->arena, "stacks/no_flag", name), &place->arena, &root));
    const JsonNode list = json_get(&root, "keys");
    const char **keys = ARENA_ARRAY(&place->arena, json_size(&list) + 1, const char *);
    for (int i = 0; i < json_size(&list); i++) {
        const JsonNode entry = json_at(&list, i), key = json_get(&entry, "key");
        TRY(json_read_string(&key, &place->arena, &keys[i]));
    }
    place->no_flag[way] = keys;
    return status_ok();
}

Status trip_place_init(TripPlace *place) {
    *place = (TripPlace){.folder = "/tmp/round-trip-XXXXXX"};
    if (!mkdtemp(place->folder)) return status_error(STATUS_MACHINE, "no folder in /tmp");
    place->shelf = kernel_shelf_new();
    for (int w = 0; w < NUM_TRIP_WAYS; w++) TRY(no_flag_load(place, w));
    return status_ok();
}

static const char *path_in(const TripPlace *place, const char *name, Arena *arena) {
    return arena_printf(arena, "%s/%s", place->folder, name);
}

void trip_place_free(TripPlace *place) {
    static const char *const FILES[] = {
        "cluster.json",     "launch.sh",          "launch.sbatch",
        "launch-mpirun.sh", "ds_config.json",     "megatron_bridge.yaml",
        "torchtitan.toml",  "megatron_bridge.py", NULL};
    for (int i = 0; FILES[i]; i++) remove(path_in(place, FILES[i], &place->arena));
    rmdir(place->folder);
    kernel_shelf_free(place->shelf);
    arena_free(&place->arena);
}

static Status text_write(const char *path, const char *text) {
    FILE *stream = fopen(path, "wb");
    if (!stream) return status_error(STATUS_MACHINE, "%s cannot be written", path);
    const bool written = fputs(text, stream) >= 0;
    return fclose(stream) == 0 && written ? status_ok()
                                          : status_error(STATUS_MACHINE, "%s: not written", path);
}

// --cluster: the preset by name, or a file with the machine.
static Status cluster_option(const TripPlace *place, const cJSON *cluster, Arena *arena,
                             const char **option) {
    if (cJSON_IsString(cluster)) {
        *option = cluster->valuestring;
        return status_ok();
    }
    char *text = cJSON_Print(cluster);
    *option = path_in(place, "cluster.json", arena);
    const Status status = text_write(*option, text);
    cJSON_free(text);
    return status;
}

static Status files_write(const TripPlace *place, const LaunchFiles *files, Arena *arena) {
    for (int i = 0; i < files->num_files; i++)
        TRY(text_write(path_in(place, files->files[i].name, arena), files->files[i].text));
    return status_ok();
}

// What was written, read again.
static Status written_import(const TripPlace *place, const TripWay *way, const LaunchFiles *files,
                             const DrawnScenario *drawn, Arena *arena, cJSON **out) {
    const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(drawn->document, "cluster");
    ImportOptions options = {0};
    Imported imported;
    TRY(cluster_option(place, cluster, arena, &options.cluster));
    TRY(files_write(place, files, arena));
    const char *name = way->file ? way->file : files->files[0].name;
    TRY(import_file(way->source, path_in(place, name, arena), &options, arena, &imported));
    *out = imported.scenario;
    return status_ok();
}

typedef struct {
    const char *const *no_flag;
    cJSON *restored; // the imported document, to which what has no flag is put back
    const char *text;
    Arena *arena;
} Differences;

static bool text_among(const char *text, const char *const *texts) {
    for (; *texts; texts++)
        if (strcmp(*texts, text) == 0) return true;
    return false;
}

static const char *value_text(const cJSON *value, Arena *arena) {
    char *text = value ? cJSON_PrintUnformatted(value) : NULL;
    const char *copy = arena_printf(arena, "%.120s", text ? text : "absent");
    cJSON_free(text);
    return copy;
}

static void difference_take(const char *key, const cJSON *priced, const cJSON *launched,
                            void *context) {
    Differences *all = context;
    if (all->restored && text_among(key, all->no_flag)) {
        key_restore(all->restored, key, priced);
        return;
    }
    all->text = arena_printf(all->arena, "%s%s: priced %s, launched %s; ", all->text, key,
                             value_text(priced, all->arena), value_text(launched, all->arena));
}

// What differs of keys; "" for nothing.
static const char *keys_differ(const DrawnScenario *a, const DrawnScenario *b,
                               const char *const *no_flag, cJSON *restored, Arena *arena) {
    Differences all = {.no_flag = no_flag, .restored = restored, .text = "", .arena = arena};
    cJSON *of_a = scenario_keys(&a->scenario, &a->plan);
    cJSON *of_b = scenario_keys(&b->scenario, &b->plan);
    keys_compare(of_a, of_b, difference_take, &all);
    cJSON_Delete(of_a);
    cJSON_Delete(of_b);
    return all.text;
}

// What differs of price and memory, bit by bit.
static Status prices_differ(const DrawnScenario *a, const DrawnScenario *b, Arena *arena,
                            const char **text) {
    Estimate x, y;
    TRY(estimate_plan(&a->scenario, &a->plan, arena, &x, NULL));
    TRY(estimate_plan(&b->scenario, &b->plan, arena, &y, NULL));
    const struct {
        const char *name;
        double x, y;
    } FIGURES[] = {
        {"step_time_s", x.step_time_s, y.step_time_s},
        {"mfu_frac", x.mfu_frac, y.mfu_frac},
        {"memory_peak_bytes", x.memory.peak_bytes, y.memory.peak_bytes},
        {"memory_device_bytes", x.memory.device_bytes, y.memory.device_bytes},
        {"memory_available_bytes", x.memory_available_bytes, y.memory_available_bytes},
    };
    *text = "";
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
        if (memcmp(&FIGURES[i].x, &FIGURES[i].y, sizeof(double)) != 0)
            *text = arena_printf(arena, "%s%s: priced %.17g, launched %.17g; ", *text,
                                 FIGURES[i].name, FIGURES[i].x, FIGURES[i].y);
    return status_ok();
}

// Imported keys and prices beside those of the case.
static Status imported_compare(const TripPlace *place, int way, const DrawnScenario *drawn,
                               const cJSON *imported, Arena *arena, const char **text) {
    DrawnScenario back, whole;
    cJSON *restored = cJSON_Duplicate(imported, true);
    json_own(arena, restored);
    TRY(scenario_take(imported, place->shelf, arena, &back));
    const char *keys = keys_differ(drawn, &back, place->no_flag[way], restored, arena);
    TRY(scenario_take(restored, place->shelf, arena, &whole));
    const char *rest = keys_differ(drawn, &whole, NULL, NULL, arena), *prices;
    TRY(prices_differ(drawn, &whole, arena, &prices));
    *text = arena_printf(arena, "%s%s%s", keys, strcmp(keys, rest) == 0 ? "" : rest, prices);
    return status_ok();
}

static Trip broken(const char *says) {
    return (Trip){TRIP_BROKEN, says};
}

Trip trip_make(TripPlace *place, const TripWay *way, LaunchScheduler scheduler,
               const DrawnScenario *drawn, Arena *arena) {
    LaunchFiles files;
    cJSON *imported = NULL;
    const char *text = "";
    Status status =
        launch_make(&drawn->scenario, &drawn->plan, way->target, scheduler, arena, &files);
    if (status.code != STATUS_OK) return (Trip){TRIP_REFUSED, arena_strdup(arena, status.text)};
    status = written_import(place, way, &files, drawn, arena, &imported);
    if (status.code != STATUS_OK)
        return broken(arena_printf(arena, "import refuses: %s", status.text));
    status = imported_compare(place, (int)(way - TRIP_WAYS), drawn, imported, arena, &text);
    if (status.code != STATUS_OK)
        return broken(arena_printf(arena, "what was imported is refused: %s", status.text));
    return text[0] ? broken(text) : (Trip){TRIP_EQUAL, ""};
}
