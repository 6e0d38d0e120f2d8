// report/fit_text.h - whether a plan fits, and how surely, in words.
#pragma once

#include "base/arena.h"
#include "costmodel/step/estimate.h"

// "fits (97 %)", "may not fit (55 %)" below 90 %, "does not fit (32 %)" below a half. A percentage
// is never said to be more than it is: 89.9 % is 89 %.
const char *fit_text(double fits_probability_frac, Arena *arena);

// Why an estimate's figures are extrapolated (config/job/evidence.h): "no published step of ZeRO-3
// with experts, of ...". NULL where they are not.
const char *extrapolated_text(const Estimate *estimate, Arena *arena);

// The same of the reasons as an answer has them.
const char *reasons_text(const char *const *reasons, int num_reasons, Arena *arena);

// "97 %", "over 99 %", "under 1 %".
const char *fit_percent(double fits_probability_frac, Arena *arena);
