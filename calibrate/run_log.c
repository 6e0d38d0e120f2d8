#include "calibrate/run_log.h"

#include "base/quantity.h"
#include "calibrate/fit.h"
#include "calibrate/run_claims.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const RUN_LOG_NAMES[NUM_RUN_LOGS + 1] = {"Megatron-LM", "torchtitan", "meshwright-run",
                                                     NULL};

static const char MEGATRON_LABEL[] = "elapsed time per iteration (";
static const char MEGATRON_TIME[] = "elapsed time per iteration (ms):";
static const char MEGATRON_BATCH[] = "global batch size:";

typedef struct {
    const char *file;
    int line;
    const Scenario *scenario;
    const Plan *plan;
    RunLogKind kind;
    double *step_s;        // [num_lines]
    double *imbalance;     // [num_lines]; 0 where the line says none
    int *line_of;          // [num_lines], of the file
    double rank_imbalance; // the largest
    double memory_peak_bytes;
    int num_lines, capacity;
    int64_t last_step;
    Arena *arena;
} Reader;

// A refusal of the line that is read.
#define REFUSE(reader, ...)                                                                        \
    status_at(STATUS_INVALID,                                                                      \
              arena_printf((reader)->arena, "%s:%d", (reader)->file, (reader)->line), "",          \
              __VA_ARGS__)

// Takes the escapes of colours out of a line.
static void colours_remove(char *line) {
    char *to = line;
    for (const char *from = line; *from; from++) {
        if (from[0] == '\033' && from[1] == '[') {
            from += 2;
            while (*from && !isalpha((unsigned char)*from)) from++;
            if (!*from) break;
            continue;
        }
        *to++ = *from;
    }
    *to = '\0';
}

// The number behind a label, with commas between its thousands: "5,762". False where there is none.
static bool number_read(const char *text, double *out) {
    char digits[64];
    size_t n = 0;
    while (isspace((unsigned char)*text)) text++;
    for (; *text && !isspace((unsigned char)*text) && *text != '|' && n + 1 < sizeof digits; text++)
        if (*text != ',') digits[n++] = *text;
    digits[n] = '\0';
    char *end;
    *out = decimal_read(digits, &end);
    return n > 0 && *end == '\0';
}

static Status step_add(Reader *r, RunLogKind kind, int64_t step, double step_s) {
    if (r->num_lines > 0 && kind != r->kind)
        return REFUSE(r, "a line of %s in a log of %s; expected the log of one run",
                      RUN_LOG_NAMES[kind], RUN_LOG_NAMES[r->kind]);
    if (r->num_lines == r->capacity) {
        int capacity = r->capacity ? 2 * r->capacity : 256;
        double *more = ARENA_ARRAY(r->arena, 2 * capacity, double);
        int *more_lines = ARENA_ARRAY(r->arena, capacity, int);
        if (r->num_lines > 0) {
            memcpy(more, r->step_s, (size_t)r->num_lines * sizeof *more);
            memcpy(more + capacity, r->imbalance, (size_t)r->num_lines * sizeof *more);
            memcpy(more_lines, r->line_of, (size_t)r->num_lines * sizeof *more_lines);
        }
        r->step_s = more;
        r->imbalance = more + capacity;
        r->line_of = more_lines;
        r->capacity = capacity;
    }
    r->kind = kind;
    r->last_step = step;
    r->line_of[r->num_lines] = r->line;
    r->step_s[r->num_lines++] = step_s;
    return status_ok();
}

// The positive number behind a label at `at`.
static Status label_read(const Reader *r, const char *label, const char *at, double *out) {
    if (!number_read(at + strlen(label), out) || !isfinite(*out) || *out <= 0)
        return REFUSE(r, "%s is not a positive number", label);
    return status_ok();
}

