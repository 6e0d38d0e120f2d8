// report/fleet_report.h - which cluster is large enough, for people.
#pragma once

#include "config/scenario.h"
#include "whatif/fleet.h"

#include <stdio.h>

void report_fleet(const Scenario *scenario, const Fleet *fleet, FILE *stream);
