// costmodel/kernel/kernel_nccl.h - seconds of one calibrated collective inside a node.
//
// Model:  a curve per collective, number format and group size, straight in log time over log
// bytes;
//         flat below its first point, proportional to the bytes beyond its last. Between two
//         measured group sizes a < n < b
//           t(n) = t(a) + (t(b) - t(a)) ((1 - s) (n - a) / (b - a) + s (w(n) - w(a)) / (w(b) -
//           w(a)))
//         w = 1 - 1/n: the share of the buffer that a rank sends and receives; s: the share of t(b)
//         above its smallest message. A latency grows with the hops, inside a node a chain, the
//         rest with the bytes on the wire. Where t(b) / t(a) is more than both explain, a slower
//         path lies between a and b (other sockets, a host without peer-to-peer copies), nobody
//         measured where: that factor goes as a power of n. Beyond them the nearest curve with its
//         latency grown by the hops and its rest by w, over switches by w^0.4.
// Source: Patarasuk and Yuan, J. Parallel Distrib. Comput. 69(2), 2009 (bytes on the wire); NCCL
//         tests, PERFORMANCE.md. Checked on all-reduce of 2 to 8 A100 (vTrain project's tables).
// Limits: one node or NVLink domain; no other traffic.
#pragma once

#include "config/kernels/kernel_nccl.h"

// Seconds; NAN where the profile has no such collective. dtype NCCL_HALF or NCCL_INT8.
//   bytes  all-reduce: of each rank's buffer; others: of the whole buffer, gathered or to send
double kernel_nccl_s(const NcclKernels *kernels, NcclOp op, NcclDtype dtype, double num_gpus,
                     double bytes);

// Seconds on one curve.
double nccl_curve_s(const NcclCurve *curve, double bytes);
