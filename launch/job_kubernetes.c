// Kubernetes: a PyTorchJob of the Kubeflow Training Operator (kubeflow.org/v1), whose pods run the
// script of torchrun.
//
// Source of the environment that its pods get (MASTER_ADDR, MASTER_PORT; RANK, which is the number
// of the pod): kubeflow/training-operator, pkg/controller.v1/pytorch/envvar.go.
#include "launch/flags.h"
#include "launch/job.h"

#include <ctype.h>
#include <string.h>

// A name as Kubernetes has it (RFC 1123): lower case, digits, '-'; at most 50 letters.
static const char *kubernetes_name(const char *name, Arena *arena) {
    enum { MOST = 50 };
    char *out = arena_printf(arena, "train-%.*s", MOST - 6, name);
    for (char *c = out; *c; c++)
        *c = isalnum((unsigned char)*c) && (unsigned char)*c < 128
                 ? (char)tolower((unsigned char)*c)
                 : '-';
    for (size_t n = strlen(out); n > 0 && out[n - 1] == '-'; n--) out[n - 1] = '\0';
    return out;
}

// A file as a literal block: every line four columns in.
static void add_file(Script *script, const char *name, const char *text) {
    script_add(script, "  %s: |\n", name);
    while (*text) {
        int length = (int)strcspn(text, "\n");
        script_add(script, length ? "    %.*s\n" : "%.*s\n", length, text);
        text += length;
        if (*text) text++;
    }
}

static void add_config_map(Script *script, const Job *job, const char *name) {
    script_add(script,
               "apiVersion: v1\n"
               "kind: ConfigMap\n"
               "metadata:\n"
               "  name: %s\n"
               "data:\n",
               name);
    add_file(script, "launch.sh", job_torchrun(job));
    for (int i = 0; i < job->task->num_files; i++)
        add_file(script, job->task->files[i].name, job->task->files[i].text);
}

static void add_container(Script *script, const Job *job, const char *name) {
    bool amd = strcmp(cluster_only_pool(&job->scenario->cluster)->gpu.vendor, "AMD") == 0;
    script_add(script, "          containers:\n"
                       "            - name: pytorch\n"
                       "              # Yours to set: an image with the software named above.\n"
                       "              image: registry.example/training:latest\n"
                       "              command:\n"
                       "                - bash\n"
                       "                - -c\n"
                       "                - NODE_RANK=\"$RANK\" exec bash /launch/launch.sh\n");
    if (job->task->needs)
        script_add(script,
                   "              # Yours to set, as everything that launch.sh lets you set.\n"
                   "              env:\n"
                   "                - name: %s\n"
                   "                  value: %s\n",
                   job->task->needs, job->task->needs_in_container);
    script_add(
        script,
        "              resources:\n"
        "                limits:\n"
        "                  %s: %d\n"
        "              volumeMounts:\n"
        "                - name: launch\n"
        "                  mountPath: /launch\n"
        "                - name: shared-memory\n"
        "                  mountPath: /dev/shm\n"
        "          volumes:\n"
        "            - name: launch\n"
        "              configMap:\n"
        "                name: %s\n"
        "            # NCCL and the data loaders pass memory between the processes of a pod.\n"
        "            - name: shared-memory\n"
        "              emptyDir:\n"
        "                medium: Memory\n",
        amd ? "amd.com/gpu" : "nvidia.com/gpu", job->hosts.gpus_per_host, name);
}

static void add_replicas(Script *script, const Job *job, const char *name, const char *kind,
                         int replicas) {
    script_add(script,
               "    %s:\n"
               "      replicas: %d\n"
               "      restartPolicy: Never\n"
               "      template:\n"
               "        spec:\n",
               kind, replicas);
    add_container(script, job, name);
}

const char *job_kubernetes(const Job *job) {
    Script script = {.arena = job->arena};
    const char *name = kubernetes_name(job->scenario->name, job->arena);
    job_add_head(&script, job);
    script_comment(&script, "Needs the Kubeflow Training Operator (PyTorchJob, kubeflow.org/v1). "
                            "One pod a node; the operator's RANK is the number of the pod.");
    add_config_map(&script, job, name);
    script_add(&script,
               "---\n"
               "apiVersion: kubeflow.org/v1\n"
               "kind: PyTorchJob\n"
               "metadata:\n"
               "  name: %s\n"
               "spec:\n"
               "  pytorchReplicaSpecs:\n",
               name);
    add_replicas(&script, job, name, "Master", 1);
    if (job->hosts.num_hosts > 1)
        add_replicas(&script, job, name, "Worker", job->hosts.num_hosts - 1);
    return script.text;
}
