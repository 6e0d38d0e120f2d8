#include "sim/sim.h"

#include "sim/client_answer.h"
#include "sim/client_find.h"
#include "sim/client_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// What the child reads and writes: files without a name, which vanish by themselves.
typedef struct {
    FILE *input, *output, *errors, *times;
} SimFiles;

static void file_close(void *file) {
    fclose(file);
}

static Status file_open(Arena *arena, FILE **out) {
    *out = tmpfile();
    if (!*out) {
        return status_error(STATUS_MACHINE, "no temporary file can be made: %s", strerror(errno));
    }
    arena_own(arena, file_close, *out);
    return status_ok();
}

static Status file_read(FILE *file, Arena *arena, char **text, size_t *size) {
    long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (length >= 0) {
        rewind(file);
        *size = (size_t)length;
        *text = arena_alloc(arena, *size + 1);
        if (fread(*text, 1, *size, file) == *size) return status_ok();
    }
    return status_error(STATUS_MACHINE, "a temporary file cannot be read: %s", strerror(errno));
}

// --- Starting

static Status files_open(const cJSON *document, const SimOptions *options, Arena *arena,
                         SimFiles *files) {
    TRY(file_open(arena, &files->input));
    TRY(file_open(arena, &files->output));
    TRY(file_open(arena, &files->errors));
    if (options->keep != SIM_KEEP_NONE) TRY(file_open(arena, &files->times));
    TRY(json_write(document, files->input));
    if (fflush(files->input) == 0 && fseek(files->input, 0, SEEK_SET) == 0) return status_ok();
    return status_error(STATUS_MACHINE, "a temporary file cannot be written: %s", strerror(errno));
}

static Status sim_start(const char *file, const SimOptions *options, const SimFiles *files,
                        Arena *arena, ProcessEnd *end) {
    const char *program;
    TRY(sim_find(arena, &program));
    const char *fold = options->fold ? options->fold : "auto";
    const char *argv[12] = {program, "--file", file, "--fold", fold};
    int argc = 5;
    if (options->stepwise) argv[argc++] = "--stepwise";
    if (options->keep == SIM_KEEP_LAST) argv[argc++] = "--times";
    if (options->keep == SIM_KEEP_ALL) argv[argc++] = "--all-times";
    if (options->num_repetitions > 1) {
        argv[argc++] = "--repetitions";
        argv[argc++] = arena_printf(arena, "%d", options->num_repetitions);
    }
    char **own = ARENA_ARRAY(arena, argc + 1, char *);
    for (int i = 0; i < argc; i++) own[i] = arena_strdup(arena, argv[i]);
    ProcessSpec spec = {
        .argv = own,
        .input = files->input,
        .output = files->output,
        .errors = files->errors,
        .extra = files->times,
        .timeout_s = options->timeout_s,
    };
    return process_run(&spec, end);
}

// --- Understanding how it ended

// The last line the child wrote to its standard error, without its name; whether that was there.
static Status last_line(FILE *errors, Arena *arena, const char **out, bool *named) {
    char *text;
    size_t size;
    TRY(file_read(errors, arena, &text, &size));
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == ' ')) text[--size] = '\0';
    char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    static const char NAME[] = "meshwright-sim: ";
    *named = strncmp(line, NAME, sizeof NAME - 1) == 0;
    *out = *named ? line + sizeof NAME - 1 : line;
    return status_ok();
}

// An exit code alone says nothing: any program may have been started, or another version.
static Status failure_explain(const ProcessEnd *end, const SimFiles *files, Arena *arena) {
    const char *line;
    char *answer;
    size_t size;
    bool named;
    TRY(last_line(files->errors, arena, &line, &named));
    TRY(file_read(files->output, arena, &answer, &size));
    if (end->signal != 0)
        return status_error(STATUS_MACHINE, "the simulator crashed: %s%s%.300s",
                            strsignal(end->signal), line[0] ? "; it said: " : "", line);
    if (end->exit_code == STATUS_INVALID && named && sim_answer_refuses(answer, size, arena))
        return status_error(STATUS_INVALID, "%s", line);
    if (end->exit_code == STATUS_MACHINE && strncmp(line, "out of memory", 13) == 0)
        return status_error(STATUS_MACHINE, "the simulator ran %s", line);
    if (end->exit_code == STATUS_MACHINE && named) return status_error(STATUS_MACHINE, "%s", line);
    return status_error(STATUS_MACHINE, "the simulator failed with exit code %d%s%.300s",
                        end->exit_code, line[0] ? "; it said: " : "", line);
}

static Status end_check(const ProcessEnd *end, const SimOptions *options, const SimFiles *files,
                        Arena *arena) {
    if (end->interrupted) return status_error(STATUS_MACHINE, "interrupted: no answer");
    if (end->timed_out)
        return status_error(STATUS_MACHINE, "the simulator was stopped after %g s (--timeout)",
                            options->timeout_s);
    if (end->signal == 0 && end->exit_code == 0) return status_ok();
    return failure_explain(end, files, arena);
}

// --- The whole

static Status answer_read(const SimFiles *files, SimKeep keep, Arena *arena, SimResult *out) {
    char *text;
    size_t size;
    TRY(file_read(files->output, arena, &text, &size));
    return sim_answer_read(text, size, keep, files->times, arena, out);
}

Status sim_run(const cJSON *document, const char *file, const SimOptions *options, Arena *arena,
               SimResult *out) {
    *out = (SimResult){0};
    SimFiles files = {0};
    TRY(files_open(document, options, arena, &files));
    ProcessEnd end;
    TRY(sim_start(file, options, &files, arena, &end));
    TRY(end_check(&end, options, &files, arena));
    Status status = answer_read(&files, options->keep, arena, out);
    if (status.code != STATUS_OK) status.code = STATUS_MACHINE;
    out->wall_s = end.wall_s;
    return status;
}
