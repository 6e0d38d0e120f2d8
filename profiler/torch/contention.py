"""What a kernel costs that runs beside products: python3 contention.py OUT.jsonl

A Triton kernel of a given number of blocks, one an SM, moves bytes through memory as NCCL's kernels do
(each block reads 16 bytes a thread and writes them elsewhere) while products run on another stream.
Rows: seconds of a product alone and beside it, the bytes that were moved meanwhile.
"""

import sys

import torch
import triton
import triton.language as tl

from measure import Board, device_row, emit


@triton.jit
def move(source, target, rounds, size, stop, BLOCK: tl.constexpr):
    """Each block copies its own part of the arrays over and over."""
    begin = tl.program_id(0).to(tl.int64) * size
    for i in range(rounds):
        for j in range(0, size, BLOCK):
            at = begin + j + tl.arange(0, BLOCK)
            tl.store(target + at, tl.load(source + at))


def seconds_of(call, num_calls, repeats=7):
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(num_calls):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3 / num_calls)
    return sorted(times)[repeats // 2]


def main():
    part = 2**22  # int32 values of one block: 16 MiB, beyond the L2 cache from 4 blocks on
    side = torch.cuda.Stream(priority=-1)
    with open(sys.argv[1], "a", encoding="ascii") as out:
        emit(out, **device_row())
        for m, n, k in [(8192, 8192, 8192), (4096, 14336, 4096), (8192, 4096, 4096),
                        (4096, 4096, 1024)]:
            a, b = (torch.randn(rows, k, dtype=torch.bfloat16, device="cuda") for rows in (m, n))
            c = torch.empty(m, n, dtype=torch.bfloat16, device="cuda")

            def product():
                torch.mm(a, b.t(), out=c)
            product()
            flops = 2.0 * m * n * k
            num_calls = max(4, int(0.02 / (flops / 6e14)))
            alone = seconds_of(product, num_calls)
            for blocks in (0, 4, 8, 16, 24, 32, 48):
                source = torch.zeros(max(1, blocks) * part, dtype=torch.int32, device="cuda")
                target = torch.empty_like(source)
                rate = 0.0
                with Board(0.01) as board:
                    if blocks:
                        # One pass tells the mover's own rate; then enough of them outlast the test.
                        move[(blocks,)](source, target, 1, part, 0, BLOCK=4096, num_warps=8)
                        once = seconds_of(lambda: move[(blocks,)](
                            source, target, 4, part, 0, BLOCK=4096, num_warps=8), 1, 3) / 4
                        rate = 8.0 * blocks * part / once
                        rounds = int(min(5000, 12 * num_calls * alone / once)) + 8
                        torch.cuda.synchronize()
                        moved = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                        with torch.cuda.stream(side):
                            moved[0].record()
                            move[(blocks,)](source, target, rounds, part, 0, BLOCK=4096,
                                            num_warps=8)
                            moved[1].record()
                    beside = seconds_of(product, num_calls, 5)
                    still_moving = blocks > 0 and not moved[1].query()
                    torch.cuda.synchronize()
                row = {"kind": "contention", "m": m, "n": n, "k": k, "blocks": blocks,
                       "alone_s": alone, "beside_s": beside, "mover_alone_bytes_per_s": rate}
                if blocks:
                    row["mover_mean_bytes_per_s"] = (8.0 * blocks * part * rounds /
                                                     (moved[0].elapsed_time(moved[1]) * 1e-3))
                    row["outlasted"] = still_moving
                emit(out, **row, **board.row())
                print(row, flush=True)


main()
