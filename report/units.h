// report/units.h - quantities as people read them: the only place where units are scaled.
#pragma once

#include <stddef.h>

enum { UNITS_SIZE = 32 };

// Each fills text[UNITS_SIZE] and returns it.
const char *units_seconds(double time_s, char *text);    // "12.3 s", "4.56 ms", "789 us"
const char *units_span(double time_s, char *text);       // "47 s", "9.10 min", "21.3 days"
const char *units_bytes(double bytes, char *text);       // "67.9 GB", decimal
const char *units_memory(double bytes, char *text);      // "85.0 GB (79.2 GiB)": a card's size
const char *units_count(double count, char *text);       // "1.23 M", "405 k", "17"
const char *units_flops(double flops_per_s, char *text); // "410 TFLOP/s"
const char *units_percent(double frac, char *text);      // "41.2 %"
const char *units_usd(double usd, char *text);           // "41.0 USD"

// A number of three significant digits, never in exponential form below 1e15.
const char *units_plain(double value, char *text);
