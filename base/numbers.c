#include "base/numbers.h"

uint64_t mix64(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int knot_below(const double *knots, int num_knots, double x) {
    int low = 0, high = num_knots;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (knots[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}
