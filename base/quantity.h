// base/quantity.h - quantities as people write them: "80GB", "400Gb/s", "15T", "60d", "5%".
//
// A text is a decimal number, white space if any, and a unit; without a unit it is in the SI base
// unit. Prefixes: k (or K), M, G, T, P, E are powers of 1000; Ki, Mi, Gi, Ti, Pi, Ei powers of 1024
// (IEC 80000-13). What two readers would read differently is refused with the question: Gb, gb or G
// of a memory, k of a sequence length, m of a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    QUANTITY_PLAIN,        // no unit
    QUANTITY_COUNT,        // Ki, Mi, Gi; k, M, G are refused: 1000 or 1024?
    QUANTITY_TOKENS,       // of a budget: k, M, B, T are powers of 1000
    QUANTITY_SECONDS,      // ns, us, ms, s, min, h, d, weeks
    QUANTITY_BYTES,        // B, kB, GB, GiB, ...
    QUANTITY_BYTES_PER_S,  // GB/s, GiB/s; Gb/s, Gbit/s, Gbps (bits)
    QUANTITY_FLOPS,        // TFLOP
    QUANTITY_FLOPS_PER_S,  // TFLOP/s, TFLOPS
    QUANTITY_TOKENS_PER_S, // k, M
    QUANTITY_FRAC,         // %
    QUANTITY_USD,          // $2.5, 2.5 USD, 2.5 USD/h
    QUANTITY_WATTS,        // W, kW, MW
    NUM_QUANTITIES
} QuantityKind;

// strtod for what others wrote: decimal numbers alone, with white space before them. Neither 0x10,
// which some read as 16 and some as 0, nor inf and nan; then *end is text.
double decimal_read(const char *text, char **end);

// What a key of a document holds, by the unit at the end of its name.
QuantityKind quantity_of_key(const char *key);

// Reads a text. It returns false where the text does not begin as a number does; then why is "". It
// also does so where the unit is unknown or ambiguous. Then why[why_size] says what would be legal,
// in a sentence that begins with the quoted text.
bool quantity_parse(const char *text, QuantityKind kind, double *out, char *why, size_t why_size);
