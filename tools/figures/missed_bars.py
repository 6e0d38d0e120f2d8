#!/usr/bin/env python3
"""How rough measured kernels are: what no smooth curve through them can meet (docs/accuracy.md).

usage: tools/figures/missed_bars.py KERNELS    (a folder with one folder a GPU that holds gemm.csv[.gz], nccl.csv[.gz])

Three errors, each without any fit, as median and 90th percentile:
  same bytes   half the difference of two measurements of one collective on the same bytes (as half
               and as int8): the least error of a curve over bytes
  between      a collective's time against the log-linear line through the sizes beside it
  GEMM in n    a bf16 product's time against the line through its neighbours in n (same m, k; the
               outer two at most 1.7 apart)
"""
import collections
import csv
import gzip
import math
import os
import sys

ELEMENT_BYTES = {"half": 2, "int8": 1}


def rows_of(folder, kind):
    for name, opener in ((kind + ".csv", open), (kind + ".csv.gz", gzip.open)):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with opener(path, "rt", newline="") as file:
                yield from csv.DictReader(file)
            return


def off_line(points, widest):
    """|log| by which inner points lie off the line through both neighbours."""
    points.sort()
    errors = []
    for (a, before), (b, here), (c, after) in zip(points, points[1:], points[2:]):
        if a < b < c <= widest * a:
            weight = math.log(b / a) / math.log(c / a)
            line = (1 - weight) * math.log(before) + weight * math.log(after)
            errors.append(abs(math.log(here) - line))
    return errors


def collectives(folder):
    pairs, curves = collections.defaultdict(dict), collections.defaultdict(list)
    for row in rows_of(folder, "nccl"):
        bytes_each = ELEMENT_BYTES.get(row["nccl_dtype"])
        if not bytes_each:
            continue
        size, latency = bytes_each * int(row["message_size"]), float(row["latency_ms"])
        kind = row["op_name"], row["num_gpus"]
        pairs[kind, size][bytes_each] = latency
        curves[kind, bytes_each].append((size, latency))
    same = [abs(math.log(p[1] / p[2])) / 2 for p in pairs.values() if len(p) == 2]
    return same, [e for points in curves.values() for e in off_line(points, 4)]


def products(folder):
    curves = collections.defaultdict(list)
    for row in rows_of(folder, "gemm"):
        if row["gemm_dtype"] == "bfloat16":
            curves[row["m"], row["k"]].append((int(row["n"]), float(row["latency_ms"])))
    return [e for points in curves.values() for e in off_line(points, 1.7)]


def cell(errors):
    if not errors:
        return "-"
    errors.sort()
    return "%.1f / %.1f %%" % (100 * errors[len(errors) // 2], 100 * errors[int(0.9 * len(errors))])


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    print("%-10s %16s %16s %16s" % ("GPU", "same bytes", "between", "GEMM in n"))
    for gpu in sorted(os.listdir(sys.argv[1])):
        folder = os.path.join(sys.argv[1], gpu)
        same, between = collectives(folder)
        print("%-10s %16s %16s %16s" % (gpu, cell(same), cell(between), cell(products(folder))))


if __name__ == "__main__":
    main()
