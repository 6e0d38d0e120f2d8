"""Times whole steps of serving on one GPU, and their kernels one by one: python3 serve_steps.py OUT.jsonl [MODEL..]

A step is what an inference engine runs in one CUDA graph, without its scheduler: norms with the addition before them,
products of queries, keys and values in one, rotation and the write to the cache, attention of one token a sequence
(decode.py's kernel) and of a chunk of a prompt (FlashAttention 2), the feed-forward or the experts (experts.py's
kernels and torch._grouped_mm), the last norm, the logits and the greedy choice. Rows:
  serve_step  seconds: median of graph replays; kernels_s and kernels: the sum and the parts of one step
              without a graph, as PyTorch's profiler has them; host_s: the host's time for it
`decodes` sequences hold `context` tokens each; `chunk` tokens of one prompt follow `chunk_context` before them.
"""

import statistics
import sys
import time
import traceback

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

from decode import Split, add_norm_kernel, splits_of
from experts import permute_rows, swiglu_rows, unpermute_rows
from measure import Board, device_row, emit

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
# hidden, layers, heads, kv heads, head dim, inter, vocab, experts, top k, format of the weights
MODELS = {
    "llama-3.1-8b": (4096, 32, 32, 8, 128, 14336, 128256, 0, 0, "bf16"),
    "llama-3.1-8b-fp8": (4096, 32, 32, 8, 128, 14336, 128256, 0, 0, "fp8"),
    "llama-3.1-70b-tp8": (8192, 80, 8, 1, 128, 3584, 16032, 0, 0, "bf16"),
    "qwen3-30b-a3b-16-layers": (2048, 16, 32, 4, 128, 768, 151936, 128, 8, "bf16"),
}
DECODES = [(b, c) for c in (1024, 8192) for b in (1, 4, 16, 64, 128, 256)] + [(16, 65536), (1, 65536)]
CHUNKS = [(0, 0, n, c) for n, c in ((512, 0), (2048, 0), (8192, 0), (2048, 6144), (512, 32256))]
MIXED = [(d, 1024, n, c) for d, n, c in ((64, 512, 0), (64, 2048, 0), (192, 512, 1536), (192, 1856, 0))]
MOST_CACHE_BYTES = 30e9


