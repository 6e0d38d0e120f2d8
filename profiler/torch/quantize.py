"""Times the quantization of bf16 to fp8 (E4M3) around products: python3 quantize.py OUT.jsonl

Kernels of this file in Triton, and per tensor what PyTorch compiles. A row: m rows of k values; `bytes` are
those read and written, once each. Every kernel is checked against plain PyTorch at one small size first.
  amax          the largest magnitude of the tensor (two kernels)
  cast          by a scale that is known
  cast_both     the same with a transposed copy
  tensor        amax, then cast (what a scale of the moment takes)
  row           a scale a row, one read (for rows that a block's registers hold)
  block_1x128   a scale for each 128 values of a row
  block_1x128_both  the same with a transposed copy, whose scales are of 128 values of a column
  block_128x128     a scale for each square, as weights have; block_128x128_both with a transposed copy
"""

import sys
import time
import traceback

import torch
import triton
import triton.language as tl

from measure import copies_of, device_row, emit, graph_seconds

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
MOST = 448.0  # of E4M3
ROWS = (256, 1024, 4096, 16384, 65536)
COLUMNS = (1024, 2048, 4096, 7168, 14336)


@triton.jit
def amax_kernel(x, part, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size, other=0.0).to(tl.float32)
    tl.store(part + tl.program_id(0), tl.max(tl.abs(value), axis=0))


@triton.jit
def cast_kernel(x, scale, q, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size, other=0.0).to(tl.float32) * tl.load(scale)
    tl.store(q + at, value.to(tl.float8e4nv), mask=at < size)


@triton.jit
def row_kernel(x, q, inverse, k, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * k + at, mask=at < k, other=0.0).to(tl.float32)
    most = tl.maximum(tl.max(tl.abs(value), axis=0), 1e-12)
    tl.store(q + row * k + at, (value * (448.0 / most)).to(tl.float8e4nv), mask=at < k)
    tl.store(inverse + row, most / 448.0)


@triton.jit
def tile_kernel(x, scale, q, q_t, inverse, inverse_t, m, k, MODE: tl.constexpr, BOTH: tl.constexpr,
                TILE_M: tl.constexpr, TILE_K: tl.constexpr):
    """A tile of TILE_M x TILE_K. MODE 0: one known scale; 1: a scale a row of the tile; 2: one a tile."""
    tile_m, tile_k = tl.program_id(0), tl.program_id(1)
    rows = tile_m.to(tl.int64) * TILE_M + tl.arange(0, TILE_M)
    columns = tile_k.to(tl.int64) * TILE_K + tl.arange(0, TILE_K)
    value = tl.load(x + rows[:, None] * k + columns[None, :]).to(tl.float32)
    at = rows[:, None] * k + columns[None, :]
    at_t = columns[:, None] * m + rows[None, :]
    if MODE == 0:
        scaled = (value * tl.load(scale)).to(tl.float8e4nv)
        tl.store(q + at, scaled)
        if BOTH:
            tl.store(q_t + at_t, tl.trans(scaled))
    elif MODE == 1:
        most = tl.maximum(tl.max(tl.abs(value), axis=1), 1e-12)
        tl.store(q + at, (value * (448.0 / most)[:, None]).to(tl.float8e4nv))
        tl.store(inverse + tile_k * m + rows, most / 448.0)
        if BOTH:
            down = tl.maximum(tl.max(tl.abs(value), axis=0), 1e-12)
            turned = (value * (448.0 / down)[None, :]).to(tl.float8e4nv)
            tl.store(q_t + at_t, tl.trans(turned))
            tl.store(inverse_t + tile_m * k + columns, down / 448.0)
    else:
        most = tl.maximum(tl.max(tl.max(tl.abs(value), axis=1), axis=0), 1e-12)
        scaled = (value * (448.0 / most)).to(tl.float8e4nv)
        tl.store(q + at, scaled)
        tl.store(inverse + tile_m * tl.num_programs(1) + tile_k, most / 448.0)
        if BOTH:
            tl.store(q_t + at_t, tl.trans(scaled))


