#include "base/student.h"

#include <math.h>

static const double FREEDOM = 4;

double student_probability(double x) {
    if (isinf(x)) return x > 0;
    const double s = x / sqrt(FREEDOM + x * x);
    return 0.5 + 0.75 * (s - s * s * s / 3);
}

// By halving: 60 halvings of 400 leave 3e-16.
double student_quantile(double p) {
    double low = -200, high = 200;
    if (p == 0.5) return 0;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (student_probability(middle) < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}
