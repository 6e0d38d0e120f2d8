"""Whether `import`, then `launch` gives back the flags of a command line or the keys of a file.

Usage: same_flags.py megatron|torchtitan ORIGINAL LAUNCHED NOTES

Flags that launch leaves to the user (data, learning rate, logging) are not compared, nor are those
that it does not know (both are those that docs/launch does not list). Flags that are absent have
Megatron-LM's defaults. A difference is allowed where import said so: NOTES holds what it printed.
Prints nothing where all are the same, else a line with those that import announced; fails at one
that it did not.
"""

import re
import shlex
import sys
import tomllib

OWN = """--vocab-size --train-iters --lr --log-interval --log-throughput --eval-interval --eval-iters
--mock-data --tokenizer-type --tokenizer-model --data-path --split --save --load --save-interval
--ckpt-format --moe-aux-loss-coeff --te-rng-tracker --no-check-for-nan-in-loss-and-grad""".split()


def words_of(text):
    """Flags -> values, of a script whose arrays and variables stand where they are used."""
    text = re.sub(r"\\\n", " ", text)
    for name, value in re.findall(r"^([A-Z_]+)=(\w+)$", text, re.M):
        text = text.replace(f"${name} ", f"{value} ")
    lines = [line for line in text.split("\n") if not line.lstrip().startswith("#")]
    words = shlex.split("\n".join(lines), comments=True)
    flags, name = {}, None
    for word in words:
        part = re.fullmatch(r"([A-Z_]+\+?=)?\(?(.*?)\)?", word).group(2) if "--" in word else word
        if part.startswith("--"):
            name = part
            flags[name] = []
        elif name and word not in ("torchrun", ")") and not word.endswith(".py"):
            flags[name].append(word.rstrip(")") if name != "--moe-layer-freq" else word)
    return {name: " ".join(values) for name, values in flags.items()}


def launched_words(text):
    return words_of(re.search(r"^ARGS=\((.*?)^\)", text, re.S | re.M).group(1))


def unfold(layout):
    """The letters of a --pipeline-model-parallel-layout with their repetitions written out."""
    layout = re.sub(r"\(([^)]*)\)\*(\d+)", lambda m: m[1] * int(m[2]), layout)
    return re.sub(r"([EtmL])\*(\d+)", lambda m: m[1] * int(m[2]), layout)


