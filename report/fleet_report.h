// report/fleet_report.h - which cluster is large enough, for people.
#pragma once

#include "config/job/scenario.h"
#include "whatif/fleet.h"

#include <stdio.h>

// "dgx-h100: 512 GPUs, 29.41 days, 1.1 M USD (2.1 s)": one kind of machine in a line.
const char *report_fleet_row(const FleetEntry *entry, Arena *arena);

void report_fleet(const Scenario *scenario, const Fleet *fleet, FILE *stream);
