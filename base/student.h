// base/student.h - Student's law with four degrees of freedom: like the normal law in the middle,
// with a far larger share of large deviations.
//
// Source: Lange, Little and Taylor, "Robust statistical modeling using the t distribution", J.
// Amer.
//         Statist. Assoc. 84, 1989 (four degrees of freedom where errors have outliers); with
//         s = x / sqrt(4 + x^2) the integral of the density is 1/2 + 3/4 (s - s^3 / 3).
#pragma once

// The probability that a number of that law is at most x; 0 at -INFINITY, 1 at INFINITY.
double student_probability(double x);

// The number that another exceeds with probability 1 - p: the inverse of the above.
//   p        0 < p < 1
//   returns  exact to about 1e-12
double student_quantile(double p);
