// torchrun: the same script on every node.
#include "launch/job.h"

static void add_node_rank(Script *script, const Job *job) {
    script_comment(script,
                   arena_printf(script->arena,
                                "Run this script on each of the %d nodes. NODE_RANK counts "
                                "them from 0 in the order of the network, so that neighbours "
                                "in the plan are neighbours in the machine room.",
                                job->hosts.num_hosts));
    script_add(script,
               ": \"${NODE_RANK:?set it to the number of this node, from 0}\"\n"
               ": \"${MASTER_ADDR:?set it to the address of node %d}\"\n",
               host_at(&job->hosts, 0));
}

const char *job_torchrun(const Job *job) {
    Script script = {.arena = job->arena};
    int nodes = job->hosts.num_hosts;
    script_add(&script, "#!/bin/bash\n");
    job_add_head(&script, job);
    job_add_body(&script, job, "$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)");
    job_add_start(&script);
    if (nodes > 1) add_node_rank(&script, job);
    if (job->hosts.order) {
        job_add_places(&script, job);
        script_add(&script, "NODE_RANK=$(cut -d' ' -f$((NODE_RANK + 1)) <<<\"$NODE_RANKS\")\n");
    }
    script_add(&script, "exec torchrun \\\n    --nnodes %d \\\n    --nproc-per-node %d \\\n", nodes,
               job->hosts.gpus_per_host);
    if (nodes > 1)
        script_add(&script, "    --node-rank \"$NODE_RANK\" \\\n"
                            "    --master-addr \"$MASTER_ADDR\" \\\n");
    script_add(&script, "    --master-port \"${MASTER_PORT:-29500}\" \\\n");
    script_add(&script, "    %s \"${ARGS[@]}\"\n", job->task->program);
    return script.text;
}
