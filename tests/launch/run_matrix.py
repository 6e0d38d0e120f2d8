"""Runs the start scripts that `launch` writes, with stand-ins for what they start.

    run_matrix.py PROGRAM FOLDER

Every stack x scheduler x feature (one node, several, GPUs that idle, nodes in another order, hostile
names) is launched; the script runs under bash as it is, on every node where torchrun is started by
hand, with stand-ins for scontrol, srun, torchrun, mpirun and python3 that write down what they were
given. Checked are ranks, nodes, places and arguments: those of torchrun, Slurm and mpirun have to be
the same for the program. scontrol prints 1 to 10,000 names in one go, line by line, unbuffered and
byte by byte, and dies of a closed pipe as the real one does. shellcheck reads every script, where it
is installed; Kubernetes' YAML is read by PyYAML and held to the types of its resource by
check_pytorchjob.py. Ends with 1 where something is wrong.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

STANDIN = r"""#!/usr/bin/env python3
import json, os, sys
name = os.path.basename(sys.argv[0])
kept = {k: v for k, v in os.environ.items()
        if k in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "NODE_RANKS")
        or k.startswith(("SLURM_HOST", "CUDA_DEVICE"))}
hosts = []
for at, arg in enumerate(sys.argv):
    if arg == "--hostfile":
        hosts = open(sys.argv[at + 1]).read().split()
if "SLURM_HOSTFILE" in os.environ and name == "srun":
    hosts = open(os.environ["SLURM_HOSTFILE"]).read().split()
with open(os.environ["SEEN"], "a") as seen:
    seen.write(json.dumps({"name": name, "args": sys.argv[1:], "env": kept, "hosts": hosts}) + "\n")
"""

# One task a node: the words behind srun's own options, in the node's environment.
SRUN = r"""
import subprocess
if name == "srun" and "bash" in sys.argv:
    words = sys.argv[sys.argv.index("bash"):]
    for node in range(int(os.environ["SLURM_JOB_NUM_NODES"])):
        done = subprocess.run(words, env=dict(os.environ, SLURM_NODEID=str(node)))
        if done.returncode: sys.exit(done.returncode)
"""

# As the real one: an error where nobody reads on.
SCONTROL = r"""#!/usr/bin/env python3
import os, signal, sys, time
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
count, manner = int(os.environ["NAMES"]), os.environ["MANNER"]
assert sys.argv[1:3] == ["show", "hostnames"], sys.argv
text = "".join("node%05d\n" % n for n in range(count)).encode()
lines = text.splitlines(True)
if manner == "once": pieces = [text]
elif manner == "bytes": pieces = [bytes([b]) for b in text]
else: pieces = lines
for at, piece in enumerate(pieces):
    os.write(1, piece)
    if manner == "slow" and at < 20: time.sleep(0.002)
