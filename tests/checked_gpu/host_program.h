// tests/checked_gpu/host_program.h - the parts of checked-host.
#pragma once

#include <stdbool.h>

// Prints a line, and counts where it does not hold.
void expect(bool holds, const char *what);

// --- streams.c

void test_programs(void);
void test_lost_waits(void);
void test_each_wait(void);
