"""Times whole training steps on one GPU: python3 steps.py OUT.jsonl [eager|compiled|NAME..]

Each run is a process of its own, trained as torchtitan trains: FSDP2 over a mesh of one GPU with
bf16 compute and fp32 weights, gradients and reductions, fused AdamW, gradient clipping, cross
entropy over fp32 logits. A row is a line that `meshwright validate --data` reads, and says more:
tokens, clock, power, loss, host time.
"""

import json
import os
import statistics
import subprocess
import sys
import time

SEQ = 4096
# shape, sequence, batch, recompute, compile
RUNS = {
    "gpt2-124m-b32": ("gpt2-124m", 1024, 32, "none", False),
    "gpt2-124m-b4": ("gpt2-124m", 1024, 4, "none", False),
    "gpt2-1.5b-b8": ("gpt2-1.5b", 1024, 8, "none", False),
    "llama-1b-b2": ("llama-1b", SEQ, 2, "none", False),
    "llama-1b-b1": ("llama-1b", SEQ, 1, "none", False),
    "llama-1b-b2-full": ("llama-1b", SEQ, 2, "full", False),
    "llama-8b-4-layers-b1": ("llama-8b-4-layers", 8192, 1, "none", False),
    "llama-70b-2-layers-b1": ("llama-70b-2-layers", 4096, 1, "none", False),
    "gpt2-124m-b32-compiled": ("gpt2-124m", 1024, 32, "none", True),
    "gpt2-1.5b-b8-compiled": ("gpt2-1.5b", 1024, 8, "none", True),
    "llama-1b-b2-compiled": ("llama-1b", SEQ, 2, "none", True),
    "llama-1b-b2-full-compiled": ("llama-1b", SEQ, 2, "full", True),
    "llama-8b-4-layers-b1-compiled": ("llama-8b-4-layers", 8192, 1, "none", True),
    "llama-70b-2-layers-b1-compiled": ("llama-70b-2-layers", 4096, 1, "none", True),
}
NUM_WARMUP, NUM_STEPS = 4, 10


def scenario(shape, seq, batch, recompute, compiled, gpu):
    """The run as meshwright takes it."""
    model = {
        "model_type": "generic", "hidden_size": shape.hidden_size,
        "num_hidden_layers": shape.num_hidden_layers,
        "num_attention_heads": shape.num_attention_heads,
        "num_key_value_heads": shape.num_key_value_heads,
        "intermediate_size": shape.intermediate_size, "vocab_size": shape.vocab_size,
        "gated_mlp": not shape.gpt2, "norm": "layernorm" if shape.gpt2 else "rmsnorm",
        "position": "learned" if shape.gpt2 else "rope", "linear_bias": shape.gpt2,
        "tie_word_embeddings": shape.gpt2, "max_position_embeddings": max(seq, 1024),
    }
    return {
        "schema": 1, "model": model,
        "cluster": {"gpu": gpu, "num_gpus": 1, "gpus_per_node": 1,
                    "scale_up": {"link": "nvlink4", "domain_gpus": 1},
                    "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 5e10,
                                  "topology": "rail-fat-tree", "oversubscription": 1.0}},
        "training": {"seq_len": seq, "global_batch": batch, "precision": "bf16",
                     "stack": "torchtitan", "stack_version": "0.2", "compile": compiled,
                     "cross_entropy_fused": compiled},
        "parallel": {"micro_batch": batch, "recompute": recompute},
    }


