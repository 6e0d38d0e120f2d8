// tests/laws/draw.h - random choices of one case: the same for the same seed and number, on every
// machine.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Where the next choice comes from. One case has one; it is not shared between cases.
typedef struct {
    uint64_t seed;
    uint32_t number, attempt; // of the case, and how often it was drawn before
    uint32_t next;            // choices that were made
} Draw;

Draw draw_start(uint64_t seed, uint32_t number, uint32_t attempt);

int draw_int(Draw *draw, int least, int most); // both are possible
bool draw_chance(Draw *draw, double frac);     // true in this share of cases
double draw_number(Draw *draw, double least, double most);
int draw_divisor(Draw *draw, int of);                        // of a positive number
int draw_power(Draw *draw, int most);                        // 1, 2, 4, ... up to most
int draw_of(Draw *draw, const int *values);                  // of a list that ends with 0
const char *draw_text(Draw *draw, const char *const *texts); // of a list that ends with NULL
