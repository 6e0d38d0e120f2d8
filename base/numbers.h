// base/numbers.h - small functions of numbers that several places need.
#pragma once

#include <stdint.h>

// Spreads the bits of a number over all others: a step of SplitMix64 (Steele, Lea, Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014).
uint64_t mix64(uint64_t x);

// The greatest number that divides both, of numbers >= 0; the other one where one is 0.
int64_t common_divisor(int64_t a, int64_t b);

// The place of the last of ascending knots at or below x; 0 where there is none.
int knot_below(const double *knots, int num_knots, double x);
