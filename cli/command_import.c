// `import`: a user's command line or configuration as a scenario.
#include "base/json.h"
#include "base/shown_text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "import/import.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    CommonOptions common; // scenario is the file
    int source;           // ImportSource; -1: not stated
    ImportOptions import;
    const char *output;
    bool search;
} ImportCommand;

enum { KEY_FROM = KEY_LONG, KEY_CLUSTER, KEY_VOCAB, KEY_SET, KEY_SEARCH };

static const struct argp_option OPTIONS[] = {
    {"from", KEY_FROM, "STACK", 0, "what the file is for: megatron, nemo, deepspeed or torchtitan",
     0},
    {"cluster", KEY_CLUSTER, "NAME:NODES", 0,
     "machines that it runs on; NODES may be left out where the file says them", 0},
    {"vocab-size", KEY_VOCAB, "N", 0, "tokens of the vocabulary, where the file does not say", 0},
    {"set", KEY_SET, "NAME=VALUE", 0,
     "a variable of the environment that a script asks for, or its argument $NAME (1, 2, ...); may "
     "be given again",
     0},
    {"search", KEY_SEARCH, NULL, 0,
     "leave `parallel` out, for plan to search, and print how to compare", 0},
    {"output", 'o', "FILE", 0, "where to write the scenario (default: standard output)", 0},
    OPTION_JSON,
    {0},
};

static error_t parse_setting(struct argp_state *state, char *arg, ImportOptions *import) {
    char *equals = strchr(arg, '=');
    if (!equals || equals == arg)
        return parse_refuse(state, "--set: \"%.60s\" is not NAME=VALUE", arg);
    if (import->num_settings == IMPORT_MAX_SETTINGS)
        return parse_refuse(state, "--set: at most %d are possible", IMPORT_MAX_SETTINGS);
    *equals = '\0';
    import->settings[import->num_settings++] = (Setting){arg, equals + 1};
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    ImportCommand *options = state->input;
    switch (key) {
    case KEY_FROM:
        return parse_name(state, "from", arg, IMPORT_SOURCE_NAMES, &options->source);
    case KEY_CLUSTER:
        options->import.cluster = arg;
        return 0;
    case KEY_VOCAB:
        return parse_int(state, "vocab-size", arg, 1, 1 << 26, &options->import.vocab_size);
    case KEY_SET:
        return parse_setting(state, arg, &options->import);
    case KEY_SEARCH:
        options->search = true;
        return 0;
    case 'o':
        return parse_file(state, "output", arg, &options->output);
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "FILE",
    .doc =
        "Reads a shell script or command line of Megatron-LM or Megatron-DeepSpeed, a YAML file of "
        "Megatron Bridge or a TOML file of torchtitan into a scenario: model, batch, precision and "
        "how it is split. What it cannot price is refused by name; what it prices otherwise than "
        "the file says, or does not know, is said.\v"
        "Examples:\n"
        "  meshwright import --from megatron train.sh --cluster dgx-h100:16\n"
        "  meshwright import --from megatron train.sh --cluster dgx-h100:2 --set TP=4\n"
        "  meshwright import --from nemo run_config.yaml --cluster dgx-h100:2\n"
        "  meshwright import --from torchtitan llama3_8b.toml --cluster dgx-h100:8\n"
        "  meshwright import --from megatron train.sh --cluster dgx-h100:16 \\\n"
        "      --search -o job2.json\n\n"
        "estimate, simulate and launch take the scenario as it is; with --search plan looks for a "
        "better plan and sets yours beside it: docs/launch/import.md.",
};

// "tp=8,pp=4,...": what of parallel `plan --compare` can be told. Lists cannot.
static const char *compare_text(const cJSON *parallel, Arena *arena) {
    const char *text = "";
    const cJSON *item;
    cJSON_ArrayForEach(item, parallel) {
        const char *comma = text[0] ? "," : "";
        if (cJSON_IsNumber(item))
            text = arena_printf(arena, "%s%s%s=%d", text, comma, item->string, item->valueint);
        else if (cJSON_IsString(item))
            text = arena_printf(arena, "%s%s%s=%s", text, comma, item->string, item->valuestring);
        else if (cJSON_IsBool(item))
            text = arena_printf(arena, "%s%s%s=%s", text, comma, item->string,
                                cJSON_IsTrue(item) ? "true" : "false");
    }
    return text;
}

static Status import_answer(const ImportCommand *options, Arena *arena) {
    Imported imported;
    const char *file = options->common.scenario;
    if (options->source < 0)
        return usage_error(
            "import: no --from given; expected megatron, nemo, deepspeed or torchtitan");
    if (options->output) {
        TRY(output_check_input(options->output, file, "file"));
        TRY(output_check(options->output, arena));
    }
    TRY(import_file((ImportSource)options->source, file, &options->import, arena, &imported));
    for (int i = 0; i < imported.num_notes; i++)
        shown_line(stderr, "meshwright: %s: %s", imported.file, imported.notes[i]);
    const cJSON *parallel = cJSON_GetObjectItemCaseSensitive(imported.scenario, "parallel");
    const char *compare = compare_text(parallel, arena);
    if (options->search) cJSON_DeleteItemFromObjectCaseSensitive(imported.scenario, "parallel");
    if (!options->output) return json_write(imported.scenario, stdout);
    TRY(json_save(imported.scenario, options->output));
    if (options->search)
        shown_line(stdout, "meshwright plan %s --compare %s", options->output, compare);
    else if (!options->common.json)
        shown_line(stdout, "%s written", options->output);
    return status_ok();
}

Status command_import(int argc, char **argv) {
    ImportCommand options = {.source = -1};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = import_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
