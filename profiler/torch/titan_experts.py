"""Times steps with torchtitan's experts on one GPU: python3 titan_experts.py OUT.jsonl [--smoke]

The model is torchtitan 0.1's own DeepSeek-V3 (latent attention, shared experts, its router, sort, gather,
padding kernel and torch._grouped_mm), from the folder that TITAN_SOURCES names (models/attention.py,
models/deepseek_v3/model, experiments/llama4/infra/expert_parallel.py and experiments/kernels/moe of its
repository), with few layers; FSDP2, AdamW and loss as in steps.py. Rows are lines that `meshwright validate --data`
reads, and say more: kernels of a step by name, host time, tokens of the busiest expert over the mean.
"""

import json
import os
import statistics
import subprocess
import sys
import time
import types

# layers, hidden, experts, top k, expert width, shared, dense width, heads
SHAPES = {
    "deepseek-v2-lite": (4, 2048, 64, 6, 1408, 2, 10944, 16),
    "small-experts": (3, 2048, 128, 8, 768, 0, 6144, 32),
    "deepseek-v3": (2, 7168, 16, 8, 2048, 1, 18432, 128),
}
WORDS, SEQ = 102400, 4096
# shape, batch, recompute
RUNS = {
    "deepseek-v2-lite-b2": ("deepseek-v2-lite", 2, "none"),
    "small-experts-b2": ("small-experts", 2, "none"),
    "deepseek-v3-b1": ("deepseek-v3", 1, "none"),
    "deepseek-v2-lite-b1": ("deepseek-v2-lite", 1, "none"),
    "deepseek-v2-lite-b4-full": ("deepseek-v2-lite", 4, "full"),
    "small-experts-b4": ("small-experts", 4, "none"),
    "small-experts-b1": ("small-experts", 1, "none"),
}
NUM_WARMUP, NUM_STEPS = 4, 8


def scenario(name, gpu, imbalance):
    """The run as meshwright takes it."""
    shape, batch, recompute = RUNS[name]
    layers, hidden, experts, top_k, width, shared, dense, heads = SHAPES[shape]
    model = {
        "model_type": "deepseek_v3", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": heads, "intermediate_size": dense, "vocab_size": WORDS, "q_lora_rank": None,
        "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "n_routed_experts": experts, "num_experts_per_tok": top_k, "moe_intermediate_size": width,
        "n_shared_experts": shared, "first_k_dense_replace": 1, "moe_layer_freq": 1, "tie_word_embeddings": False,
        "max_position_embeddings": SEQ,
    }
    return {
        "schema": 1, "model": model,
        "cluster": {"gpu": gpu, "num_gpus": 1, "gpus_per_node": 1, "scale_up": {"link": "nvlink4", "domain_gpus": 1},
                    "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 5e10, "topology": "rail-fat-tree",
                                  "oversubscription": 1.0}},
        "training": {"seq_len": SEQ, "global_batch": batch, "precision": "bf16", "stack": "torchtitan",
                     "stack_version": "0.1", "moe_routing": {"imbalance": max(1.0, imbalance)}},
        "parallel": {"micro_batch": batch, "recompute": recompute},
    }


def titan():
    """torchtitan's model, with stand-ins for what only its command line needs."""
    sys.path.insert(0, os.environ["TITAN_SOURCES"])
    import torch

    def stand_in(name, **members):
        module = types.ModuleType(name)
        module.__dict__.update(members)
        sys.modules[name] = module
    import logging
    stand_in("torchtitan.config", JobConfig=object)
    stand_in("torchtitan.protocols")
    stand_in("torchtitan.protocols.train_spec", BaseModelArgs=object, ModelProtocol=type("ModelProtocol", (), {}))
    stand_in("torchtitan.tools")
    stand_in("torchtitan.tools.logging", logger=logging.getLogger("titan"))
    stand_in("torchtitan.tools.utils",
             has_cuda_capability=lambda major, minor: torch.cuda.get_device_capability() >= (major, minor))
    from torchtitan.models.deepseek_v3.model.args import DeepSeekV3ModelArgs
    from torchtitan.models.deepseek_v3.model.model import DeepSeekV3Model
    return DeepSeekV3ModelArgs, DeepSeekV3Model


