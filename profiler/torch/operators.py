"""Times PyTorch's operators of training, forward and backward: python3 operators.py OUT.jsonl [PART..]

Parts: sustained mix grouped attention memory. Each row states shapes, seconds of one call (median of CUDA
graph replays over cold inputs) and the spread; m, n, k are of the product itself (2mnk flops).
"""

import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from measure import Board, copies_of, device_row, emit, graph_seconds

BF16 = torch.bfloat16


def normal(*shape, dtype=BF16):
    return torch.randn(*shape, dtype=dtype, device="cuda")


def cool_down():
    """A second without work, so that every run begins at the full clock."""
    torch.cuda.synchronize()
    time.sleep(1.0)


def run_for(seconds, call, group_s=0.1):
    """Repeats call for so long; returns its first and last mean seconds and the board's state.

    The first is of a burst of a few calls on a board that has rested, the last of the last group.
    """
    call()
    cool_down()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def group(num_calls):
        begin.record()
        for _ in range(num_calls):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / num_calls
    first = group(3)
    num_calls = int(max(8, group_s / first))
    with Board() as board:
        stop = time.monotonic() + seconds
        while time.monotonic() < stop:
            last = group(num_calls)
    return first, last, board.row()


def product(m, n, k, scale=1.0):
    """A call of one bf16 product of normally distributed inputs."""
    a, b = normal(m, k) * scale, normal(n, k) * scale
    c = torch.empty(m, n, dtype=BF16, device="cuda")
    return lambda: torch.mm(a, b.t(), out=c)


def product_fp8(m, n, k):
    """The same in fp8 with one scale a tensor."""
    one = torch.ones((), device="cuda")
    a, b = (normal(rows, k).to(torch.float8_e4m3fn) for rows in (m, n))
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=BF16)


def sustained(out):
    """Long runs of one operator: what the board's power does to the clock."""
    # (m, n, k), scale of the inputs (0: zeros)
    for shape, scale in [((8192, 8192, 8192), 1.0), ((8192, 8192, 8192), 0.0),
                         ((8192, 8192, 8192), 0.02), ((4096, 4096, 4096), 1.0),
                         ((16384, 16384, 4096), 1.0), ((8192, 8192, 1024), 1.0),
                         ((8192, 28672, 4096), 1.0), ((2048, 2048, 2048), 1.0),
                         ((1024, 4096, 4096), 1.0)]:
        m, n, k = shape
        first, last, state = run_for(2.5, product(m, n, k, scale))
        emit(out, kind="sustained", op="mm", dtype="bfloat16", m=m, n=n, k=k, input_scale=scale,
             first_s=first, last_s=last, **state)
    for m, n, k in [(8192, 8192, 8192), (8192, 28672, 4096), (4096, 4096, 4096)]:
        first, last, state = run_for(2.5, product_fp8(m, n, k))
        emit(out, kind="sustained", op="mm", dtype="fp8", m=m, n=n, k=k, input_scale=1.0,
             first_s=first, last_s=last, **state)
    q, k, v = (normal(4, 32, 4096, 128).requires_grad_() for _ in range(3))
    grad = normal(4, 32, 4096, 128)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        def forward():
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        output = forward()
        for op, call in {"attention_forward": forward,
                         "attention_backward": lambda: torch.autograd.grad(
                             output, (q, k, v), grad, retain_graph=True)}.items():
            first, last, state = run_for(2.5, call)
            emit(out, kind="sustained", op=op, batch_size=4, seq_len=4096, num_heads=32,
                 num_key_value_heads=32, head_dim=128, first_s=first, last_s=last, **state)
    x = normal(2**28)
    y = torch.empty_like(x)
    first, last, state = run_for(2.5, lambda: y.copy_(x))
    emit(out, kind="sustained", op="copy", bytes=2**30, first_s=first, last_s=last, **state)


