#include "cli/whatif/whatif_options.h"
#include "cli/job_options.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

enum {
    KEY_VARY = KEY_LONG,
    KEY_REPLAN,
    KEY_REPETITIONS,
    KEY_SENSITIVITY,
    KEY_PERCENT,
    KEY_GOODPUT,
    KEY_TOKENS,
    KEY_DAYS,
    KEY_ON,
    KEY_SPARES,
    KEY_RUNS,
    KEY_SEED,
    KEY_FIT_PROBABILITY,
    KEY_FORCE,
    KEY_NUMBER, // the first of NUMBERS
};
enum { MAX_SPARES = 100000, MAX_RUNS = 100000 };
static const double MAX_TOKENS = 1e17, MAX_DAYS = 1e5;

// Options of --goodput that are a number.
static const struct {
    const char *name;
    double min;
    size_t offset;
    QuantityKind kind;
} NUMBERS[] = {
    {"failures-per-gpu-hour", 1e-12, offsetof(GoodputOptions, failures_per_gpu_hour),
     QUANTITY_PLAIN},
    {"hardware-frac", 0, offsetof(GoodputOptions, hardware_frac), QUANTITY_FRAC},
    {"storage", 1, offsetof(GoodputOptions, storage_bytes_per_s), QUANTITY_BYTES_PER_S},
    {"restart", 0, offsetof(GoodputOptions, restart_s), QUANTITY_SECONDS},
    {"repair", 0, offsetof(GoodputOptions, repair_s), QUANTITY_SECONDS},
    {"checkpoint", 1, offsetof(GoodputOptions, checkpoint_bytes), QUANTITY_BYTES},
};
enum { NUM_NUMBERS = sizeof NUMBERS / sizeof *NUMBERS };

static const struct argp_option OPTIONS[] = {
    {"vary", KEY_VARY, "PATH=V1,V2,...", 0,
     "a key of the scenario and its values; repeat for a grid", 1},
    {"sensitivity", KEY_SENSITIVITY, NULL, 0, "which resource limits the job", 1},
    {"goodput", KEY_GOODPUT, NULL, 0, "what failures leave: checkpoints, goodput, spare nodes", 1},
    {"tokens", KEY_TOKENS, "N", 0, "of a whole run (15T): for --goodput and --days", 1},
    {"days", KEY_DAYS, "D", 0,
     "with --tokens: the smallest cluster of each GPU type that trains them in so many days; "
     "Ctrl-C keeps the rows so far",
     1},
    {"replan", KEY_REPLAN, NULL, 0, "search the best plan each time", 2},
    OPTION_FIT_PROBABILITY(KEY_FIT_PROBABILITY, 2),
    {"repetitions", KEY_REPETITIONS, "N", 0,
     "of each point that is disturbed by chance (default: 1)", 2},
    {"percent", KEY_PERCENT, "X", 0, "how much --sensitivity changes (default: 10)", 2},
    {"on", KEY_ON, "PRESET,...", 0,
     "clusters that --days looks at (default: the best connected preset of each GPU)", 2},
    {"output", 'o', "DIR", 0, "writes whatif.json and whatif.txt there", 2},
    OPTION_FORCE(KEY_FORCE, 2),
    OPTION_JSON,
    OPTIONS_JOB,
    {"failures-per-gpu-hour", KEY_NUMBER, "X", 0, "(default: 1.97e-5, Llama 3)", 3},
    {"hardware-frac", KEY_NUMBER + 1, "X", 0, "of them that take a node out (default: 0.78)", 3},
    {"storage", KEY_NUMBER + 2, "BYTES_PER_S", 0,
     "of checkpoints, all GPUs together (default: 1.22e8 for each GPU)", 3},
    {"restart", KEY_NUMBER + 3, "SECONDS", 0,
     "from a failure to reading the checkpoint (default: 600)", 3},
    {"repair", KEY_NUMBER + 4, "SECONDS", 0, "until a node is back (default: 86400)", 3},
    {"checkpoint", KEY_NUMBER + 5, "BYTES", 0,
     "size of one (default: weights and optimizer by the memory account)", 3},
    {"spares", KEY_SPARES, "N", 0, "spare nodes of the runs that are played (default: the best)",
     3},
    {"runs", KEY_RUNS, "N", 0, "runs that are played (default: 200 to 20000, for 30000 failures)",
     3},
    {"seed", KEY_SEED, "N", 0, "of their random numbers (default: 0)", 3},
    {0},
};

