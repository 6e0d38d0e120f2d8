// planner/stages/last_fit.h - the largest number with which something still fits, where more never
// need less: from a guess in steps that double, then halving the distance.
#pragma once

#include <stdbool.h>

typedef bool (*Fits)(void *context, int number);

// The largest number from least to most that fits; least - 1 where none does.
//   guess  of it: any number
int last_fit(int least, int most, int guess, Fits fits, void *context);
