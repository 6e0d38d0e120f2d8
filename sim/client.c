#include "sim/sim.h"

#include "sim/client_find.h"
#include "sim/client_process.h"

#include <errno.h>
#include <limits.h>
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
    if (options->keep_times) TRY(file_open(arena, &files->times));
    TRY(json_write(document, files->input));
    if (fflush(files->input) == 0 && fseek(files->input, 0, SEEK_SET) == 0) return status_ok();
    return status_error(STATUS_MACHINE, "a temporary file cannot be written: %s", strerror(errno));
}

static Status sim_start(const char *file, const SimOptions *options, const SimFiles *files,
                        Arena *arena, ProcessEnd *end) {
    const char *program;
    TRY(sim_find(arena, &program));
    const char *fold = options->fold ? options->fold : "auto";
    const char *argv[10] = {program, "--file", file, "--fold", fold};
    int argc = 5;
    if (options->stepwise) argv[argc++] = "--stepwise";
    if (options->keep_times) argv[argc++] = "--times";
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

// The last line the child wrote to its standard error, without its name.
static Status last_line(FILE *errors, Arena *arena, const char **out) {
    char *text;
    size_t size;
    TRY(file_read(errors, arena, &text, &size));
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == ' ')) text[--size] = '\0';
    char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    static const char NAME[] = "meshwright-sim: ";
    if (strncmp(line, NAME, sizeof NAME - 1) == 0) line += sizeof NAME - 1;
    *out = line;
    return status_ok();
}

static Status end_check(const ProcessEnd *end, const SimOptions *options, const SimFiles *files,
                        Arena *arena) {
    if (end->timed_out) {
        return status_error(STATUS_MACHINE, "the simulator was stopped after %g s (--timeout)",
                            options->timeout_s);
    }
    const char *line;
    TRY(last_line(files->errors, arena, &line));
    if (end->signal != 0) {
        return status_error(STATUS_MACHINE, "the simulator crashed: %s%s%.300s",
                            strsignal(end->signal), line[0] ? "; it said: " : "", line);
    }
    if (end->exit_code == 0) return status_ok();
    if (end->exit_code <= STATUS_MACHINE && line[0]) {
        return status_error((StatusCode)end->exit_code, "%s", line);
    }
    return status_error(STATUS_MACHINE, "the simulator failed with exit code %d%s%.300s",
                        end->exit_code, line[0] ? "; it said: " : "", line);
}

// --- Reading the answer

static const double LARGE = 1e300; // no bound

static Status links_read(const JsonNode *root, Arena *arena, SimResult *out) {
    JsonNode list = json_get(root, "links");
    TRY(json_expect_array(&list));
    out->num_links = json_size(&list);
    SimLink *links = ARENA_ARRAY(arena, out->num_links, SimLink);
    for (int i = 0; i < out->num_links; i++) {
        JsonNode link = json_at(&list, i);
        JsonNode name = json_get(&link, "name"), frac = json_get(&link, "utilization_frac");
        TRY(json_read_string(&name, arena, &links[i].name));
        TRY(json_read_double(&frac, 0, LARGE, &links[i].utilization_frac));
    }
    out->links = links;
    return status_ok();
}

// start_s and end_s of all instructions, as one sequence of pairs in the third file.
static Status times_read(const JsonNode *root, FILE *file, Arena *arena, SimResult *out) {
    JsonNode counts = json_get(root, "num_instructions");
    TRY(json_expect_array(&counts));
    out->num_ranks = json_size(&counts);
    int *num_instructions = ARENA_ARRAY(arena, out->num_ranks, int);
    double **start_s = ARENA_ARRAY(arena, out->num_ranks, double *);
    double **end_s = ARENA_ARRAY(arena, out->num_ranks, double *);
    rewind(file);
    for (int rank = 0; rank < out->num_ranks; rank++) {
        JsonNode count = json_at(&counts, rank);
        TRY(json_read_int(&count, 0, INT_MAX, &num_instructions[rank]));
        start_s[rank] = ARENA_ARRAY(arena, num_instructions[rank], double);
        end_s[rank] = ARENA_ARRAY(arena, num_instructions[rank], double);
        for (int i = 0; i < num_instructions[rank]; i++) {
            double pair[2];
            if (fread(pair, sizeof pair, 1, file) != 1)
                return json_error(&count, "times are missing");
            start_s[rank][i] = pair[0];
            end_s[rank][i] = pair[1];
        }
    }
    out->num_instructions = num_instructions;
    out->start_s = (const double *const *)start_s;
    out->end_s = (const double *const *)end_s;
    return status_ok();
}

static Status numbers_read(const JsonNode *root, SimResult *out) {
    const struct {
        const char *key;
        double *number;
    } fields[] = {
        {"step_time_s", &out->step_time_s},
        {"estimate_step_time_s", &out->estimate_step_time_s},
        {"flow_lost_frac", &out->flow_lost_frac},
        {"flow_gained_frac", &out->flow_gained_frac},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        JsonNode node = json_get(root, fields[i].key);
        TRY(json_read_double(&node, 0, LARGE, fields[i].number));
    }
    JsonNode activities = json_get(root, "activities");
    return json_read_int64(&activities, 0, INT64_MAX, &out->num_activities);
}

static Status result_read(const JsonNode *root, FILE *times, Arena *arena, SimResult *out) {
    TRY(numbers_read(root, out));
    JsonNode folding = json_get(root, "folding"), reason = json_get(root, "folding_reason");
    JsonNode contended = json_get(root, "contended");
    TRY(json_read_string(&folding, arena, &out->folding));
    TRY(json_read_string(&reason, arena, &out->folding_reason));
    TRY(json_read_bool(&contended, &out->contended));
    TRY(links_read(root, arena, out));
    return times ? times_read(root, times, arena, out) : status_ok();
}

static Status answer_read(const SimFiles *files, Arena *arena, SimResult *out) {
    char *text;
    size_t size;
    TRY(file_read(files->output, arena, &text, &size));
    JsonNode root;
    TRY(json_parse(text, size, "answer of meshwright-sim", arena, &root));
    JsonNode version = json_get(&root, "version");
    const char *theirs;
    TRY(json_read_string(&version, arena, &theirs));
    if (strcmp(theirs, MESHWRIGHT_VERSION) != 0) {
        return json_error(&version, "it is of version %s, this program of %s", theirs,
                          MESHWRIGHT_VERSION);
    }
    return result_read(&root, files->times, arena, out);
}

Status sim_run(const cJSON *document, const char *file, const SimOptions *options, Arena *arena,
               SimResult *out) {
    *out = (SimResult){0};
    SimFiles files = {0};
    TRY(files_open(document, options, arena, &files));
    ProcessEnd end;
    TRY(sim_start(file, options, &files, arena, &end));
    TRY(end_check(&end, options, &files, arena));
    Status status = answer_read(&files, arena, out);
    if (status.code != STATUS_OK) status.code = STATUS_MACHINE;
    out->wall_s = end.wall_s;
    return status;
}
