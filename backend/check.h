// backend/check.h - are the operations of a device right? Each runs at several sizes, odd ones too,
// on random input, and is set beside the same operation of the CPU in fp64.
//
// Both get the same numbers, rounded to the device's formats before. Whatever is to be written
// holds NaN before, whatever is not to be written must hold it still, and so must the memory
// behind.
#pragma once

#include "backend/backend.h"

// One operation at one size; of its arrays, the one that is furthest off for its tolerance.
typedef struct {
    char name[32];    // "norm_backward"
    char sizes[96];   // "layer 37 x 1600, in place"
    char array[16];   // "dweight"
    double error;     // ||found - expected|| / ||expected||; infinite: NaN, or written where not to
    double largest;   // of |found - expected| / (|expected| + root mean square of expected)
    double tolerance; // of error; of `largest`, CHECK_LARGEST times it
    bool wrong;
} BackendCheck;

enum { CHECK_LARGEST = 5 };

typedef void (*CheckReport)(void *context, const BackendCheck *check);

// Reports each case; the first failure of the device ends the check.
Status backend_check(Backend *device, CheckReport report, void *context);