// A line that ends within its number says a wrong one: Megatron closes each field with a bar.
static Status megatron_read(Reader *r, const char *line, int64_t step) {
    const char *time = strstr(line, MEGATRON_TIME), *batch = strstr(line, MEGATRON_BATCH);
    const char *label = strstr(line, MEGATRON_LABEL);
    if (!time && label && strchr(label, ')')) {
        const char *unit = label + strlen(MEGATRON_LABEL);
        return REFUSE(r, "time unit is (%.*s); expected (ms)", (int)strcspn(unit, ")"), unit);
    }
    if (!time || !strchr(time, '|'))
        return REFUSE(r, "the line ends before its time; expected \"%s 1234.5 |\"", MEGATRON_TIME);
    double time_ms, global_batch;
    TRY(label_read(r, MEGATRON_TIME, time, &time_ms));
    if (batch && strchr(batch, '|')) {
        TRY(label_read(r, MEGATRON_BATCH, batch, &global_batch));
        int64_t expected = r->scenario->training.global_batch;
        if (global_batch != (double)expected)
            return REFUSE(r, "global batch size %.15g, but training.global_batch of %s is %lld",
                          global_batch, r->scenario->file, (long long)expected);
    }
    return step_add(r, RUN_LOG_MEGATRON, step, time_ms / 1e3);
}

static Status torchtitan_read(Reader *r, const char *line, int64_t step) {
    const char *rate = strstr(line, "tps:"), *label = "tps:";
    if (!rate) rate = strstr(line, label = "wps:");
    if (!rate || !strstr(rate, "mfu:"))
        return REFUSE(r, "the line ends before its rate; expected \"tps: 5,762 ... mfu: 30.35%%\"");
    double tokens_per_s_per_gpu;
    TRY(label_read(r, label, rate, &tokens_per_s_per_gpu));
    const TrainingJob *training = &r->scenario->training;
    double tokens = (double)training->seq_len * (double)training->global_batch;
    return step_add(r, RUN_LOG_TORCHTITAN, step,
                    tokens / tokens_per_s_per_gpu / r->scenario->cluster.num_gpus);
}

// Into the line that was added last.
static Status imbalance_read(Reader *r, const JsonNode *root) {
    JsonNode imbalance = json_get(root, "moe_imbalance");
    JsonNode of_rank = json_get(root, "moe_imbalance_of_rank");
    double largest;
    if (!json_is_present(&imbalance)) return status_ok();
    TRY(json_read_double(&imbalance, 1, 1e4, &r->imbalance[r->num_lines - 1]));
    TRY(json_read_double(&of_rank, 1, 1e4, &largest));
    r->rank_imbalance = fmax(r->rank_imbalance, largest);
    return status_ok();
}

// One JSON object; time and rate together say of how many tokens a step is.
static Status runtime_fields(Reader *r, const char *line, Arena *scratch) {
    JsonNode root;
    const char *place = arena_printf(scratch, "%s:%d", r->file, r->line);
    TRY(json_parse(line, strlen(line), place, scratch, &root));
    JsonNode step_node = json_get(&root, "step"), time = json_get(&root, "step_time_s");
    JsonNode rate = json_get(&root, "tokens_per_s");
    int64_t step;
    double step_s, tokens_per_s;
    TRY(json_read_int64(&step_node, 0, INT64_MAX, &step));
    TRY(json_read_double(&time, 1e-9, 1e9, &step_s));
    TRY(json_read_double(&rate, 1e-9, 1e18, &tokens_per_s));
    const TrainingJob *training = &r->scenario->training;
    double tokens = (double)training->seq_len * (double)training->global_batch;
    if (fabs(step_s * tokens_per_s / tokens - 1) > 0.01)
        return REFUSE(r, "%.15g tokens a step, but those of %s have %.15g",
                      round(step_s * tokens_per_s), r->scenario->file, tokens);
    JsonNode peak = json_get(&root, "memory_peak_bytes");
    if (json_is_present(&peak)) TRY(json_read_double(&peak, 0, 1e18, &r->memory_peak_bytes));
    TRY(step_add(r, RUN_LOG_RUNTIME, step, step_s));
    return imbalance_read(r, &root);
}

static Status runtime_read(Reader *r, const char *line) {
    Arena scratch = {0}; // of the line's tree alone
    const Status status = runtime_fields(r, line, &scratch);
    arena_free(&scratch);
    return status;
}

// A line of Megatron-LM begins its fields with "iteration N/ M |", one of torchtitan with
// "step: N  loss:", one of the runtime is a JSON object with a step.
static Status line_read(Reader *r, char *line) {
    colours_remove(line);
    RunClaim claim;
    if (run_claim_differs(line, r->scenario, r->plan, &claim))
        return REFUSE(r, "%s %.15g, but %s of %s is %.15g", claim.name, claim.said, claim.key,
                      r->scenario->file, claim.expected);
    if (*line == '{' && strstr(line, "\"step\":")) return runtime_read(r, line);
    long long step, last;
    int used = 0;
    const char *at = strstr(line, "iteration ");
    if (at && sscanf(at, "iteration %lld/ %lld |%n", &step, &last, &used) == 2 && used > 0)
        return megatron_read(r, at, step);
    at = strstr(line, "step:");
    if (at && sscanf(at, "step: %lld %n", &step, &used) == 1 && strncmp(at + used, "loss:", 5) == 0)
        return torchtitan_read(r, at, step);
    return status_ok();
}

