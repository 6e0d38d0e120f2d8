// profiler/device_monitor.h - a thread that reads the device's clocks and power while it works.
#pragma once

#include "profiler/nvml.h"

#include <stddef.h>

typedef struct DeviceMonitor DeviceMonitor;

// Seconds between readings.
#define MONITOR_PERIOD_S 0.02

// What readings say of a span of time; NAN where nothing tells.
typedef struct {
    int num_readings;
    double sm_clock_hz;   // mean
    double power_watts;   // by the energy counter, else the mean of what the device averages
    double temperature_c; // highest
    uint64_t reasons;     // of any reading
} DeviceWindow;

// Readings [num_readings] in the order of time; those from begin_s to end_s count, or the last
// before end_s where there is none.
DeviceWindow device_window(const DeviceReading *readings, size_t num_readings, double begin_s,
                           double end_s);

// Begins to read. Keeps nvml, which must outlive it; NULL: windows without readings. *out is set
// only on success.
Status monitor_start(const Nvml *nvml, DeviceMonitor **out);
DeviceWindow monitor_window(DeviceMonitor *monitor, double begin_s, double end_s);
void monitor_stop(DeviceMonitor *monitor); // accepts NULL
