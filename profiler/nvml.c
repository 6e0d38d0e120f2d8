#include "profiler/nvml.h"
#include "profiler/measure.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int NvmlReturn; // nvmlReturn_t; 0 is NVML_SUCCESS
typedef struct nvmlDevice_st *NvmlDevice;

enum {
    CLOCK_SM = 1,
    CLOCK_MEMORY = 2,
    TEMPERATURE_GPU = 0
}; // NVML_CLOCK_SM, _MEM; NVML_TEMPERATURE_GPU

struct Nvml {
    void *library;
    NvmlDevice device;
    NvmlReturn (*shutdown)(void);
    NvmlReturn (*clock_info)(NvmlDevice, int type, unsigned *mhz);
    NvmlReturn (*max_clock_info)(NvmlDevice, int type, unsigned *mhz);
    NvmlReturn (*power_usage)(NvmlDevice, unsigned *milliwatts);
    NvmlReturn (*power_limit)(NvmlDevice, unsigned *milliwatts);
    NvmlReturn (*energy)(NvmlDevice, unsigned long long *millijoules);
    NvmlReturn (*temperature)(NvmlDevice, int sensor, unsigned *celsius);
    NvmlReturn (*reasons)(NvmlDevice, unsigned long long *reasons);
    NvmlReturn (*driver_version)(char *version, unsigned length);
};

// POSIX has dlsym return functions as void *, which ISO C does not convert.
static void find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

static void find_readers(Nvml *nvml) {
    void *library = nvml->library;
    find(library, "nvmlShutdown", &nvml->shutdown);
    find(library, "nvmlDeviceGetClockInfo", &nvml->clock_info);
    find(library, "nvmlDeviceGetMaxClockInfo", &nvml->max_clock_info);
    find(library, "nvmlDeviceGetPowerUsage", &nvml->power_usage);
    find(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml->power_limit);
    find(library, "nvmlDeviceGetTotalEnergyConsumption", &nvml->energy);
    find(library, "nvmlDeviceGetTemperature", &nvml->temperature);
    find(library, "nvmlDeviceGetCurrentClocksEventReasons", &nvml->reasons);
    if (!nvml->reasons) find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->reasons);
    find(library, "nvmlSystemGetDriverVersion", &nvml->driver_version);
}

Status nvml_open(const char *pci_bus_id, Nvml **out) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return status_error(STATUS_MACHINE, "NVML cannot be loaded: %.300s", dlerror());
    NvmlReturn (*init)(void);
    NvmlReturn (*by_bus_id)(const char *, NvmlDevice *);
    find(library, "nvmlInit_v2", &init);
    find(library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus_id);
    Nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml || !init || !by_bus_id) {
        free(nvml);
        dlclose(library);
        return status_error(STATUS_MACHINE, "NVML is of an unknown version");
    }
    nvml->library = library;
    find_readers(nvml);
    NvmlReturn code = init();
    if (code == 0 && (code = by_bus_id(pci_bus_id, &nvml->device)) == 0) {
        *out = nvml;
        return status_ok();
    }
    nvml_close(nvml);
    return status_error(STATUS_MACHINE, "NVML does not know the GPU %.32s (error %d)", pci_bus_id,
                        code);
}

void nvml_close(Nvml *nvml) {
    if (!nvml) return;
    if (nvml->shutdown) nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

static double read_clock(const Nvml *nvml, NvmlReturn (*read)(NvmlDevice, int, unsigned *),
                         int type) {
    unsigned value = 0;
    return read && read(nvml->device, type, &value) == 0 ? 1e6 * value : NAN;
}

static double read_watts(const Nvml *nvml, NvmlReturn (*read)(NvmlDevice, unsigned *)) {
    unsigned value = 0;
    return read && read(nvml->device, &value) == 0 ? 1e-3 * value : NAN;
}

DeviceReading nvml_read(const Nvml *nvml) {
    DeviceReading reading = {
        .time_s = measure_clock_s(),
        .sm_clock_hz = read_clock(nvml, nvml->clock_info, CLOCK_SM),
        .memory_clock_hz = read_clock(nvml, nvml->clock_info, CLOCK_MEMORY),
        .power_watts = read_watts(nvml, nvml->power_usage),
        .energy_joules = NAN,
        .temperature_c = NAN,
    };
    unsigned long long wide = 0;
    if (nvml->energy && nvml->energy(nvml->device, &wide) == 0)
        reading.energy_joules = 1e-3 * (double)wide;
    if (nvml->reasons && nvml->reasons(nvml->device, &wide) == 0) reading.reasons = wide;
    unsigned celsius = 0;
    if (nvml->temperature && nvml->temperature(nvml->device, TEMPERATURE_GPU, &celsius) == 0)
        reading.temperature_c = celsius;
    return reading;
}

DeviceLimits nvml_limits(const Nvml *nvml) {
    DeviceLimits limits = {
        .max_sm_clock_hz = read_clock(nvml, nvml->max_clock_info, CLOCK_SM),
        .max_memory_clock_hz = read_clock(nvml, nvml->max_clock_info, CLOCK_MEMORY),
        .power_limit_watts = read_watts(nvml, nvml->power_limit),
    };
    if (!nvml->driver_version ||
        nvml->driver_version(limits.driver, (unsigned)sizeof limits.driver) != 0)
        limits.driver[0] = '\0';
    return limits;
}

static const struct {
    uint64_t bit;
    const char *name;
} REASONS[] = {
    {NVML_REASON_APPLICATION_CLOCKS, "application_clocks"},
    {NVML_REASON_POWER_CAP, "power_cap"},
    {NVML_REASON_HARDWARE, "hardware"},
    {NVML_REASON_SYNC_BOOST, "sync_boost"},
    {NVML_REASON_THERMAL, "thermal"},
    {NVML_REASON_HARDWARE_THERMAL, "hardware_thermal"},
    {NVML_REASON_POWER_BRAKE, "power_brake"},
    {NVML_REASON_DISPLAY, "display"},
};

const char *nvml_reasons_text(uint64_t reasons, char *text) {
    size_t used = 0;
    text[0] = '\0';
    uint64_t unknown = reasons & ~NVML_REASON_IDLE;
    for (size_t i = 0; i < sizeof REASONS / sizeof *REASONS; i++) {
        if (!(reasons & REASONS[i].bit)) continue;
        unknown &= ~REASONS[i].bit;
        used += (size_t)snprintf(text + used, NVML_REASONS_SIZE - used, "%s%s", used ? "+" : "",
                                 REASONS[i].name);
    }
    if (unknown)
        used += (size_t)snprintf(text + used, NVML_REASONS_SIZE - used, "%s0x%llx", used ? "+" : "",
                                 (unsigned long long)unknown);
    if (!used) snprintf(text, NVML_REASONS_SIZE, "none");
    return text;
}

uint64_t nvml_throttles(uint64_t reasons) {
    return reasons & ~(NVML_REASON_IDLE | NVML_REASON_APPLICATION_CLOCKS);
}
