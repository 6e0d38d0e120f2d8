"""Timing and the state of the GPU for the scripts beside this file; needs PyTorch with CUDA."""

import json
import statistics
import threading
import time

import torch

try:
    import pynvml
except ImportError:
    pynvml = None

# The L2 cache of an H100 holds 50 MB: calls take turns among copies that are together larger,
# because a training step reads other tensors between two uses of one.
COLD_BYTES = 256 * 2**20
MAX_COPIES = 64


def copies_of(num_bytes):
    """Copies of inputs of this size that outgrow every cache."""
    return max(1, min(MAX_COPIES, -(-COLD_BYTES // max(1, num_bytes))))


def graph_seconds(call, num_copies, target_s=0.004, repeats=9):
    """Median seconds of call(i) for i in turn over the copies, and the spread between repeats.

    The calls are one CUDA graph, so that the host takes no part. The spread is the distance of the
    upper quartile from the median, over the median.
    """
    for i in range(min(3, num_copies)):
        call(i)
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call(0)
    end.record()
    torch.cuda.synchronize()
    once_s = max(2e-6, begin.elapsed_time(end) * 1e-3)
    num_calls = int(max(2, min(200, target_s / once_s)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(num_calls):
            call(i % num_copies)
    graph.replay()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3 / num_calls)
    del graph
    times.sort()
    median = statistics.median(times)
    return median, (times[(3 * repeats) // 4] - times[repeats // 4]) / median


def queued_seconds(call, num_copies, target_s=0.004, repeats=9):
    """As graph_seconds, of calls that no graph can record: the host queues them while a kernel spins.

    Calls whose host time is longer than the queue holds (1,024 kernels) would wait for the host: few calls a time.
    """
    for i in range(min(3, num_copies)):
        call(i)
    torch.cuda.synchronize()
    begin_s = time.monotonic()
    call(0)
    host_s = time.monotonic() - begin_s
    torch.cuda.synchronize()
    once_s = time.monotonic() - begin_s
    num_calls = int(max(2, min(12, target_s / once_s)))
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(repeats):
        torch.cuda._sleep(int(2e9 * (1.5 * host_s * num_calls + 0.001)))
        begin.record()
        for i in range(num_calls):
            call(i % num_copies)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3 / num_calls)
    times.sort()
    median = statistics.median(times)
    return median, (times[(3 * repeats) // 4] - times[repeats // 4]) / median


class Board:
    """Clock, power and temperature of the GPU, sampled beside the work in between."""

    def __init__(self, period_s=0.02):
        self.period_s = period_s
        self.handle = None
        if pynvml:
            pynvml.nvmlInit()
            self.handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    def energy_joules(self):
        return pynvml.nvmlDeviceGetTotalEnergyConsumption(self.handle) * 1e-3

    def __enter__(self):
        self.samples = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)
        self.begin_s = time.monotonic()
        self.begin_joules = self.energy_joules() if self.handle else 0.0
        if self.handle:
            self.thread.start()
        return self

    def _sample(self):
        while not self.stop.wait(self.period_s):
            self.samples.append((
                time.monotonic() - self.begin_s,
                pynvml.nvmlDeviceGetClockInfo(self.handle, pynvml.NVML_CLOCK_SM) * 1e6,
                pynvml.nvmlDeviceGetPowerUsage(self.handle) * 1e-3,
                pynvml.nvmlDeviceGetTemperature(self.handle, pynvml.NVML_TEMPERATURE_GPU),
                pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle)))

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.begin_s
        self.joules = self.energy_joules() - self.begin_joules if self.handle else 0.0
        self.stop.set()
        if self.handle:
            self.thread.join()

    def row(self):
        """Means over the second half of the samples, when the clock has settled."""
        half = [s for s in self.samples if s[0] > self.seconds / 2]
        if not half:
            return {}
        reasons = 0
        for sample in half:
            reasons |= sample[4]
        return {
            "sm_clock_hz": statistics.fmean(s[1] for s in half),
            "power_watts": statistics.fmean(s[2] for s in half),
            "energy_power_watts": self.joules / self.seconds,
            "temperature_c": max(s[3] for s in half),
            "clock_event_reasons": reasons,
        }


def device_row():
    """What was measured on."""
    properties = torch.cuda.get_device_properties(0)
    row = {
        "kind": "device", "gpu": properties.name, "sms": properties.multi_processor_count,
        "memory_bytes": properties.total_memory, "torch": torch.__version__,
        "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    if pynvml:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        row["driver"] = pynvml.nvmlSystemGetDriverVersion()
        row["max_sm_clock_hz"] = pynvml.nvmlDeviceGetMaxClockInfo(
            handle, pynvml.NVML_CLOCK_SM) * 1e6
        row["power_limit_watts"] = pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) * 1e-3
    return row


def emit(file, **row):
    """Appends a row as one line of JSON."""
    file.write(json.dumps(row) + "\n")
    file.flush()
