"""Times what a layer of experts does on one GPU: python3 experts.py OUT.jsonl [PART..]

Parts: products products_fp8 one_by_one operators. Seconds are medians of CUDA graph replays.
  expert_product  the experts' products in one kernel (torch._grouped_mm; fp8 by rows: _scaled_grouped_mm)
                  or one call of cuBLAS an expert; rows are those of all local experts together
  expert_operator what lies around them: router, sort, permute, activation, unpermute; kernels of PyTorch,
                  and of this file (Triton)
Routing: `balanced`, or experts' shares as rank^-a in an order drawn at random (`power_0.5`, `power_1`).
"""

import sys
import time
import traceback

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from measure import copies_of, device_row, emit, graph_seconds

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
# name, hidden, width of an expert, local experts
MODELS = [
    ("qwen3-30b-a3b", 2048, 768, (128, 32, 16, 8)),
    ("deepseek-v3", 7168, 2048, (32, 16, 8)),
    ("mixtral-8x7b", 4096, 14336, (8, 2)),
]
ROWS = (512, 2048, 8192, 32768, 131072)
MOST_FLOPS = 1.6e13  # of one call
ROUTINGS = {"balanced": 0.0, "power_0.5": 0.5, "power_1": 1.0}


def normal(*shape):
    return torch.randn(*shape, dtype=BF16, device="cuda")


def counts_of(rows, experts, exponent):
    """Rows of each expert, multiples of 8 that sum to rows."""
    torch.manual_seed(experts)
    share = torch.arange(1, experts + 1, dtype=torch.float64) ** -exponent
    share = (share / share.sum())[torch.randperm(experts)]
    ends = (share.cumsum(0) * rows / 8).round().long() * 8
    ends[-1] = rows
    return torch.diff(ends, prepend=torch.zeros(1, dtype=torch.long)).tolist()


def timed(out, row, call, num_copies=1):
    try:
        seconds, spread = graph_seconds(call, num_copies, 0.003, 5)
        emit(out, **row, seconds=seconds, spread_frac=spread)
    except Exception as error:  # one shape that a library lacks is a row that says so
        emit(out, **row, error=str(error)[:200])


def cases():
    """Every shape: both products of each model's experts."""
    for model, hidden, width, local in MODELS:
        for experts in local:
            for name, n, k in (("up", 2 * width, hidden), ("down", hidden, width)):
                copies = min(8, copies_of(2 * experts * n * k)) if experts * n * k < 2**27 else 1
                for rows in ROWS:
                    if 2.0 * rows * n * k <= MOST_FLOPS:
                        yield {"model": model, "product": name, "experts": experts, "n": n, "k": k,
                               "num_rows": rows}, copies


def with_counts(rows, experts, routings):
    for routing in routings:
        counts = counts_of(rows, experts, ROUTINGS[routing])
        ends = torch.tensor(counts, device="cuda").cumsum(0).to(torch.int32)
        yield {"routing": routing, "busiest_frac": max(counts) / rows}, counts, ends


def products(out):
    for case, copies in cases():
        experts, n, k, rows = (case[key] for key in ("experts", "n", "k", "num_rows"))
        w = [normal(experts, n, k) for _ in range(copies)]
        x, dy = normal(rows, k), normal(rows, n)
        for routed, counts, ends in with_counts(rows, experts, ROUTINGS):
            row = {"kind": "expert_product", "by": "grouped", "dtype": "bfloat16", **case, **routed}
            timed(out, {**row, "layout": "forward"},
                  lambda i: torch._grouped_mm(x, w[i].transpose(1, 2), offs=ends), copies)
            if routed["routing"] == "power_1":
                continue
            timed(out, {**row, "layout": "backward_input"},
                  lambda i: torch._grouped_mm(dy, w[i], offs=ends), copies)
            timed(out, {**row, "layout": "backward_weight"},
                  lambda i: torch._grouped_mm(dy.t(), x, offs=ends))
        w = None


