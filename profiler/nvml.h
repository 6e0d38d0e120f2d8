// profiler/nvml.h - reads clocks, power, temperature and what holds the clocks back; never sets
// anything.
//
// libnvidia-ml.so.1 comes with the driver and is loaded at run time. Declarations as in NVML's API
// reference (docs.nvidia.com/deploy/nvml-api), which promises that they stay.
#pragma once

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct Nvml Nvml;

// One reading; what the device does not tell is NAN (reasons: 0).
typedef struct {
    double time_s; // by measure_clock_s
    double sm_clock_hz, memory_clock_hz;
    double power_watts;   // as the device averages it
    double energy_joules; // since the driver was loaded
    double temperature_c;
    uint64_t reasons; // NVML_REASON_*
} DeviceReading;

// nvmlClocksEventReason*; those without an effect on a busy GPU are left out of names.
#define NVML_REASON_IDLE 0x1ull
#define NVML_REASON_APPLICATION_CLOCKS 0x2ull
#define NVML_REASON_POWER_CAP 0x4ull
#define NVML_REASON_HARDWARE 0x8ull
#define NVML_REASON_SYNC_BOOST 0x10ull
#define NVML_REASON_THERMAL 0x20ull
#define NVML_REASON_HARDWARE_THERMAL 0x40ull
#define NVML_REASON_POWER_BRAKE 0x80ull
#define NVML_REASON_DISPLAY 0x100ull

// STATUS_MACHINE where the library or the device is missing.
Status nvml_open(const char *pci_bus_id, Nvml **out);
void nvml_close(Nvml *nvml); // accepts NULL

DeviceReading nvml_read(const Nvml *nvml);

typedef struct {
    char driver[80];
    double max_sm_clock_hz, max_memory_clock_hz, power_limit_watts;
} DeviceLimits;
DeviceLimits nvml_limits(const Nvml *nvml);

enum { NVML_REASONS_SIZE = 160 };

// "power_cap+thermal", "none"; unknown bits as "0x200". Fills text[NVML_REASONS_SIZE], returns it.
const char *nvml_reasons_text(uint64_t reasons, char *text);

// What makes a busy GPU slower than it could be: all but idle, and clocks that somebody chose.
uint64_t nvml_throttles(uint64_t reasons);