// A number of days, or a text with a unit of time.
static error_t parse_days(struct argp_state *state, const char *text, double *out) {
    static const double DAY_S = 86400;
    bool unit = strpbrk(text, "smhdwu") != NULL;
    error_t error = parse_quantity(state, "days", text, unit ? QUANTITY_SECONDS : QUANTITY_PLAIN,
                                   unit ? 1e-6 * DAY_S : 1e-6, out);
    if (error) return error;
    if (unit) *out /= DAY_S;
    if (*out <= MAX_DAYS) return 0;
    return parse_refuse(state, "--days: \"%.60s\" is more than %g", text, MAX_DAYS);
}

static error_t parse_tokens(struct argp_state *state, const char *text, double *out) {
    error_t error = parse_quantity(state, "tokens", text, QUANTITY_TOKENS, 1e-6, out);
    if (error || *out <= MAX_TOKENS) return error;
    return parse_refuse(state, "--tokens: \"%.60s\" is more than %g", text, MAX_TOKENS);
}

static error_t parse_number(struct argp_state *state, int number, const char *text,
                            WhatifArguments *options) {
    double *out = (double *)(void *)((char *)&options->goodput + NUMBERS[number].offset);
    options->failure_option = NUMBERS[number].name;
    error_t error = parse_quantity(state, NUMBERS[number].name, text, NUMBERS[number].kind,
                                   NUMBERS[number].min, out);
    if (error || *out <= 1 || NUMBERS[number].offset != offsetof(GoodputOptions, hardware_frac))
        return error;
    return parse_refuse(state, "--hardware-frac: \"%.60s\" is more than 1", text);
}

static error_t parse_count(struct argp_state *state, const char *option, const char *text, int min,
                           int max, int *out) {
    WhatifArguments *options = state->input;
    options->failure_option = option;
    return parse_int(state, option, text, min, max, out);
}