def mix(out):
    """Products in turn with copies or with nothing: the clock goes with the mean power."""
    num_bytes = 2**28
    x, y = normal(num_bytes // 2), torch.empty(num_bytes // 2, dtype=BF16, device="cuda")
    for m, n, k in [(8192, 8192, 8192), (4096, 4096, 4096)]:
        call = product(m, n, k)
        call()
        torch.cuda.synchronize()
        for products, copies, idle_s in [(20, 0, 0.0), (4, 4, 0.0), (4, 12, 0.0), (4, 36, 0.0),
                                         (4, 100, 0.0), (4, 0, 0.002), (4, 0, 0.007),
                                         (4, 0, 0.02), (60, 0, 0.1), (60, 0, 0.3)]:
            cool_down()
            times, copy_times = [], []
            with Board() as board:
                stop = time.monotonic() + 2.0
                while time.monotonic() < stop:
                    marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
                    marks[0].record()
                    for _ in range(products):
                        call()
                    marks[1].record()
                    for _ in range(copies):
                        y.copy_(x)
                    marks[2].record()
                    marks[2].synchronize()
                    times.append(marks[0].elapsed_time(marks[1]) * 1e-3)
                    copy_times.append(marks[1].elapsed_time(marks[2]) * 1e-3)
                    if idle_s:
                        time.sleep(idle_s)
            half = len(times) // 2
            emit(out, kind="mix", m=m, n=n, k=k, products=products, copies=copies,
                 idle_s=idle_s, product_s=sum(times[half:]) / (len(times) - half) / products,
                 busy_frac=sum(times) / board.seconds,
                 copy_frac=sum(copy_times) / board.seconds,
                 copy_s=sum(copy_times[half:]) / (len(times) - half) / max(1, copies),
                 **board.row())


def grouped(out):
    """Experts' products, all in one kernel: balanced, and a quarter of the experts with half the tokens."""
    for experts, hidden, width in [(8, 4096, 14336), (16, 4096, 1536), (64, 2048, 1408),
                                   (32, 7168, 2048)]:
        weights = normal(experts, width, hidden)
        for tokens in 64, 128, 256, 512, 1024, 2048:
            x, dy = normal(experts * tokens, hidden), normal(experts * tokens, width)
            busy = experts // 4
            counts = {"balanced": [tokens] * experts,
                      "skewed": [2 * tokens] * busy + [tokens * (experts - 2 * busy)
                                                       // (experts - busy) // 8 * 8] *
                      (experts - busy)}
            for routing, each in counts.items():
                ends = torch.tensor(each, device="cuda").cumsum(0).to(torch.int32)
                total = sum(each)
                calls = {
                    "forward": lambda: torch._grouped_mm(x[:total], weights.transpose(1, 2),
                                                         offs=ends),
                    "backward_input": lambda: torch._grouped_mm(dy[:total], weights, offs=ends),
                    "backward_weight": lambda: torch._grouped_mm(dy[:total].t(), x[:total],
                                                                 offs=ends),
                }
                for layout, call in calls.items():
                    row = {"kind": "grouped", "layout": layout, "experts": experts,
                           "hidden_size": hidden, "inter_size": width, "routing": routing,
                           "num_tokens": total, "tokens_per_expert": tokens}
                    try:
                        seconds, spread = graph_seconds(lambda i: call(), 1, 0.003, 5)
                        emit(out, **row, seconds=seconds, spread_frac=spread)
                    except RuntimeError as error:
                        emit(out, **row, error=str(error)[:200])
        del weights, x, dy
        torch.cuda.empty_cache()


def attention(out):
    """Causal attention, forward and backward, by each library that PyTorch carries."""
    backends = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
    # batch, sequence, heads, kv heads, head size
    shapes = [(b, s, h, kv, d)
              for h, kv, d in [(32, 32, 128), (32, 8, 128), (8, 1, 128), (8, 8, 128), (16, 16, 64),
                               (25, 25, 64), (64, 8, 128)]
              for b, s in [(8, 512), (8, 1024), (4, 2048), (1, 4096), (2, 4096), (1, 8192),
                           (1, 16384)]]
    for batch, seq, heads, kv, dim in shapes:
        num = min(8, copies_of(2 * batch * seq * dim * (2 * heads + 2 * kv)))
        for name, backend in backends.items():
            row = {"kind": "attention", "backend": name, "batch_size": batch, "seq_len": seq,
                   "num_heads": heads, "num_key_value_heads": kv, "head_dim": dim}
            try:
                with sdpa_kernel(backend):
                    q = [normal(batch, seq, heads, dim).transpose(1, 2).requires_grad_()
                         for _ in range(num)]
                    k = [normal(batch, seq, kv, dim).transpose(1, 2).requires_grad_()
                         for _ in range(num)]
                    v = [normal(batch, seq, kv, dim).transpose(1, 2).requires_grad_()
                         for _ in range(num)]
                    grad = normal(batch, seq, heads, dim).transpose(1, 2)

                    def run(i):
                        return F.scaled_dot_product_attention(q[i], k[i], v[i], is_causal=True,
                                                              enable_gqa=heads != kv)
                    forward, spread = graph_seconds(run, num, 0.004, 5)
                    side = torch.cuda.Stream()
                    with torch.cuda.stream(side):
                        outputs = [run(i) for i in range(num)]
                        for i in range(num):
                            torch.autograd.grad(outputs[i], (q[i], k[i], v[i]), grad,
                                                retain_graph=True)
                    torch.cuda.synchronize()
                    torch.cuda.current_stream().wait_stream(side)

                    def both(i):
                        torch.autograd.grad(run(i), (q[i], k[i], v[i]), grad)
                    total, both_spread = graph_seconds(both, num, 0.004, 5)
                emit(out, **row, forward_s=forward, forward_spread_frac=spread,
                     forward_backward_s=total, spread_frac=both_spread)
            except RuntimeError as error:
                emit(out, **row, error=str(error)[:200])
            q = k = v = grad = outputs = None
            torch.cuda.empty_cache()


def memory(out):
    """Operators bound by memory: bytes are read plus written, once each."""
    for rows, columns in [(1024, 1600), (4096, 4096), (8192, 4096), (8192, 8192), (4096, 14336)]:
        size = rows * columns
        num = copies_of(4 * size)
        x = [normal(rows, columns).requires_grad_() for _ in range(min(num, 16))]
        num = len(x)
        y = [normal(rows, columns) for _ in range(num)]
        weight = normal(columns).requires_grad_()
        bias = normal(columns).requires_grad_()

        def timed(op, num_bytes, call):
            try:
                seconds, spread = graph_seconds(call, num, 0.002, 5)
                emit(out, kind="memory", op=op, rows=rows, columns=columns, bytes=num_bytes,
                     seconds=seconds, spread_frac=spread)
            except RuntimeError as error:
                emit(out, kind="memory", op=op, rows=rows, columns=columns, error=str(error)[:200])

        def forward_backward(op, forward, inputs, forward_bytes, both_bytes):
            def both(i):
                torch.autograd.grad(forward(i), inputs(i), y[i])
            timed(op + "_forward", forward_bytes, forward)
            timed(op + "_forward_backward", both_bytes, both)

        with torch.no_grad():
            z = [torch.empty_like(t) for t in y]
            timed("copy", 4 * size, lambda i: z[i].copy_(y[i]))
            timed("add", 6 * size, lambda i: torch.add(x[i], y[i], out=z[i]))
            timed("cast_to_fp32", 6 * size, lambda i: y[i].float())
            del z
        forward_backward("rmsnorm", lambda i: F.rms_norm(x[i], (columns,), weight, 1e-5),
                         lambda i: (x[i], weight), 4 * size, 10 * size)
        forward_backward("layernorm", lambda i: F.layer_norm(x[i], (columns,), weight, bias),
                         lambda i: (x[i], weight, bias), 4 * size, 10 * size)
        forward_backward("gelu", lambda i: F.gelu(x[i], approximate="tanh"), lambda i: (x[i],),
                         4 * size, 10 * size)
        forward_backward("silu_mul", lambda i: F.silu(x[i]) * y[i], lambda i: (x[i],),
                         10 * size, 20 * size)
        del x, y
        torch.cuda.empty_cache()
    for tokens, vocab in [(4096, 50304), (4096, 128256)]:
        logits = normal(tokens, vocab).requires_grad_()
        target = torch.randint(vocab, (tokens,), device="cuda")
        for name, function in {
                "cross_entropy_fp32": lambda i: F.cross_entropy(logits.float(), target),
                "cross_entropy_bf16": lambda i: F.cross_entropy(logits, target)}.items():
            forward, _ = graph_seconds(function, 1, 0.004, 5)
            both, spread = graph_seconds(
                lambda i, f=function: torch.autograd.grad(f(i), (logits,)), 1, 0.004, 5)
            emit(out, kind="memory", op=name, rows=tokens, columns=vocab,
                 bytes=2 * tokens * vocab, forward_s=forward, seconds=both, spread_frac=spread)
    for num_parameters, num_tensors in [(2**24, 1), (2**28, 1), (2**28, 64), (2**28, 400)]:
        each = num_parameters // num_tensors
        tensors = [torch.zeros(each, device="cuda", requires_grad=True) for _ in range(num_tensors)]
        for tensor in tensors:
            tensor.grad = torch.randn_like(tensor)
        optimizer = torch.optim.AdamW(tensors, fused=True)
        clock = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        for name, call in {"adamw_fused_fp32": optimizer.step,
                           "clip_grad_norm_fp32":
                               lambda: torch.nn.utils.clip_grad_norm_(tensors, 1.0, foreach=True)
                           }.items():
            for _ in range(3):
                call()
            times = []
            for _ in range(7):
                clock[0].record()
                call()
                clock[1].record()
                torch.cuda.synchronize()
                times.append(clock[0].elapsed_time(clock[1]) * 1e-3)
            emit(out, kind="memory", op=name, rows=num_tensors, columns=each,
                 bytes=(28 if "adamw" in name else 12) * num_parameters,
                 seconds=sorted(times)[3])
        del tensors, optimizer
        torch.cuda.empty_cache()


def main():
    parts = sys.argv[2:] or ["sustained", "mix", "grouped", "attention", "memory"]
    torch.manual_seed(1)
    with open(sys.argv[1], "a", encoding="ascii") as out:
        emit(out, **device_row())
        for part in parts:
            begin = time.monotonic()
            globals()[part](out)
            print(part, round(time.monotonic() - begin, 1), "s", flush=True)


main()