class Quantizer:
    """Outputs for one size, and a call of each kernel."""

    def __init__(self, m, k):
        self.m, self.k, self.size = m, k, m * k
        self.q = torch.empty(m, k, dtype=FP8, device="cuda")
        self.q_t = torch.empty(k, m, dtype=FP8, device="cuda")
        self.scale = torch.ones(1, device="cuda")
        self.inverse = torch.empty(self.size // 64 + m, device="cuda")
        self.inverse_t = torch.empty(self.size // 64 + k, device="cuda")
        self.part = torch.empty(-(-self.size // 8192), device="cuda")

    def amax(self, x):
        amax_kernel[(len(self.part),)](x, self.part, self.size, BLOCK=8192, num_warps=8)
        return self.part.amax()

    def cast(self, x, scale=None):
        cast_kernel[(-(-self.size // 4096),)](x, self.scale if scale is None else scale, self.q, self.size,
                                              BLOCK=4096, num_warps=8)

    def tensor(self, x):
        self.cast(x, MOST / self.amax(x))

    def row(self, x):
        row_kernel[(self.m,)](x, self.q, self.inverse, self.k, BLOCK=triton.next_power_of_2(self.k),
                              num_warps=8 if self.k > 4096 else 4)

    def tiles(self, x, mode, both, tile_m, tile_k):
        tile_kernel[(self.m // tile_m, self.k // tile_k)](
            x, self.scale, self.q, self.q_t, self.inverse, self.inverse_t, self.m, self.k, MODE=mode,
            BOTH=both, TILE_M=tile_m, TILE_K=tile_k, num_warps=8)

    def calls(self):
        """Name: bytes a value, what runs it."""
        return {
            "amax": (2, self.amax),
            "cast": (3, self.cast),
            "cast_both": (4, lambda x: self.tiles(x, 0, True, 64, 128)),
            "tensor": (5, self.tensor),
            "row": (3, self.row),
            "block_1x128": (3 + 4 / 128, lambda x: self.tiles(x, 1, False, 32, 128)),
            "block_1x128_both": (4 + 8 / 128, lambda x: self.tiles(x, 1, True, 128, 128)),
            "block_128x128": (3, lambda x: self.tiles(x, 2, False, 128, 128)),
            "block_128x128_both": (4, lambda x: self.tiles(x, 2, True, 128, 128)),
        }


def tensor_pytorch(x):
    scale = MOST / x.abs().amax().float()
    return (x.float() * scale).to(FP8), scale


def row_pytorch(x):
    scale = MOST / x.abs().amax(dim=1, keepdim=True).float()
    return (x.float() * scale).to(FP8), scale


def check(out):
    """Rows of what is wrong, at 256 x 1024: the largest difference over the tensor's largest number."""
    x = torch.randn(256, 1024, dtype=BF16, device="cuda")
    quantizer = Quantizer(256, 1024)
    wide = x.float()
    squares = wide.view(2, 128, 8, 128)
    scales = {
        "cast": torch.ones_like(wide), "cast_both": torch.ones_like(wide),
        "tensor": torch.full_like(wide, wide.abs().max().item() / MOST),
        "row": (wide.abs().amax(1, keepdim=True) / MOST).expand_as(wide),
        "block_1x128": (squares.abs().amax(3, keepdim=True) / MOST).expand_as(squares).reshape_as(wide),
        "block_128x128": (squares.abs().amax((1, 3), keepdim=True) / MOST).expand_as(squares).reshape_as(wide),
    }
    scales["block_1x128_both"], scales["block_128x128_both"] = scales["block_1x128"], scales["block_128x128"]
    for name, (_, call) in quantizer.calls().items():
        quantizer.q.view(torch.uint8).fill_(1)
        quantizer.q_t.view(torch.uint8).fill_(1)
        try:
            result = call(x)
            if name == "amax":
                error = abs(result.item() - wide.abs().max().item())
            else:
                error = ((quantizer.q.float() * scales[name] - wide).abs() / (wide.abs() + 0.02)).max().item()
                if name in ("cast_both", "block_128x128_both"):
                    error = max(error, (quantizer.q_t.float().t() - quantizer.q.float()).abs().max().item())
            emit(out, kind="quantize_check", op=name, error=error, wrong=not error < 0.07)
        except Exception as error:
            emit(out, kind="quantize_check", op=name, failed=str(error)[:300])


def main():
    torch.manual_seed(1)
    with open(sys.argv[1], "a", encoding="ascii") as out:
        emit(out, **device_row())
        check(out)
        compiled = {"tensor_compiled": (5, torch.compile(tensor_pytorch, dynamic=False)),
                    "row_compiled": (3, torch.compile(row_pytorch, dynamic=False))}
        for k in COLUMNS:
            for m in ROWS:
                if m * k > 2**29:
                    continue
                copies = min(16, copies_of(2 * m * k))
                x = [torch.randn(m, k, dtype=BF16, device="cuda") for _ in range(copies)]
                calls = Quantizer(m, k).calls()
                if k in (4096,) and m in (1024, 16384):
                    calls.update(compiled)
                for name, (value_bytes, call) in calls.items():
                    row = {"kind": "quantize", "op": name, "m": m, "k": k, "bytes": round(value_bytes * m * k)}
                    try:
                        seconds, spread = graph_seconds(lambda i: call(x[i]), copies, 0.002, 5)
                        emit(out, **row, seconds=seconds, spread_frac=spread)
                    except Exception as error:
                        emit(out, **row, error=str(error)[:300])
                del x, calls
                torch.cuda.empty_cache()


begin_s = time.monotonic()
try:
    main()
except Exception:
    traceback.print_exc()
print("quantize", round(time.monotonic() - begin_s, 1), "s", flush=True)