def stages(flags):
    """Layers of every chunk, however they are written."""
    layers, pp = int(flags["--num-layers"]), int(flags.get("--pipeline-model-parallel-size", 1))
    if "--pipeline-model-parallel-layout" in flags:
        return [part.count("t") for part in unfold(flags["--pipeline-model-parallel-layout"]).split("|")]
    first = int(flags.get("--decoder-first-pipeline-num-layers", 0))
    last = int(flags.get("--decoder-last-pipeline-num-layers", 0))
    if first or last:
        middle = pp - (first > 0) - (last > 0)
        each = (layers - first - last) // middle
        return [first or each] + [each] * (pp - 2) + [last or each]
    front = "--account-for-embedding-in-pipeline-split" in flags
    back = "--account-for-loss-in-pipeline-split" in flags
    chunks = pp * int(flags.get("--num-virtual-stages-per-pipeline-rank", 1))
    if "--num-layers-per-virtual-pipeline-stage" in flags:
        chunks = (layers + front + back) // int(flags["--num-layers-per-virtual-pipeline-stage"])
    sizes = [(layers + front + back) // chunks] * chunks
    sizes[0] -= front
    sizes[-1] -= back
    return sizes


PIPELINE = """--pipeline-model-parallel-layout --num-virtual-stages-per-pipeline-rank
--num-layers-per-virtual-pipeline-stage --account-for-embedding-in-pipeline-split
--account-for-loss-in-pipeline-split --decoder-first-pipeline-num-layers
--decoder-last-pipeline-num-layers""".split()


def normal(flags):
    """The same command with other spellings, defaults and what has no effect written out."""
    out = dict(flags)
    out["stages"] = str(stages(flags))
    for name in PIPELINE:
        out.pop(name, None)
    spellings = {
        "--use-custom-fsdp": ("--use-megatron-fsdp", ""),
        "--recompute-activations": ("--recompute-granularity", "selective"),
        "--use-rotary-position-embeddings": ("--position-embedding-type", "rope"),
    }
    for name, (other, value) in spellings.items():
        if name in out:
            del out[name]
            out[other] = value
    if "--use-flash-attn" in out:
        del out["--use-flash-attn"]
        out.setdefault("--attention-backend", "flash")
    if out.pop("--moe-flex-dispatcher-backend", None) == "deepep":
        out["--moe-enable-deepep"] = ""
    hidden, heads = int(out["--hidden-size"]), int(out["--num-attention-heads"])
    gated, latent = "--swiglu" in out, "--multi-latent-attention" in out
    rope = out.get("--position-embedding-type", "learned_absolute") == "rope"
    defaults = {
        "--tensor-model-parallel-size": "1", "--pipeline-model-parallel-size": "1",
        "--context-parallel-size": "1", "--micro-batch-size": "1",
        "--ffn-hidden-size": str(4 * hidden * 2 // 3 // 64 * 64 if gated else 4 * hidden),
        "--kv-channels": str(hidden // heads), "--normalization": "LayerNorm", "--norm-epsilon": "1e-5",
        "--position-embedding-type": "learned_absolute", "--attention-backend": "auto",
        "--attention-dropout": "0.1", "--hidden-dropout": "0.1", "--optimizer": "adam",
    }
    if rope:
        defaults |= {"--rotary-base": "10000", "--rotary-percent": "1",
                     "--rotary-seq-len-interpolation-factor": "1"}
    if "--num-experts" in out:
        defaults |= {"--expert-model-parallel-size": "1", "--moe-router-topk": "2",
                     "--expert-tensor-parallel-size": out.get("--tensor-model-parallel-size", "1"),
                     "--moe-ffn-hidden-size": out.get("--ffn-hidden-size", str(4 * hidden)),
                     "--moe-token-dispatcher-type": "allgather",
                     "--moe-router-load-balancing-type": "aux_loss",
                     "--moe-router-score-function": "softmax",
                     "--moe-router-topk-scaling-factor": "1"}
    if latent:
        defaults |= {"--rope-type": "yarn", "--rotary-scaling-factor": "1", "--mscale": "1",
                     "--mscale-all-dim": "0"}
    if out.get("--recompute-granularity") == "selective":
        defaults["--recompute-modules"] = "core_attn"
    if out.get("--context-parallel-size", "1") != "1":
        defaults["--cp-comm-type"] = "p2p"
    if "--fp8-format" in out:
        defaults["--fp8-recipe"] = "delayed"
    if "--cross-entropy-loss-fusion" in out:
        defaults["--cross-entropy-fusion-impl"] = "native"
    for name, value in defaults.items():
        out.setdefault(name, value)
    if "--bf16" in out and "--grad-reduce-in-bf16" not in out:  # arguments.py sets it
        out["--accumulate-allreduce-grads-in-fp32"] = ""
    modules = out.get("--recompute-modules", "").split()
    if modules:
        out["--recompute-modules"] = " ".join(sorted(modules))
    without_effect = []
    if out["--tensor-model-parallel-size"] == "1":
        without_effect += ["--sequence-parallel"]
    if latent:
        without_effect += ["--kv-channels"]
    if out.get("--moe-router-score-function") == "sigmoid":
        without_effect += ["--moe-router-pre-softmax"]
    if "--use-megatron-fsdp" not in out:
        without_effect += ["--data-parallel-sharding-strategy"]
    for name in without_effect:
        out.pop(name, None)
    return out


def same(a, b):
    """Equal texts, or equal numbers."""
    try:
        return float(a) == float(b)
    except (TypeError, ValueError):
        return a == b


def listed(page):
    with open(page, encoding="utf-8") as stream:
        return set(re.findall(r"^\| `(\S+?)[ `]", stream.read(), re.M))


def megatron(original, launched):
    known = (listed("docs/launch/megatron.md") - set(OWN) - set(PIPELINE)) | {"stages"}
    before, after = normal(words_of(original)), normal(launched_words(launched))
    return [name for name in sorted(known) if not same(before.get(name), after.get(name))]


def titan_normal(config):
    """Keys -> values of a configuration, of the version that launch writes."""
    out = {f"{s}.{k}": v for s, table in config.items() for k, v in table.items()}
    renamed = {"training.batch_size": "training.local_batch_size", "compile.enable": "training.compile"}
    for name, other in renamed.items():
        if name in out:
            out[other] = out.pop(name)
    for name in ("model.converters", "float8.filter_fqns"):
        if isinstance(out.get(name), str):
            out[name] = [out[name]]
    defaults = {"training.compile": False, "training.mixed_precision_param": "bfloat16",
                "training.mixed_precision_reduce": "float32",
                "parallelism.fsdp_reshard_after_forward": "default",
                "parallelism.context_parallel_degree": 1,
                "parallelism.expert_parallel_degree": 1,
                "parallelism.disable_loss_parallel": False,
                "parallelism.enable_async_tensor_parallel": False,
                "optimizer.implementation": "fused", "metrics.log_freq": 1}
    for name, value in defaults.items():
        out.setdefault(name, value)
    if "float8" in out.get("model.converters", []):
        out.setdefault("float8.recipe_name", "tensorwise")
    else:
        out = {name: value for name, value in out.items() if not name.startswith("float8.")}
    if out["parallelism.fsdp_reshard_after_forward"] == "default":
        keeps = out["parallelism.pipeline_parallel_degree"] > 1
        out["parallelism.fsdp_reshard_after_forward"] = "never" if keeps else "always"
    if out["parallelism.pipeline_parallel_degree"] == 1:
        out.pop("parallelism.pipeline_parallel_schedule", None)
    return out


def torchtitan(original, launched):
    before, after = (titan_normal(tomllib.loads(text)) for text in (original, launched))
    # What the file leaves to the rest, launch states.
    p = "parallelism.data_parallel_shard_degree"
    if before.get(p) == -1:
        before[p] = after[p]
    before.setdefault("training.global_batch_size", before["training.local_batch_size"]
                      * after["parallelism.data_parallel_replicate_degree"] * after[p])
    known = listed("docs/launch/torchtitan.md") - {"job.description", "metrics.log_freq"}
    return [name for name in sorted(known) if before.get(name) != after.get(name)]


def main():
    kind, *paths = sys.argv[1:]
    original, launched, notes = (open(path, encoding="utf-8").read() for path in paths)
    different = {"megatron": megatron, "torchtitan": torchtitan}[kind](original, launched)
    said = set(re.findall(r"--[a-z0-9-]+|[a-z0-9_]+\.[a-z0-9_]+", notes))
    unsaid = [name for name in different if name not in said]
    if unsaid:
        sys.exit(f"{paths[0]}: not given back, and nobody said so: {' '.join(unsaid)}")
    if different:
        print(*different)


main()
