"""Times products and attention of sizes that tensor cores dislike: python3 alignment.py OUT.jsonl [PART..]

  aligned_product    n or k or m larger by 1 to 64 than a multiple of 128 (k then has rows of that many numbers), in
                     the three products of a layer: forward, the input's gradient, the weight's gradient; and heads of
                     108 as in a width of 13,824 with 128 heads
  aligned_attention  causal attention of head sizes 64 to 256 through PyTorch, forward and backward, by each kernel that
                     takes it; without a name, what PyTorch chooses
"""

import sys
import time
import traceback

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from measure import copies_of, device_row, emit, graph_seconds

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
KERNELS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
           "efficient": SDPBackend.EFFICIENT_ATTENTION}


def normal(*shape):
    return torch.randn(*shape, dtype=BF16, device="cuda")


def timed(out, row, call, num_copies=1):
    try:
        seconds, spread = graph_seconds(call, num_copies, 0.003, 5)
        emit(out, **row, seconds=seconds, spread_frac=spread)
    except Exception as error:
        emit(out, **row, error=str(error)[:200])
        torch.cuda.synchronize()


def products(out):
    base = (8192, 4096, 4096)
    for dim in range(3):
        for more in (0, 1, 2, 4, 8, 16, 24, 32, 40, 56, 64, 96):
            size = list(base)
            size[dim] += more
            m, n, k = size
            copies = copies_of(2 * (m * k + n * k))
            x, w, dy = normal(m, k), [normal(n, k) for _ in range(copies)], normal(m, n)
            row = {"kind": "aligned_product", "dtype": "bfloat16", "m": m, "n": n, "k": k}
            timed(out, {**row, "layout": "forward"}, lambda i: F.linear(x, w[i]), copies)
            timed(out, {**row, "layout": "backward_input"}, lambda i: dy @ w[i], copies)
            timed(out, {**row, "layout": "backward_weight"}, lambda i: dy.t() @ x)
            if more % 16 == 0:
                one = torch.ones((), device="cuda")
                x8, w8 = x.to(FP8), [t.to(FP8) for t in w]
                timed(out, {**row, "dtype": "fp8", "layout": "forward"}, lambda i: torch._scaled_mm(
                    x8, w8[i].t(), scale_a=one, scale_b=one, out_dtype=BF16, use_fast_accum=True), copies)
    for n, k in ((5184, 13824), (13824, 1728), (5120, 13824), (13824, 1792), (4864, 12928), (5376, 14336)):
        x, w = normal(4096, k), normal(n, k)
        timed(out, {"kind": "aligned_product", "dtype": "bfloat16", "m": 4096, "n": n, "k": k, "layout": "forward"},
              lambda i: F.linear(x, w))


def attention(out):
    for dim in (64, 72, 80, 88, 96, 100, 104, 108, 112, 120, 128, 136, 144, 160, 192, 224, 256):
        for sequence, batch in ((2048, 4), (8192, 1)):
            q, k, v = (normal(batch, 16, sequence, dim).requires_grad_() for _ in range(3))
            dy = normal(batch, 16, sequence, dim)
            for name in ("", *KERNELS):
                row = {"kind": "aligned_attention", "by": name or "default", "batch_size": batch, "sequence": sequence,
                       "num_heads": 16, "head_dim": dim}

                def call():
                    if not name:
                        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
                    with sdpa_kernel(KERNELS[name]):
                        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
                timed(out, {**row, "pass": "forward"}, lambda i: call())
                timed(out, {**row, "pass": "both"}, lambda i: torch.autograd.grad(call(), (q, k, v), dy))


def main():
    torch.manual_seed(1)
    with open(sys.argv[1], "a", encoding="ascii") as out:
        emit(out, **device_row())
        for part in sys.argv[2:] or ["products", "attention"]:
            begin = time.monotonic()
            try:
                globals()[part](out)
            except Exception:  # the other parts go on
                traceback.print_exc()
            torch.cuda.empty_cache()
            print(part, round(time.monotonic() - begin, 1), "s", flush=True)


if __name__ == "__main__":
    main()