def build(shape):
    import torch
    Arguments, Model = titan()
    layers, hidden, experts, top_k, width, shared, dense, heads = SHAPES[shape]
    arguments = Arguments(
        vocab_size=WORDS, dim=hidden, inter_dim=dense, moe_inter_dim=width, n_layers=layers, n_dense_layers=1,
        n_heads=heads, n_routed_experts=experts, n_shared_experts=shared, n_activated_experts=top_k, max_seq_len=SEQ)
    with torch.device("cuda"):
        model = Model(arguments)
    with torch.no_grad():
        model.init_weights(buffer_device=torch.device("cuda"))
    return model


def train(name, out_path):
    import torch
    import torch.nn.functional as F
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from measure import Board, device_row

    shape, batch, recompute = RUNS[name]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29531", RANK="0", WORLD_SIZE="1")
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda:0"))
    mesh = torch.distributed.init_device_mesh("cuda", (1,))
    torch.manual_seed(1)
    model = build(shape)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for key, layer in model.layers.items():
        if recompute == "full":
            layer = checkpoint_wrapper(layer, preserve_rng_state=False)
            model.layers[key] = layer
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    data = torch.randint(WORDS, (4, batch, SEQ + 1), device="cuda")
    host_s = []

    def step(i):
        begin = time.monotonic()
        tokens = data[i % 4]
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten()).backward()
        del logits
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        host_s.append(time.monotonic() - begin)

    for i in range(NUM_WARMUP):
        step(i)
    torch.cuda.synchronize()
    host_s.clear()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(NUM_STEPS + 1)]
    with Board() as board:
        marks[0].record()
        for i in range(NUM_STEPS):
            step(i)
            marks[i + 1].record()
        torch.cuda.synchronize()
    times = [a.elapsed_time(b) * 1e-3 for a, b in zip(marks, marks[1:])]
    loads = [(module.tokens_per_expert.max() / module.tokens_per_expert.mean()).item()
             for module in model.modules() if hasattr(module, "tokens_per_expert")]
    peak, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        step(0)
        step(1)
        torch.cuda.synchronize()
    kernels = sorted(((event.key[:120], event.count / 2, event.self_device_time_total * 5e-7)
                      for event in profiler.key_averages()), key=lambda kernel: -kernel[2])
    gpu = "h200-sxm-141g" if "H200" in torch.cuda.get_device_name() else "h100-sxm-80g"
    row = {
        "id": f"titan-{gpu}-{name}", "family": "torch-one-gpu", "source": "profiler/torch/titan_experts.py", "gate": True,
        "scenario": scenario(name, gpu, statistics.fmean(loads)),
        "truth": {"step_time_s": statistics.median(times), "memory_peak_bytes": peak, "memory_reserved_bytes": reserved},
        "measured": {"steps_s": times, "host_s": statistics.median(host_s), "busiest_over_mean": loads,
                     "tokens_per_s": batch * SEQ / statistics.median(times), "kernels_s": sum(k[2] for k in kernels),
                     "num_kernels": sum(k[1] for k in kernels), "kernels": kernels[:60],
                     "parameters": sum(p.numel() for p in model.parameters()), **board.row(), **device_row()},
    }
    with open(out_path, "a", encoding="ascii") as out:
        out.write(json.dumps(row) + "\n")
    print(name, f"{statistics.median(times) * 1e3:.2f} ms, kernels {row['measured']['kernels_s'] * 1e3:.2f} ms, host "
          f"{statistics.median(host_s) * 1e3:.2f} ms, {peak / 1e9:.2f} GB, loads {loads}", flush=True)
    torch.distributed.destroy_process_group()


def main():
    out = sys.argv[1]
    if "--one" in sys.argv:
        train(sys.argv[3], out)
        return
    for name in list(RUNS)[:1] if "--smoke" in sys.argv else RUNS:
        try:
            done = subprocess.run([sys.executable, __file__, out, "--one", name], timeout=60, stderr=subprocess.PIPE,
                                  check=False)
            if done.returncode:
                print(name, "failed:", done.stderr.decode(errors="replace")[-900:], flush=True)
        except subprocess.TimeoutExpired:
            print(name, "took too long", flush=True)


if __name__ == "__main__":
    main()