static error_t parse_question(int key, char *arg, struct argp_state *state) {
    WhatifArguments *options = state->input;
    switch (key) {
    case KEY_VARY:
        if (options->num_vary == WHATIF_MAX_AXES)
            return parse_refuse(state, "whatif: more than %d --vary", WHATIF_MAX_AXES);
        options->vary[options->num_vary++] = arg;
        return 0;
    case KEY_SENSITIVITY:
        options->has_sensitivity = true;
        return 0;
    case KEY_GOODPUT:
        options->has_goodput = true;
        return 0;
    case KEY_TOKENS:
        return parse_tokens(state, arg, &options->tokens);
    case KEY_DAYS:
        return parse_days(state, arg, &options->days);
    default:
        return common_parse(key, arg, state);
    }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    WhatifArguments *options = state->input;
    error_t error;
    int seed = 0;
    if (key >= KEY_NUMBER && key < KEY_NUMBER + NUM_NUMBERS)
        return parse_number(state, key - KEY_NUMBER, arg, options);
    switch (key) {
    case KEY_REPLAN:
        options->replan = true;
        return 0;
    case KEY_FIT_PROBABILITY:
        return parse_probability(state, arg, &options->fit_probability_frac);
    case KEY_REPETITIONS:
        return parse_int(state, "repetitions", arg, 1, 1000000, &options->repetitions);
    case KEY_PERCENT:
        error = parse_double(state, "percent", arg, 0.01, &options->percent);
        if (error || options->percent <= 90) return error;
        return parse_refuse(state, "--percent: \"%.60s\" is more than 90", arg);
    case KEY_ON:
        options->on = arg;
        return 0;
    case 'o':
        options->folder = arg;
        return 0;
    case KEY_FORCE:
        options->force = true;
        return 0;
    case KEY_SPARES:
        return parse_count(state, "spares", arg, 0, MAX_SPARES, &options->goodput.num_spares);
    case KEY_RUNS:
        return parse_count(state, "runs", arg, 2, MAX_RUNS, &options->goodput.num_runs);
    case KEY_SEED:
        error = parse_count(state, "seed", arg, 0, INT_MAX, &seed);
        options->goodput.seed = (uint64_t)seed;
        return error;
    default:
        return parse_question(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "SCENARIO",
    .doc = "Prices a grid of changes to a scenario; with --replan each point gets the plan that is "
           "best for it. A change names a key by its dotted path, as in cluster.num_gpus. Ranges: "
           "8..64:x2 is 8, 16, 32, 64; 1..7:+3 is 1, 4, 7. Or says which resource limits the job, "
           "what failures leave of it, or which cluster is large enough.\v"
           "Examples:\n"
           "  meshwright whatif job.json --vary cluster.num_gpus=64,128,256 --replan\n"
           "  meshwright whatif out/plan.json --vary training.seq_len=4096..32768:x2\n"
           "  meshwright whatif out/plan.json --vary training.global_batch=64,128 \\\n"
           "      --vary parallel.recompute=none,full -o grid\n"
           "  meshwright whatif slow.json --vary disturb[0].jitter_frac=0,0.02,0.05\n"
           "  meshwright whatif out/plan.json --sensitivity\n"
           "  meshwright whatif out/plan.json --goodput --storage 20GB/s --tokens 1T\n"
           "  meshwright whatif job.json --tokens 1T --days 60 --on dgx-h100,dgx-h200\n\n"
           "With -o an interrupted grid goes on where it was when the same command is given again, "
           "and processes with the same command and folder share its points: mpirun -np 8 "
           "meshwright whatif ... -o DIR (docs/whatif.md). Exits with 1 where nothing fits or no "
           "cluster is fast enough, with 2 where no point of the grid is legal.",
};

// --- What goes together

static Status question_check(const WhatifArguments *o) {
    const int num = (o->num_vary > 0) + o->has_sensitivity + o->has_goodput + (o->days > 0);
    if (num == 0 && o->tokens > 0)
        return usage_error("whatif --tokens: goes with --days or --goodput");
    if (num == 0)
        return usage_error("whatif: no --vary given, as in --vary cluster.num_gpus=64,128; other "
                           "questions are --sensitivity, --goodput, --tokens N --days D");
    if (num > 1)
        return usage_error("whatif: --vary, --sensitivity, --goodput and --days are different "
                           "questions; ask one at a time");
    return status_ok();
}

static Status options_check(const WhatifArguments *o) {
    TRY(question_check(o));
    if (o->percent > 0 && !o->has_sensitivity)
        return usage_error("whatif --percent: goes with --sensitivity only");
    if (o->repetitions > 0 && o->num_vary == 0)
        return usage_error("whatif --repetitions: goes with --vary only");
    if (o->failure_option && !o->has_goodput)
        return usage_error("whatif --%s: goes with --goodput only", o->failure_option);
    if (o->days > 0 && o->tokens == 0)
        return usage_error("whatif --days: needs --tokens, as in --tokens 15T --days 60");
    if (o->tokens > 0 && o->days == 0 && !o->has_goodput)
        return usage_error("whatif --tokens: goes with --days or --goodput");
    if (o->fit_probability_frac > 0 && !o->replan && o->days == 0)
        return usage_error("whatif --fit-probability: goes with --replan or --days only");
    if (o->on && o->days == 0) return usage_error("whatif --on: goes with --days only");
    if (o->replan && o->days > 0)
        return usage_error("whatif --replan: --days searches the best plans anyway");
    return status_ok();
}

Status whatif_options_read(int argc, char **argv, WhatifArguments *out) {
    *out = (WhatifArguments){.goodput = goodput_defaults()};
    TRY(command_parse(&ARGP, argc, argv, &out->common));
    TRY(options_check(out));
    if (out->tokens > 0) out->goodput.num_tokens = out->tokens;
    out->question = out->has_sensitivity ? WHATIF_SENSITIVITY
                    : out->has_goodput   ? WHATIF_GOODPUT
                    : out->days > 0      ? WHATIF_SIZING
                                         : WHATIF_GRID;
    return status_ok();
}
