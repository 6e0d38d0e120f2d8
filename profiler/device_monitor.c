#include "profiler/device_monitor.h"
#include "profiler/measure.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

// The latest readings: two minutes, longer than any one measurement.
enum { MOST_READINGS = 6000 };

struct DeviceMonitor {
    const Nvml *nvml;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool stop;
    DeviceReading readings[2 * MOST_READINGS]; // moved down by half when full
    size_t num_readings;
};

static void add_finite(double value, double *sum, int *n) {
    if (!isfinite(value)) return;
    *sum += value;
    ++*n;
}

// Mean power between the first and the last counter in a span; NAN where there are not two.
static double energy_power(const DeviceReading *first, const DeviceReading *last) {
    double span_s = last->time_s - first->time_s,
           spent = last->energy_joules - first->energy_joules;
    return span_s > 0 && isfinite(spent) && spent > 0 ? spent / span_s : NAN;
}

DeviceWindow device_window(const DeviceReading *readings, size_t num_readings, double begin_s,
                           double end_s) {
    DeviceWindow window = {.sm_clock_hz = NAN, .power_watts = NAN, .temperature_c = NAN};
    size_t end = 0;
    while (end < num_readings && readings[end].time_s <= end_s) end++;
    size_t begin = end;
    while (begin > 0 && readings[begin - 1].time_s >= begin_s) begin--;
    if (begin == end && begin > 0) begin--;
    if (begin == end) return window;
    double clocks = 0, watts = 0;
    int num_clocks = 0, num_watts = 0;
    for (size_t i = begin; i < end; i++) {
        add_finite(readings[i].sm_clock_hz, &clocks, &num_clocks);
        add_finite(readings[i].power_watts, &watts, &num_watts);
        window.temperature_c = fmax(window.temperature_c, readings[i].temperature_c);
        window.reasons |= readings[i].reasons;
    }
    window.num_readings = (int)(end - begin);
    if (num_clocks) window.sm_clock_hz = clocks / num_clocks;
    window.power_watts = energy_power(&readings[begin], &readings[end - 1]);
    if (!isfinite(window.power_watts) && num_watts) window.power_watts = watts / num_watts;
    return window;
}

static void keep(DeviceMonitor *monitor, DeviceReading reading) {
    if (monitor->num_readings == 2 * MOST_READINGS) {
        for (size_t i = 0; i < MOST_READINGS; i++)
            monitor->readings[i] = monitor->readings[MOST_READINGS + i];
        monitor->num_readings = MOST_READINGS;
    }
    monitor->readings[monitor->num_readings++] = reading;
}

static void *watch(void *argument) {
    DeviceMonitor *monitor = argument;
    pthread_mutex_lock(&monitor->mutex);
    while (!monitor->stop) {
        pthread_mutex_unlock(&monitor->mutex);
        DeviceReading reading = nvml_read(monitor->nvml); // milliseconds
        pthread_mutex_lock(&monitor->mutex);
        keep(monitor, reading);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += (long)(1e9 * MONITOR_PERIOD_S);
        if (until.tv_nsec >= 1000000000L) {
            until.tv_nsec -= 1000000000L;
            until.tv_sec++;
        }
        if (!monitor->stop) pthread_cond_timedwait(&monitor->wake, &monitor->mutex, &until);
    }
    pthread_mutex_unlock(&monitor->mutex);
    return NULL;
}

Status monitor_start(const Nvml *nvml, DeviceMonitor **out) {
    DeviceMonitor *monitor = calloc(1, sizeof *monitor);
    if (!monitor) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    monitor->nvml = nvml;
    pthread_mutex_init(&monitor->mutex, NULL);
    pthread_cond_init(&monitor->wake, NULL);
    if (!nvml || pthread_create(&monitor->thread, NULL, watch, monitor) == 0) {
        *out = monitor;
        return status_ok();
    }
    monitor->nvml = NULL; // there is no thread to join
    monitor_stop(monitor);
    return status_error(STATUS_MACHINE, "meshwright: a thread cannot be started");
}

DeviceWindow monitor_window(DeviceMonitor *monitor, double begin_s, double end_s) {
    pthread_mutex_lock(&monitor->mutex);
    DeviceWindow window = device_window(monitor->readings, monitor->num_readings, begin_s, end_s);
    pthread_mutex_unlock(&monitor->mutex);
    return window;
}

void monitor_stop(DeviceMonitor *monitor) {
    if (!monitor) return;
    if (monitor->nvml) {
        pthread_mutex_lock(&monitor->mutex);
        monitor->stop = true;
        pthread_cond_signal(&monitor->wake);
        pthread_mutex_unlock(&monitor->mutex);
        pthread_join(monitor->thread, NULL);
    }
    pthread_cond_destroy(&monitor->wake);
    pthread_mutex_destroy(&monitor->mutex);
    free(monitor);
}
