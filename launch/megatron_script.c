#include "launch/megatron_script.h"

#include "launch/script.h"

#include <string.h>

// GPUs of one operating system. A node of the scenario may be a rack (gb200-nvl72): its compute
// trays are hosts of their own, with 4 GPUs each (NVIDIA GB200 NVL72 datasheet: 18 trays, 72 GPUs).
static int gpus_per_host(const Scenario *scenario) {
    enum { MAX_GPUS_PER_HOST = 16, GPUS_PER_TRAY = 4 };
    int per_node = scenario->cluster.gpus_per_node, num_gpus = scenario->cluster.num_gpus;
    if (per_node > MAX_GPUS_PER_HOST && per_node % GPUS_PER_TRAY == 0) per_node = GPUS_PER_TRAY;
    return num_gpus < per_node ? num_gpus : per_node;
}

static int num_hosts(const Scenario *scenario) {
    return scenario->cluster.num_gpus / gpus_per_host(scenario);
}

static void add_head(Script *script, const Scenario *scenario, const Plan *plan,
                     const MegatronCommand *command) {
    Arena *arena = script->arena;
    script_comment(script,
                   arena_printf(arena, "Trains %s on %d x %s: %s. Written by meshwright %s.",
                                shell_name(scenario->model.name, arena), scenario->cluster.num_gpus,
                                shell_name(scenario->cluster.gpu.name, arena),
                                plan_describe(plan, arena), MESHWRIGHT_VERSION));
    script_comment(script, "For NVIDIA/Megatron-LM, " MEGATRON_VERSION ".");
    if (strcmp(scenario->cluster.gpu.vendor, "AMD") == 0)
        script_comment(script, "AMD GPUs: NVIDIA's Megatron-LM does not run on ROCm. It needs "
                               "AMD's fork (ROCm/Megatron-LM), whose flags may differ from these.");
    script_comment(script, "");
    script_comment(script, "What of the model this script leaves out or assumes; none of it "
                           "changes the speed:");
    for (int i = 0; i < command->num_notes; i++)
        script_comment(script, arena_printf(arena, "- %s", command->notes[i]));
}

static void add_slurm_head(Script *script, const Scenario *scenario) {
    const char *name = shell_name(scenario->model.name, script->arena);
    script_add(script, "#SBATCH --job-name=%s\n", name);
    script_add(script, "#SBATCH --nodes=%d\n", num_hosts(scenario));
    script_add(script, "#SBATCH --ntasks-per-node=1\n");
    script_add(script, "#SBATCH --gpus-per-node=%d\n", gpus_per_host(scenario));
    script_add(script, "#SBATCH --exclusive\n");
    script_add(script, "#SBATCH --output=%%x-%%j.log\n");
    script_comment(script, "Add what your cluster asks for: --partition, --account, --time; and "
                           "--cpus-per-task=CORES_OF_A_NODE where --exclusive does not give all "
                           "cores to the task, or the ranks of a node share a few.");
}

// True where the command leaves this variable to the user.
static bool uses_variable(const MegatronCommand *command, const char *variable) {
    for (int i = 0; i < command->flags.num_flags; i++) {
        const char *value = command->flags.flags[i].value;
        if (value && strstr(value, variable)) return true;
    }
    return false;
}

static void add_settings(Script *script, const MegatronCommand *command) {
    script_add(script, "\n# --- Yours to set, here or in the environment ---\n\n");
    script_add(script, ": \"${MEGATRON_PATH:?set it to your checkout of Megatron-LM}\"\n");
    script_comment(script, "DATA_PATH: prefix of your indexed data (of its .bin and .idx files). "
                           "Empty trains on mock data, which is enough to measure the speed.");
    script_add(script, "DATA_PATH=${DATA_PATH:-}\nDATA_SPLIT=${DATA_SPLIT:-99,1,0}\n");
    script_comment(script, "TOKENIZER_MODEL: file, folder or Hugging Face name; needed with data.");
    script_add(script, "TOKENIZER_TYPE=${TOKENIZER_TYPE:-HuggingFaceTokenizer}\n");
    script_comment(script, "CHECKPOINT_PATH: folder to save to and to resume from. Empty saves "
                           "nothing.");
    script_add(script,
               "CHECKPOINT_PATH=${CHECKPOINT_PATH:-}\nSAVE_INTERVAL=${SAVE_INTERVAL:-500}\n");
    script_comment(script, "Length and learning rate of the training: placeholders.");
    script_add(script, "TRAIN_ITERS=${TRAIN_ITERS:-100}\nLR=${LR:-3e-4}\n"
                       "EVAL_INTERVAL=${EVAL_INTERVAL:-1000}\nEVAL_ITERS=${EVAL_ITERS:-0}\n");
    if (uses_variable(command, "ROTARY_BASE")) {
        script_comment(script, "ROTARY_BASE: the scenario's model does not state rope_theta.");
        script_add(script, "ROTARY_BASE=${ROTARY_BASE:-10000}\n");
    }
    if (uses_variable(command, "MOE_AUX_LOSS_COEFF"))
        script_add(script, "MOE_AUX_LOSS_COEFF=${MOE_AUX_LOSS_COEFF:-1e-3}\n");
}

