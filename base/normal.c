#include "base/normal.h"

#include <math.h>

double normal_probability(double x) {
    return 0.5 * erfc(-x / sqrt(2));
}

// By halving: 60 halvings of 40 leave 3e-17.
double normal_quantile(double p) {
    double low = -20, high = 20;
    if (p == 0.5) return 0;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (normal_probability(middle) < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}
