// meshwright-run - executes a plan: trains its model with the bundled runtime.
//
// Exit codes: 0 done; 1 the training diverged; 2 bad usage or bad input; 3 the machine failed us.
#include "runtime/train.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char DOC[] = "Trains the model of a plan, as the plan splits it.\v"
                          "Examples:\n"
                          "  meshwright-run plan.json --steps 20 --data text.txt\n"
                          "  mpirun -n 4 meshwright-run plan.json --dtype fp64 --log steps.jsonl\n"
                          "  meshwright-run plan.json --device cuda\n";

enum {
    KEY_STEPS = 1,
    KEY_DATA,
    KEY_LOG,
    KEY_RATE,
    KEY_CLIP,
    KEY_SEED,
    KEY_DUMP,
    KEY_DEVICE,
    KEY_DTYPE,
    KEY_SAVE,
    KEY_EVERY,
    KEY_RESUME,
    KEY_TIMES,
    KEY_ROUTING
};

static const struct argp_option OPTIONS[] = {
    {"device", KEY_DEVICE, "cpu|cuda", 0, "what computes (default: cpu)", 0},
    {"dtype", KEY_DTYPE, "fp64|fp32|bf16", 0, "format of activations (default: as the plan)", 0},
    {"steps", KEY_STEPS, "N", 0, "steps to train (default: 10)", 0},
    {"data", KEY_DATA, "FILE", 0, "text to train on, a token for each byte (default: made up)", 0},
    {"log", KEY_LOG, "FILE", 0, "write a JSON line for each step", 0},
    {"times", KEY_TIMES, "FILE", 0, "write when each instruction ran, for meshwright run", 0},
    {"learning-rate", KEY_RATE, "X", 0, "of the optimizer (default: 0.0006)", 0},
    {"clip-norm", KEY_CLIP, "X", 0,
     "scale gradients down where their norm is above it; 0: never (default: 1)", 0},
    {"seed", KEY_SEED, "N", 0, "of first weights and data (default: 1)", 0},
    {"routing", KEY_ROUTING, "learned|balanced", 0,
     "experts of a token: those that the router chooses (default), or in turn, each as many", 0},
    {"save", KEY_SAVE, "DIR", 0, "write a checkpoint there behind the last step", 0},
    {"save-every", KEY_EVERY, "N", 0, "and behind every N steps", 0},
    {"resume", KEY_RESUME, "DIR", 0, "go on with this checkpoint, of any plan of the model", 0},
    {"dump", KEY_DUMP, "DIR", 0, "write gradients and weights of each step there", 0},
    {0},
};

#define MOST_STEPS ((int64_t)1000000000000000) // as a checkpoint may have behind it

static int64_t whole_number(struct argp_state *state, const char *what, const char *text,
                            int64_t least, int64_t most) {
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || end == text || value < least || value > most)
        argp_error(state, "--%s %s: expected a whole number from %lld to %lld", what, text,
                   (long long)least, (long long)most);
    return value;
}

static const char *file_name(struct argp_state *state, const char *what, const char *text) {
    if (!*text) argp_error(state, "--%s: expected a name", what);
    return text;
}

// Names beside it are made of it.
static const char *folder_name(struct argp_state *state, const char *what, char *text) {
    for (size_t n = strlen(text); n > 1 && text[n - 1] == '/'; n--) text[n - 1] = '\0';
    return file_name(state, what, text);
}

static int choice(struct argp_state *state, const char *what, const char *text,
                  const char *const *names) {
    for (int i = 0; names[i]; i++)
        if (strcmp(text, names[i]) == 0) return i;
    argp_error(state, "--%s %s is not known", what, text);
    return 0;
}

static error_t option_parse(int key, char *text, struct argp_state *state) {
    static const char *const DEVICES[] = {"cpu", "cuda", NULL};
    static const char *const DTYPES[] = {"bf16", "fp32", "fp64", NULL};
    static const char *const ROUTINGS[] = {"learned", "balanced", NULL};
    TrainOptions *o = state->input;
    char *end = NULL;
    switch (key) {
    case KEY_DEVICE:
        o->cuda = choice(state, "device", text, DEVICES) == 1;
        break;
    case KEY_DTYPE:
        o->dtype = choice(state, "dtype", text, DTYPES);
        break;
    case KEY_STEPS:
        o->num_steps = whole_number(state, "steps", text, 1, MOST_STEPS);
        break;
    case KEY_DATA:
        o->data = file_name(state, "data", text);
        break;
    case KEY_LOG:
        o->log = file_name(state, "log", text);
        break;
    case KEY_TIMES:
        o->times = file_name(state, "times", text);
        break;
    case KEY_RATE:
        o->update.learning_rate = strtod(text, &end);
        if (*end != '\0' || end == text || !isfinite(o->update.learning_rate) ||
            o->update.learning_rate < 0)
            argp_error(state, "--learning-rate %s: expected a number from 0 on", text);
        break;
    case KEY_CLIP:
        o->update.max_norm = strtod(text, &end);
        if (*end != '\0' || end == text || !(o->update.max_norm >= 0))
            argp_error(state, "--clip-norm %s: expected a number from 0 on", text);
        break;
    case KEY_SEED:
        o->seed = (uint64_t)whole_number(state, "seed", text, 0, INT64_MAX);
        break;
    case KEY_ROUTING:
        o->balanced = choice(state, "routing", text, ROUTINGS) == 1;
        break;
    case KEY_SAVE:
        o->save = folder_name(state, "save", text);
        break;
    case KEY_EVERY:
        o->save_every = whole_number(state, "save-every", text, 1, MOST_STEPS);
        break;
    case KEY_RESUME:
        o->resume = folder_name(state, "resume", text);
        break;
    case KEY_DUMP:
        o->dump = file_name(state, "dump", text);
        break;
    case ARGP_KEY_ARG:
        if (o->plan) argp_error(state, "one plan is run at a time, not also %s", text);
        o->plan = text;
        break;
    case ARGP_KEY_END:
        if (!o->plan) argp_error(state, "no plan given");
        if (o->save_every > 0 && !o->save) argp_error(state, "--save-every goes with --save DIR");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv) {
    const struct argp argp = {OPTIONS, option_parse, "PLAN.json", DOC, NULL, NULL, NULL};
    TrainOptions options = {
        .dtype = NUM_DTYPES, .num_steps = 10, .seed = 1, .update = update_defaults()};
    argp_err_exit_status = STATUS_INVALID;
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    World world;
    Status status = world_join(&world);
    if (status.code == STATUS_OK) status = train(&options, &world);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status.code == STATUS_OK)
        status = status_error(STATUS_MACHINE, "standard output cannot be written");
    world_leave(&world, status);
    return (int)status.code;
}
