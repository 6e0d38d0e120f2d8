// The whole command line.
#include "import/megatron.h"
#include "import/name_pattern.h"

#include <stdlib.h>
#include <string.h>

// Of a model that Megatron-LM runs and nothing here prices.
static Status refuse_unpriced(FlagArgs *args) {
    static const struct {
        const char *flag, *what;
    } FLAGS[] = {
        {"--hybrid-layer-pattern", "hybrid models"},
        {"--hybrid-override-pattern", "hybrid models"},
        {"--is-hybrid-model", "hybrid models"},
        {"--experimental-attention-variant", "other kinds of attention"},
        {"--cpu-offloading", "activations in host memory"},
        {"--optimizer-cpu-offload", "an optimizer in host memory"},
        {"--fine-grained-activation-offloading", "activations in host memory"},
        {"--use-torch-fsdp2", "FSDP2 under Megatron-LM"},
        {"--hierarchical-context-parallel-sizes", "hierarchical context parallelism"},
        {"--encoder-num-layers", "an encoder"},
        {"--moe-latent-size", "experts in a latent space"},
        {"--multi-token-prediction-sharing", "shared prediction layers"},
        {"--heterogeneous-layers-config-path", "layers of different shapes"},
    };
    for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++)
        if (args_has(args, FLAGS[i].flag))
            return import_refuse(args->out, FLAGS[i].flag, "%s: not supported yet", FLAGS[i].what);
    return status_ok();
}

// A number among the launcher's flags, in front of the program; 0: it does not say.
static int launcher_number(FlagArgs *args, const char *const *names) {
    for (; *names; names++) {
        const char *text;
        if (args_text(args, *names, NULL, &text).code != STATUS_OK || !text) continue;
        char *end;
        long value = strtol(text, &end, 10);
        if ((*end == '\0' || *end == ' ') && value > 0 && value < 1000000) return (int)value;
    }
    return 0;
}

// On how many nodes it runs, and how many processes that are.
static int nodes_of(const ShellCommand *command, Imported *out) {
    static const char *const nodes[] = {"--nnodes", "--nodes", NULL};
    static const char *const ranks[] = {"--nproc-per-node", "--nproc_per_node", NULL};
    FlagArgs args = flag_args(&command->words, 0, command->program < 0 ? 0 : command->program, out);
    const int stated = launcher_number(&args, nodes), per_node = launcher_number(&args, ranks);
    const int num_nodes = stated > 0 ? stated : command->num_nodes;
    out->num_ranks = num_nodes * per_node;
    return num_nodes;
}

static void blocks_note(const ShellCommand *command, Imported *out) {
    if (command->num_sourced > 0)
        import_note(out, "Line %d reads the commands of %.100s, which is not followed%s.",
                    command->sourced.line, command->sourced.name,
                    command->num_sourced > 1 ? "; so are others" : "");
    if (command->num_skipped == 0) return;
    bool several = command->num_skipped > 1;
    import_note(out,
                "%d block%s of if, for, while or case, the first at line %d, %s not followed, for "
                "the file does not decide %s; --set NAME=VALUE may.",
                command->num_skipped, several ? "s" : "", command->first_skipped,
                several ? "were" : "was", several ? "them" : "it");
}

Status megatron_read_flags(FlagArgs args, int num_nodes, const ImportOptions *options) {
    Imported *out = args.out;
    MegatronRead read = {.args = args};
    TRY(refuse_unpriced(&read.args));
    read.model = cJSON_AddObjectToObject(out->scenario, "model");
    TRY(import_cluster(out, options, num_nodes, &read.num_gpus));
    read.training = cJSON_AddObjectToObject(out->scenario, "training");
    read.parallel = cJSON_AddObjectToObject(out->scenario, "parallel");
    TRY(megatron_read_model(&read, options->vocab_size));
    TRY(megatron_read_experts(&read));
    TRY(megatron_read_degrees(&read));
    TRY(megatron_read_pipeline(&read));
    TRY(megatron_read_memory(&read));
    TRY(megatron_read_training(&read));
    TRY(megatron_read_kept(&read));
    args_use(&read.args, MEGATRON_OWN_FLAGS);
    TRY(args_refuse_open(&read.args, MEGATRON_SWITCHES));
    const char *unused = args_unused(&read.args);
    if (unused[0])
        import_note(out, "Not read, for meshwright does not know what they change: %s.", unused);
    return status_ok();
}

// Flags of what starts the program or of the queue, which change nothing of the plan.
static const char *const LAUNCHER_OWN_FLAGS[] = {"--container-image",
                                                 "--container-mounts",
                                                 "--container-name",
                                                 "--container-workdir",
                                                 "--cpu-bind",
                                                 "--error",
                                                 "--export",
                                                 "--hostfile",
                                                 "--job-name",
                                                 "--kill-on-bad-exit",
                                                 "--local-addr",
                                                 "--log-dir",
                                                 "--log_dir",
                                                 "--master-addr",
                                                 "--master-port",
                                                 "--master_addr",
                                                 "--master_port",
                                                 "--max-restarts",
                                                 "--max_restarts",
                                                 "--mpi",
                                                 "--node-rank",
                                                 "--node_rank",
                                                 "--output",
                                                 "--partition",
                                                 "--rdzv-backend",
                                                 "--rdzv-conf",
                                                 "--rdzv-endpoint",
                                                 "--rdzv-id",
                                                 "--rdzv_backend",
                                                 "--rdzv_conf",
                                                 "--rdzv_endpoint",
                                                 "--rdzv_id",
                                                 "--redirects",
                                                 "--standalone",
                                                 "--tee",
                                                 NULL};

