#include "profiler/nvml.h"

#include <CUnit/CUnit.h>

// Bits as nvml.h documents them (nvmlClocksEventReasonSwPowerCap 0x4, HwThermalSlowdown 0x40, ...).
static void reasons_have_names(void) {
    char text[NVML_REASONS_SIZE];
    CU_ASSERT_STRING_EQUAL(nvml_reasons_text(0, text), "none");
    CU_ASSERT_STRING_EQUAL(nvml_reasons_text(0x1, text), "none"); // idle
    CU_ASSERT_STRING_EQUAL(nvml_reasons_text(0x4, text), "power_cap");
    CU_ASSERT_STRING_EQUAL(nvml_reasons_text(0x44, text), "power_cap+hardware_thermal");
    CU_ASSERT_STRING_EQUAL(nvml_reasons_text(0x604, text), "power_cap+0x600");
    CU_ASSERT_STRING_EQUAL(nvml_reasons_text(0x1ff, text),
                           "application_clocks+power_cap+hardware+sync_boost+thermal+"
                           "hardware_thermal+power_brake+display");
}

static void idle_and_chosen_clocks_are_no_throttling(void) {
    CU_ASSERT_EQUAL(nvml_throttles(0x3), 0);
    CU_ASSERT_EQUAL(nvml_throttles(0x7), 0x4);
    CU_ASSERT_EQUAL(nvml_throttles(0x80), 0x80);
}

CU_TestInfo nvml_tests[] = {
    {"reasons_have_names", reasons_have_names},
    {"idle_and_chosen_clocks_are_no_throttling", idle_and_chosen_clocks_are_no_throttling},
    CU_TEST_INFO_NULL,
};
