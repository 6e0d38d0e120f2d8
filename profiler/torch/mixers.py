"""Times the token mixers of hybrid models, forward and backward, on one GPU:
    python3 mixers.py OUT.jsonl [--seconds S] [--smoke] [--path DIR] [--workers N] [--configs N] [PART ..]

DIR (or the environment variable MIXER_SOURCES) holds the packages `fla` (flash-linear-attention) and `mamba_ssm`
(state-spaces/mamba). Their __init__.py and those of fla/ops and fla/modules are emptied (fla keeps its __version__),
so that only Triton kernels are imported. Parts, in their order:
  attention  non-causal attention of vision towers: FlashAttention 2 and cuDNN through PyTorch
  gdn        gated delta rule with the norm of queries and keys inside; decays come ready, as transformers passes them
  mamba2     state space duality, mamba_chunk_scan_combined, without z
  kda        Kimi delta attention with decay, sigmoid of beta and norms inside
  conv       short causal convolution with SiLU: fla's Triton kernels; `conv_pytorch` is F.conv1d
  norm       gated RMSNorm: fla's by head, `norm_mamba` by group
  windows    sliding windows, and the sinks of gpt-oss, by flex_attention, compiled in a process of its own. The mask
             reads the window from a tensor, so that all windows share a kernel
  gla        simple gated linear attention with a fixed decay a head (lightning attention)
  decode     one step of the recurrent forms
  rwkv7      RWKV-7's rule
  nsa        native sparse attention: compressed and selected blocks, no window
  variants   heads split by tensor parallelism, and other options and widths
  mamba2_variants  the same of mamba2
The backward of gdn has a kernel (chunk_bwd_kernel_dqkwg) that Triton 3.4 to 3.7.0 compiles wrongly for Hopper, so that
fla refuses it; it runs here all the same, for its time. Attention by chunks (Llama 4) is causal attention of shorter
sequences: operators.py has it.

Rows `mixer`: forward_seconds (with a backward to come), total_seconds (both) and backward_seconds, their difference:
medians of CUDA graph replays over copies that outgrow the L2 cache (mamba2: of calls that the host queues beforehand). saved_bytes are held between forward and backward
beyond input_bytes and output_bytes (an output that is also saved counts as output); peak_bytes is the peak of both
above the inputs; host_seconds is the host's time for both. kernels: name, pass, calls and seconds of each, from one
profiled forward and backward. Rows `mixer_configs`: what each kernel runs with, the fastest of at most --configs of
its authors' configurations at the mixer's first shape. Rows `mixer_decode`: seconds; bytes are the state's, read and
written.

Workers fill Triton's cache (TRITON_CACHE_DIR) beforehand: each walks through all mixers without launching a kernel
and compiles its share of them. After an error that breaks the CUDA context the script starts itself anew with the
parts that are left.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import threading
import time
import traceback

BEGIN_S = time.monotonic()  # imports count

import torch

from measure import Board, copies_of, device_row, emit, graph_seconds, queued_seconds
from mixer_kernels import (COMPILED, MIXERS, STEPS, Tuner, attention_inputs, leaves, load, normal,
                           worker)

CAPS_S = {"attention": 14, "gdn": 14, "mamba2": 14, "kda": 14, "conv": 6, "norm": 6, "windows": 16, "gla": 9,
          "decode": 10, "rwkv7": 5, "nsa": 5, "variants": 40, "mamba2_variants": 20}  # of 130
NOT_RECORDED = ("mamba2",)  # its backward fails while a CUDA graph records it


class Helpers:
    """The workers, and the process that compiles flex_attention."""

    def __init__(self, args, parts):
        common = [sys.executable, os.path.abspath(__file__), args.out, "--path", args.path,
                  "--workers", str(args.workers), "--configs", str(args.configs), "--seconds", str(args.seconds)]
        common += ["--smoke"] if args.smoke else []
        self.count = {}
        compiled = [part for part in COMPILED if part in parts]
        self.workers = [self.start([*common, "--worker", str(i), *compiled])
                        for i in range(args.workers if compiled else 0)]
        self.flex = self.start([*common, "--flex"]) if "windows" in parts else None

    def start(self, command):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   stderr=None if "--flex" in command else subprocess.DEVNULL,
                                   env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "2"})
        threading.Thread(target=self.listen, args=(process,), daemon=True).start()
        return process

    def listen(self, process):
        for line in process.stdout:
            if line.startswith(("done ", "ready")):
                self.count[line.strip()] = self.count.get(line.strip(), 0) + 1
            else:
                print(line.rstrip(), flush=True)

    def wait(self, line, processes, most_s):
        end = time.monotonic() + most_s
        while time.monotonic() < end and self.count.get(line, 0) < len(processes) and \
                any(p.poll() is None for p in processes):
            time.sleep(0.02)

    @staticmethod
    def tell(processes, line):
        for process in processes:
            try:
                process.stdin.write(line + "\n")
                process.stdin.flush()
            except OSError:
                pass

    def end(self):
        for process in [*self.workers, *([self.flex] if self.flex else [])]:
            process.kill()


class Run:
    def __init__(self, args, out):
        self.args, self.out = args, out
        self.deadline = args.begin_s + args.seconds
        self.tuner = None

    def left(self):
        return self.deadline - time.monotonic()

    def case(self, name, make, options, batch, sequence, profiled=True, **more):
        """Measures one case, or says why not."""
        row = {"kind": "mixer", "mixer": name, "batch_size": batch, "sequence": sequence, **options, **more}
        if self.tuner:
            self.tuner.mixer = name
        try:
            row.update(timings(make, options, batch, sequence, profiled))
            print(f"{name} {options} {more} {batch}x{sequence}: {row['forward_seconds'] * 1e3:.3f} + "
                  f"{row['backward_seconds'] * 1e3:.3f} ms, {row['saved_bytes'] / 1e9:.3f} GB", flush=True)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"[:300]
            print(name, options, more, batch, sequence, row["error"][:150], flush=True)
        emit(self.out, **row)
        torch.cuda.synchronize()  # raises where the context is broken
        torch.cuda.empty_cache()


def timings(make, options, batch, sequence, profiled):
    before = torch.cuda.memory_allocated()
    sets = [leaves(make, batch, sequence, options)]
    call = sets[0][1]
    input_bytes = torch.cuda.memory_allocated() - before
    sets += [leaves(make, batch, sequence, options) for _ in range(min(8, copies_of(input_bytes)) - 1)]
    sets = [inputs for inputs, _ in sets]
    y = call(*sets[0])
    dy = torch.randn_like(y)

    def backward(y, i):
        return torch.autograd.grad(y, sets[i], dy, allow_unused=True)

    backward(y, 0)
    del y
    base = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    begin = time.monotonic()
    y = call(*sets[0])
    held = torch.cuda.memory_allocated() - base
    grads = backward(y, 0)
    host_seconds = time.monotonic() - begin
    torch.cuda.synchronize()
    row = {"input_bytes": input_bytes, "output_bytes": y.nbytes, "saved_bytes": held - y.nbytes,
           "peak_bytes": torch.cuda.max_memory_allocated() - base, "host_seconds": host_seconds}
    del y, grads
    seconds_of = queued_seconds if make.__name__ in NOT_RECORDED else graph_seconds
    with Board(0.005) as board:
        forward, forward_spread = seconds_of(lambda i: call(*sets[i]), len(sets), 0.002, 5)
        total, spread = seconds_of(lambda i: backward(call(*sets[i]), i), len(sets), 0.003, 5)
    row.update(forward_seconds=forward, forward_spread_frac=forward_spread, total_seconds=total,
               total_spread_frac=spread, backward_seconds=total - forward,
               sm_clock_hz=board.row().get("sm_clock_hz"))
    if profiled:
        try:
            row["kernels"] = kernels_of(lambda: call(*sets[-1]), lambda y: backward(y, -1))
        except Exception as error:
            row["profile_error"] = str(error)[:200]
    return row


def kernels_of(forward, backward):
    """[name, pass, calls, seconds] of one forward and backward; a kernel that spins stands between them."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        y = forward()
        torch.cuda._sleep(1000)
        backward(y)
        torch.cuda.synchronize()
    events = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    found, stage = {}, "forward"
    for event in sorted(events, key=lambda e: e.time_range.start):
        if "spin_kernel" in event.name:
            stage = "backward"
            continue
        entry = found.setdefault((event.name[:90], stage), [0, 0.0])
        entry[0] += 1
        entry[1] += event.time_range.elapsed_us() * 1e-6
    return [[*key, *entry] for key, entry in found.items()]


