// meshwright - plans and simulates the training of large models. This file: the table of commands.
//
// Exit codes: 0 done; 1 the answer is "no"; 2 bad usage or bad input, nothing written; 3 the
// machine failed us.
#include "base/json.h"
#include "cli/command.h"

#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *name;
    const char *help;
    CommandRun run; // NULL: not supported yet
} Command;

static const Command COMMANDS[] = {
    {"plan", "find the best ways to split and schedule a training job", command_plan},
    {"estimate", "price one parallel configuration", command_estimate},
    {"simulate", "play it on a simulated network and compare", command_simulate},
    {"whatif", "price or re-plan a grid of changes", command_whatif},
    {"launch", "write the files that start a plan on your software", command_launch},
    {"models", "list and show the bundled models", command_models},
    {"clusters", "list and show the bundled clusters", command_clusters},
    {"compare", "set two plans or scenarios side by side, term by term", command_compare},
    {"report", "one page, or tables, of plans, simulations and grids", command_report},
    {"import", "read your own command line or configuration as a scenario", command_import},
    {"kernel", "price kernel shapes with a calibrated profile", command_kernel},
    {"validate", "predict published measurements and print the errors", command_validate},
    {"calibrate", "fit a GPU's profile to measured kernels", command_calibrate},
    {"profile", "measure the GPU of this machine", command_profile},
    {"run", "execute a plan with the bundled runtime", command_run},
};
enum { NUM_COMMANDS = sizeof COMMANDS / sizeof *COMMANDS };

static void print_help(void) {
    printf("Usage: meshwright COMMAND [SCENARIO] [options]\n\n"
           "Says how to split a model over GPUs, how fast each step will be, whether it fits, and\n"
           "what it costs - before any GPU runs.\n\nCommands:\n");
    for (int i = 0; i < NUM_COMMANDS; i++)
        if (COMMANDS[i].run) printf("  %-10s %s\n", COMMANDS[i].name, COMMANDS[i].help);
    printf(
        "\nA scenario is one JSON or YAML file; save this as job.json:\n\n"
        "  {\"schema\": 1, \"model\": \"llama-3.1-70b\", \"cluster\": \"dgx-h100:16\",\n"
        "   \"training\": {\"seq_len\": 8192, \"global_batch\": 1024, \"precision\": \"bf16\"}}\n\n"
        "Then:\n\n"
        "  meshwright plan config.json --cluster dgx-h100:16 --seq-len 8192 --batch 1024\n"
        "                                       the same question, of a Hugging Face config.json\n"
        "  meshwright plan job.json -o out      the five best plans; out/plan.json is the best\n"
        "  meshwright simulate out/plan.json    does a shared network change the answer?\n"
        "  meshwright launch out/plan.json --for megatron --scheduler slurm\n"
        "  meshwright whatif job.json --vary cluster.num_gpus=64,128,256 --replan\n"
        "  meshwright whatif out/plan.json --sensitivity    which resource limits it?\n\n"
        "meshwright help COMMAND explains each with examples; --version names this version.\n"
        "Tables are as wide as the terminal, or as COLUMNS in the environment says.\n"
        "Exit codes: 0 done, 1 the answer is no, 2 bad usage or input, 3 the machine failed.\n");
}

static Status command_unknown(const char *name) {
    const char *names[NUM_COMMANDS + 1];
    int num_names = 0;
    for (int i = 0; i < NUM_COMMANDS; i++)
        if (COMMANDS[i].run) names[num_names++] = COMMANDS[i].name;
    names[num_names] = NULL;
    const char *nearest = name_nearest(name, names);
    if (nearest) return usage_error("unknown command \"%s\"; the nearest is %s", name, nearest);
    return usage_error("unknown command \"%s\"; meshwright --help lists the commands", name);
}

static Status command_start(int argc, char **argv) {
    const char *name = argv[1];
    for (int i = 0; i < NUM_COMMANDS; i++) {
        if (strcmp(name, COMMANDS[i].name) != 0) continue;
        if (!COMMANDS[i].run) return usage_error("%s is not supported yet", name);
        char title[64];
        snprintf(title, sizeof title, "meshwright %s", name);
        argv[1] = title;
        return COMMANDS[i].run(argc - 1, argv + 1);
    }
    return command_unknown(name);
}

// "help COMMAND" is "COMMAND --help".
static Status command_help(const char *program, const char *name) {
    char *argv[] = {(char *)program, (char *)name, "--help", NULL};
    return command_start(3, argv);
}

static Status run(int argc, char **argv) {
    if (argc < 2) return usage_error("no command given; meshwright --help shows how to begin");
    const char *first = argv[1];
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        printf("meshwright %s\n", MESHWRIGHT_VERSION);
        return status_ok();
    }
    if (strcmp(first, "help") == 0 && argc > 2 && argv[2][0] != '-')
        return command_help(argv[0], argv[2]);
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0) {
        print_help();
        return status_ok();
    }
    if (first[0] == '-')
        return usage_error("unknown option %s before the command; meshwright --help shows how to "
                           "begin",
                           first);
    return command_start(argc, argv);
}

static bool ended_in_main; // and not in exit(), where argp ends after --help

static bool output_failed(void) {
    return fflush(stdout) != 0 || ferror(stdout);
}

static void output_check(void) {
    if (ended_in_main || !output_failed()) return;
    fputs("meshwright: standard output cannot be written\n", stderr);
    _exit(STATUS_MACHINE);
}

int main(int argc, char **argv) {
    argp_err_exit_status = STATUS_INVALID;
    signal(SIGXFSZ, SIG_IGN); // a file beyond `ulimit -f` is a write that fails, not the end
    atexit(output_check);
    Status status = run(argc, argv);
    ended_in_main = true;
    if (output_failed() && status.code != STATUS_MACHINE)
        status = status_error(STATUS_MACHINE, "meshwright: standard output cannot be written");
    if (status.code != STATUS_OK) fprintf(stderr, "%s\n", status.text);
    return (int)status.code;
}