def products_fp8(out):
    """Scales by row of the input and by row of the weight, as torchao's experts have them."""
    for case, copies in cases():
        experts, n, k, rows = (case[key] for key in ("experts", "n", "k", "num_rows"))
        w = [normal(experts, n, k).to(FP8) for _ in range(copies)]
        x = normal(rows, k).to(FP8)
        sx, sw = torch.ones(rows, device="cuda"), torch.ones(experts, n, device="cuda")
        for routed, counts, ends in with_counts(rows, experts, ("balanced", "power_0.5")):
            timed(out, {"kind": "expert_product", "by": "grouped", "dtype": "fp8", **case, **routed,
                        "layout": "forward"},
                  lambda i: torch._scaled_grouped_mm(x, w[i].transpose(1, 2), sx, sw, offs=ends,
                                                     out_dtype=BF16, use_fast_accum=True), copies)
        # The weight's gradient sums over rows: both operands lie along them.
        dy_t, x_t = normal(n, rows).to(FP8), normal(k, rows).to(FP8)
        s_dy, s_x = torch.ones(n * experts, device="cuda"), torch.ones(k * experts, device="cuda")
        counts = [count // 16 * 16 for count in counts_of(rows, experts, 0.0)]
        if rows >= 2048 and sum(counts) == rows:
            ends = torch.tensor(counts, device="cuda").cumsum(0).to(torch.int32)
            timed(out, {"kind": "expert_product", "by": "grouped", "dtype": "fp8", **case,
                        "routing": "balanced", "layout": "backward_weight"},
                  lambda i: torch._scaled_grouped_mm(dy_t, x_t.t(), s_dy, s_x, offs=ends,
                                                     out_dtype=BF16, use_fast_accum=False))
        w = None


def one_by_one(out):
    """A call of cuBLAS an expert, one behind the other in one graph."""
    for case, copies in cases():
        experts, n, k, rows = (case[key] for key in ("experts", "n", "k", "num_rows"))
        w = [normal(experts, n, k) for _ in range(copies)]
        x, y = normal(rows, k), torch.empty(rows, n, dtype=BF16, device="cuda")
        for routed, counts, _ in with_counts(rows, experts, ("balanced", "power_0.5")):
            used = [e for e in range(experts) if counts[e]]
            begin = [sum(counts[:e]) for e in range(experts)]

            def call(i):
                for e in used:
                    part = slice(begin[e], begin[e] + counts[e])
                    torch.mm(x[part], w[i][e].t(), out=y[part])
            timed(out, {"kind": "expert_product", "by": "one_by_one", "dtype": "bfloat16", **case,
                        **routed, "layout": "forward"}, call, copies)
        w = None


# --- Around them


@triton.jit
def permute_rows(x, index, y, columns, BLOCK: tl.constexpr):
    """y[row] = x[index[row]]; an index below 0 is padding, of zeros."""
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(index + row).to(tl.int64)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        inside = at < columns
        value = tl.load(x + source * columns + at, mask=inside & (source >= 0), other=0.0)
        tl.store(y + row * columns + at, value, mask=inside)


@triton.jit
def unpermute_rows(y, place, probability, x, columns, TOP_K: tl.constexpr, BLOCK: tl.constexpr):
    """x[token] = sum over its experts of probability times y[place]."""
    token = tl.program_id(0).to(tl.int64)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        inside = at < columns
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for e in range(TOP_K):
            row = tl.load(place + token * TOP_K + e).to(tl.int64)
            weight = tl.load(probability + token * TOP_K + e).to(tl.float32)
            total += weight * tl.load(y + row * columns + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(x + token * columns + at, total.to(tl.bfloat16), mask=inside)


@triton.jit
def swiglu_rows(h, probability, y, width, BLOCK: tl.constexpr):
    """y = silu(gate) up, times the row's probability; h holds gate and up beside each other."""
    row = tl.program_id(0).to(tl.int64)
    weight = tl.load(probability + row).to(tl.float32)
    for begin in range(0, width, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        inside = at < width
        gate = tl.load(h + row * 2 * width + at, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(h + row * 2 * width + width + at, mask=inside, other=0.0).to(tl.float32)
        value = gate * tl.sigmoid(gate) * up * weight
        tl.store(y + row * width + at, value.to(tl.bfloat16), mask=inside)


def operators(out):
    for model, hidden, width, experts, top_k in (("qwen3-30b-a3b", 2048, 768, 128, 8),
                                                 ("deepseek-v3", 7168, 2048, 256, 8),
                                                 ("mixtral-8x7b", 4096, 14336, 8, 2)):
        for tokens in (512, 4096, 16384, 65536):
            rows = tokens * top_k
            if rows * max(hidden, 2 * width) > 2**32:
                continue
            x, weight = normal(tokens, hidden), normal(experts, hidden)
            x32, weight32 = x.float(), weight.float()
            logits = torch.randn(tokens, experts, device="cuda")
            chosen = logits.topk(top_k, dim=1)
            probability = torch.softmax(chosen.values, dim=1)
            flat = chosen.indices.flatten()
            order = torch.argsort(flat, stable=True)
            token_of = (order // top_k).to(torch.int32)
            place = torch.empty_like(order)
            place[order] = torch.arange(rows, device="cuda")
            place32 = place.to(torch.int32)
            counts = torch.bincount(flat, minlength=experts)
            block = 1024 if hidden % 1024 == 0 else 512

            def op(name, num_bytes, call, **more):
                timed(out, {"kind": "expert_operator", "op": name, "model": model, "num_tokens": tokens,
                            "num_rows": rows, "hidden_size": hidden, "inter_size": width,
                            "num_experts": experts, "topk": top_k, "bytes": num_bytes, **more},
                      lambda i: call())
            size, routed = 2 * tokens * hidden, 2 * rows * hidden
            op("router_fp32", 2 * size, lambda: x32 @ weight32.t())
            op("router_cast_fp32", size, lambda: x.float() @ weight32.t())
            op("router_bf16", size, lambda: x @ weight.t())
            op("softmax", 8 * tokens * experts, lambda: torch.softmax(logits, dim=1))
            op("topk", 4 * tokens * experts, lambda: logits.topk(top_k, dim=1))
            op("softmax_topk_normalize", 4 * tokens * experts, lambda: choose(logits, top_k))
            op("count", 8 * rows, lambda: torch.histc(flat.float(), bins=experts, min=0, max=experts))
            op("sort", 16 * rows, lambda: torch.argsort(flat, stable=True))
            op("sort_int32", 8 * rows, lambda: torch.sort(flat.to(torch.int32), stable=True))
            op("permute_pytorch", 2 * routed, lambda: x.index_select(0, token_of))
            y = torch.empty(rows, hidden, dtype=BF16, device="cuda")
            op("permute", 2 * routed,
               lambda: permute_rows[(rows,)](x, token_of, y, hidden, BLOCK=block, num_warps=4))
            for alignment in (16, 32, 128):
                padded = (counts + alignment - 1) // alignment * alignment
                begin = padded.cumsum(0) - padded
                real = counts.cumsum(0) - counts
                at = torch.arange(rows, device="cuda")
                expert = flat[order]
                index = torch.full((int(padded.sum()),), -1, dtype=torch.int32, device="cuda")
                index[begin[expert] + at - real[expert]] = token_of
                target = torch.empty(len(index), hidden, dtype=BF16, device="cuda")
                op("permute_padded", 2 * routed, lambda: permute_rows[(len(index),)](
                    x, index, target, hidden, BLOCK=block, num_warps=4), alignment=alignment,
                   num_padded_rows=len(index))
                del target
            op("unpermute", routed + size, lambda: unpermute_rows[(tokens,)](
                y, place32, probability, x, hidden, TOP_K=top_k, BLOCK=block, num_warps=4))
            op("unpermute_pytorch", routed + size, lambda: torch.zeros_like(x).index_add_(
                0, token_of, y * probability.flatten()[order, None].to(BF16)))
            h = normal(rows, 2 * width)
            z = torch.empty(rows, width, dtype=BF16, device="cuda")
            row_probability = probability.flatten()[order].contiguous()
            op("swiglu", 6 * rows * width, lambda: swiglu_rows[(rows,)](
                h, row_probability, z, width, BLOCK=1024 if width % 1024 == 0 else 256, num_warps=4))
            op("swiglu_pytorch", 6 * rows * width,
               lambda: F.silu(h[:, :width]) * h[:, width:])
            del x, y, h, z, x32
            torch.cuda.empty_cache()


def choose(logits, top_k):
    probability = torch.softmax(logits, dim=1)
    best = probability.topk(top_k, dim=1)
    return best.values / best.values.sum(1, keepdim=True), best.indices


def main():
    parts = sys.argv[2:] or ["products", "operators", "products_fp8", "one_by_one"]
    torch.manual_seed(1)
    with open(sys.argv[1], "a", encoding="ascii") as out:
        emit(out, **device_row())
        for part in parts:
            begin = time.monotonic()
            try:
                globals()[part](out)
            except Exception:  # the other parts go on
                traceback.print_exc()
            torch.cuda.empty_cache()
            print(part, round(time.monotonic() - begin, 1), "s", flush=True)


if __name__ == "__main__":
    main()