// Flags that a script may or may not add, and that may change the plan or the model.
static Status refuse_maybe(const ShellCommand *command, Imported *out) {
    for (int i = 0; i < command->num_maybe; i++) {
        const Undecided *maybe = &command->maybe[i];
        if (!name_is_among(maybe->name, MEGATRON_OWN_FLAGS) &&
            !name_is_among(maybe->name, LAUNCHER_OWN_FLAGS))
            return import_refuse(out, maybe->name,
                                 "added or not as line %d says, which the file does not decide; "
                                 "give --set NAME=VALUE for what that line asks",
                                 maybe->line);
    }
    return status_ok();
}

// Settings that change nothing, and scripts that are too much.
static Status refuse_unfollowed(const ShellCommand *command, Imported *out) {
    if (command->too_large > 0)
        return import_refuse(out, "",
                             "line %d: a value grows beyond %d bytes, or all that are read beyond "
                             "%d, which is more than is followed",
                             command->too_large, SHELL_MAX_WORD_BYTES, SHELL_MAX_BYTES);
    if (command->overflow > 0)
        return import_refuse(out, "",
                             "line %d: blocks or calls are nested too deep, or there are too many "
                             "variables or functions, to follow them",
                             command->overflow);
    if (command->unended > 0)
        return import_refuse(out, "", "line %d begins a block that nothing ends: bash refuses it",
                             command->unended);
    if (command->syntax.name)
        return import_refuse(out, "",
                             "line %d: bash stops at \"%s\", which has no block there, an empty "
                             "one, no end, or nothing between the block before and itself",
                             command->syntax.line, command->syntax.name);
    if (command->overwritten.name)
        return import_refuse(out, "", "line %d sets %s whatever --set %s says; change that line",
                             command->overwritten.line, command->overwritten.name,
                             command->overwritten.name);
    if (command->unread)
        return import_refuse(out, "", "--set %s: the file reads no variable of this name",
                             command->unread);
    return status_ok();
}

// Other programs of Megatron-LM, whose models are not GPT's.
static Status refuse_program(const ShellCommand *command, Imported *out) {
    static const char *const others[] = {"bert", "t5",    "ict",       "retro", "realm",  "vision",
                                         "vlm",  "mamba", "biencoder", "mimo",  "hybrid", NULL};
    const char *word = command->program >= 0 ? command->words.words[command->program] : "";
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
    for (const char *const *other = others; *other; other++)
        if (strstr(name, arena_printf(out->arena, "pretrain_%s", *other)))
            return import_refuse(out, "", "%.60s is not supported yet; expected pretrain_gpt.py",
                                 name);
    return status_ok();
}

static Status refuse_absent(const ShellCommand *command, Imported *out) {
    if (command->found) return refuse_program(command, out);
    if (command->hidden > 0)
        return import_refuse(out, "",
                             "line %d runs pretrain_gpt.py under a condition that the file does "
                             "not decide; give --set NAME=VALUE for what it asks",
                             command->hidden);
    if (command->exit_line > 0)
        return import_refuse(out, "",
                             "line %d ends the script before any command of pretrain_gpt.py; "
                             "--set 1=VALUE gives its first argument",
                             command->exit_line);
    return import_refuse(out, "", "has no command of pretrain_gpt.py, nor one of flags alone");
}

Status megatron_command_find(const char *text, const ImportOptions *options, Imported *out,
                             FlagArgs *args, int *num_nodes) {
    ShellCommand command =
        shell_command(text, "pretrain", options->settings, options->num_settings, out->arena);
    Undecided *undecided = ARENA_ARRAY(out->arena, MAX_UNDECIDED, Undecided);
    memcpy(undecided, command.undecided, sizeof command.undecided);
    out->undecided = undecided;
    out->num_undecided = command.num_undecided;
    Document *documents = ARENA_ARRAY(out->arena, MAX_DOCUMENTS, Document);
    memcpy(documents, command.documents, sizeof command.documents);
    out->documents = documents;
    out->num_documents = command.num_documents;
    TRY(refuse_unfollowed(&command, out));
    TRY(refuse_absent(&command, out));
    TRY(refuse_maybe(&command, out));
    blocks_note(&command, out);
    *args = flag_args(&command.words, command.program + 1, command.words.num_words, out);
    *num_nodes = nodes_of(&command, out);
    return status_ok();
}

Status import_megatron(const char *text, const ImportOptions *options, Imported *out) {
    FlagArgs args;
    int num_nodes;
    TRY(megatron_command_find(text, options, out, &args, &num_nodes));
    return megatron_read_flags(args, num_nodes, options);
}
