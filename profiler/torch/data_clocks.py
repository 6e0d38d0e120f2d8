"""What the bits of the operands do to clocks and steps: python3 data_clocks.py OUT.jsonl [SECONDS_PART [PART..]]

Parts: made_up run zeros.

Small decoders are trained for seconds each on this project's own text, on random tokens and on tokens that
count upwards (both are what recipes call mock data). Rows:
  train    every half second: step, loss, SM clock, power
  step     whole steps, without an update, of one model's weights on another's data
  operands what the captured tensors hold: share of zeros, spread, of their bits
  product  one product for over a second whose operands are those tensors, the same shape of normal numbers,
           zeros, or other made-up numbers: mean rate, SM clock and power of the last part

Shapes: m, n, k of the product itself (2mnk flops); `forward` y = x W^T, `backward_input` dx = dy W,
`backward_weight` dW = dy^T x. SECONDS_PART scales all times (default 1).
"""

import glob
import os
import statistics
import sys
import time
import traceback

import numpy
import torch
import torch.nn.functional as F
from torch import nn

from measure import Board, device_row, emit

BF16 = torch.bfloat16
HIDDEN, LAYERS, HEADS, SEQ, BATCH, VOCAB = 2048, 8, 16, 1024, 16, 16384
FFN = {"swiglu": 5632, "relu2": 8192}
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


# --- Data


def text_tokens():
    """The project's pages and sources; a token is a pair of bytes, the commonest pairs have ids."""
    names = sorted(sum((glob.glob(os.path.join(ROOT, "**", "*." + end), recursive=True)
                        for end in ("md", "c", "h", "py")), []))
    names = [name for name in names if "/build" not in name and "/." not in os.path.relpath(name, ROOT)]
    data = b"".join(open(name, "rb").read() for name in names)
    pairs = numpy.frombuffer(data[:len(data) // 2 * 2], dtype="<u2").astype(numpy.int64)
    values, ids, counts = numpy.unique(pairs, return_inverse=True, return_counts=True)
    rank = numpy.empty(len(values), dtype=numpy.int64)
    rank[numpy.argsort(-counts, kind="stable")] = numpy.arange(len(values))
    return torch.from_numpy(numpy.minimum(rank[ids.reshape(-1)], VOCAB - 1)).to("cuda")


class Data:
    """Batches of tokens [BATCH, SEQ + 1]."""

    def __init__(self, kind):
        self.kind = kind
        self.tokens = text_tokens() if kind == "text" else None

    def batch(self, step):
        if self.kind == "random":
            return torch.randint(VOCAB, (BATCH, SEQ + 1), device="cuda")
        if self.kind == "counting":  # documents of other lengths that count 1, 2, 3, ...
            place = torch.arange(BATCH * (SEQ + 1), device="cuda").view(BATCH, SEQ + 1)
            return (place % (517 + step % 64)) + 1
        size = BATCH * SEQ
        begin = (step * size) % (len(self.tokens) - size - 1)
        at = torch.arange(BATCH, device="cuda")[:, None] * SEQ + torch.arange(SEQ + 1, device="cuda")
        return self.tokens[begin + at]


# --- Model


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Block(nn.Module):
    """RMSNorm, attention with rope, and an MLP: gated by SiLU, or of squared ReLU."""

    def __init__(self, activation):
        super().__init__()
        self.gated = activation == "swiglu"
        ffn = FFN[activation]
        self.norms = nn.ParameterList([nn.Parameter(torch.ones(HIDDEN, device="cuda")) for _ in range(2)])
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN, bias=False, device="cuda")
        self.out = nn.Linear(HIDDEN, HIDDEN, bias=False, device="cuda")
        self.up = nn.Linear(HIDDEN, 2 * ffn if self.gated else ffn, bias=False, device="cuda")
        self.down = nn.Linear(ffn, HIDDEN, bias=False, device="cuda")

    def forward(self, x, cos, sin):
        batch, seq, _ = x.shape
        h = F.rms_norm(x, (HIDDEN,), self.norms[0].to(x.dtype), 1e-5)
        q, k, v = self.qkv(h).view(batch, seq, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, seq, HIDDEN))
        h = self.up(F.rms_norm(x, (HIDDEN,), self.norms[1].to(x.dtype), 1e-5))
        if self.gated:
            gate, up = h.chunk(2, dim=-1)
            h = F.silu(gate) * up
        else:
            h = F.relu(h).square()
        return x + self.down(h)


