"""Host time of launches: python3 launches.py OUT.jsonl

  launch   seconds of host time a call, of calls one behind the other that the GPU is faster than
  graph    a graph of so many small kernels: host seconds of a replay, seconds to its end
  layer    a decoder layer of few tokens, forward and backward: kernels, host seconds and seconds in all, by
           eager PyTorch, compiled, compiled with graphs, and one captured graph
"""

import os
import statistics
import sys
import time
import traceback

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from decoder import Block, Shape
from measure import device_row, emit

BF16 = torch.bfloat16


@triton.jit
def nothing(x):
    pass


@triton.jit
def one_number(x):
    tl.store(x, 1.0)


def host_row():
    row = {"kind": "host", "num_cores": os.cpu_count()}
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                row["cpu"] = line.split(":", 1)[1].strip()
                break
    return row


def host_seconds(call, num_calls=400, repeats=9):
    """Median host seconds a call, and seconds to the end of the last, without waiting between."""
    for _ in range(20):
        call()
    torch.cuda.synchronize()
    host, whole = [], []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(num_calls):
            call()
        host.append((time.perf_counter() - begin) / num_calls)
        torch.cuda.synchronize()
        whole.append((time.perf_counter() - begin) / num_calls)
    return statistics.median(host), statistics.median(whole)


def num_kernels(call):
    from torch.profiler import ProfilerActivity, profile
    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    events = [event for event in profiler.key_averages() if event.self_device_time_total > 0]
    return sum(event.count for event in events), sum(event.self_device_time_total for event in events) * 1e-6


def single(out):
    x, y = (torch.randn(64, 64, dtype=BF16, device="cuda") for _ in range(2))
    w = torch.randn(64, 64, dtype=BF16, device="cuda", requires_grad=True)
    weight = torch.ones(64, dtype=BF16, device="cuda")
    z = torch.empty_like(x)
    q = torch.randn(1, 4, 64, 64, dtype=BF16, device="cuda")
    scores = torch.randn(64, 64, device="cuda")
    number = torch.zeros(1, device="cuda")
    compiled_one = torch.compile(lambda a, b: F.silu(a) * b)
    linear = torch.nn.Linear(64, 64, bias=False, device="cuda", dtype=BF16)

    def add_backward():
        torch.add(w, 1.0).backward(x)
        w.grad = None
    calls = {
        "triton_nothing": (1, lambda: nothing[(1,)](number)),
        "triton_one_number": (1, lambda: one_number[(1,)](number)),
        "add_out": (1, lambda: torch.add(x, y, out=z)),
        "add": (1, lambda: x + y),
        "mul_inplace": (1, lambda: z.mul_(1.0)),
        "mm_out": (1, lambda: torch.mm(x, y, out=z)),
        "linear_no_grad": (1, lambda: F.linear(x, y)),
        "linear_module_grad": (1, lambda: linear(x)),
        "rms_norm": (1, lambda: F.rms_norm(x, (64,), weight, 1e-5)),
        "layer_norm": (1, lambda: F.layer_norm(x, (64,), weight)),
        "softmax": (1, lambda: torch.softmax(scores, -1)),
        "topk": (1, lambda: scores.topk(8)),
        "sdpa": (1, lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True)),
        "view": (0, lambda: x.view(-1)),
        "empty": (0, lambda: torch.empty(64, 64, device="cuda")),
        "compiled_silu_mul": (1, lambda: compiled_one(x, y)),
        "add_forward_backward": (2, add_backward),
        "event_record": (0, torch.cuda.Event().record),
        "host_to_device_item": (1, lambda: number.item()),
    }
    for name, (kernels, call) in calls.items():
        try:
            host, whole = host_seconds(call)
            emit(out, kind="launch", op=name, kernels=kernels, host_s=host, whole_s=whole)
        except Exception as error:
            emit(out, kind="launch", op=name, error=str(error)[:300])


def graphs(out):
    x = torch.zeros(64, 64, dtype=BF16, device="cuda")
    for kernels in (1, 10, 100, 1000):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(kernels):
                x.add_(1.0)
        host, whole = host_seconds(graph.replay, max(2, 400 // kernels))
        emit(out, kind="graph", kernels=kernels, host_s=host, whole_s=whole)


def layers(out):
    """Layers of decoder.py: few tokens, so that the host is what is waited for."""
    shapes = {"llama-8b": Shape(4096, 1, 32, 8, 14336, 128256), "gpt2-124m": Shape(768, 1, 12, 12, 3072, 50304, True)}
    for name, shape in shapes.items():
        for tokens in (64, 1024):
            torch.manual_seed(1)
            block = Block(shape).to(device="cuda", dtype=BF16)
            x = torch.randn(1, tokens, shape.hidden_size, dtype=BF16, device="cuda", requires_grad=True)
            dy = torch.randn_like(x)
            dim = shape.hidden_size // shape.num_attention_heads
            angle = torch.randn(tokens, dim // 2, device="cuda")
            angles = torch.polar(torch.ones_like(angle), angle)

            def both(forward):
                forward(x, angles).backward(dy)

            def alone(forward):
                with torch.no_grad():
                    forward(x, angles)
            ways = {"eager": block}
            if tokens == 64:
                ways["compiled"] = torch.compile(block)
                ways["compiled_graphs"] = torch.compile(block, mode="reduce-overhead")
            for way, forward in ways.items():
                for part, call in (("forward", lambda: alone(forward)),
                                   ("forward_backward", lambda: both(forward))):
                    try:
                        for _ in range(3):
                            call()
                        host, whole = host_seconds(call, 40, 7)
                        kernels, kernels_s = num_kernels(call)
                        emit(out, kind="layer", model=name, num_tokens=tokens, way=way, part=part,
                             kernels=kernels, kernels_s=kernels_s, host_s=host, whole_s=whole)
                    except Exception as error:
                        emit(out, kind="layer", model=name, num_tokens=tokens, way=way, part=part,
                             error=str(error)[:300])
            graph = torch.cuda.CUDAGraph()
            with torch.no_grad():
                with torch.cuda.graph(graph):
                    block(x, angles)
            host, whole = host_seconds(graph.replay, 40, 7)
            emit(out, kind="layer", model=name, num_tokens=tokens, way="graph", part="forward", host_s=host,
                 whole_s=whole)


def main():
    with open(sys.argv[1], "a", encoding="ascii") as out:
        emit(out, **device_row())
        emit(out, **host_row())
        for part in (single, graphs, layers):
            begin = time.monotonic()
            try:
                part(out)
            except Exception:  # the other parts go on
                traceback.print_exc()
            print(part.__name__, round(time.monotonic() - begin, 1), "s", flush=True)


main()
