// NVML without a driver, as libnvidia-ml.so.1 of a folder for LD_LIBRARY_PATH. FAKE_NVML is
// "LINES FILE": while the file has so many lines or more, the power limit holds the clocks
// back: 1.2 instead of 1.98 GHz, and 61 instead of 48 degrees. So a kind's table, which grows as
// the kind is measured, makes that change in the middle.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *NvmlDevice;

// nvml.h is not at hand; what these are is in NVML's API reference.
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, NvmlDevice *out);
int nvmlDeviceGetClockInfo(NvmlDevice device, int type, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(NvmlDevice device, int type, unsigned *mhz);
int nvmlDeviceGetPowerUsage(NvmlDevice device, unsigned *milliwatts);
int nvmlDeviceGetEnforcedPowerLimit(NvmlDevice device, unsigned *milliwatts);
int nvmlDeviceGetTemperature(NvmlDevice device, int sensor, unsigned *celsius);
int nvmlDeviceGetCurrentClocksEventReasons(NvmlDevice device, unsigned long long *reasons);
int nvmlSystemGetDriverVersion(char *version, unsigned length);

enum { APPLICATION_CLOCKS = 0x2, POWER_CAP = 0x4 }; // nvmlClocksEventReason*

static bool held_back(void) {
    const char *chosen = getenv("FAKE_NVML");
    char *path = NULL;
    long num_lines = chosen ? strtol(chosen, &path, 10) : 0, num_found = 0;
    FILE *file = path && *path == ' ' ? fopen(path + 1, "r") : NULL;
    if (!file) return false;
    for (int c; (c = getc(file)) != EOF;) num_found += c == '\n';
    fclose(file);
    return num_found >= num_lines;
}

int nvmlInit_v2(void) {
    return 0;
}

int nvmlShutdown(void) {
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, NvmlDevice *out) {
    static int device;
    (void)pci_bus_id;
    *out = &device;
    return 0;
}

int nvmlDeviceGetClockInfo(NvmlDevice device, int type, unsigned *mhz) {
    (void)device, (void)type;
    *mhz = held_back() ? 1200 : 1980;
    return 0;
}

int nvmlDeviceGetMaxClockInfo(NvmlDevice device, int type, unsigned *mhz) {
    (void)device, (void)type;
    *mhz = 1980;
    return 0;
}

int nvmlDeviceGetPowerUsage(NvmlDevice device, unsigned *milliwatts) {
    (void)device;
    *milliwatts = held_back() ? 700000 : 500000;
    return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(NvmlDevice device, unsigned *milliwatts) {
    (void)device;
    *milliwatts = 700000;
    return 0;
}

int nvmlDeviceGetTemperature(NvmlDevice device, int sensor, unsigned *celsius) {
    (void)device, (void)sensor;
    *celsius = held_back() ? 61 : 48;
    return 0;
}

// Clocks that somebody chose are a reason, but hold nothing back that was not meant to be.
int nvmlDeviceGetCurrentClocksEventReasons(NvmlDevice device, unsigned long long *reasons) {
    (void)device;
    *reasons = APPLICATION_CLOCKS | (held_back() ? POWER_CAP : 0);
    return 0;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    snprintf(version, length, "made up");
    return 0;
}