class Decoder(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, HIDDEN, device="cuda")
        self.blocks = nn.ModuleList(Block(activation) for _ in range(LAYERS))
        self.norm = nn.Parameter(torch.ones(HIDDEN, device="cuda"))
        self.head = nn.Linear(HIDDEN, VOCAB, bias=False, device="cuda")
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                scale = (2 * LAYERS) ** -0.5 if name.endswith(("out.weight", "down.weight")) else 1.0
                nn.init.normal_(parameter, std=0.02 * scale)
        dim = HIDDEN // HEADS
        frequency = 1e4 ** (-torch.arange(0, dim, 2, device="cuda").float() / dim)
        angle = torch.outer(torch.arange(SEQ, device="cuda").float(), frequency)
        self.cos, self.sin = angle.cos().to(BF16), angle.sin().to(BF16)

    def loss(self, tokens):
        with torch.autocast("cuda", dtype=BF16):
            x = self.embedding(tokens[:, :-1]).to(BF16)
            for block in self.blocks:
                x = block(x, self.cos, self.sin)
            logits = self.head(F.rms_norm(x, (HIDDEN,), self.norm.to(BF16), 1e-5))
        return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


# --- Training


def train(out, model, data, name, seconds, rate=4e-4):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.1,
                                  fused=True)
    step, stop = 0, time.monotonic() + seconds
    while time.monotonic() < stop:
        begin, first = time.monotonic(), step
        with Board() as board:
            while time.monotonic() < begin + 0.5:
                for group in optimizer.param_groups:
                    group["lr"] = rate * min(1.0, (step + 1) / 20)
                optimizer.zero_grad()
                loss = model.loss(data.batch(step))
                loss.backward()
                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
                optimizer.step()
                step += 1
                loss.item()
        emit(out, kind="train", run=name, step=step, step_s=(time.monotonic() - begin) / (step - first),
             loss=loss.item(), gradient_norm=norm.item(), **board.row())
    optimizer.zero_grad()
    del optimizer
    torch.cuda.empty_cache()


