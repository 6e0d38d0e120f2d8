"""Times what generating one token a sequence takes: python3 decode.py OUT.jsonl [PART..]

Parts: attention latent products rows. Seconds are medians of CUDA graph replays over cold inputs; `bytes` are
those of the cache (attention) or of weights and rows (products), read once.
  decode_attention  one query token by batch sequences of context tokens: FlashAttention 2 and cuDNN through
                    PyTorch, and this file's kernel, whose `splits` parts of the context run beside each other
  decode_latent     latent attention with absorbed matrices: all heads read one row of 576 numbers a token
  decode_product    products of few rows, bf16 and fp8
  decode_rows       norms and activations of few rows
"""

import sys
import time
import traceback

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch.nn.attention import SDPBackend, sdpa_kernel

from measure import copies_of, device_row, emit, graph_seconds

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
MOST_CACHE_BYTES = 2**35


def normal(*shape):
    return torch.randn(*shape, dtype=BF16, device="cuda")


def timed(out, row, call, num_copies=1):
    try:
        seconds, spread = graph_seconds(call, num_copies, 0.002, 5)
        emit(out, **row, seconds=seconds, spread_frac=spread)
        return seconds
    except Exception as error:
        emit(out, **row, error=str(error)[:300])
        torch.cuda.synchronize()
        return None