// The beginning of the next line, with its newline where that is near enough.
//   line [RUN_LOG_MAX_LINE_BYTES + 1]
//   used  bytes of the log so far
static Status line_take(const Reader *r, FILE *stream, char *line, size_t *used, bool *more) {
    size_t length = 0;
    int c;
    *more = false;
    while ((c = getc_unlocked(stream)) != EOF) {
        *more = true;
        if (c == '\0') return REFUSE(r, "a NUL byte; expected text");
        if (++*used > RUN_LOG_MAX_BYTES)
            return REFUSE(r, "here the log is longer than %zu MiB", RUN_LOG_MAX_BYTES >> 20);
        if (length < RUN_LOG_MAX_LINE_BYTES) line[length++] = (char)c;
        if (c == '\n') break;
    }
    line[length] = '\0';
    return status_ok();
}

static Status lines_read(Reader *r, FILE *stream) {
    char *line = arena_alloc(r->arena, RUN_LOG_MAX_LINE_BYTES + 1);
    size_t used = 0;
    bool more = true;
    for (r->line = 1;; r->line++) {
        TRY(line_take(r, stream, line, &used, &more));
        if (!more) break;
        TRY(line_read(r, line));
    }
    if (ferror(stream))
        return status_at(errno == EIO ? STATUS_MACHINE : STATUS_INVALID, r->file, "",
                         "cannot be read: %s", strerror(errno));
    return status_ok();
}

static Status summary(const Reader *r, RunLog *out) {
    if (r->num_lines == 0)
        return status_at(
            STATUS_INVALID, r->file, "",
            "no lines of steps; expected those of Megatron-LM (\"iteration 20/ 100 | "
            "... | %s 1234.5 |\"), torchtitan (\"step: 10  loss: ...  tps: 5,762\") or "
            "meshwright-run (\"{\"step\": 10, ...}\")",
            MEGATRON_TIME);
    if (r->num_lines < RUN_LOG_LEAST_STEPS)
        return status_at(STATUS_INVALID, r->file, "",
                         "%d lines of steps are too few; expected at least %d, of which the first "
                         "%d are warm-up",
                         r->num_lines, RUN_LOG_LEAST_STEPS, RUN_LOG_WARM_UP);
    int n = r->num_lines - RUN_LOG_WARM_UP;
    const double *steps = r->step_s + RUN_LOG_WARM_UP;
    double *sorted = ARENA_ARRAY(r->arena, n, double);
    *out = (RunLog){.kind = r->kind,
                    .num_lines = r->num_lines,
                    .num_steps = r->last_step,
                    .memory_peak_bytes = r->memory_peak_bytes};
    memcpy(sorted, steps, (size_t)n * sizeof *sorted);
    out->step_s = fit_median(sorted, n);
    int i = 0;
    while (steps[i] > out->step_s) i++;
    out->line = r->line_of[RUN_LOG_WARM_UP + i];
    for (i = 0; i < n; i++) sorted[i] = fabs(log(steps[i] / out->step_s));
    out->spread = fit_median(sorted, n) / 0.6745;
    memcpy(sorted, r->imbalance + RUN_LOG_WARM_UP, (size_t)n * sizeof *sorted);
    out->moe_imbalance = fit_median(sorted, n);
    out->moe_imbalance_of_rank = r->rank_imbalance;
    return status_ok();
}

Status run_log_load(const char *path, const Scenario *scenario, const Plan *plan, Arena *arena,
                    RunLog *out) {
    bool standard = strcmp(path, "-") == 0;
    Reader reader = {.file = standard ? "standard input" : path,
                     .scenario = scenario,
                     .plan = plan,
                     .arena = arena};
    FILE *stream = standard ? stdin : fopen(path, "r");
    if (!stream) return status_at(STATUS_INVALID, path, "", "cannot be read: %s", strerror(errno));
    Status status = lines_read(&reader, stream);
    if (!standard) fclose(stream);
    TRY(status);
    return summary(&reader, out);
}