def steady_step(out, model, data, weights, seconds):
    """Forward and backward alone, over and over, without an update."""
    times = []
    stop = time.monotonic() + seconds
    with Board() as board:
        step = 0
        while time.monotonic() < stop:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(2):
                model.loss(data.batch(step)).backward()
                for parameter in model.parameters():
                    parameter.grad = None
                step += 1
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 0.5e-3)
    half = times[len(times) // 2:]
    emit(out, kind="step", weights=weights, data=data.kind, step_s=statistics.median(half), **board.row())


# --- Captured operands


def capture(model, data, block):
    """Inputs, weights and gradients of a block's two products of the MLP, [tokens, features] in bf16."""
    kept, hooks = {}, []
    for name in ("up", "down"):
        linear = getattr(model.blocks[block], name)

        def forward(_, inputs, output, name=name, linear=linear):
            kept[name, "x"] = inputs[0].detach().flatten(0, 1).to(BF16).clone()
            kept[name, "w"] = linear.weight.detach().to(BF16).clone()
            output.register_hook(lambda grad: kept.__setitem__(
                (name, "dy"), grad.detach().flatten(0, 1).to(BF16).clone()))
        hooks.append(linear.register_forward_hook(forward))
    model.loss(data.batch(3)).backward()
    for hook in hooks:
        hook.remove()
    for parameter in model.parameters():
        parameter.grad = None
    return kept


def describe(tensor):
    """Share of zeros, kurtosis, and how often neighbours along a row differ in a bit of 16."""
    x = tensor[:2048].float()
    bits = tensor[:2048].contiguous().view(torch.int16).to(torch.int32) & 0xffff
    toggled = bits[:, 1:] ^ bits[:, :-1]
    down = bits[1:] ^ bits[:-1]

    def ones(v):
        return sum(((v >> i) & 1).float().mean().item() for i in range(16))
    centred = x - x.mean()
    variance = centred.square().mean()
    return {"zero_frac": (tensor == 0).float().mean().item(), "std": variance.sqrt().item(),
            "kurtosis": (centred.square().square().mean() / variance.square().clamp_min(1e-30)).item(),
            "set_bits": ones(bits), "toggles_along_row": ones(toggled), "toggles_along_column": ones(down)}


def like(tensor, how):
    if how == "zeros":
        return torch.zeros_like(tensor)
    return torch.randn_like(tensor)


def operands_of(kept, linear, layout):
    """a [m, k] and b [n, k], as views, of one of the three products of a linear layer."""
    x, w, dy = (kept[linear, key] for key in ("x", "w", "dy"))
    return {"forward": (x, w), "backward_input": (dy, w.t()), "backward_weight": (dy.t(), x.t())}[layout]


# --- Sustained products


def sustain(out, call, flops, seconds, **row):
    """Repeats call; the state of the board is of the second half."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    begin.record()
    for _ in range(4):
        call()
    end.record()
    end.synchronize()
    first = begin.elapsed_time(end) * 1e-3 / 4
    num_calls = max(4, int(0.05 / first))
    times = []

    def groups(duration):
        stop = time.monotonic() + duration
        while time.monotonic() < stop:
            begin.record()
            for _ in range(num_calls):
                call()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e-3 / num_calls)
    groups(seconds * 0.5)
    times.clear()
    with Board(0.01) as board:
        groups(seconds * 0.6)
    second_s = statistics.median(times)
    emit(out, kind="product", **row, first_s=first, seconds=second_s,
         flops_per_s=flops / second_s, **board.row())


def product(out, a, b, seconds, **row):
    """a [m, k] by b [n, k]: c [m, n], in bf16."""
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty(m, n, dtype=BF16, device="cuda")
    sustain(out, lambda: torch.mm(a, b.t(), out=c), 2.0 * m * n * k, seconds, dtype="bfloat16", m=m, n=n,
            k=k, **row)


def product_fp8(out, a, b, seconds, **row):
    """The same in fp8, each operand scaled so that its largest number is the format's."""
    (m, k), n = a.shape, b.shape[0]
    one = torch.ones((), device="cuda")

    def quantized(t):
        most = t.abs().max().float().clamp_min(1e-12)
        return (t.float() * (448.0 / most)).to(torch.float8_e4m3fn).contiguous()
    qa, qb = quantized(a), quantized(b)
    sustain(out, lambda: torch._scaled_mm(qa, qb.t(), scale_a=one, scale_b=one, out_dtype=BF16,
                                          use_fast_accum=True),
            2.0 * m * n * k, seconds, dtype="fp8", m=m, n=n, k=k, **row)


def made_up(out, seconds):
    """One large product of numbers of many kinds, both operands alike."""
    size = 8192

    def normal():
        return torch.randn(size, size, device="cuda")

    def coarse(x, bits):
        """Keeps so many bits of bfloat16's mantissa of 7."""
        return (x.to(BF16).view(torch.int16) & ~((1 << (7 - bits)) - 1)).view(BF16)
    kinds = {
        "normal": normal,
        "normal, small": lambda: normal() * 0.02,
        "uniform 0 to 1": lambda: torch.rand(size, size, device="cuda"),
        "ones": lambda: torch.ones(size, size, device="cuda"),
        "signs": lambda: normal().sign(),
        "absolute": lambda: normal().abs(),
        "3 mantissa bits": lambda: coarse(normal(), 3),
        "no mantissa": lambda: coarse(normal(), 0),
        "heavy tails": lambda: normal() * (1.5 * normal()).exp(),
        "half zeros": lambda: normal() * (torch.rand(size, size, device="cuda") > 0.5),
        "nine tenths zeros": lambda: normal() * (torch.rand(size, size, device="cuda") > 0.9),
        "half of the rows zero": lambda: normal() * (torch.arange(size, device="cuda")[:, None] % 2),
        "sorted rows": lambda: normal().sort(dim=1).values,
        "equal rows": lambda: normal()[:1].expand(size, size).contiguous(),
        "rank 64": lambda: torch.randn(size, 64, device="cuda") @ torch.randn(64, size, device="cuda"),
        "zeros": lambda: torch.zeros(size, size, device="cuda"),
    }
    for name, make in kinds.items():
        a, b = make().to(BF16), make().to(BF16)
        row = {"operands": name, "linear": "square", "layout": "forward"}
        product(out, a, b, seconds, **row)
        if name in ("normal", "zeros", "half zeros", "heavy tails"):
            product_fp8(out, a, b, seconds, **row)
    a = torch.randn(size, size, device="cuda").to(BF16)
    product(out, a, torch.zeros_like(a), seconds, operands="normal by zeros", linear="square",
            layout="forward")


def zeros(out, seconds):
    """Normal numbers of which so many are zeros, in one operand or in both."""
    m, n, k = 16384, 2048, 8192
    x, w = (torch.randn(rows, k, device="cuda").to(BF16) for rows in (m, n))

    def thinned(t, part):
        return t * (torch.rand(t.shape, device="cuda") >= part)
    for part in (0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0):
        for which, a, b in (("x", thinned(x, part), w), ("both", thinned(x, part), thinned(w, part))):
            row = {"operands": "zeros", "zeros_of": which, "zero_frac": part, "linear": "down",
                   "layout": "forward"}
            product(out, a, b, seconds, **row)
            if which == "x":
                product_fp8(out, a, b, seconds, **row)
    product(out, x, thinned(w, 0.75), seconds, operands="zeros", zeros_of="w", zero_frac=0.75,
            linear="down", layout="forward")
    product(out, F.relu(x), w, seconds, operands="relu of normal", linear="down", layout="forward")


LAYOUTS = ("forward", "backward_input", "backward_weight")


def captured(out, kept, name, seconds, layouts=LAYOUTS):
    for linear in ("up", "down"):
        for key in ("x", "w", "dy"):
            emit(out, kind="operands", run=name, linear=linear, tensor=key, **describe(kept[linear, key]))
        for layout in layouts:
            a, b = operands_of(kept, linear, layout)
            product(out, a, b, seconds, operands=name, linear=linear, layout=layout)
            if layout == "forward":
                product_fp8(out, a, b, seconds, operands=name, linear=linear, layout=layout)


def run(out, part):
    second = 1.0 * part
    text, random, counting = Data("text"), Data("random"), Data("counting")
    emit(out, kind="text", num_tokens=len(text.tokens), num_distinct=len(text.tokens.unique()))
    kept, models = {}, {}

    def made(name, activation, data, seconds):
        torch.manual_seed(1)
        model = Decoder(activation)
        if seconds:
            train(out, model, data, name, seconds)
        kept[name] = capture(model, data, LAYERS // 2)
        captured(out, kept[name], name, second)
        return model
    steps = [("init", made("init", "swiglu", random, 0))]
    steps.append(("text", made("text", "swiglu", text, 18 * part)))
    for how in ("normal", "zeros"):
        alike = {key: like(tensor, how) for key, tensor in kept["text"].items()}
        captured(out, alike, how, second, ("forward",) if how == "zeros" else LAYOUTS)
    # Which of the two operands does it.
    for name, first, other in [("text x, first w", "text", "init"), ("first x, text w", "init", "text")]:
        for linear in ("up", "down"):
            product(out, kept[first][linear, "x"], kept[other][linear, "w"], second, operands=name,
                    linear=linear, layout="forward")
    x = kept["text"]["up", "x"]
    product(out, x[:, torch.randperm(HIDDEN, device="cuda")], kept["text"]["up", "w"], second,
            operands="text x, columns shuffled", linear="up", layout="forward")
    product(out, x[torch.randperm(len(x), device="cuda")], kept["text"]["up", "w"], second,
            operands="text x, rows shuffled", linear="up", layout="forward")
    for weights, model in steps:
        for data in (text, random, counting):
            steady_step(out, model, data, weights, 2.0 * part)
    del steps, kept["init"]
    torch.cuda.empty_cache()
    made("relu2 text", "relu2", text, 12 * part)
    model = made("random", "swiglu", random, 8 * part)
    steady_step(out, model, random, "random", 2.0 * part)
    model = made("counting", "swiglu", counting, 8 * part)
    steady_step(out, model, counting, "counting", 2.0 * part)
    del model
    torch.cuda.empty_cache()


def main():
    part = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    works = {"made_up": lambda: made_up(out, 1.0 * part), "run": lambda: run(out, part),
             "zeros": lambda: zeros(out, 0.7 * part)}
    torch.manual_seed(1)
    with open(sys.argv[1], "a", encoding="ascii") as out:
        emit(out, **device_row())
        for name in sys.argv[3:] or works:
            begin = time.monotonic()
            try:
                works[name]()
            except Exception:  # the other parts go on
                traceback.print_exc()
            print(name, round(time.monotonic() - begin, 1), "s", flush=True)


main()