@triton.jit
def rotate_write(qkv, angles, at, q, k, v, HEADS: tl.constexpr, KV: tl.constexpr, DIM: tl.constexpr):
    """One token's queries and keys, rotated, and its values; keys and values go to row at[token] of the cache."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    half = tl.arange(0, DIM // 2)
    source = qkv + (token * (HEADS + 2 * KV) + head) * DIM
    a, b = tl.load(source + half).to(tl.float32), tl.load(source + DIM // 2 + half).to(tl.float32)
    if head < HEADS + KV:
        cosine, sine = tl.load(angles + token * DIM + half), tl.load(angles + token * DIM + DIM // 2 + half)
        a, b = a * cosine - b * sine, b * cosine + a * sine
    row = tl.load(at + token).to(tl.int64)
    if head < HEADS:
        target = q + (token * HEADS + head) * DIM
    else:
        kept = (head - HEADS) % KV
        target = (k if head < HEADS + KV else v) + (row * KV + kept) * DIM
    tl.store(target + half, a.to(tl.bfloat16))
    tl.store(target + DIM // 2 + half, b.to(tl.bfloat16))


class Model:
    def __init__(self, name):
        (self.hidden, self.layers, self.heads, self.kv, self.dim, self.inter, self.vocab, self.experts, self.top_k,
         self.format) = MODELS[name]
        weight = self.weight
        self.norm = torch.ones(self.hidden, dtype=BF16, device="cuda")
        self.one = torch.ones((), device="cuda")
        self.embedding, self.head = weight(self.vocab, self.hidden, kept=True), weight(self.vocab, self.hidden, kept=True)
        self.blocks = []
        for _ in range(self.layers):
            block = {"qkv": weight((self.heads + 2 * self.kv) * self.dim, self.hidden),
                     "out": weight(self.hidden, self.heads * self.dim)}
            if self.experts:
                block["router"] = weight(self.experts, self.hidden, kept=True)
                block["up"] = weight(self.experts, 2 * self.inter, self.hidden)
                block["down"] = weight(self.experts, self.hidden, self.inter)
            else:
                block["up"], block["down"] = weight(2 * self.inter, self.hidden), weight(self.hidden, self.inter)
            self.blocks.append(block)

    def weight(self, *shape, kept=False):
        made = torch.empty(*shape, dtype=BF16, device="cuda").normal_(0, shape[-1] ** -0.5)
        return made.to(FP8) if self.format == "fp8" and not kept else made

    def linear(self, x, w):
        if w.dtype != FP8:
            return F.linear(x, w)
        return torch._scaled_mm(x.to(FP8), w.t(), scale_a=self.one, scale_b=self.one, out_dtype=BF16,
                                use_fast_accum=True)

    def weight_bytes(self):
        return sum(w.nbytes for block in self.blocks for w in block.values()) + self.head.nbytes


class Step:
    """One step of a batch: `decodes` sequences of `context` tokens, and `chunk` tokens behind `chunk_context`."""

    def __init__(self, model, decodes, context, chunk, chunk_context):
        self.model, self.decodes, self.context = model, decodes, context
        self.chunk, self.chunk_context = chunk, chunk_context
        self.tokens = decodes + chunk
        m, rows = model, decodes * context + chunk_context + chunk
        cache = (rows, m.kv, m.dim)
        self.keys = [torch.empty(*cache, dtype=BF16, device="cuda").normal_() for _ in range(m.layers)]
        self.values = [torch.empty(*cache, dtype=BF16, device="cuda").normal_() for _ in range(m.layers)]
        first = decodes * context
        at = [(i + 1) * context - 1 for i in range(decodes)] + list(range(first + chunk_context, rows))
        self.at = torch.tensor(at, device="cuda")
        self.angles = torch.randn(self.tokens, m.dim, device="cuda").cos()
        self.ids = torch.randint(m.vocab, (self.tokens,), device="cuda")
        self.q = torch.empty(self.tokens, m.heads, m.dim, dtype=BF16, device="cuda")
        self.normed = torch.empty(self.tokens, m.hidden, dtype=BF16, device="cuda")
        # Logits are of the sequences' last tokens.
        self.last = torch.tensor(list(range(decodes)) + ([self.tokens - 1] if chunk else []), device="cuda")
        if decodes:
            splits = splits_of(decodes * m.kv, context)
            group = m.heads // m.kv
            self.split = Split(decodes, context, m.kv, group, m.dim, 0, splits, max(16, group), 64, 4, 3)
        self.ones = torch.ones(self.tokens * max(1, m.top_k), device="cuda")
        self.expert_ids = torch.arange(max(1, m.experts), device="cuda")

    def add_norm(self, x, residual):
        m = self.model
        add_norm_kernel[(x.shape[0],)](x, residual, m.norm, self.normed, m.hidden, 1e-5,
                                       BLOCK=triton.next_power_of_2(m.hidden), num_warps=8)
        return self.normed

    def attention(self, layer):
        m, n, parts = self.model, self.decodes, []
        keys, values = self.keys[layer], self.values[layer]
        if n:
            parts.append(self.split(self.q[:n], keys, values).view(n, -1))
        if self.chunk:
            first = n * self.context
            q = self.q[n:].transpose(0, 1)[None]
            k, v = (t[first:].transpose(0, 1)[None] for t in (keys, values))
            if self.chunk_context:
                mask = causal_lower_right(self.chunk, self.chunk + self.chunk_context)
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
            else:
                with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                    y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            parts.append(y[0].transpose(0, 1).reshape(self.chunk, -1))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def swiglu(self, h, width, scale):
        y = torch.empty(h.shape[0], width, dtype=BF16, device="cuda")
        swiglu_rows[(h.shape[0],)](h, scale, y, width, BLOCK=1024 if width % 1024 == 0 else 256, num_warps=4)
        return y

    def feed_forward(self, x, block):
        m = self.model
        if not m.experts:
            return m.linear(self.swiglu(m.linear(x, block["up"]), m.inter, self.ones), block["down"])
        chosen = F.linear(x, block["router"]).float().topk(m.top_k, dim=1)
        probability = chosen.values.softmax(1)
        flat, order = torch.sort(chosen.indices.flatten().to(torch.int32), stable=True)
        ends = torch.searchsorted(flat, self.expert_ids.to(torch.int32), right=True).to(torch.int32)
        rows = x.shape[0] * m.top_k
        place = torch.empty(rows, dtype=torch.int32, device="cuda")
        place[order] = torch.arange(rows, dtype=torch.int32, device="cuda")
        y = torch.empty(rows, m.hidden, dtype=BF16, device="cuda")
        permute_rows[(rows,)](x, (order // m.top_k).to(torch.int32), y, m.hidden, BLOCK=1024, num_warps=4)
        h = torch._grouped_mm(y, block["up"].transpose(1, 2), offs=ends)
        y = torch._grouped_mm(self.swiglu(h, m.inter, self.ones), block["down"].transpose(1, 2), offs=ends)
        joined = torch.empty_like(x)
        unpermute_rows[(x.shape[0],)](y, place, probability, joined, m.hidden, TOP_K=m.top_k, BLOCK=1024, num_warps=4)
        return joined

    def __call__(self):
        m = self.model
        residual = F.embedding(self.ids, m.embedding)
        x = torch.zeros_like(residual)
        for layer, block in enumerate(m.blocks):
            qkv = m.linear(self.add_norm(x, residual), block["qkv"])
            rotate_write[(self.tokens, m.heads + 2 * m.kv)](qkv, self.angles, self.at, self.q, self.keys[layer],
                                                            self.values[layer], HEADS=m.heads, KV=m.kv, DIM=m.dim,
                                                            num_warps=1)
            x = m.linear(self.attention(layer), block["out"])
            x = self.feed_forward(self.add_norm(x, residual), block)
        rows = self.add_norm(x, residual)[self.last]
        return F.linear(rows, m.head).argmax(1)


def kernels_of(step):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        step()
        torch.cuda.synchronize()
    return sorted(((event.key[:80], event.count, event.self_device_time_total * 1e-6)
                   for event in profiler.key_averages() if event.self_device_time_total > 0),
                  key=lambda kernel: -kernel[2])


def measure(step, repeats):
    for _ in range(2):
        step()
    torch.cuda.synchronize()
    begin_s = time.monotonic()
    step()
    host_s = time.monotonic() - begin_s
    torch.cuda.synchronize()
    kernels = kernels_of(step)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    graph.replay()
    torch.cuda.synchronize()
    times = []
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    with Board(0.01) as board:
        marks[0].record()
        for i in range(repeats):
            graph.replay()
            marks[i + 1].record()
        torch.cuda.synchronize()
    times = sorted(a.elapsed_time(b) * 1e-3 for a, b in zip(marks, marks[1:]))
    return {"seconds": statistics.median(times), "least_seconds": times[0], "host_s": host_s,
            "kernels_s": sum(kernel[2] for kernel in kernels), "num_kernels": sum(kernel[1] for kernel in kernels),
            "kernels": kernels[:24], **board.row()}


def run_model(out, name):
    model = Model(name)
    for decodes, context, chunk, chunk_context in [(b, c, 0, 0) for b, c in DECODES] + CHUNKS + MIXED:
        kv_bytes = 4 * model.layers * model.kv * model.dim * (decodes * context + chunk_context + chunk)
        if kv_bytes > MOST_CACHE_BYTES:
            continue
        row = {"kind": "serve_step", "model": name, "decodes": decodes, "context": context, "chunk": chunk,
               "chunk_context": chunk_context, "kv_bytes": kv_bytes, "weight_bytes": model.weight_bytes(),
               "format": model.format}
        step = None
        try:
            with torch.no_grad():
                step = Step(model, decodes, context, chunk, chunk_context)
                row.update(measure(step, 20 if chunk < 4096 else 8))
            print(name, decodes, context, chunk, chunk_context, f"{row['seconds'] * 1e3:.3f} ms, kernels "
                  f"{row['kernels_s'] * 1e3:.3f} ms, host {row['host_s'] * 1e3:.2f} ms", flush=True)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"[:300]
            traceback.print_exc(limit=3)
        emit(out, **row)
        torch.cuda.synchronize()
        del step
        torch.cuda.empty_cache()


def main():
    torch.manual_seed(1)
    with open(sys.argv[1], "a", encoding="ascii") as out:
        emit(out, **device_row())
        for name in sys.argv[2:] or MODELS:
            begin = time.monotonic()
            try:
                run_model(out, name)
            except Exception:  # the other models go on
                traceback.print_exc()
            torch.cuda.empty_cache()
            print(name, round(time.monotonic() - begin, 1), "s", flush=True)


if __name__ == "__main__":
    main()
