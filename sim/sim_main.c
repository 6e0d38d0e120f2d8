// meshwright-sim: plays one scenario in SimGrid. Started by meshwright (sim/sim.h).
//
// Usage: meshwright-sim [--file NAME] [--fold auto|none|tp|full|approximate] [--repetitions N]
//                       [--stepwise] [--times|--all-times] < SCENARIO
// Reads the scenario on standard input; NAME is what to call it and where its relative paths start.
// Writes one JSON document to standard output, or one line to standard error and ends with the
// exit codes of the contract. A scenario that it refuses has both, and the document says no more
// than that ("refused"): so nobody takes another program's line and exit code for a refusal.
// --times also writes the begin and end of every instruction in the first repetition, as pairs of
// doubles, to file descriptor 3: of one GPU per stage, in the lane that ends last. --all-times does
// so for all simulated GPUs, stage by stage and lane by lane.
//        meshwright-sim --hand-made < NETWORK
// Plays what sim/hand_made.h describes and writes when each activity begins and ends.
#include "sim/hand_made.h"
#include "sim/run.h"
#include "sim/sgx.h"

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES_FD = 3, MAX_REPETITIONS = 1000000 };

typedef struct {
    const char *file;
    RunOptions run;
    bool times, all_times;
    bool hand_made;
} Options;

static Status fold_read(const char *text, FoldMode *out) {
    for (int i = 0; i < NUM_FOLD_MODES; i++) {
        if (strcmp(text, FOLD_NAMES[i]) != 0) continue;
        *out = (FoldMode)i;
        return status_ok();
    }
    return status_error(STATUS_INVALID, "--fold %s: legal are auto, none, tp, full and approximate",
                        text);
}

static Status repetitions_read(const char *text, int *out) {
    char *end;
    long number = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || number < 1 || number > MAX_REPETITIONS) {
        return status_error(STATUS_INVALID, "--repetitions %s: expected 1 to %d", text,
                            MAX_REPETITIONS);
    }
    *out = (int)number;
    return status_ok();
}

static Status options_read(int argc, char **argv, Options *out) {
    *out = (Options){.file = "standard input", .run = {.num_repetitions = 1}};
    static const struct option known[] = {
        {"file", required_argument, NULL, 'f'},        {"fold", required_argument, NULL, 'o'},
        {"stepwise", no_argument, NULL, 's'},          {"times", no_argument, NULL, 't'},
        {"all-times", no_argument, NULL, 'a'},         {"hand-made", no_argument, NULL, 'h'},
        {"repetitions", required_argument, NULL, 'r'}, {NULL, 0, NULL, 0},
    };
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (option) {
        case 'f':
            out->file = optarg;
            break;
        case 'o':
            TRY(fold_read(optarg, &out->run.fold));
            break;
        case 'r':
            TRY(repetitions_read(optarg, &out->run.num_repetitions));
            break;
        case 's':
            out->run.stepwise = true;
            break;
        case 't':
            out->times = true;
            break;
        case 'a':
            out->all_times = true;
            break;
        case 'h':
            out->hand_made = true;
            break;
        default:
            return status_error(STATUS_INVALID, "%s: no such option", argv[optind - 1]);
        }
    }
    if (optind == argc) return status_ok();
    return status_error(STATUS_INVALID, "%s: the scenario is read from standard input",
                        argv[optind]);
}

static void lane_times_write(const Run *run, int rank, int lane, FILE *file) {
    int count = run->parts.program.ranks[rank].num_instructions;
    for (int i = 0; i < count; i++) {
        int slot = lane * count + i;
        double pair[2] = {run->playback.start_s[run->lowered.begin_node[rank][slot]],
                          run->playback.end_s[run->lowered.end_node[rank][slot]]};
        fwrite(pair, sizeof pair, 1, file);
    }
}

static Status times_write(const Run *run, bool all) {
    FILE *file = fdopen(TIMES_FD, "wb");
    if (!file) return status_error(STATUS_MACHINE, "--times: %s", strerror(errno));
    int first = all ? 0 : run->outcome.last_lane;
    int end = all ? run->lowered.num_lanes : first + 1;
    for (int rank = 0; rank < run->parts.program.num_ranks; rank++)
        for (int lane = first; lane < end; lane++) lane_times_write(run, rank, lane, file);
    if (fflush(file) == 0 && !ferror(file)) return status_ok();
    return status_error(STATUS_MACHINE, "--times: %s", strerror(errno));
}

static Status answer_write(cJSON *answer) {
    Status status = json_write(answer, stdout);
    cJSON_Delete(answer);
    return status;
}

static cJSON *refusal_to_json(void) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON_AddStringToObject(json, "version", MESHWRIGHT_VERSION);
    cJSON_AddItemToObject(json, "refused", cJSON_CreateTrue());
    return json;
}

static Status hand_made_main(const JsonNode *root, Arena *arena) {
    Network network;
    Dag dag;
    Playback playback;
    TRY(hand_made_read(root, arena, &network, &dag));
    TRY(dag_play(&network, &dag, arena, &playback));
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "start_s",
                          cJSON_CreateDoubleArray(playback.start_s, dag.num_nodes));
    cJSON_AddItemToObject(json, "end_s", cJSON_CreateDoubleArray(playback.end_s, dag.num_nodes));
    return answer_write(json);
}

static Status scenario_play(const Options *options, Arena *arena) {
    JsonNode root;
    Run *run = ARENA_NEW(arena, Run);
    TRY(json_load_stream(stdin, options->file, arena, &root));
    if (options->hand_made) return hand_made_main(&root, arena);
    TRY(run_play(&options->run, &root, arena, run));
    if (options->times || options->all_times) TRY(times_write(run, options->all_times));
    return answer_write(run_to_json(run));
}

static Status sim_main(int argc, char **argv, Arena *arena) {
    Options options;
    TRY(options_read(argc, argv, &options));
    Status status = scenario_play(&options, arena);
    if (status.code == STATUS_INVALID && !options.hand_made) TRY(answer_write(refusal_to_json()));
    return status;
}

// Large arrays go back to the system when they are freed, however many were freed before; the C
// library would keep more and more of them.
enum { LARGE_BYTES = 128 * 1024 };

int main(int argc, char **argv) {
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    Arena arena = {0};
    Status status = sim_main(argc, argv, &arena);
    if (status.code != STATUS_OK) fprintf(stderr, "meshwright-sim: %s\n", status.text);
    sgx_exit((int)status.code);
}
