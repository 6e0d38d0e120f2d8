// base/normal.h - the standard normal law.
//
// Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.2 and 26.2.29 (the
//         distribution as an error function).
#pragma once

// The probability that a standard normal number is at most x; 0 at -INFINITY, 1 at INFINITY.
double normal_probability(double x);

// The number that a standard normal one exceeds with probability 1 - p: the inverse of the above.
//   p        0 < p < 1
//   returns  exact to about 1e-12; the same on every machine to that
double normal_quantile(double p);
