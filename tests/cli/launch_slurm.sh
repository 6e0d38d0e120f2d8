#!/bin/sh
# The Slurm scripts are accepted and run by a real Slurm: a controller and two nodes of this test's
# own, on loopback, with stand-ins for the training programs that write down their ranks.
set -eu
for program in slurmctld slurmd sbatch srun scontrol; do
    command -v $program >/dev/null || {
        echo "skipped: no $program (Debian: slurm-wlm)"
        exit 77
    }
done
[ "$(id -u)" -eq 0 ] || {
    echo "skipped: slurmd needs root"
    exit 77
}
. tests/support.sh
cd "$temp"

# Two nodes of two GPUs (which are /dev/null), no cgroups, no munge, nothing but 127.0.0.1.
port=$((20000 + $$ % 20000))
mkdir state bin
ln -s /dev/null gpu0
ln -s /dev/null gpu1
echo "Name=gpu File=$temp/gpu[0-1]" >gres.conf
cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=none
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
StateSaveLocation=$temp/state
SlurmctldPidFile=$temp/slurmctld.pid
SlurmctldLogFile=$temp/slurmctld.log
SlurmdSpoolDir=$temp/spool-%n
SlurmdPidFile=$temp/slurmd-%n.pid
SlurmdLogFile=$temp/slurmd-%n.log
SlurmdParameters=config_overrides
SelectType=select/cons_tres
GresTypes=gpu
NodeName=node0 NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=8 Gres=gpu:2
NodeName=node1 NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=8 Gres=gpu:2
PartitionName=all Nodes=ALL Default=YES MaxTime=5 State=UP
END
export SLURM_CONF="$temp/slurm.conf"
# They end by themselves too, should this shell be killed.
timeout 120 slurmctld -D -c -i >slurmctld.out 2>&1 &
daemons=$!
for node in node0 node1; do
    mkdir "spool-$node"
    timeout 120 slurmd -D -N $node >"slurmd-$node.out" 2>&1 &
    daemons="$daemons $!"
done
stop() {
    # shellcheck disable=SC2086 # a list of processes
    kill $daemons 2>/dev/null || true
    wait
    rm -rf "$temp"
}
trap 'stop; [ $num_refusals_missed -eq 0 ] || exit 1' EXIT
for _ in $(seq 100); do
    [ "$(sinfo -h -N -o %T 2>/dev/null | grep -c '^idle$')" -ne 2 ] || break
    sleep 0.2
done
[ "$(sinfo -h -N -o %T 2>/dev/null | grep -c '^idle$')" -eq 2 ] || {
    echo "skipped: Slurm does not start here: $(tail -n 2 slurmctld.log slurmd-node0.log 2>&1)"
    exit 77
}

# torchrun: one line for each of its processes. Both stand-ins stay for a while: srun may lose its
# connection to a step that ends before all of its nodes have started.
cat >bin/torchrun <<'END'
#!/bin/sh
while [ "${1#--}" != "$1" ]; do
    case $1 in
    --nnodes) nodes=$2 ;;
    --nproc-per-node) each=$2 ;;
    --node-rank) place=$2 ;;
    --master-addr) master=$2 ;;
    esac
    shift 2
done
for local in $(seq 0 $((each - 1))); do
    echo "$((place * each + local)) $((nodes * each)) $local $SLURMD_NODENAME $master $1" >>"$SEEN/$SLURMD_NODENAME"
done
sleep 0.5
END
# The runtime: one process a GPU.
cat >"bin/the runtime" <<'END'
#!/bin/sh
echo "$SLURM_PROCID $SLURM_NTASKS $SLURM_LOCALID $SLURMD_NODENAME ${1##*/}" >"$SEEN/rank$SLURM_PROCID"
sleep 0.5
END
chmod +x bin/*
export PATH="$temp/bin:$PATH" SEEN="$temp/seen" MEGATRON_PATH="$temp/my megatron"

# submit FOLDER: runs its job to the end, once more where Slurm itself lost a connection to a node.
submit() {
    for _ in 1 2 3; do
        rm -rf seen "$1"/*.log
        mkdir seen
        ! (cd "$1" && sbatch --wait --time=1 launch.sbatch) >submitted 2>&1 || return 0
        grep -q 'step_launch_notify_io_failure\|Socket timed out' submitted "$1"/*.log || break
    done
    fail "$1: $(cat submitted "$1"/*.log; tail -n 20 slurmd-*.log)"
}

# submit_ranks FOLDER: what its ranks wrote down is in `ranks` then.
submit_ranks() {
    submit "$1"
    sort -n seen/* >ranks
}

cat >job.json <<'END'
{"schema": 1, "model": "gpt2-124m", "cluster": {"gpu": "h100-sxm-80g", "num_gpus": 4, "gpus_per_node": 2,
  "scale_up": {"link": "nvlink4"},
  "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 5e10, "topology": "rail-fat-tree"}},
 "training": {"seq_len": 1024, "global_batch": 16}, "parallel": {"tp": 2}}
END
sed 's/"tp": 2/"tp": 2, "placement": [1, 0]/' job.json >placed.json
sed 's/"global_batch": 16/"global_batch": 16, "stack": "runtime"/' placed.json >runtime.json
answers 0 launch job.json --scheduler slurm -o "out put"
answers 0 launch placed.json --scheduler slurm -o placed
answers 0 launch runtime.json --for runtime --scheduler slurm -o "run time"
if command -v shellcheck >/dev/null; then
    shellcheck "out put/launch.sbatch" placed/launch.sbatch "run time/launch.sbatch"
fi

submit_ranks "out put"
for rank in 0 1 2 3; do
    echo "$rank 4 $((rank % 2)) node$((rank / 2)) node0 $temp/my megatron/pretrain_gpt.py"
done >wanted
diff wanted ranks

# The plan's placement: the first ranks are on the second node.
submit_ranks placed
for rank in 0 1 2 3; do
    echo "$rank 4 $((rank % 2)) node$((1 - rank / 2)) node1 $temp/my megatron/pretrain_gpt.py"
done >wanted
diff wanted ranks

export MESHWRIGHT_RUN="$temp/bin/the runtime" MPI_TYPE=none
submit_ranks "run time"
for rank in 0 1 2 3; do
    echo "$rank 4 $((rank % 2)) node$((1 - rank / 2)) launch.plan.json"
done >wanted
diff wanted ranks

# The runtime itself: its processes find each other by PMIx. On one node: Slurm's PMIx cannot serve
# two that share /tmp.
case $(srun --mpi=list 2>&1) in
*pmix*) ;;
*)
    echo "not run: the runtime itself, this Slurm has no PMIx"
    exit 0
    ;;
esac
tiny_job tiny.json 2 '{"tp": 2}'
answers 0 launch tiny.json --for runtime --scheduler slurm -o tiny
MESHWRIGHT_RUN=$(realpath "$(dirname "$MESHWRIGHT")/meshwright-run")
export ASAN_OPTIONS=detect_leaks=0 # Open MPI's own
export MESHWRIGHT_RUN MPI_TYPE=pmix DEVICE=cpu STEPS=2 STEP_LOG="$temp/steps.jsonl"
submit tiny
[ "$(wc -l <steps.jsonl)" -eq 2 ] || fail "expected 2 steps: $(cat steps.jsonl tiny/*.log)"
