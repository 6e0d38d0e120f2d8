#!/bin/sh
# What people read: the same lines whatever the figures, no colour without a terminal; and what
# programs read: the keys of the contract, whose parts add up.
set -eu
command -v python3 >/dev/null || exit 77
. tests/support.sh
cd "$temp"

cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
 "parallel": {"tp": 2, "pp": 2}}
END

# Numbers become N, units lose their prefix, bars go.
masked() {
    sed -E 's/[0-9]+(\.[0-9]+)?/N/g; s/ +/ /g; s/N [num]?s( |$)/N s\1/g; s/N [kMGT]?B( |$)/N B\1/g
        s/N [kMGT] /N /g; s/ #+$//'
}
"$MESHWRIGHT" estimate job.json | masked >estimate.txt
diff - estimate.txt <<'END'
llama-N-Nb (N parameters) on N x hN-sxm-Ng; seq_len N, global_batch N, bfN, megatron-core
plan tp N pp N dp N mb N zeroN NfNb
step time N s (N % interval N s to N s)
throughput N tokens/s, N tokens/s per GPU
compute N TFLOP/s of model FLOPs per GPU, MFU N % of the dense bfN peak
cost N USD per NeN tokens, N J per token
price N USD a GPU hour (Modal public on-demand list, N to N (HN N USD/s, as quoted on N-N-N))
memory N B of N B on the worst GPU (N % interval N B to N GB)
 fits (over N %), N B to spare

Where the step of the slowest rank goes
 compute N s N %
 tp_exposed N s N %
 dp_exposed N s N %
 pp_exposed N s N %
 bubble N s N %
 optimizer N s N %
 other N s N %

What the GPUs of pipeline rank N hold at the peak, as a share of what there is
 weights N B N %
 gradients N B N %
 optimizer N B N %
 activations N B N %
 buffers N B N %
 allocator slack N B N %
 libraries N B N %
END

"$MESHWRIGHT" plan job.json --top 2 >plan.txt
head -n 3 plan.txt | tail -n 1 | grep -q '^# *plan *step time *80 % interval *tokens/s *MFU *memory *USD/1e9$' || {
    cat plan.txt
    exit 1
}
grep -q '^Searched [0-9]* configurations: ' plan.txt
if grep -q "$(printf '\033')" plan.txt estimate.txt; then
    echo "colour without a terminal"
    exit 1
fi

"$MESHWRIGHT" plan job.json --json >plan.json
"$MESHWRIGHT" estimate job.json --json >estimate.json
python3 - <<'END'
import json

def check(answer):
    keys = """step_time_s step_time_low_s step_time_high_s tokens_per_s tokens_per_s_per_gpu
        model_flops_per_s_per_gpu mfu_frac usd_per_1e9_tokens joules_per_token parallel
        memory_peak_bytes memory_reserved_bytes memory_device_bytes memory_available_bytes fits
        memory_bytes breakdown_s""".split()
    assert not [key for key in keys if key not in answer], answer.keys()
    assert answer["step_time_low_s"] <= answer["step_time_s"] <= answer["step_time_high_s"]
    near = lambda a, b: abs(a - b) <= 1e-9 * abs(b)
    assert near(sum(answer["breakdown_s"].values()), answer["step_time_s"])
    assert near(sum(answer["memory_bytes"].values()), answer["memory_peak_bytes"])
    assert answer["memory_peak_bytes"] <= answer["memory_reserved_bytes"]
    assert answer["memory_reserved_bytes"] <= answer["memory_device_bytes"]
    low, high = answer["memory_low_bytes"], answer["memory_high_bytes"]
    sure = answer["fits_probability_frac"]
    assert low < answer["memory_device_bytes"] < high
    assert answer["fits"] == (answer["memory_device_bytes"] <= answer["memory_available_bytes"])
    assert answer["fits"] == (sure >= 0.5) and (sure >= 0.9) == (high <= answer["memory_available_bytes"])

estimate = json.load(open("estimate.json"))
assert estimate["schema"] == 1
check(estimate)
plan = json.load(open("plan.json"))
assert plan["schema"] == 1 and plan["plans"]
for entry in plan["plans"]:
    check(entry)
    assert entry["within_noise_of_best"] in (True, False)
search = plan["search"]
assert search["considered"] == sum(
    search[key] for key in ("pruned_by_memory", "pruned_by_bound", "priced"))
assert search["optimal"] is True and search["gap_frac"] == 0
END

# On a terminal: colour, and no line wider than it, unless NO_COLOR is set.
python3 - <<'END'
import fcntl, os, pty, struct, subprocess, sys, termios

def lines(**variables):
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm", **variables}
    child = subprocess.Popen([os.environ["MESHWRIGHT"], "plan", "job.json"], stdout=follower,
                             env=environment)
    os.close(follower)
    text = b""
    try:
        while piece := os.read(leader, 4096):
            text += piece
    except OSError:
        pass  # the other end is closed
    assert child.wait() == 0
    return text.decode().replace("\r", "").split("\n")

coloured = lines()
assert any("\033[" in line for line in coloured)
plain = lines(NO_COLOR="1")
assert not any("\033" in line for line in plain)
assert max(len(line) for line in plain) <= 80, plain
END
