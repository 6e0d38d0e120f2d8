// Slurm: one sbatch job, with one torchrun a node or one MPI process a GPU.
#include "launch/job.h"

#include "launch/flags.h"

static void add_directives(Script *script, const Job *job) {
    const char *name = shell_name(job->scenario->name, script->arena);
    const Hosts *hosts = &job->hosts;
    script_add(script, "#SBATCH --job-name=%s\n", name);
    script_add(script, "#SBATCH --nodes=%d\n", hosts->num_hosts);
    script_add(script, "#SBATCH --ntasks-per-node=%d\n", job->task->mpi ? hosts->gpus_per_host : 1);
    script_add(script, "#SBATCH --gpus-per-node=%d\n", hosts->gpus_per_host);
    script_add(script, "#SBATCH --exclusive\n");
    script_add(script, "#SBATCH --output=%%x-%%j.log\n");
    script_comment(script, "Add what your cluster asks for: --partition, --account, --time; and "
                           "--cpus-per-task=CORES_OF_A_NODE where --exclusive does not give all "
                           "cores to the task, or the ranks of a node share a few.");
}

static void add_node_check(Script *script, const Job *job) {
    int nodes = job->hosts.num_hosts;
    script_add(script,
               "if [ \"${SLURM_JOB_NUM_NODES:?submit this script with sbatch}\" -ne %d ]; then\n"
               "    echo \"the plan is for %d nodes, the job has $SLURM_JOB_NUM_NODES\" >&2\n"
               "    exit 2\n"
               "fi\n",
               nodes, nodes);
}

static void add_torchrun(Script *script, const Job *job) {
    const Hosts *hosts = &job->hosts;
    if (hosts->order) job_add_places(script, job);
    const char *first = hosts->order
                            ? arena_printf(script->arena, "sed -n %dp", host_at(hosts, 0) + 1)
                            : "sed -n 1p"; // reads all: pipefail
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
               "srun --kill-on-bad-exit=1 --distribution=block --cpu-bind=none \\\n"
               "    bash -c 'exec torchrun \\\n"
               "    --nnodes \"$SLURM_JOB_NUM_NODES\" \\\n"
               "    --nproc-per-node %d \\\n"
               "    --node-rank \"%s\" \\\n"
               "    --master-addr \"$MASTER_ADDR\" \\\n"
               "    --master-port \"$MASTER_PORT\" \\\n"
               "    \"$@\"' torchrun %s \"${ARGS[@]}\"\n",
               hosts->gpus_per_host,
               hosts->order ? "$(cut -d\" \" -f$((SLURM_NODEID + 1)) <<<\"$NODE_RANKS\")"
                            : "$SLURM_NODEID",
               job->task->program);
}

// A host for each rank, which srun takes from SLURM_HOSTFILE.
static void add_host_file(Script *script, const Job *job) {
    const Hosts *hosts = &job->hosts;
    script_comment(script, "The plan's placement: a node for each rank, in a file for srun.");
    script_add(script,
               "order=(%s)\n"
               "mapfile -t nodes < <(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
               "SLURM_HOSTFILE=$(mktemp)\n"
               "export SLURM_HOSTFILE\n"
               "trap 'rm -f \"$SLURM_HOSTFILE\"' EXIT\n"
               "for node in \"${order[@]}\"; do\n"
               "    for ((gpu = 0; gpu < %d; gpu++)); do\n"
               "        printf '%%s\\n' \"${nodes[node]}\"\n"
               "    done\n"
               "done >\"$SLURM_HOSTFILE\"\n",
               hosts_at_places(hosts, script->arena), hosts->gpus_per_host);
}

static void add_mpi(Script *script, const Job *job) {
    if (job->hosts.order) add_host_file(script, job);
    script_comment(script, "One process a GPU; MPI_TYPE is how your Open MPI meets Slurm (srun "
                           "--mpi=list).");
    script_add(script,
               "srun --kill-on-bad-exit=1 --mpi=\"${MPI_TYPE:-pmix}\" --distribution=%s "
               "--cpu-bind=none \\\n"
               "    %s \"${ARGS[@]}\"\n",
               job->hosts.order ? "arbitrary" : "block", job->task->program);
}

const char *job_slurm(const Job *job) {
    Script script = {.arena = job->arena};
    script_add(&script, "#!/bin/bash\n");
    add_directives(&script, job);
    job_add_head(&script, job);
    job_add_body(&script, job, "${SLURM_SUBMIT_DIR:?submit this script with sbatch}");
    job_add_start(&script);
    add_node_check(&script, job);
    if (job->task->mpi)
        add_mpi(&script, job);
    else
        add_torchrun(&script, job);
    return script.text;
}