static void add_variables(Script *script, const MegatronCommand *command) {
    script_add(script, "\n# --- What the plan needs of the environment ---\n\n");
    for (int i = 0; i < command->num_variables; i++) {
        const MegatronVariable *variable = &command->variables[i];
        script_comment(script, variable->why);
        script_add(script, "export %s=%s\n", variable->name, variable->value);
    }
}

static void add_arguments(Script *script, const MegatronCommand *command) {
    script_add(script, "\n# --- The plan ---\n\nARGS=(\n");
    const char *group = "";
    for (int i = 0; i < command->flags.num_flags; i++) {
        const Flag *flag = &command->flags.flags[i];
        if (strcmp(group, flag->row->group) != 0) {
            group = flag->row->group;
            script_add(script, "    # %s\n", group);
        }
        script_add(script, "    %s%s%s\n", flag->row->flag, flag->value ? " " : "",
                   flag->value ? flag->value : "");
    }
    script_add(script, ")\n");
}

static void add_data(Script *script, const Scenario *scenario) {
    script_add(script,
               "\nif [ -n \"$DATA_PATH\" ]; then\n"
               "    : \"${TOKENIZER_MODEL:?set it to the tokenizer of your data}\"\n"
               "    ARGS+=(\n"
               "        --data-path \"$DATA_PATH\"\n"
               "        --split \"$DATA_SPLIT\"\n"
               "        --tokenizer-type \"$TOKENIZER_TYPE\"\n"
               "        --tokenizer-model \"$TOKENIZER_MODEL\"\n"
               "    )\n"
               "else\n"
               "    # The tokenizer of mock data adds one token of its own.\n"
               "    ARGS+=(--mock-data --tokenizer-type NullTokenizer --vocab-size %d)\n"
               "fi\n",
               scenario->model.vocab_size - 1);
    script_add(script, "if [ -n \"$CHECKPOINT_PATH\" ]; then\n"
                       "    ARGS+=(--save \"$CHECKPOINT_PATH\" --load \"$CHECKPOINT_PATH\"\n"
                       "        --save-interval \"$SAVE_INTERVAL\")\n"
                       "fi\n");
}

// The place of a host among the ranks of the plan, and the host that has the first.
static int host_rank(const Scenario *scenario, const NodeOrder *order, int host) {
    const int hosts_per_node = num_hosts(scenario) / order->num_nodes;
    return order->block[host / hosts_per_node] * hosts_per_node + host % hosts_per_node;
}

static int first_host(const Scenario *scenario, const NodeOrder *order) {
    return order ? order->node[0] * (num_hosts(scenario) / order->num_nodes) : 0;
}

// The plan's placement: which node rank each node has.
static void add_node_ranks(Script *script, const Scenario *scenario, const NodeOrder *order) {
    script_comment(script, "The plan's placement: the rank of each node, in the nodes' own order.");
    const char *ranks = "";
    for (int host = 0; host < num_hosts(scenario); host++)
        ranks = arena_printf(script->arena, "%s%s%d", ranks, host ? " " : "",
                             host_rank(scenario, order, host));
    script_add(script, "export NODE_RANKS=\"%s\"\n", ranks);
}

