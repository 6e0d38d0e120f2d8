#include "launch/task.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void task_add_variable(LaunchTask *task, const char *name, const char *value, const char *why) {
    assert(task->num_variables < TASK_MAX_VARIABLES);
    task->variables[task->num_variables++] = (LaunchVariable){name, value, why};
}

void task_add_note(LaunchTask *task, Arena *arena, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (task->num_notes < TASK_MAX_NOTES)
        task->notes[task->num_notes++] = arena_strdup(arena, text);
}

const char *task_other_target(const Scenario *scenario) {
    static const struct {
        const char *stack, *hint;
    } HINTS[] = {{"megatron-core", ", which --for megatron starts"},
                 {"megatron-2021", ", which --for deepspeed starts"},
                 {"torchtitan", ", which --for torchtitan starts"},
                 {"runtime", ", which --for runtime starts"}};
    for (size_t i = 0; i < sizeof HINTS / sizeof *HINTS; i++)
        if (strcmp(HINTS[i].stack, scenario->training.stack.name) == 0) return HINTS[i].hint;
    return "";
}

Status task_refuse(const Scenario *scenario, const char *software, const char *path,
                   const char *nearest, const char *format, va_list args) {
    char sentence[300];
    vsnprintf(sentence, sizeof sentence, format, args);
    return status_at(STATUS_INVALID, scenario->file, path,
                     "%s: %s cannot run this plan as priced; nearest: %s", sentence, software,
                     nearest);
}
