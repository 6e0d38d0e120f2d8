#include "profiler/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} NUMBERS[NUM_NUMBERS] = {
    [NUMBER_BFLOAT16] = {"bfloat16", 2}, [NUMBER_FLOAT16] = {"float16", 2},
    [NUMBER_FLOAT32] = {"float32", 4},   [NUMBER_TF32] = {"tf32", 4},
    [NUMBER_FP8] = {"fp8", 1},           [NUMBER_FP8_E5M2] = {"fp8_e5m2", 1},
    [NUMBER_INT32] = {"int32", 4},       [NUMBER_UINT8] = {"uint8", 1},
};

const char *number_name(Number dtype) {
    return NUMBERS[dtype].name;
}

size_t number_bytes(Number dtype) {
    return NUMBERS[dtype].bytes;
}

// A binary format narrower than float: sign, exponent, mantissa.
typedef struct {
    int exponent_bits, mantissa_bits, bias;
    double largest;
} Format;

static const Format BFLOAT16 = {8, 7, 127, 0x1.fep127};
static const Format FLOAT16 = {5, 10, 15, 65504};
static const Format E4M3 = {4, 3, 7, 448};
static const Format E5M2 = {5, 2, 15, 57344};

static uint32_t format_encode(const Format *format, double value) {
    uint32_t sign = signbit(value) ? 1u << (format->exponent_bits + format->mantissa_bits) : 0;
    double size = fmin(fabs(value), format->largest);
    if (size == 0) return sign;
    int exponent;
    frexp(size, &exponent); // size = [0.5, 1) 2^exponent
    int scale = exponent - 1;
    if (scale < 1 - format->bias) scale = 1 - format->bias; // subnormal
    // In units of the last place; a carry into the next exponent adds up by itself.
    double units = nearbyint(ldexp(size, format->mantissa_bits - scale));
    uint32_t implicit = 1u << format->mantissa_bits;
    return sign | (uint32_t)((double)(uint32_t)(scale + format->bias - 1) * implicit + units);
}

static double format_decode(const Format *format, uint32_t bits) {
    uint32_t implicit = 1u << format->mantissa_bits;
    uint32_t mantissa = bits & (implicit - 1);
    int exponent = (int)(bits >> format->mantissa_bits) & ((1 << format->exponent_bits) - 1);
    bool negative = bits >> (format->exponent_bits + format->mantissa_bits) & 1;
    int all_ones = (1 << format->exponent_bits) - 1;
    if (exponent == all_ones && (format == &FLOAT16 || format == &E5M2))
        return mantissa ? NAN : negative ? -INFINITY : INFINITY;
    if (format == &E4M3 && (bits & 0x7f) == 0x7f) return NAN;
    double units = exponent ? (double)(mantissa + implicit) : (double)mantissa;
    if (!exponent) exponent = 1;
    double value = ldexp(units, exponent - format->bias - format->mantissa_bits);
    return negative ? -value : value;
}

// The upper half of a float: the one that is read often.
static double bfloat16_decode(uint16_t bits) {
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return (double)value;
}

double number_read(Number dtype, const void *array, size_t i) {
    switch (dtype) {
    case NUMBER_BFLOAT16:
        return bfloat16_decode(((const uint16_t *)array)[i]);
    case NUMBER_FLOAT16:
        return format_decode(&FLOAT16, ((const uint16_t *)array)[i]);
    case NUMBER_FP8:
        return format_decode(&E4M3, ((const uint8_t *)array)[i]);
    case NUMBER_FP8_E5M2:
        return format_decode(&E5M2, ((const uint8_t *)array)[i]);
    case NUMBER_INT32:
        return ((const int32_t *)array)[i];
    case NUMBER_UINT8:
        return ((const uint8_t *)array)[i];
    default:
        return (double)((const float *)array)[i];
    }
}

void number_write(Number dtype, void *array, size_t i, double value) {
    switch (dtype) {
    case NUMBER_BFLOAT16:
        ((uint16_t *)array)[i] = (uint16_t)format_encode(&BFLOAT16, value);
        return;
    case NUMBER_FLOAT16:
        ((uint16_t *)array)[i] = (uint16_t)format_encode(&FLOAT16, value);
        return;
    case NUMBER_FP8:
        ((uint8_t *)array)[i] = (uint8_t)format_encode(&E4M3, value);
        return;
    case NUMBER_FP8_E5M2:
        ((uint8_t *)array)[i] = (uint8_t)format_encode(&E5M2, value);
        return;
    case NUMBER_INT32:
        ((int32_t *)array)[i] = (int32_t)value;
        return;
    case NUMBER_UINT8:
        ((uint8_t *)array)[i] = (uint8_t)value;
        return;
    default:
        ((float *)array)[i] = (float)value;
    }
}
