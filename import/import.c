#include "import/import.h"

#include "base/data_dir.h"
#include "config/cluster/cluster.h"
#include "config/job/scenario.h"
#include "import/plan_lines_read.h"
#include "plan/rule_check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const IMPORT_SOURCE_NAMES[NUM_IMPORT_SOURCES + 1] = {"megatron", "nemo", "deepspeed",
                                                                 "torchtitan", NULL};

// text with every flag of Megatron-LM as the file calls it.
static const char *text_spelled(const Imported *out, const char *text) {
    const char *spelled = "";
    while (out->spell && *text) {
        const char *flag = strstr(text, "--");
        const int before = flag ? (int)(flag - text) : (int)strlen(text);
        spelled = arena_printf(out->arena, "%s%.*s", spelled, before, text);
        text += before;
        if (!flag) return spelled;
        size_t length = 2 + strspn(flag + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");
        const char *name = arena_printf(out->arena, "%.*s", (int)length, flag);
        spelled = arena_printf(out->arena, "%s%s", spelled, out->spell(name, out->arena));
        text += length;
    }
    return out->spell ? spelled : text;
}

void import_note(Imported *out, const char *format, ...) {
    char text[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (out->num_notes < IMPORT_MAX_NOTES)
        out->notes[out->num_notes++] = arena_strdup(out->arena, text_spelled(out, text));
}

void note_names_add(NoteNames *names, const char *first, const char *second) {
    char name[201];
    snprintf(name, sizeof name, "%s%s", first, second);
    const char *join = names->length ? ", " : "";
    if (names->num_left_out == 0 &&
        names->length + strlen(join) + strlen(name) < sizeof names->text)
        names->length += (size_t)snprintf(names->text + names->length,
                                          sizeof names->text - names->length, "%s%s", join, name);
    else
        names->num_left_out++;
}

const char *note_names_text(const NoteNames *names, Arena *arena) {
    if (names->num_left_out == 0) return arena_strdup(arena, names->text);
    return arena_printf(arena, "%s and %d more", names->text, names->num_left_out);
}

Status import_refuse(const Imported *out, const char *where, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return status_at(STATUS_INVALID, out->file, text_spelled(out, where), "%s",
                     text_spelled(out, text));
}

Status import_cluster(Imported *out, const ImportOptions *options, int num_nodes, int *num_gpus) {
    const char *name = options->cluster;
    if (!name)
        return import_refuse(out, "",
                             "does not say on which machines it runs; give --cluster "
                             "NAME:NODES (meshwright clusters lists names)");
    if (value_is_json_path(name)) {
        char *path = realpath(name, NULL);
        if (!path) return import_refuse(out, "", "--cluster %.200s cannot be read", name);
        name = arena_strdup(out->arena, path);
        free(path);
    } else if (!strchr(name, ':')) {
        if (num_nodes == 0)
            return import_refuse(out, "",
                                 "does not say on how many nodes it runs; give --cluster "
                                 "%s:NODES",
                                 name);
        name = arena_printf(out->arena, "%s:%d", name, num_nodes);
    }
    cJSON *item = cJSON_AddStringToObject(out->scenario, "cluster", name);
    JsonNode root = {.file = out->file, .item = out->scenario};
    JsonNode node = {.file = out->file, .item = item, .parent = &root, .key = "cluster"};
    Cluster cluster;
    TRY(cluster_load(&node, out->arena, &cluster));
    *num_gpus = plan_lines_gpus(out, cluster.num_gpus);
    if (out->num_ranks == *num_gpus) return status_ok();
    if (num_nodes > 0 && cluster.num_nodes != num_nodes)
        import_note(out, "It starts %d node%s, --cluster %s has %d: taken as %d GPUs.", num_nodes,
                    num_nodes == 1 ? "" : "s", options->cluster, cluster.num_nodes,
                    cluster.num_gpus);
    else if (out->num_ranks > 0)
        import_note(out,
                    "It starts %d processes, one a GPU; --cluster %s has %d GPUs: taken as %d.",
                    out->num_ranks, options->cluster, cluster.num_gpus, cluster.num_gpus);
    return status_ok();
}

// The whole file, at most 1 MiB of text.
static Status text_read(const char *path, Arena *arena, const char **file, const char **text) {
    enum { MOST = 1 << 20 };
    bool standard_input = strcmp(path, "-") == 0;
    *file = standard_input ? "standard input" : path;
    FILE *stream = standard_input ? stdin : fopen(path, "rb");
    if (!stream) return status_at(STATUS_INVALID, *file, "", "cannot be read: %s", strerror(errno));
    char *buffer = arena_alloc(arena, MOST + 1);
    size_t size = fread(buffer, 1, MOST + 1, stream);
    const int error = ferror(stream) ? errno : 0;
    if (!standard_input) fclose(stream);
    if (error) return status_at(STATUS_INVALID, *file, "", "cannot be read: %s", strerror(error));
    if (size > MOST) return status_at(STATUS_INVALID, *file, "", "is longer than 1 MiB");
    if (size == 0) return status_at(STATUS_INVALID, *file, "", "is empty");
    if (memchr(buffer, '\0', size)) return status_at(STATUS_INVALID, *file, "", "is no text");
    buffer[size] = '\0';
    *text = buffer;
    return status_ok();
}

// What the plan breaks of a table: the software lacks it at the version that the table is of.
static void broken_rules_note(const Scenario *scenario, const Plan *plan, const RuleTable *table,
                              Imported *out) {
    const Rule *broken[RULES_MAX];
    const int num = plan_broken_rules(scenario, table, plan, broken);
    for (int i = 0; i < num; i++)
        import_note(out, "%s: %s; read and priced all the same %s", broken[i]->key,
                    rule_sentence(scenario, plan, broken[i], out->arena),
                    rule_name_text(table, broken[i], out->arena));
}

// That the scenario can be read, its plan is legal, and no rule of the software says that it ends
// with an error; the rules of what the software merely lacks are notes.
static Status imported_check(ImportSource source, Imported *out) {
    JsonNode root = {.file = out->file, .item = out->scenario};
    const RuleTable *own = NULL;
    Scenario scenario;
    Plan plan;
    TRY(scenario_read(&root, out->arena, &scenario));
    TRY(scenario_refuse_unsupported(&scenario));
    TRY(plan_resolve(&scenario, out->arena, &plan));
    if (source == IMPORT_NEMO) TRY(rules_load("for-nemo", out->arena, &own));
    if (source == IMPORT_DEEPSPEED) TRY(rules_load("for-deepspeed", out->arena, &own));
    if (source != IMPORT_DEEPSPEED && scenario.execution.stack.rules)
        broken_rules_note(&scenario, &plan, scenario.execution.stack.rules, out);
    if (own) broken_rules_note(&scenario, &plan, own, out);
    return status_ok();
}

Status import_file(ImportSource source, const char *path, const ImportOptions *options,
                   Arena *arena, Imported *out) {
    const char *text = NULL;
    *out = (Imported){.arena = arena, .scenario = cJSON_CreateObject()};
    json_own(arena, out->scenario);
    cJSON_AddNumberToObject(out->scenario, "schema", 1);
    TRY(text_read(path, arena, &out->file, &text));
    if (options->num_settings > 0 && (source == IMPORT_NEMO || source == IMPORT_TORCHTITAN))
        return import_refuse(out, "", "--set %s: is for scripts (megatron, deepspeed)",
                             options->settings[0].name);
    plan_lines_read(text, out);
    if (source == IMPORT_MEGATRON)
        TRY(import_megatron(text, options, out));
    else if (source == IMPORT_NEMO)
        TRY(import_nemo(text, options, out));
    else if (source == IMPORT_DEEPSPEED)
        TRY(import_deepspeed(text, options, out));
    else
        TRY(import_torchtitan(text, options, out));
    plan_lines_finish(out);
    return imported_check(source, out);
}