def train(name, out_path):
    import torch
    import torch.nn.functional as F
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from decoder import SHAPES, Decoder
    from measure import Board, device_row

    shape_name, seq, batch, recompute, compiled = RUNS[name]
    shape = SHAPES[shape_name]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda:0"))
    mesh = torch.distributed.init_device_mesh("cuda", (1,))
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = Decoder(shape, seq)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.02)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for i, layer in enumerate(model.layers):
        if recompute == "full":
            layer = checkpoint_wrapper(layer, preserve_rng_state=False)
        if compiled:
            layer = torch.compile(layer, fullgraph=True)
        model.layers[i] = layer
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)

    def loss_of(logits, target):
        return F.cross_entropy(logits.flatten(0, 1).float(), target.flatten())
    if compiled:
        loss_of = torch.compile(loss_of)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    data = torch.randint(shape.vocab_size, (8, batch, seq + 1), device="cuda")

    host_s = []

    def step(i):
        begin = time.monotonic()
        mark = torch.cuda.nvtx.range_start(f"mw:step run={name}")  # a row for `profile --wrap`
        tokens = data[i % 8]
        optimizer.zero_grad()
        loss = loss_of(model(tokens[:, :-1]), tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        torch.cuda.nvtx.range_end(mark)
        host_s.append(time.monotonic() - begin)
        return loss

    losses = [step(i).item() for i in range(NUM_WARMUP)]
    torch.cuda.synchronize()
    host_s.clear()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(NUM_STEPS + 1)]
    with Board() as board:
        marks[0].record()
        for i in range(NUM_STEPS):
            loss = step(i)
            marks[i + 1].record()
        torch.cuda.synchronize()
    times = [a.elapsed_time(b) * 1e-3 for a, b in zip(marks, marks[1:])]
    free, total = torch.cuda.mem_get_info()
    gpu = "h200-sxm-141g" if "H200" in torch.cuda.get_device_name() else "h100-sxm-80g"
    row = {
        "id": f"torch-{gpu}-{name}", "family": "torch-one-gpu",
        "source": "profiler/torch/steps.py", "gate": True,
        "scenario": scenario(shape, seq, batch, recompute, compiled, gpu),
        "truth": {"step_time_s": statistics.median(times),
                  "memory_peak_bytes": torch.cuda.max_memory_allocated(),
                  "memory_reserved_bytes": torch.cuda.max_memory_reserved()},
        "measured": {"steps_s": times, "host_s": statistics.median(host_s),
                     "memory_device_bytes": total - free, "losses": losses + [loss.item()],
                     "tokens_per_s": batch * seq / statistics.median(times),
                     **board.row(), **device_row()},
    }
    if "CUDA_INJECTION64_PATH" in os.environ:  # another profiler is at work
        print(name, f"{statistics.median(times) * 1e3:.2f} ms, profiled by another program")
        return
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        step(0)
        step(1)
        torch.cuda.synchronize()
    kernels = sorted(((event.key[:120], event.count / 2, event.self_device_time_total * 5e-7)
                      for event in profiler.key_averages()), key=lambda kernel: -kernel[2])
    row["measured"]["kernels_s"] = sum(kernel[2] for kernel in kernels)
    row["measured"]["num_kernels"] = sum(kernel[1] for kernel in kernels)
    row["measured"]["kernels"] = kernels[:45]
    with open(out_path, "a", encoding="ascii") as out:
        out.write(json.dumps(row) + "\n")
    print(name, f"{statistics.median(times) * 1e3:.2f} ms, kernels "
          f"{row['measured']['kernels_s'] * 1e3:.2f} ms, host {statistics.median(host_s) * 1e3:.2f} ms, "
          f"{torch.cuda.max_memory_allocated() / 1e9:.2f} GB", flush=True)
    torch.distributed.destroy_process_group()


def main():
    out, chosen = sys.argv[1], sys.argv[2:] or ["eager", "compiled"]
    if chosen[0] == "--one":
        train(chosen[1], out)
        return
    for name, run in RUNS.items():
        if name in chosen or ("compiled" if run[4] else "eager") in chosen:
            begin = time.monotonic()
            try:
                done = subprocess.run([sys.executable, __file__, out, "--one", name], timeout=150,
                                      stderr=subprocess.PIPE, check=False)
                if done.returncode:
                    print(name, "failed:", done.stderr.decode(errors="replace")[-700:], flush=True)
            except subprocess.TimeoutExpired:
                print(name, "took too long", flush=True)
            print(name, "took", round(time.monotonic() - begin, 1), "s", flush=True)


main()
