#include "backend/check_case.h"

#include "base/random.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// NaN behind every array, of which nothing may be read and to which nothing may be written.
enum { GUARD = 64 };

// --- Formats

static Dtype dtype_on(const Checker *checker, CheckFormat format, int side) {
    if (format == CHECK_INT) return DTYPE_INT32;
    return format == CHECK_ACT ? checker->sides[side]->act : checker->sides[side]->wide;
}

// Round to nearest, ties to even, as all devices do.
static uint16_t bf16_of(double value) {
    float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    if (isnan(rounded)) return UINT16_MAX;
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static double value_of_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double rounded_to(Dtype dtype, double value) {
    if (dtype == DTYPE_BF16) return value_of_bf16(bf16_of(value));
    return dtype == DTYPE_FP32 ? (double)(float)value : value;
}

static void encode(Dtype dtype, void *to, const double *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        switch (dtype) {
        case DTYPE_BF16:
            ((uint16_t *)to)[i] = bf16_of(from[i]);
            break;
        case DTYPE_FP32:
            ((float *)to)[i] = (float)from[i];
            break;
        case DTYPE_FP64:
            ((double *)to)[i] = from[i];
            break;
        default:
            ((int32_t *)to)[i] = (int32_t)from[i];
        }
    }
}

static void decode(Dtype dtype, double *to, const void *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        switch (dtype) {
        case DTYPE_BF16:
            to[i] = value_of_bf16(((const uint16_t *)from)[i]);
            break;
        case DTYPE_FP32:
            to[i] = ((const float *)from)[i];
            break;
        case DTYPE_FP64:
            to[i] = ((const double *)from)[i];
            break;
        default:
            to[i] = ((const int32_t *)from)[i];
        }
    }
}

// --- Arrays

void case_begin(Checker *checker, const char *name, const char *sizes, ...) {
    checker->num_arrays = 0;
    checker->worst = (BackendCheck){.error = -1};
    snprintf(checker->worst.name, sizeof checker->worst.name, "%s", name);
    va_list arguments;
    va_start(arguments, sizes);
    vsnprintf(checker->worst.sizes, sizeof checker->worst.sizes, sizes, arguments);
    va_end(arguments);
}

static size_t array_bytes(const Checker *checker, const CheckArray *array, int side) {
    return (size_t)(array->count + GUARD) * dtype_bytes(dtype_on(checker, array->format, side));
}

// Values NULL: NaN everywhere. The reference computes in the host's memory, which is the arena's.
static const CheckArray *array_make(Checker *checker, CheckArray array, const double *values) {
    assert(checker->num_arrays < MAX_CHECK_ARRAYS);
    FOR_EACH_SIDE(side) {
        size_t bytes = array_bytes(checker, &array, side);
        array.at[side] = arena_alloc(&checker->arena, bytes);
        memset(array.at[side], 0xff, bytes); // NaN in every format, -1 of an int32
        if (values == NULL) continue;
        encode(dtype_on(checker, array.format, side), array.at[side], values, array.count);
    }
    Backend *device = checker->sides[CHECK_DEVICE];
    const void *host = array.at[CHECK_DEVICE];
    size_t bytes = array_bytes(checker, &array, CHECK_DEVICE);
    array.at[CHECK_DEVICE] = device->table->alloc(device, bytes);
    device->table->upload(device, array.at[CHECK_DEVICE], host, bytes, device->stream);
    checker->arrays[checker->num_arrays] = array;
    return &checker->arrays[checker->num_arrays++];
}

const CheckArray *case_values(Checker *checker, const char *name, CheckFormat format, CheckUse use,
                              int64_t count, const double *values) {
    double *rounded = ARENA_ARRAY(&checker->arena, count, double);
    Dtype dtype = dtype_on(checker, format, CHECK_DEVICE);
    for (int64_t i = 0; i < count; i++) rounded[i] = rounded_to(dtype, values[i]);
    return array_make(checker, (CheckArray){name, format, use, count, {NULL}}, rounded);
}

double *draw_fracs(Checker *checker, int64_t count) {
    double *values = ARENA_ARRAY(&checker->arena, count, double);
    checker->num_draws++;
    for (int64_t i = 0; i < count; i += RANDOM_WORDS) {
        const uint32_t counter[RANDOM_WORDS] = {(uint32_t)(i / RANDOM_WORDS), checker->num_draws};
        uint32_t words[RANDOM_WORDS];
        random_words(0, counter, words);
        for (int w = 0; w < RANDOM_WORDS && i + w < count; w++) {
            values[i + w] = (words[w] + 0.5) / 4294967296.0;
        }
    }
    return values;
}

const CheckArray *case_random(Checker *checker, const char *name, CheckFormat format, CheckUse use,
                              int64_t count, double deviation) {
    double *values = draw_fracs(checker, count);
    double width = sqrt(12) * deviation;
    for (int64_t i = 0; i < count; i++) values[i] = (values[i] - 0.5) * width;
    return case_values(checker, name, format, use, count, values);
}

