"""Memory of the host in training: python3 offload.py OUT.jsonl [PART..]

Parts, all but `build` where none is named:
  copies      between GPU and pinned memory, each way and both, alone and beside products
  host_adam   AdamW on the host: PyTorch's fused, foreach and plain; DeepSpeed's, built from the folder that
              DEEPSPEED_CSRC names (csrc/adam and csrc/includes of its repository), where there is one
  build       that library alone, so that it is there when it is asked for
  fsdp        steps of a decoder under FSDP2 on one GPU: as it is, with CPUOffloadPolicy, with activations in
              pinned memory (save_on_cpu), each a process of its own
"""

import os
import statistics
import subprocess
import sys
import time
import traceback

import torch

from measure import device_row, emit

PARTS = ["copies", "fsdp", "host_adam"]


# --- Copies

def timed_streams(calls, repeats=5):
    """Median seconds until each of the calls, on streams of their own, has ended."""
    streams = [torch.cuda.Stream() for _ in calls]
    rows = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in calls]
        for call, stream, (begin, end) in zip(calls, streams, marks):
            with torch.cuda.stream(stream):
                begin.record()
                call()
                end.record()
        torch.cuda.synchronize()
        rows.append([begin.elapsed_time(end) * 1e-3 for begin, end in marks])
    return [statistics.median(row[i] for row in rows[1:]) for i in range(len(calls))]


def copies(out):
    size = 2**30
    host = [torch.empty(size, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    near = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2)]
    a = torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda")
    b = torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda")
    c = torch.empty_like(a)
    large = torch.empty(2**29, dtype=torch.float32, device="cuda")

    def products():
        for _ in range(12):
            torch.mm(a, b, out=c)

    def adds():
        for _ in range(14):
            large.add_(1.0)
    each = {"to_gpu": lambda: near[0].copy_(host[0], non_blocking=True),
            "to_host": lambda: host[1].copy_(near[1], non_blocking=True), "products": products, "adds": adds}
    for names in (["to_gpu"], ["to_host"], ["to_gpu", "to_host"], ["products"], ["products", "to_gpu"],
                  ["products", "to_host"], ["products", "to_gpu", "to_host"], ["adds"], ["adds", "to_gpu", "to_host"]):
        seconds = timed_streams([each[name] for name in names])
        emit(out, kind="copies", together=names, seconds=dict(zip(names, seconds)), copied_bytes=size)
        print(names, [f"{s * 1e3:.2f} ms" for s in seconds], flush=True)


# --- Adam on the host

def host_adam_one(out, name, num, threads, step):
    torch.set_num_threads(threads)
    step()
    times = []
    for _ in range(5 if num < 5e8 else 3):
        begin = time.monotonic()
        step()
        times.append(time.monotonic() - begin)
    seconds = statistics.median(times)
    emit(out, kind="host_adam", by=name, parameters=num, threads=threads, seconds=seconds)
    print("host_adam", name, num, threads, f"{seconds * 1e3:.1f} ms, {28 * num / seconds / 1e9:.1f} GB/s", flush=True)


def deepspeed_adam():
    folder = os.environ.get("DEEPSPEED_CSRC")
    if not folder or not os.path.isdir(folder):
        return None
    from torch.utils.cpp_extension import load
    with open("/proc/cpuinfo", encoding="ascii") as file:
        wide = "avx512f" in file.read()
    return load(name="ds_cpu_adam", verbose=False, extra_include_paths=[f"{folder}/includes"],
                sources=[f"{folder}/adam/cpu_adam.cpp", f"{folder}/adam/cpu_adam_impl.cpp"],
                extra_cflags=["-O3", "-std=c++17", "-g0", "-fopenmp", "-march=native",
                              "-D__AVX512__" if wide else "-D__AVX256__"])


def host_adam(out):
    with open("/proc/cpuinfo", encoding="ascii") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
    emit(out, kind="host", cpu=cpu, cores=os.cpu_count())
    print(cpu, os.cpu_count(), "cores", flush=True)
    most = os.cpu_count()
    torch.set_num_threads(most)
    for num, threads in ((int(1e8), most), (int(1e9), most), (int(1e8), 8), (int(1e8), 4), (int(1e8), 1)):
        torch.set_num_threads(most)
        weight = torch.zeros(num, requires_grad=True)
        weight.grad = torch.full_like(weight, 1e-3)
        kinds = {"fused": {"fused": True}}
        if num == int(1e8) and threads == most:
            kinds.update({"foreach": {"foreach": True}, "plain": {"foreach": False}})
        for name, how in kinds.items():
            optimizer = torch.optim.AdamW([weight], lr=1e-4, **how)
            host_adam_one(out, f"torch {name}", num, threads, optimizer.step)
            del optimizer
    library = deepspeed_adam()
    if library is None:
        return
    library.create_adam(0, 1e-4, 0.9, 0.999, 1e-8, 0.0, True, False)
    for num, threads in ((int(1e8), most), (int(1e9), most), (int(1e8), 4)):
        torch.set_num_threads(most)
        arrays = [torch.full((num,), 1e-3) for _ in range(4)]
        count = [0]

        def step():
            count[0] += 1
            library.adam_update(0, count[0], 1e-4, 0.9, 0.999, 1e-8, 0.0, True, *arrays)
        host_adam_one(out, "deepspeed", num, threads, step)


