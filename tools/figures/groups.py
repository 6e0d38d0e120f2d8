#!/usr/bin/env python3
"""Groups of different machines, planned: what each mixture gains, and Holmes' setting.

Usage: tools/figures/groups.py [MESHWRIGHT]     (default build/meshwright)

First jobs on H100, A100 and V100 nodes joined by 100 Gbit/s: the best plan beside the best with even
stages, the best on the fastest group alone, replicas in each group with its part of the batch, what is proven,
and the processor time.

Then the setting of Holmes (Yang et al., ICPP 2024, arXiv:2312.03549): A100 nodes, half of them with
InfiniBand, half with RoCE, Ethernet between the halves. Its 39.1B model of 32 GPUs is that of
examples/pretrain_gpt_4_nodes.sh (CodexDive/Holmes): tp 8, pp 2, micro-batch 4, batch 1,536. Its
README names four InfiniBand cards a node, or two with RoCE, and one bonded Ethernet interface, but no
rates: here 200 Gbit/s a card, and 25 Gbit/s for the Ethernet of a node.
"""
import json
import resource
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/meshwright"
LINKS = {"h100-sxm-80g": "nvlink4", "a100-sxm-80g": "nvlink3", "v100-sxm2-32g": "nvlink2"}
NICS = {"h100-sxm-80g": (8, 50e9), "a100-sxm-80g": (8, 25e9), "v100-sxm2-32g": (4, 12.5e9)}


def group(gpu, num_gpus, nics=None):
    per_node, rate = nics or NICS[gpu]
    return {"gpu": gpu, "num_gpus": num_gpus, "gpus_per_node": 8,
            "scale_up": {"link": LINKS[gpu], "domain_gpus": 8},
            "scale_out": {"nics_per_node": per_node, "nic_bytes_per_s": rate}}


H, A, V = "h100-sxm-80g", "a100-sxm-80g", "v100-sxm2-32g"
JOBS = [  # model, groups, seq_len, global_batch, precision, bytes/s between
    ("llama-3.1-8b", [group(H, 16), group(A, 16)], 8192, 256, "bf16", 12.5e9),
    ("llama-3.1-70b", [group(H, 64), group(A, 64)], 8192, 1024, "bf16", 12.5e9),
    ("llama-3.1-70b", [group(H, 64), group(A, 64)], 8192, 1024, "bf16", 1.25e9),
    ("llama-3.1-70b", [group(H, 64), group(A, 16)], 8192, 1024, "bf16", 12.5e9),
    ("llama-3.1-70b", [group(H, 64), group(V, 64)], 8192, 1024, "fp16", 12.5e9),
    ("llama-3.1-70b", [group(H, 64), group(A, 64), group(V, 64)], 8192, 1024, "fp16", 12.5e9),
    ("mixtral-8x7b", [group(H, 32), group(A, 32)], 4096, 512, "bf16", 12.5e9),
    ("llama-3.1-405b", [group(H, 256), group(A, 256)], 8192, 512, "bf16", 12.5e9),
]


def answer(command, document):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(document, file)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([PROGRAM, *command, file.name, "--json"], capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), cpu_s


def seconds(plan):
    return f"{plan['step_time_s']:.1f} s" if plan else "none fits"


def replicas(answer):
    if not answer:
        return "none"
    parts = " + ".join(str(g["sequences"]) for g in answer["groups"])
    return f"{parts}: {seconds(answer)}"


def mixtures():
    print("| model | groups | between | stages and their layers | step | even stages | fastest group alone "
          "| replicas in each group | gap | priced of | CPU |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for model, groups, seq_len, batch, precision, between in JOBS:
        document = {"schema": 1, "model": model,
                    "cluster": {"groups": groups, "between": {"bytes_per_s": between, "latency_s": 2e-5}},
                    "training": {"seq_len": seq_len, "global_batch": batch, "precision": precision}}
        found, cpu_s = answer(["plan", "--top", "1"], document)
        plan, search, beside = found["plans"][0], found["search"], found["groups"]
        stages = "; ".join(f"{s['gpu'].split('-')[0]}: " + " ".join(map(str, s["layers"]))
                           for s in plan["groups"])
        alone = [f for f in beside["fewer"] if len(f["groups"]) == 1 and f["fits"]]
        alone = min(alone, key=lambda f: f["step_time_s"]) if alone else None
        names = " + ".join(f"{g['num_gpus']} {g['gpu'].split('-')[0]}" for g in groups)
        ratio = lambda other: f" ({other['step_time_s'] / plan['step_time_s']:.2f}x)" if other else ""
        print(f"| {model} | {names} | {between * 8 / 1e9:.0f} Gbit/s | {stages} | {seconds(plan)} "
              f"| {seconds(beside['even_stages'])}{ratio(beside['even_stages'])} "
              f"| {seconds(alone)}{ratio(alone)} | {replicas(beside['replicas'])}{ratio(beside['replicas'])} "
              f"| {search['gap_frac']:.1%} "
              f"| {search['priced']} of {search['considered']} | {cpu_s:.1f} s |")


# --- Holmes

RDMA, ROCE, ETHERNET = (4, 25e9), (2, 25e9), (1, 3.125e9)


def holmes(clusters, pp):
    model = {"model_type": "generic", "name": "gpt-39.1b", "hidden_size": 8192,
             "intermediate_size": 32768, "num_hidden_layers": 48, "num_attention_heads": 64,
             "vocab_size": 51200, "max_position_embeddings": 2048}
    groups = [group(A, num_gpus, nics) for num_gpus, nics in clusters]
    cluster = groups[0]
    if len(groups) > 1:
        cluster = {"groups": groups, "between": {"bytes_per_s": 2 * 3.125e9, "latency_s": 5e-5}}
    return {"schema": 1, "model": model, "cluster": cluster,
            "training": {"seq_len": 2048, "global_batch": 1536, "precision": "bf16"},
            "parallel": {"tp": 8, "pp": pp, "micro_batch": 4, "recompute": "selective",
                         "zero_stage": 1, "vpp": 1}}


def holmes_table():
    print("| network of four nodes | pipeline | step | TFLOP/s a GPU | over InfiniBand alone |")
    print("| --- | --- | --- | --- | --- |")
    first = None
    for name, clusters in [("InfiniBand", [(32, RDMA)]), ("RoCE", [(32, ROCE)]),
                           ("half InfiniBand, half RoCE, Ethernet between", [(16, RDMA), (16, ROCE)]),
                           ("Ethernet", [(32, ETHERNET)])]:
        found, _ = answer(["plan", "--top", "1"], holmes(clusters, 2))
        plan = found["plans"][0]
        first = first or plan
        layers = "-".join(str(s["layers"]) for s in plan["parallel"]["stages"])
        print(f"| {name} | dp {plan['parallel']['dp']}, layers {layers} | {plan['step_time_s']:.1f} s "
              f"| {plan['model_flops_per_s_per_gpu'] / 1e12:.0f} "
              f"| {first['step_time_s'] / plan['step_time_s']:.1%} |")


mixtures()
print()
holmes_table()
