// mpirun of Open MPI: one process a GPU, in an order that the script itself writes down.
#include "launch/job.h"

// The machines, one line a process: mpirun's sequential mapper starts rank i on line i.
static void add_hosts(Script *script, const Job *job) {
    const Hosts *hosts = &job->hosts;
    script_comment(script, arena_printf(script->arena,
                                        "HOSTS: a file with the names of the %d nodes, as hostname "
                                        "prints them, one a line, in the order of the network, so "
                                        "that neighbours in the plan are neighbours in the machine "
                                        "room.",
                                        hosts->num_hosts));
    script_add(script,
               ": \"${HOSTS:?set it to a file with the names of the %d nodes}\"\n"
               "mapfile -t nodes < <(grep -Ev '^[[:space:]]*(#|$)' \"$HOSTS\")\n"
               "if [ \"${#nodes[@]}\" -ne %d ]; then\n"
               "    echo \"the plan is for %d nodes, $HOSTS names ${#nodes[@]}\" >&2\n"
               "    exit 2\n"
               "fi\n",
               hosts->num_hosts, hosts->num_hosts, hosts->num_hosts);
    if (hosts->order)
        script_comment(script, "The plan's placement: the node of each block of ranks, from 0.");
    script_add(script,
               "order=(%s)\n"
               "ranks=$(mktemp)\n"
               "trap 'rm -f \"$ranks\"' EXIT\n"
               "for node in \"${order[@]}\"; do\n"
               "    for ((gpu = 0; gpu < %d; gpu++)); do\n"
               "        printf '%%s\\n' \"${nodes[node]}\"\n"
               "    done\n"
               "done >\"$ranks\"\n",
               hosts_at_places(hosts, script->arena), hosts->gpus_per_host);
}

// What starts num_ranks processes, and what each gets of the environment.
static void add_mapping(Script *script, const Job *job) {
    const LaunchTask *task = job->task;
    int num_ranks = job->hosts.gpus_per_host * job->hosts.num_hosts;
    bool alone = job->hosts.num_hosts == 1;
    script_comment(script, alone ? "One process a GPU. A process may use every core."
                                 : "One process a GPU, rank i on line i of the list (--map-by "
                                   "seq). A process may use every core of its node.");
    if (!task->mpi)
        script_add(script, "# shellcheck disable=SC2016 # each process reads its own rank\n");
    if (alone)
        script_add(script, "exec mpirun -np %d --host localhost:%d --bind-to none", num_ranks,
                   num_ranks);
    else
        script_add(script, "mpirun -np %d --hostfile \"$ranks\" --map-by seq --bind-to none",
                   num_ranks);
    script_add(script, " \\\n    -x PATH");
    if (!task->mpi) script_add(script, " -x MASTER_ADDR -x MASTER_PORT");
    for (int i = 0; i < task->num_variables; i++)
        script_add(script, " -x %s", task->variables[i].name);
}

static void add_mpirun(Script *script, const Job *job) {
    const LaunchTask *task = job->task;
    add_mapping(script, job);
    if (task->mpi) {
        script_add(script, " \\\n    %s \"${ARGS[@]}\"\n", task->program);
        return;
    }
    script_add(script,
               " \\\n"
               "    bash -c 'RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE \\\n"
               "        LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK \\\n"
               "        LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE exec \"$@\"' rank \\\n"
               "    \"${PYTHON:-python3}\" %s \"${ARGS[@]}\"\n",
               task->program);
}

const char *job_mpirun(const Job *job) {
    Script script = {.arena = job->arena};
    script_add(&script, "#!/bin/bash\n");
    job_add_head(&script, job);
    job_add_body(&script, job, "$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)");
    job_add_start(&script);
    bool alone = job->hosts.num_hosts == 1;
    if (!alone) add_hosts(&script, job);
    if (!job->task->mpi)
        script_add(&script,
                   "export MASTER_ADDR=${MASTER_ADDR:-%s}\n"
                   "export MASTER_PORT=${MASTER_PORT:-29500}\n",
                   alone ? "localhost" : "${nodes[order[0]]}");
    add_mpirun(&script, job);
    return script.text;
}
