// profiler/cupti/activity_read.h - one record of CUPTI as one of ours.
//
// Source: CUPTI 13.0, cupti_activity.h: CUpti_ActivityKernel10, Memcpy6, Memset4.
#pragma once

#include "profiler/activity.h"

#include <cupti.h>

typedef enum {
    ACTIVITY_WORK,       // a kernel, copy or set
    ACTIVITY_INCOMPLETE, // one without its times: unfinished, or CUPTI had no memory for them
    ACTIVITY_OTHER,
} ActivityClass;

// Reads one record of work. The name is CUPTI's own or constant; never NULL.
ActivityClass activity_read(const CUpti_Activity *activity, ActivityRecord *out);