# --- FSDP2

FSDP_CASES = [("llama-1b", 2048, 2, "none"), ("llama-1b", 2048, 2, "cpu_offload_pinned"),
              ("llama-1b", 2048, 2, "activations"), ("llama-1b", 2048, 2, "full_activations"),
              ("llama-1b", 2048, 2, "full"), ("llama-1b", 2048, 2, "cpu_offload")]


def fsdp_one(out_path, number):
    import torch.nn.functional as F
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper, offload_wrapper
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
    from decoder import SHAPES, Decoder
    name, seq, batch, how = FSDP_CASES[number]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29521", RANK="0", WORLD_SIZE="1",
                      GLOO_SOCKET_IFNAME="lo", NCCL_SOCKET_IFNAME="lo")
    torch.cuda.set_device(0)
    torch.set_num_threads(os.cpu_count())
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl")
    mesh = torch.distributed.init_device_mesh("cuda", (1,))
    offloads = how.startswith("cpu_offload")
    with torch.device("cuda"):
        model = Decoder(SHAPES[name], seq)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    offload = CPUOffloadPolicy(pin_memory=how.endswith("pinned")) if offloads else OffloadPolicy()
    for i, layer in enumerate(model.layers):
        if how.startswith("full"):
            layer = checkpoint_wrapper(layer, preserve_rng_state=False)
        if how.endswith("activations"):
            layer = offload_wrapper(layer)
        model.layers[i] = layer
        fully_shard(layer, mesh=mesh, mp_policy=policy, offload_policy=offload)
    fully_shard(model, mesh=mesh, mp_policy=policy, offload_policy=offload)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(SHAPES[name].vocab_size, (batch, seq + 1), device="cuda")
    times, parts = [], {"forward_backward": [], "optimizer": []}
    for step in range(6):
        torch.cuda.synchronize()
        begin = time.monotonic()
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        torch.cuda.synchronize()
        middle = time.monotonic()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        times.append(time.monotonic() - begin)
        parts["forward_backward"].append(middle - begin)
        parts["optimizer"].append(times[-1] - parts["forward_backward"][-1])
        print(how, "step", step, [round(values[-1], 4) for values in parts.values()], flush=True)
    row = {"seconds": statistics.median(times[2:]), "peak_bytes": torch.cuda.max_memory_allocated(),
           "reserved_bytes": torch.cuda.max_memory_reserved(), "parameters": sum(p.numel() for p in model.parameters()),
           **{f"{part}_s": statistics.median(values[2:]) for part, values in parts.items()}}
    with open(out_path, "a", encoding="ascii") as out:
        emit(out, kind="fsdp_offload", model=name, seq=seq, batch=batch, offload=how, **row)
    print(name, how, f"{row['seconds'] * 1e3:.1f} ms, optimizer {row['optimizer_s'] * 1e3:.1f} ms, peak "
          f"{row['peak_bytes'] / 1e9:.2f} GB", flush=True)
    torch.distributed.destroy_process_group()


def fsdp(out):
    for number, _ in enumerate(FSDP_CASES):
        try:
            done = subprocess.run([sys.executable, __file__, out.name, "--one", str(number)], timeout=45,
                                  stderr=subprocess.PIPE, check=False)
            if done.returncode:
                said = done.stderr.decode(errors="replace")[-500:]
                emit(out, kind="fsdp_offload", offload=FSDP_CASES[number][3], error=said)
                print(FSDP_CASES[number], "failed:", said, flush=True)
        except subprocess.TimeoutExpired:
            print(FSDP_CASES[number], "took too long", flush=True)


def main():
    if "--one" in sys.argv:
        fsdp_one(sys.argv[1], int(sys.argv[3]))
        return
    with open(sys.argv[1], "a", encoding="ascii") as out:
        emit(out, **device_row())
        for part in sys.argv[2:] or PARTS:
            begin = time.monotonic()
            try:
                {"copies": copies, "host_adam": host_adam, "fsdp": fsdp,
                 "build": lambda _: deepspeed_adam()}[part](out)
            except Exception:
                print(part, "failed:", traceback.format_exc()[-900:], flush=True)
            print(part, "took", round(time.monotonic() - begin, 1), "s", flush=True)


main()
