#include "cli/output.h"

#include "base/file_hash.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/shown_text.h"
#include "config/job/scenario_inputs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

Status output_check(const char *file, Arena *arena) {
    char *folder = arena_alloc(arena, OUTPUT_PATH_SIZE);
    TRY(output_target(file, folder));
    char *slash = strrchr(folder, '/');
    struct stat info;
    if (!slash) return folder_check_existing(".", file);
    slash[slash == folder ? 1 : 0] = '\0';
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return status_at(STATUS_INVALID, file, "", "cannot be written: there is no folder %s",
                         folder);
    return folder_check_existing(folder, file);
}

Status output_check_input(const char *output, const char *input, const char *what) {
    if (strcmp(output, "-") == 0 || strcmp(input, "-") == 0) return status_ok();
    if (!output_is(output, input)) return status_ok();
    return status_at(STATUS_INVALID, output, "", "is the %s %s; expected another file to write",
                     what, input);
}

Status output_check_scenario(const char *output, const Scenario *scenario, Arena *arena) {
    const ScenarioInput *inputs;
    const int num_inputs = scenario_inputs(scenario, arena, &inputs);
    for (int i = 0; i < num_inputs; i++)
        TRY(output_check_input(output, inputs[i].path, inputs[i].what));
    return status_ok();
}

void output_add_inputs(AnswerSpec *spec, const Scenario *scenario, Arena *arena) {
    const ScenarioInput *inputs;
    const int num = scenario_inputs(scenario, arena, &inputs);
    const char **paths = ARENA_ARRAY(arena, spec->num_inputs + num, const char *);
    for (int i = 0; i < spec->num_inputs; i++) paths[i] = spec->inputs[i];
    spec->inputs = paths;
    for (int i = 0; i < num; i++)
        if (strcmp(inputs[i].path, "-") != 0) paths[spec->num_inputs++] = inputs[i].path;
}

Status output_check_names(const AnswerSpec *spec, const char *const *names,
                          const Scenario *scenario, Arena *arena) {
    char *target = arena_alloc(arena, OUTPUT_PATH_SIZE);
    TRY(folder_check(spec->folder));
    for (int i = 0; names[i]; i++) {
        const char *file = arena_printf(arena, "%s/%s", spec->folder, names[i]);
        TRY(output_target(file, target));
        TRY(output_check_scenario(file, scenario, arena));
    }
    return status_ok();
}

// Of all members but "timing".
static Status document_id(const JsonDocument *document, Arena *arena, const char **out) {
    const char *texts = "meshwright " MESHWRIGHT_VERSION, *hash;
    const cJSON *member;
    cJSON_ArrayForEach(member, document->tree) {
        if (strcmp(member->string, "timing") == 0) continue;
        TRY(json_document_hash(document, member, arena, &hash));
        texts = arena_printf(arena, "%s %s %s", texts, member->string, hash);
    }
    *out = text_hash(texts, arena);
    return status_ok();
}

static Status answer_write(AnswerFolder *folder, const OutputAnswer *answer) {
    const char *part = folder->spec.parts[0].name;
    OutputFile file;
    TRY(json_document_save(&answer->document, answer_folder_path(folder, answer->names[0], part)));
    TRY(output_open(answer_folder_path(folder, answer->names[1], part), &file));
    answer->print(answer->context, file.stream);
    TRY(output_close(&file, status_ok()));
    return answer->more ? answer->more(folder, answer->context) : status_ok();
}

Status output_answer_save(const AnswerSpec *spec, const OutputAnswer *answer, Arena *arena) {
    AnswerSpec named = *spec;
    AnswerFolder folder;
    if (!named.parts[0].id) TRY(document_id(&answer->document, arena, &named.parts[0].id));
    if (!named.of) named.of = named.parts[0].id;
    TRY(answer_folder_open(&named, arena, &folder));
    TRY(answer_folder_close(&folder, answer_write(&folder, answer)));
    output_tell_removed(&folder);
    return status_ok();
}

void output_tell_removed(const AnswerFolder *folder) {
    for (int i = 0; i < folder->num_removed; i++)
        shown_line(stderr, "%s/%s: was of an earlier answer, and is removed", folder->spec.folder,
                   folder->removed[i]);
}
