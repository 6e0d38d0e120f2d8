// backend/check_case.h - one case of backend/check.h: its arrays on the device and on the
// reference.
//
// A case is begun, its arrays are made, the operation is queued once for each side, the case is
// ended: that compares every array.
#pragma once

#include "backend/check.h"
#include "base/arena.h"

typedef enum { CHECK_DEVICE, CHECK_REFERENCE, NUM_CHECK_SIDES } CheckSide;

#define FOR_EACH_SIDE(side) for (int side = 0; side < NUM_CHECK_SIDES; side++)

typedef enum {
    CHECK_ACT,
    CHECK_WIDE,
    CHECK_WIDE_OF_ACT, // wide, but of values that the device may round to act before
    CHECK_INT,
} CheckFormat;

typedef enum {
    CHECK_READ,    // must stay as it is
    CHECK_CHANGED, // holds values before
    CHECK_WRITTEN, // holds NaN before
} CheckUse;

typedef struct {
    const char *name;
    CheckFormat format;
    CheckUse use;
    int64_t count;
    void *at[NUM_CHECK_SIDES]; // of the reference: in the host's memory, fp64 or int32
} CheckArray;

enum { MAX_CHECK_ARRAYS = 16 };

typedef struct {
    Backend *sides[NUM_CHECK_SIDES];
    CheckReport report;
    void *context;
    Arena arena; // of the case
    CheckArray arrays[MAX_CHECK_ARRAYS];
    int num_arrays;
    uint32_t num_draws; // of random arrays, so that no two are the same
    BackendCheck worst; // of the case
} Checker;

void case_begin(Checker *checker, const char *name, const char *sizes, ...)
    __attribute__((format(printf, 3, 4)));

// Uniform of mean 0 and the given standard deviation, rounded to the device's format.
const CheckArray *case_random(Checker *checker, const char *name, CheckFormat format, CheckUse use,
                              int64_t count, double deviation);
// These values, rounded to the device's format. [count]
const CheckArray *case_values(Checker *checker, const char *name, CheckFormat format, CheckUse use,
                              int64_t count, const double *values);
const CheckArray *case_ints(Checker *checker, const char *name, int64_t count,
                            const int32_t *values);
const CheckArray *case_written(Checker *checker, const char *name, CheckFormat format,
                               int64_t count);

// Uniform between 0 and 1; whole numbers from `first` on, below end. Other ones by every call.
// [count]
double *draw_fracs(Checker *checker, int64_t count);
int32_t *draw_ints(Checker *checker, int64_t count, int32_t first, int32_t end);

// Element `offset` of an array on a side.
void *array_at(const Checker *checker, const CheckArray *array, int side, int64_t offset);

// Compares, reports and frees the arrays.
void case_end(Checker *checker);

static inline const BackendTable *table_of(const Checker *checker, int side) {
    return checker->sides[side]->table;
}

// --- The cases, by kind of operation

void check_products(Checker *checker);
void check_norms(Checker *checker);
void check_activations(Checker *checker); // and rope
void check_attention(Checker *checker);
void check_attention_merge(Checker *checker);
void check_vocabulary(Checker *checker);
void check_optimizers(Checker *checker);
void check_routing(Checker *checker);
void check_elementwise(Checker *checker);
void check_moves(Checker *checker); // copies, streams, events
