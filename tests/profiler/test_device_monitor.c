#include "profiler/device_monitor.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

// At 1, 2, 3, 4 s: clocks 2, 1.8, 1.6, 1.4 GHz; the counter grows by 100, 300, 500 J.
static const DeviceReading READINGS[] = {
    {1, 2.0e9, 2.6e9, 90, 1000, 40, NVML_REASON_IDLE},
    {2, 1.8e9, 2.6e9, 110, 1100, 45, 0},
    {3, 1.6e9, 2.6e9, 130, 1400, 50, NVML_REASON_POWER_CAP},
    {4, 1.4e9, 2.6e9, 150, 1900, 48, 0},
};

// Readings 2 and 3: (1.8 + 1.6) / 2 GHz, 300 J in a second.
static void a_window_holds_the_readings_in_it(void) {
    DeviceWindow window = device_window(READINGS, 4, 1.5, 3.5);
    CU_ASSERT_EQUAL(window.num_readings, 2);
    CU_ASSERT_DOUBLE_EQUAL(window.sm_clock_hz, 1.7e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(window.power_watts, 300, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(window.temperature_c, 50, 0);
    CU_ASSERT_EQUAL(window.reasons, NVML_REASON_POWER_CAP);
}

static void between_readings_the_last_one_counts(void) {
    DeviceWindow window = device_window(READINGS, 4, 2.1, 2.2);
    CU_ASSERT_EQUAL(window.num_readings, 1);
    CU_ASSERT_DOUBLE_EQUAL(window.sm_clock_hz, 1.8e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(window.power_watts, 110, 0); // one counter tells no power
}

static void before_all_readings_nothing_is_known(void) {
    DeviceWindow window = device_window(READINGS, 4, 0.1, 0.2);
    CU_ASSERT_EQUAL(window.num_readings, 0);
    CU_ASSERT(isnan(window.sm_clock_hz) && isnan(window.power_watts));
    CU_ASSERT(isnan(window.temperature_c));
}

static void without_a_counter_the_devices_mean_counts(void) {
    DeviceReading readings[4];
    memcpy(readings, READINGS, sizeof readings);
    for (int i = 0; i < 4; i++) readings[i].energy_joules = NAN;
    readings[1].power_watts = NAN;
    CU_ASSERT_DOUBLE_EQUAL(device_window(readings, 4, 1, 4).power_watts, (90 + 130 + 150) / 3.0,
                           1e-9);
}

static void a_monitor_without_a_device_knows_nothing(void) {
    DeviceMonitor *monitor;
    CU_ASSERT_EQUAL(monitor_start(NULL, &monitor).code, STATUS_OK);
    CU_ASSERT_EQUAL(monitor_window(monitor, 0, 1e9).num_readings, 0);
    monitor_stop(monitor);
    monitor_stop(NULL);
}

CU_TestInfo device_monitor_tests[] = {
    {"a_window_holds_the_readings_in_it", a_window_holds_the_readings_in_it},
    {"between_readings_the_last_one_counts", between_readings_the_last_one_counts},
    {"before_all_readings_nothing_is_known", before_all_readings_nothing_is_known},
    {"without_a_counter_the_devices_mean_counts", without_a_counter_the_devices_mean_counts},
    {"a_monitor_without_a_device_knows_nothing", a_monitor_without_a_device_knows_nothing},
    CU_TEST_INFO_NULL,
};