"""

FEATURES = {
    "node": ("dgx-h100:1", {}, None),
    "nodes": ("dgx-h100:4", {}, None),
    "idle": ("dgx-h100:4", {"idle_gpus": 16}, None),
    "part": ("dgx-h100:1", {"idle_gpus": 4}, None),
    "placed": ("dgx-h100:4", {"placement": [2, 0, 3, 1]}, None),
    "hostile": ("dgx-h100:2", {}, "a'b \"$(touch pwned)\" `touch pwned` \\ ;touch pwned"),
}
QUICK = ["part", "placed", "hostile"]  # all with MESHWRIGHT_TEST_FULL in the environment
STACKS = {
    "megatron": ("megatron-core", "gpt2-124m"),
    "nemo": ("megatron-core", "llama-3.1-8b"),
    "deepspeed": ("megatron-2021", "llama-3.1-8b"),
    "torchtitan": ("torchtitan", "llama-3.1-8b"),
    "runtime": ("runtime", "gpt2-124m"),
}
CONFIGS = {"megatron": [], "nemo": ["megatron_bridge.yaml", "megatron_bridge.py"],
           "deepspeed": ["ds_config.json"], "torchtitan": ["torchtitan.toml"]}
SCRIPTS = {"torchrun": "launch.sh", "slurm": "launch.sbatch", "mpirun": "launch-mpirun.sh",
           "k8s": "launch.yaml"}
ENV = {"MEGATRON_PATH": "/opt/megatron lm", "MEGATRON_DEEPSPEED_PATH": "/opt/mds",
       "DATA_PATH": "/data/a b", "TOKENIZER_MODEL": "/tok", "MASTER_ADDR": "node00000"}


class Matrix:
    def __init__(self, program, folder):
        self.program, self.folder = os.path.abspath(program), pathlib.Path(folder).resolve()
        self.wrong, self.scripts = 0, 0
        self.bin = self.folder / "bin"
        self.bin.mkdir(parents=True)
        for name in ("srun", "torchrun", "mpirun", "python3-stand-in", "deepspeed"):
            self.program_write(name, STANDIN + (SRUN if name == "srun" else ""))
        self.program_write("scontrol", SCONTROL)

    def program_write(self, name, text):
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def expect(self, case, what, found, expected):
        if found == expected:
            return
        self.wrong += 1
        print(f"{case}: {what}: found {found!r}, expected {expected!r}")

    def launch(self, stack, scheduler, feature):
        """The folder with the files; None where launch refuses the pair."""
        cluster, parallel, name = FEATURES[feature]
        software, model = STACKS[stack]
        scenario = {"schema": 1, "model": model, "cluster": cluster, "parallel": parallel,
                    "training": {"seq_len": 1024, "global_batch": 64, "stack": software}}
        if stack == "runtime":
            scenario["training"]["precision"] = "fp32"
        if name:
            scenario["name"] = name
        out = self.folder / f"{stack} {scheduler} {feature}"
        done = subprocess.run([self.program, "launch", "-", "--for", stack, "--scheduler", scheduler,
                               "-o", out, "--force"], input=json.dumps(scenario), text=True,
                              capture_output=True, check=False, cwd=self.folder)
        refused = (stack == "runtime" and scheduler in ("torchrun", "k8s")
                   or scheduler == "k8s" and feature == "placed")
        self.expect(out.name, "exit of launch: " + done.stderr.strip() if done.returncode else "exit",
                    done.returncode, 2 if refused else 0)
        return out if done.returncode == 0 else None

    def run(self, out, scheduler, nodes, **env):
        seen = out / "seen"
        seen.unlink(missing_ok=True)
        hosts = out / "hosts"
        hosts.write_text("".join(f"node{n:05d}\n" for n in range(nodes)))
        full = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.folder),
                "SEEN": str(seen), "HOSTS": str(hosts), "PYTHON": "python3-stand-in",
                "SLURM_JOB_NUM_NODES": str(nodes), "SLURM_JOB_ID": "12345",
                "SLURM_JOB_NODELIST": "node[00000-]", "SLURM_SUBMIT_DIR": str(out),
                "NAMES": str(nodes), "MANNER": "once", **ENV, **env}
        done = subprocess.run(["bash", out / SCRIPTS[scheduler]], env=full, cwd=out, text=True,
                              capture_output=True, check=False, timeout=60)
        calls = [json.loads(line) for line in seen.read_text().splitlines()] if seen.exists() else []
        return done, calls

    def torchruns(self, case, calls, nodes, each, placement):
        """Of every node its torchrun; returns the program's arguments."""
        order = placement or list(range(nodes))
        self.expect(case, "torchruns", len(calls), nodes)
        programs = set()
        for node, call in enumerate(calls):
            args = call["args"]
            value = {a: args[i + 1] for i, a in enumerate(args[:-1]) if a.startswith("--")}
            self.expect(case, "--nnodes", value.get("--nnodes"), str(nodes))
            self.expect(case, "--nproc-per-node", value.get("--nproc-per-node"), str(each))
            if nodes > 1:
                self.expect(case, "--node-rank", value.get("--node-rank"), str(order.index(node)))
            first = next(i for i, a in enumerate(args) if a == "--master-port") + 2
            programs.add(tuple(args[first:]))
        self.expect(case, "programs", len(programs), 1)
        return programs.pop() if programs else ()

    def run_torchrun(self, out, nodes, each, placement):
        calls = []
        for node in range(nodes):
            done, one = self.run(out, "torchrun", nodes, NODE_RANK=str(node))
            self.expect(out.name, "exit " + done.stderr, done.returncode, 0)
            calls += one
        return self.torchruns(out.name, calls, nodes, each, placement)

    def run_slurm(self, out, nodes, each, placement, runtime):
        done, calls = self.run(out, "slurm", nodes)
        self.expect(out.name, "exit " + done.stderr, done.returncode, 0)
        if not calls:
            return ()
        self.expect(out.name, "first", calls[0]["name"], "srun")
        if runtime:
            hosts = [f"node{n:05d}" for n in placement or [] for _ in range(each)]
            self.expect(out.name, "hosts", calls[0]["hosts"], hosts)
            args = calls[0]["args"]
            return tuple(args[next(i for i, a in enumerate(args) if not a.startswith("--")):])
        first = (placement or [0])[0]
        self.expect(out.name, "MASTER_ADDR", calls[0]["env"]["MASTER_ADDR"], f"node{first:05d}")
        return self.torchruns(out.name, calls[1:], nodes, each, placement)

    def run_mpirun(self, out, nodes, each, placement, runtime):
        done, calls = self.run(out, "mpirun", nodes)
        self.expect(out.name, "exit " + done.stderr, done.returncode, 0)
        if not calls:
            return ()
        args = calls[0]["args"]
        self.expect(out.name, "-np", args[args.index("-np") + 1], str(nodes * each))
        if nodes > 1:
            order = placement or range(nodes)
            self.expect(out.name, "hosts", calls[0]["hosts"],
                        [f"node{n:05d}" for n in order for _ in range(each)])
        if runtime:
            return tuple(args[args.index("meshwright-run"):])
        return tuple(args[args.index("python3-stand-in") + 1:])

    def stack(self, stack, feature):
        """All schedulers start the same program with the same arguments."""
        _, parallel, _ = FEATURES[feature]
        nodes = {"node": 1, "part": 1, "nodes": 4, "placed": 4}.get(feature, 2)
        each, placement = 4 if feature == "part" else 8, parallel.get("placement")
        runtime, programs = stack == "runtime", {}
        for scheduler in SCRIPTS:
            out = self.launch(stack, scheduler, feature)
            if not out:
                continue
            self.scripts += 1
            if scheduler == "torchrun":
                programs[scheduler] = self.run_torchrun(out, nodes, each, placement)
            elif scheduler == "slurm":
                programs[scheduler] = self.run_slurm(out, nodes, each, placement, runtime)
            elif scheduler == "mpirun":
                programs[scheduler] = self.run_mpirun(out, nodes, each, placement, runtime)
            self.check_text(out, scheduler, nodes, each)
        plain = {tuple(word.replace(s, "SCHEDULER") for word in words)
                 for s, words in programs.items()}
        self.expect(f"{stack} {feature}", "programs of the schedulers", len(plain), 1)
        self.expect(f"{stack} {feature}", "arguments", all(len(p) > 2 for p in plain), True)
        self.expect(f"{stack} {feature}", "pwned", list(self.folder.glob("**/pwned")), [])

    def check_text(self, out, scheduler, nodes, each):
        path = out / SCRIPTS[scheduler]
        if scheduler == "k8s":
            here = pathlib.Path(__file__).parent
            stack = out.name.split()[0]
            done = subprocess.run([sys.executable, here / "check_pytorchjob.py", path, str(nodes),
                                   str(each), "nvidia.com/gpu", "launch.sh", *CONFIGS[stack]],
                                  capture_output=True, text=True, check=False)
            self.expect(out.name, "PyTorchJob " + done.stdout + done.stderr, done.returncode, 0)
        elif shutil.which("shellcheck"):
            done = subprocess.run(["shellcheck", path], capture_output=True, text=True, check=False)
            self.expect(out.name, "shellcheck " + done.stdout, done.returncode, 0)

    def names(self):
        """Node lists of every length, printed in every manner: the job starts, on the first node."""
        out = self.launch("torchtitan", "slurm", "nodes")
        script = out / "launch.sbatch"
        text = script.read_text()
        for count in (1, 2, 40, 4000, 10000):
            # A job of so many nodes; srun starts none of them here.
            script.write_text(text.replace("-ne 4 ]", f"-ne {count} ]"))
            (self.bin / "srun").write_text(STANDIN)
            for manner in ("once", "lines", "slow", "bytes"):
                for _ in range(3 if manner == "once" else 1):
                    done, calls = self.run(out, "slurm", count, MANNER=manner)
                    case = f"{count} names, {manner}"
                    self.expect(case, "exit " + done.stderr, done.returncode, 0)
                    self.expect(case, "calls", len(calls), 1)
                    if calls:
                        self.expect(case, "MASTER_ADDR", calls[0]["env"]["MASTER_ADDR"], "node00000")


def main():
    matrix = Matrix(sys.argv[1], sys.argv[2])
    for stack in STACKS:
        for feature in FEATURES if os.environ.get("MESHWRIGHT_TEST_FULL") else QUICK:
            matrix.stack(stack, feature)
    matrix.names()
    shellcheck = "with shellcheck" if shutil.which("shellcheck") else "without shellcheck"
    print(f"{matrix.scripts} scripts, {shellcheck}, {matrix.wrong} wrong")
    sys.exit(1 if matrix.wrong else 0)


main()
