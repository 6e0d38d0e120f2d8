#!/bin/sh
# The mpirun script runs for real: a stand-in for the training program prints its ranks.
set -eu
command -v mpirun >/dev/null || {
    echo "skipped: no mpirun"
    exit 77
}
. tests/support.sh
run=$(dirname "$MESHWRIGHT")/meshwright-run
cd "$temp"
# Of root, and of more processes than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
# What mpirun reaches other nodes by: here each is a shell of this computer that knows its name.
# Daemons that share a folder for their sessions hinder each other, so each has one of its own.
cat >agent <<'END'
#!/bin/sh
NODE_NAME=$1
TMPDIR=$AGENT_TMP/$1
export NODE_NAME TMPDIR
mkdir -p "$TMPDIR"
shift
exec sh -c "$*"
END
chmod +x agent
unset OMPI_MCA_orte_tmpdir_base
mkdir head
export TMPDIR="$temp/head"
export AGENT_TMP="$temp" OMPI_MCA_plm_rsh_agent="$temp/agent" OMPI_MCA_routed=direct

mkdir -p "my megatron"
cat >"my megatron/pretrain_gpt.py" <<'END'
import os, sys
names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
         "CUDA_DEVICE_MAX_CONNECTIONS", "NODE_NAME"]
words = sys.argv[sys.argv.index("--tensor-model-parallel-size") + 1:][:1]
with open(__file__ + ".rank" + os.environ["RANK"], "w") as stream:
    print(*[os.environ[name] for name in names], *words, file=stream)
END
cat >job.json <<'END'
{"schema": 1, "model": "gpt2-124m", "cluster": {"gpu": "h100-sxm-80g", "num_gpus": 4, "gpus_per_node": 2,
  "scale_up": {"link": "nvlink4"},
  "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 5e10, "topology": "rail-fat-tree"}},
 "training": {"seq_len": 1024, "global_batch": 16}, "parallel": {"tp": 2, "placement": [1, 0]}}
END
answers 0 launch job.json --scheduler mpirun -o "out put"
if command -v shellcheck >/dev/null; then shellcheck "out put/launch-mpirun.sh"; fi
export MEGATRON_PATH="$temp/my megatron"

if "out put/launch-mpirun.sh" >words 2>&1; then fail "mpirun without HOSTS"; fi
grep -q "HOSTS: set it to a file with the names of the 2 nodes" words || fail "$(cat words)"
printf '# a comment\nnode0\n' >hosts
if HOSTS=hosts "out put/launch-mpirun.sh" >words 2>&1; then fail "1 node for 2"; fi
grep -q "the plan is for 2 nodes, hosts names 1" words || fail "$(cat words)"

# The plan's placement: the first ranks are on the second node.
printf '# a comment\nnode0\n\nnode1\n' >"my hosts"
HOSTS="my hosts" MASTER_PORT=31234 "out put/launch-mpirun.sh" >words 2>&1 || fail "$(cat words)"
cat "my megatron"/*.rank* >seen
cat >wanted <<'END'
0 4 0 2 node1 31234 1 node1 2
1 4 1 2 node1 31234 1 node1 2
2 4 0 2 node1 31234 1 node0 2
3 4 1 2 node1 31234 1 node0 2
END
diff wanted seen || fail "$(cat words)"

# The bundled runtime, by its own script: two steps of a small model on two processes.
[ -x "$run" ] || {
    echo "no meshwright-run: the runtime's script was not run"
    exit 0
}
cat >small.json <<'END'
{"name": "small", "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 256,
 "max_position_embeddings": 64, "tie_word_embeddings": false}
END
cat >run.json <<'END'
{"schema": 1, "model": "./small.json", "cluster": {"gpu": "h100-sxm-80g", "num_gpus": 2, "gpus_per_node": 2,
  "scale_up": {"link": "nvlink4"},
  "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 5e10, "topology": "rail-fat-tree"}},
 "training": {"seq_len": 64, "global_batch": 4, "stack": "runtime", "precision": "fp32"},
 "parallel": {"pp": 2}}
END
answers 0 launch run.json --for runtime --scheduler mpirun -o "run out"
if command -v shellcheck >/dev/null; then shellcheck "run out/launch-mpirun.sh"; fi
(
    cd /
    # Open MPI leaves memory behind, which is not ours to find.
    export ASAN_OPTIONS=detect_leaks=0
    MESHWRIGHT_RUN=$run DEVICE=cpu STEPS=2 STEP_LOG="$temp/steps log" "$temp/run out/launch-mpirun.sh"
) >words 2>&1 || fail "$(cat words)"
[ "$(grep -c '"step' "steps log")" -ge 2 ] || fail "$(cat words "steps log")"