static void add_torchrun(Script *script, const Scenario *scenario, const NodeOrder *order) {
    int nodes = num_hosts(scenario);
    script_add(script, "\n# --- Start ---\n\n");
    if (nodes > 1) {
        script_comment(script,
                       arena_printf(script->arena,
                                    "Run this script on each of the %d nodes. NODE_RANK counts "
                                    "them from 0 in the order of the network, so that neighbours "
                                    "in the plan are neighbours in the machine room.",
                                    nodes));
        script_add(script,
                   ": \"${NODE_RANK:?set it to the number of this node, from 0}\"\n"
                   ": \"${MASTER_ADDR:?set it to the address of node %d}\"\n",
                   first_host(scenario, order));
    }
    if (order) {
        add_node_ranks(script, scenario, order);
        script_add(script, "NODE_RANK=$(cut -d' ' -f$((NODE_RANK + 1)) <<<\"$NODE_RANKS\")\n");
    }
    script_add(script, "exec torchrun \\\n    --nnodes %d \\\n    --nproc-per-node %d \\\n", nodes,
               gpus_per_host(scenario));
    if (nodes > 1)
        script_add(script, "    --node-rank \"$NODE_RANK\" \\\n"
                           "    --master-addr \"$MASTER_ADDR\" \\\n"
                           "    --master-port \"${MASTER_PORT:-29500}\" \\\n");
    else
        script_add(script, "    --master-port \"${MASTER_PORT:-29500}\" \\\n");
    script_add(script, "    \"$MEGATRON_PATH/pretrain_gpt.py\" \"${ARGS[@]}\"\n");
}

static void add_srun(Script *script, const Scenario *scenario, const NodeOrder *order) {
    script_add(script, "\n# --- Start ---\n\n");
    script_add(script,
               "if [ \"${SLURM_JOB_NUM_NODES:?submit this script with sbatch}\" -ne %d ]; then\n"
               "    echo \"the plan is for %d nodes, the job has $SLURM_JOB_NUM_NODES\" >&2\n"
               "    exit 2\n"
               "fi\n",
               num_hosts(scenario), num_hosts(scenario));
    if (order) add_node_ranks(script, scenario, order);
    const char *first =
        order ? arena_printf(script->arena, "sed -n %dp", first_host(scenario, order) + 1)
              : "head -n 1";
    script_add(script,
               "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | %s)\n"
               "export MASTER_ADDR\n"
               "export MASTER_PORT=${MASTER_PORT:-$((20000 + SLURM_JOB_ID %% 20000))}\n",
               first);
    script_comment(script,
                   "One torchrun a node; ranks follow the order of the nodes. --cpu-bind=none: "
                   "the one task of a node, with all its ranks, may use every core.");
    script_add(script,
               "# shellcheck disable=SC2016 # the node's shell expands SLURM_NODEID\n"
               "srun --kill-on-bad-exit=1 --cpu-bind=none bash -c 'exec torchrun \\\n"
               "    --nnodes \"$SLURM_JOB_NUM_NODES\" \\\n"
               "    --nproc-per-node %d \\\n"
               "    --node-rank \"%s\" \\\n"
               "    --master-addr \"$MASTER_ADDR\" \\\n"
               "    --master-port \"$MASTER_PORT\" \\\n"
               "    \"$@\"' torchrun \"$MEGATRON_PATH/pretrain_gpt.py\" \"${ARGS[@]}\"\n",
               gpus_per_host(scenario),
               order ? "$(cut -d\" \" -f$((SLURM_NODEID + 1)) <<<\"$NODE_RANKS\")"
                     : "$SLURM_NODEID");
}

const char *megatron_script(const Scenario *scenario, const Plan *plan,
                            const MegatronCommand *command, LaunchScheduler scheduler,
                            Arena *arena) {
    Script script = {.arena = arena};
    script_add(&script, "#!/bin/bash\n");
    if (scheduler == LAUNCH_SLURM) add_slurm_head(&script, scenario);
    add_head(&script, scenario, plan, command);
    script_add(&script, "set -euo pipefail\n");
    add_settings(&script, command);
    add_variables(&script, command);
    add_arguments(&script, command);
    add_data(&script, scenario);
    if (scheduler == LAUNCH_SLURM)
        add_srun(&script, scenario, plan->node_order);
    else
        add_torchrun(&script, scenario, plan->node_order);
    return script.text;
}