int32_t *draw_ints(Checker *checker, int64_t count, int32_t first, int32_t end) {
    double *values = draw_fracs(checker, count);
    int32_t *ints = ARENA_ARRAY(&checker->arena, count, int32_t);
    for (int64_t i = 0; i < count; i++) ints[i] = (int32_t)floor(first + values[i] * (end - first));
    return ints;
}

const CheckArray *case_ints(Checker *checker, const char *name, int64_t count,
                            const int32_t *values) {
    double *copy = ARENA_ARRAY(&checker->arena, count, double);
    for (int64_t i = 0; i < count; i++) copy[i] = values[i];
    return array_make(checker, (CheckArray){name, CHECK_INT, CHECK_READ, count, {NULL}}, copy);
}

const CheckArray *case_written(Checker *checker, const char *name, CheckFormat format,
                               int64_t count) {
    return array_make(checker, (CheckArray){name, format, CHECK_WRITTEN, count, {NULL}}, NULL);
}

void *array_at(const Checker *checker, const CheckArray *array, int side, int64_t offset) {
    return (char *)array->at[side] +
           offset * (int64_t)dtype_bytes(dtype_on(checker, array->format, side));
}

// With the guard: [count + GUARD].
static double *read_back(Checker *checker, const CheckArray *array, int side) {
    Backend *backend = checker->sides[side];
    Dtype dtype = dtype_on(checker, array->format, side);
    int64_t count = array->count + GUARD;
    size_t bytes = array_bytes(checker, array, side);
    void *host = arena_alloc(&checker->arena, bytes);
    double *values = ARENA_ARRAY(&checker->arena, count, double);
    Status status =
        backend->table->download(backend, host, array->at[side], bytes, backend->stream);
    if (status.code == STATUS_OK) decode(dtype, values, host, count);
    return values;
}

// --- Comparing

// By format of what is compared. bf16 keeps 8 bits, an error of at most 2^-9 and about 0.0011 in
// the mean; products of rounded factors, as in attention, add up to three such errors. In fp32 sums
// of some thousand terms lose about 2^-24 of each partial sum.
static double tolerance_of(Dtype dtype) {
    switch (dtype) {
    case DTYPE_BF16:
        return 1e-2;
    case DTYPE_FP32:
        return 1e-5;
    case DTYPE_FP64:
        return 1e-12;
    default:
        return 0;
    }
}

// What is infinite or NaN must be so on both sides.
static bool same_kind(double found, double expected) {
    if (isnan(expected)) return isnan(found);
    return isfinite(expected) ? isfinite(found) : found == expected;
}

static void compare(const double *found, const double *expected, int64_t count, double *error,
                    double *largest) {
    double square = 0, difference_square = 0;
    int64_t num_finite = 0;
    *error = *largest = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!same_kind(found[i], expected[i])) *error = INFINITY;
        if (!isfinite(found[i]) || !isfinite(expected[i])) continue;
        double difference = found[i] - expected[i];
        square += expected[i] * expected[i];
        difference_square += difference * difference;
        num_finite++;
    }
    if (difference_square == 0 || *error > 0) return;
    double mean = sqrt(square / (double)num_finite);
    *error = sqrt(difference_square / square);
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(expected[i])) continue;
        *largest = fmax(*largest, fabs(found[i] - expected[i]) / (fabs(expected[i]) + mean));
    }
}

static void compare_array(Checker *checker, const CheckArray *array) {
    BackendCheck check = checker->worst;
    CheckFormat format = array->format == CHECK_WIDE_OF_ACT ? CHECK_ACT : array->format;
    Dtype dtype = dtype_on(checker, format, CHECK_DEVICE);
    check.tolerance = array->use == CHECK_READ ? 0 : tolerance_of(dtype);
    compare(read_back(checker, array, CHECK_DEVICE), read_back(checker, array, CHECK_REFERENCE),
            array->count + GUARD, &check.error, &check.largest);
    check.wrong =
        !(check.error <= check.tolerance && check.largest <= CHECK_LARGEST * check.tolerance);
    snprintf(check.array, sizeof check.array, "%s", array->name);
    if (array->use == CHECK_READ && !check.wrong) return;
    bool worse = check.error * checker->worst.tolerance > checker->worst.error * check.tolerance;
    bool first = checker->worst.error < 0;
    if (first || (check.wrong && !checker->worst.wrong) ||
        (check.wrong == checker->worst.wrong && worse)) {
        checker->worst = check;
    }
}

void case_end(Checker *checker) {
    for (int i = 0; i < checker->num_arrays; i++) compare_array(checker, &checker->arrays[i]);
    Backend *device = checker->sides[CHECK_DEVICE];
    bool failed = backend_sync(device).code != STATUS_OK;
    for (int i = 0; i < checker->num_arrays; i++) {
        const CheckArray *array = &checker->arrays[i];
        if (array->at[CHECK_DEVICE] == NULL) continue;
        device->table->release(device, array->at[CHECK_DEVICE],
                               array_bytes(checker, array, CHECK_DEVICE));
    }
    if (!failed) checker->report(checker->context, &checker->worst);
    arena_reset(&checker->arena);
}