def attention(run, end):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for tokens, head_dim in itertools.product((256, 1024, 4096), (72, 64, 128, 80)):
        for by, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION)):
            if time.monotonic() > end:
                return
            with sdpa_kernel(backend):
                run.case("attention", attention_inputs, {"head_dim": head_dim}, 16384 // tokens, tokens, False,
                         by=by, causal=False, num_heads=16)
            if run.args.smoke:
                break
        if run.args.smoke:
            return


def decode(run, end):
    for batch, (name, make) in itertools.product((16,) if run.args.smoke else (64, 1, 256, 16), STEPS.items()):
        if time.monotonic() > end:
            return
        num_bytes = 2 * 4 * batch * (32 * 128 * 128 if name != "mamba2" else 128 * 64 * 128)
        copies = min(16, copies_of(num_bytes // 2))
        row = {"kind": "mixer_decode", "mixer": name, "batch_size": batch, "bytes": num_bytes}
        run.tuner.mixer = "decode"
        try:
            with torch.no_grad():
                seconds, spread = graph_seconds(make(batch, copies), copies, 0.002, 5)
            row.update(seconds=seconds, spread_frac=spread)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"[:300]
        emit(run.out, **row)
        print("decode", name, batch, row.get("seconds", row.get("error")), flush=True)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def window_mask(sequence, window, mask_mod):
    """The blocks of 128 x 128 that a causal window touches, some of them whole."""
    from torch.nn.attention.flex_attention import BlockMask
    at = torch.arange(sequence // 128, device="cuda") * 128
    least, most = at[:, None] - at[None] - 127, at[:, None] - at[None] + 127  # query minus key
    whole = (least >= 0) & (most < window)
    parts = (most >= 0) & (least < window) & ~whole
    ordered = [(dense.sum(1).to(torch.int32)[None, None],
                dense.to(torch.int32).argsort(dim=1, descending=True, stable=True).to(torch.int32)[None, None].contiguous())
               for dense in (parts, whole)]
    return BlockMask.from_kv_blocks(*ordered[0], *ordered[1], BLOCK_SIZE=128, mask_mod=mask_mod)


def flex(args):
    """Compiles all shapes, says so, waits for the word, and measures."""
    from torch.nn.attention.flex_attention import flex_attention
    width = torch.zeros((), dtype=torch.int64, device="cuda")

    def mask_mod(b, h, q, k):
        return (q >= k) & (q - k < width)

    def plain(q, k, v, mask):
        return flex_attention(q, k, v, block_mask=mask, enable_gqa=True)

    def with_sinks(q, k, v, sinks, mask):
        y, norms = flex_attention(q, k, v, block_mask=mask, enable_gqa=True, return_lse=True)
        return y * torch.sigmoid(norms - sinks[:, None])[..., None].to(y.dtype)

    def maker(call, window):
        def make(batch, sequence, head_dim):
            mask = window_mask(sequence, window, mask_mod)
            inputs = [normal(batch, heads, sequence, head_dim) for heads in (64, 8, 8)]
            if call is compiled[1]:
                inputs.append(normal(64, dtype=torch.float32))
            return inputs, lambda *x: call(*x, mask)
        return make

    compiled = [torch.compile(f, dynamic=False) for f in (plain, with_sinks)]
    cases = [(0, 128, 8192, w) for w in (1024, 128, 4096, 512, 8192)] + [(0, 64, 8192, w) for w in (128, 1024)] + \
        [(1, 64, 8192, 128)] + [(0, 128, 32768, w) for w in (1024, 4096)]
    cases = cases[:1] if args.smoke else cases
    for which, head_dim, sequence, window in cases:
        width.fill_(window)
        try:
            inputs, call = leaves(maker(compiled[which], window), 1, sequence, {"head_dim": head_dim})
            y = call(*inputs)
            torch.autograd.grad(y, inputs, torch.ones_like(y))
        except Exception:
            traceback.print_exc()
        inputs = y = None
    print("ready", flush=True)
    args.seconds = float(sys.stdin.readline() or 0)
    args.begin_s = time.monotonic()
    with open(args.out, "a", encoding="ascii") as out:
        run = Run(args, out)
        for which, head_dim, sequence, window in cases:
            if run.left() > 0.5:
                width.fill_(window)
                run.case("window", maker(compiled[which], window), {"head_dim": head_dim}, 1, sequence, num_heads=64,
                         num_key_value_heads=8, window=window, sinks=bool(which), by="flex_attention")


def windows(run, end, helpers):
    torch.cuda.empty_cache()
    helpers.wait("ready", [helpers.flex], min(30, 0.4 * run.left()))
    if "ready" not in helpers.count:
        print("windows: not compiled in time", flush=True)
        return
    helpers.tell([helpers.flex], str(min(run.left(), end - time.monotonic() + 5)))
    try:
        helpers.flex.wait(max(1, min(run.left(), 40)))
    except subprocess.TimeoutExpired:
        helpers.flex.kill()


def mixers(run, part, end, helpers):
    for make, options, shapes in MIXERS[part]:
        for batch, sequence in ((4, 512),) if run.args.smoke else shapes:
            if time.monotonic() > end or run.left() < 2:
                return
            known = set(run.tuner.chosen)
            run.case(make.__name__, make, options, batch, sequence)
            new = {name: config for name, config in run.tuner.chosen.items() if name not in known}
            if new:
                emit(run.out, kind="mixer_configs", mixer=make.__name__, at=[batch, sequence],
                     configs_tried=run.args.configs, configs=new)
                if part != "variants" and not run.args.smoke:
                    helpers.tell(helpers.workers, json.dumps(new))


def give_up(helpers):
    print("out of time", flush=True)
    helpers.end()
    os._exit(4)


def measure_all(args):
    helpers = Helpers(args, args.parts)
    watchdog = threading.Timer(BEGIN_S + args.seconds + 4 - time.monotonic(), give_up, (helpers,))
    watchdog.daemon = True
    watchdog.start()
    with open(args.out, "a", encoding="ascii") as out:
        run = Run(args, out)
        emit(out, **device_row())
        load(args.path)
        run.tuner = Tuner(args.configs)
        for number, part in enumerate(args.parts):
            if run.left() < 3:
                print("not reached:", *args.parts[number:], flush=True)
                break
            if part in COMPILED and helpers.workers:
                helpers.wait(f"done {part}", helpers.workers, min(40, (0.6 if args.smoke else 0.4) * run.left()))
            begin = time.monotonic()
            end = min(run.deadline - 1, begin + CAPS_S[part] * max(args.seconds, 30) / 130)
            try:
                if part == "windows":
                    windows(run, end, helpers)
                elif part in MIXERS:
                    mixers(run, part, end, helpers)
                else:
                    globals()[part](run, end)
            except Exception:
                traceback.print_exc()
                helpers.end()
                rest = args.parts[number + 1:]
                if rest and run.left() > 15:
                    out.flush()
                    smoke = ["--smoke"] if args.smoke else []
                    os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), args.out, "--workers", "0",
                                              "--seconds", str(run.left()), "--path", args.path, "--configs",
                                              str(args.configs), *smoke, *rest])
                break
            print(part, round(time.monotonic() - begin, 1), "s,", round(run.left(), 1), "s left", flush=True)
    helpers.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--path", default=os.environ.get("MIXER_SOURCES", "."))
    parser.add_argument("--workers", type=int, default=max(2, (os.cpu_count() or 4) - 3))
    parser.add_argument("--configs", type=int)
    parser.add_argument("--worker", type=int)
    parser.add_argument("--flex", action="store_true")
    args = parser.parse_intermixed_args()
    args.seconds = args.seconds or (40 if args.smoke else 130)
    args.configs = args.configs or (1 if args.smoke else 6)
    args.begin_s = BEGIN_S
    args.path = os.path.abspath(args.path)
    torch.manual_seed(1)
    if args.worker is not None:
        worker(args)
    elif args.flex:
        flex(args)
    else:
        args.parts = args.parts or list(CAPS_S)[:-1 if args.smoke else None]
        measure_all(args)


if __name__ == "__main__":
    main()