@triton.jit(do_not_specialize=["splits"])
def split_kernel(q, k, v, part, norm, context, scale, stride_token, stride_batch, splits,
                 KV_HEADS: tl.constexpr, GROUP: tl.constexpr, HEADS: tl.constexpr, DIM: tl.constexpr,
                 TAIL: tl.constexpr, BLOCK: tl.constexpr):
    """Attention of HEADS of a group's query heads to one part of the context.

    q [batch, KV_HEADS * GROUP, DIM + TAIL]; k and v by strides; TAIL numbers of a key (latent attention's
    rotated part) lie behind the DIM that are also the value. part [batch, heads, splits, DIM], in fp32.
    """
    batch, split = tl.program_id(0).to(tl.int64), tl.program_id(2)
    blocks = (GROUP + HEADS - 1) // HEADS
    kv_head, first = tl.program_id(1) // blocks, (tl.program_id(1) % blocks) * HEADS
    heads = first + tl.arange(0, HEADS)
    used = heads < GROUP
    head = kv_head * GROUP + heads
    dims = tl.arange(0, DIM)
    q_row = q + (batch * KV_HEADS * GROUP + head) * (DIM + TAIL)
    queries = tl.load(q_row[:, None] + dims[None, :], mask=used[:, None], other=0.0)
    if TAIL > 0:
        tails = DIM + tl.arange(0, TAIL)
        queries_tail = tl.load(q_row[:, None] + tails[None, :], mask=used[:, None], other=0.0)
    length = tl.cdiv(context, splits)
    begin = split * length
    end = tl.minimum(begin + length, context)
    most = tl.full((HEADS,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((HEADS,), dtype=tl.float32)
    result = tl.zeros((HEADS, DIM), dtype=tl.float32)
    base = batch * stride_batch + kv_head * (DIM + TAIL)
    for token in range(begin, end, BLOCK):
        tokens = token + tl.arange(0, BLOCK)
        inside = tokens < end
        rows = base + tokens.to(tl.int64) * stride_token
        keys = tl.load(k + rows[:, None] + dims[None, :], mask=inside[:, None], other=0.0)
        score = tl.dot(queries, tl.trans(keys))
        if TAIL > 0:
            keys_tail = tl.load(k + rows[:, None] + tails[None, :], mask=inside[:, None], other=0.0)
            score += tl.dot(queries_tail, tl.trans(keys_tail))
        score = tl.where(inside[None, :], score * scale, -float("inf"))
        next_most = tl.maximum(most, tl.max(score, axis=1))
        weight = tl.exp2(score - next_most[:, None])
        shrink = tl.exp2(most - next_most)
        total = total * shrink + tl.sum(weight, axis=1)
        if TAIL > 0:
            values = keys
        else:
            values = tl.load(v + rows[:, None] + dims[None, :], mask=inside[:, None], other=0.0)
        result = result * shrink[:, None] + tl.dot(weight.to(tl.bfloat16), values)
        most = next_most
    place = (batch * KV_HEADS * GROUP + head) * splits + split
    tl.store(part + place[:, None] * DIM + dims[None, :], result, mask=used[:, None])
    tl.store(norm + place * 2, most, mask=used)
    tl.store(norm + place * 2 + 1, total, mask=used)


@triton.jit(do_not_specialize=["splits"])
def join_kernel(part, norm, y, splits, DIM: tl.constexpr):
    """Sums a head's parts."""
    head = tl.program_id(0).to(tl.int64)
    dims = tl.arange(0, DIM)
    most = tl.load(norm + head * splits * 2)
    total = tl.load(norm + head * splits * 2 + 1)
    result = tl.load(part + head * splits * DIM + dims)
    for split in range(1, splits):
        at = head * splits + split
        here = tl.load(norm + at * 2)
        next_most = tl.maximum(most, here)
        shrink, grow = tl.exp2(most - next_most), tl.exp2(here - next_most)
        result = result * shrink + tl.load(part + at * DIM + dims) * grow
        total = total * shrink + tl.load(norm + at * 2 + 1) * grow
        most = next_most
    tl.store(y + head * DIM + dims, (result / total).to(tl.bfloat16))


class Split:
    """The kernel above for one shape. cache: keys (and, without a tail, values) [batch, context, kv, dim]."""

    def __init__(self, batch, context, kv_heads, group, dim, tail, splits, heads, block, warps, stages):
        self.batch, self.context, self.grid_heads = batch, context, kv_heads * -(-group // heads)
        self.warps, self.stages, self.num_heads = warps, stages, kv_heads * group
        self.shape = {"KV_HEADS": kv_heads, "GROUP": group, "HEADS": heads, "DIM": dim, "TAIL": tail,
                      "BLOCK": block}
        self.splits = splits
        self.stride = kv_heads * (dim + tail)
        self.scale = (dim + tail) ** -0.5 * 1.4426950408889634
        self.part = torch.empty(batch * self.num_heads * splits * dim, device="cuda")
        self.norm = torch.empty(batch * self.num_heads * splits * 2, device="cuda")
        self.y = torch.empty(batch, self.num_heads, dim, dtype=BF16, device="cuda")

    def __call__(self, q, k, v):
        split_kernel[(self.batch, self.grid_heads, self.splits)](
            q, k, v, self.part, self.norm, self.context, self.scale, self.stride,
            self.context * self.stride, self.splits, num_warps=self.warps, num_stages=self.stages,
            **self.shape)
        join_kernel[(self.batch * self.num_heads,)](self.part, self.norm, self.y, self.splits,
                                                    DIM=self.shape["DIM"], num_warps=4)
        return self.y


def splits_of(blocks, context):
    """Parts of a context: about two blocks an SM, none shorter than 256 tokens; a power of two."""
    splits = 1
    while splits < 64 and blocks * splits < 200 and context // (2 * splits) >= 256:
        splits *= 2
    return splits


def attention(out):
    for heads, kv_heads, dim in ((32, 8, 128), (64, 8, 128), (8, 1, 128), (32, 32, 128)):
        group = heads // kv_heads
        for context in (128, 512, 2048, 8192, 32768, 131072):
            for batch in (1, 4, 16, 64, 256):
                num_bytes = 4 * batch * context * kv_heads * dim
                if num_bytes > MOST_CACHE_BYTES:
                    continue
                copies = min(16, copies_of(num_bytes))
                k, v = (normal(copies, batch, context, kv_heads, dim) for _ in range(2))
                q = normal(batch, heads, dim)
                row = {"kind": "decode_attention", "batch_size": batch, "context": context,
                       "num_heads": heads, "num_key_value_heads": kv_heads, "head_dim": dim,
                       "bytes": num_bytes}
                splits = splits_of(batch * kv_heads, context)
                split = Split(batch, context, kv_heads, group, dim, 0, splits, max(16, group), 64, 4, 3)
                if timed(out, {**row, "by": "split", "splits": splits},
                         lambda i: split(q, k[i], v[i]), copies) and context <= 2048 and batch <= 4:
                    check(out, row, split(q, k[0], v[0]), q, k[0], v[0])
                for name, backend in (("flash", SDPBackend.FLASH_ATTENTION),
                                      ("cudnn", SDPBackend.CUDNN_ATTENTION)):
                    if name == "cudnn" and (batch not in (1, 16, 256) or (heads, kv_heads) != (32, 8)):
                        continue  # planning takes it half a second a shape
                    with sdpa_kernel(backend):
                        timed(out, {**row, "by": name}, lambda i: F.scaled_dot_product_attention(
                            q[:, :, None], k[i].transpose(1, 2), v[i].transpose(1, 2),
                            enable_gqa=group > 1), copies)
                del k, v
                torch.cuda.empty_cache()


def check(out, row, y, q, k, v):
    """The kernel beside plain arithmetic: the error's norm over the result's."""
    group = q.shape[1] // k.shape[2]
    keys, values = (t.float().repeat_interleave(group, dim=2) for t in (k, v))
    score = torch.einsum("bhd,bthd->bht", q.float(), keys) * q.shape[-1] ** -0.5
    right = torch.einsum("bht,bthd->bhd", score.softmax(-1), values)
    error = ((y.float() - right).norm() / right.norm()).item()
    emit(out, **{**row, "kind": "decode_check"}, error=error, wrong=not error < 0.01)


def latent(out):
    dim, tail = 512, 64
    for heads in (128, 16):
        for context in (128, 512, 2048, 8192, 32768, 131072):
            for batch in (1, 4, 16, 64, 256):
                num_bytes = 2 * batch * context * (dim + tail)
                if num_bytes > MOST_CACHE_BYTES:
                    continue
                copies = min(16, copies_of(num_bytes))
                cache = normal(copies, batch, context, 1, dim + tail)
                q = normal(batch, heads, dim + tail)
                for block_heads, warps in ((16, 4), (64, 8)):
                    if block_heads > heads:
                        continue
                    splits = splits_of(batch * heads // block_heads, context)
                    row = {"kind": "decode_latent", "by": "split", "batch_size": batch, "context": context,
                           "num_heads": heads, "bytes": num_bytes, "splits": splits,
                           "heads_per_block": block_heads}
                    split = Split(batch, context, 1, heads, dim, tail, splits, block_heads, 32, warps, 2)
                    if timed(out, row, lambda i: split(q, cache[i], cache[i]), copies) and \
                            context <= 2048 and batch <= 4:
                        y = split(q, cache[0], cache[0])
                        keys = cache[0, :, :, 0].float()
                        score = torch.einsum("bhd,btd->bht", q.float(), keys) * (dim + tail) ** -0.5
                        right = torch.einsum("bht,btd->bhd", score.softmax(-1), keys[:, :, :dim])
                        error = ((y.float() - right).norm() / right.norm()).item()
                        emit(out, **{**row, "kind": "decode_check"}, error=error, wrong=not error < 0.01)
                del cache
                torch.cuda.empty_cache()


def products(out):
    """n and k of Llama 3.1 8B whole, 70B split in 8, DeepSeek-V3's and Qwen3-30B-A3B's attention."""
    one = torch.ones((), device="cuda")
    for n, k in ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (128256, 4096), (1280, 8192),
                 (8192, 1024), (7168, 8192), (8192, 3584), (2112, 7168), (24576, 1536), (7168, 16384),
                 (5120, 2048), (2048, 4096)):
        copies = min(32, copies_of(n * k))
        w = [normal(n, k) for _ in range(copies)]
        w8 = [t.to(FP8) for t in w]
        for m in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
            x = normal(m, k)
            x8 = x.to(FP8)
            row = {"kind": "decode_product", "m": m, "n": n, "k": k}
            timed(out, {**row, "dtype": "bfloat16", "bytes": 2 * (n * k + m * (n + k))},
                  lambda i: F.linear(x, w[i]), copies)
            timed(out, {**row, "dtype": "fp8", "bytes": n * k + m * (2 * n + k)},
                  lambda i: torch._scaled_mm(x8, w8[i].t(), scale_a=one, scale_b=one, out_dtype=BF16,
                                             use_fast_accum=True), copies)
        del w, w8
        torch.cuda.empty_cache()


@triton.jit
def add_norm_kernel(x, residual, weight, y, columns, epsilon, BLOCK: tl.constexpr):
    """residual += x; y = RMSNorm(residual)."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(residual + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual + row * columns + at, value.to(tl.bfloat16), mask=inside)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / columns + epsilon)
    y_value = value * scale * tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * columns + at, y_value.to(tl.bfloat16), mask=inside)


def rows(out):
    for columns in (2048, 4096, 8192):
        weight = normal(columns)
        for m in (1, 16, 64, 256, 1024, 4096):
            x, residual, y = normal(m, columns), normal(m, columns), normal(m, columns)
            wide = normal(m, 2 * columns)
            logits = torch.randn(m, 16 * columns, device="cuda")
            row = {"kind": "decode_rows", "rows": m, "columns": columns}
            timed(out, {**row, "op": "add_rmsnorm", "bytes": 8 * m * columns},
                  lambda i: add_norm_kernel[(m,)](x, residual, weight, y, columns, 1e-5,
                                                  BLOCK=triton.next_power_of_2(columns), num_warps=8))
            timed(out, {**row, "op": "rmsnorm_pytorch", "bytes": 4 * m * columns},
                  lambda i: F.rms_norm(x, (columns,), weight, 1e-5))
            timed(out, {**row, "op": "add_pytorch", "bytes": 6 * m * columns},
                  lambda i: torch.add(x, residual, out=y))
            timed(out, {**row, "op": "silu_mul_pytorch", "bytes": 10 * m * columns},
                  lambda i: F.silu(wide[:, :columns]) * wide[:, columns:])
            timed(out, {**row, "op": "argmax_fp32", "bytes": 64 * m * columns},
                  lambda i: logits.argmax(dim=1))
            timed(out, {**row, "op": "softmax_fp32", "bytes": 128 * m * columns},
                  lambda i: torch.softmax(logits, dim=1))


def main():
    parts = sys.argv[2:] or ["products", "rows", "attention", "latent"]
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
