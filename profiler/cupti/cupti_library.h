// profiler/cupti/cupti_library.h - the functions of CUPTI, found in the process at run time.
//
// Nothing links CUPTI: two copies in one process conflict, and PyTorch brings its own. A copy that
// is loaded already is used; else the first of MESHWRIGHT_CUPTI, the loader's search path and the
// places of cupti_find.h.
// Source: CUPTI 13.0 documentation, "CUPTI Activity API"; each field is the function named beside.
#pragma once

#include "base/status.h"

#include <cupti.h>

typedef CUptiResult (*CuptiNextRecord)(uint8_t *buffer, size_t valid_bytes,
                                       CUpti_Activity **record);

typedef struct {
    CUptiResult (*version)(uint32_t *version);                   // cuptiGetVersion
    CUptiResult (*result_string)(CUptiResult, const char **out); // cuptiGetResultString
    CUptiResult (*timestamp)(uint64_t *out_ns);                  // cuptiGetTimestamp
    CUptiResult (*thread_id_type)(CUpti_ActivityThreadIdType *); // cuptiGetThreadIdType
    CUptiResult (*enable)(CUpti_ActivityKind);                   // cuptiActivityEnable
    CUptiResult (*disable)(CUpti_ActivityKind);                  // cuptiActivityDisable
    CUptiResult (*flush_all)(uint32_t flag);                     // cuptiActivityFlushAll
    CuptiNextRecord next_record;                                 // cuptiActivityGetNextRecord
    // cuptiActivityRegisterCallbacks, cuptiActivityGetNumDroppedRecords
    CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc,
                                      CUpti_BuffersCallbackCompleteFunc);
    CUptiResult (*num_dropped)(CUcontext, uint32_t stream, size_t *out);
    // cuptiActivityPushExternalCorrelationId, cuptiActivityPopExternalCorrelationId
    CUptiResult (*push_tag)(CUpti_ExternalCorrelationKind, uint64_t id);
    CUptiResult (*pop_tag)(CUpti_ExternalCorrelationKind, uint64_t *last);
} CuptiLibrary;

// Fails with STATUS_MACHINE where there is no CUPTI of this version, or another one is loaded.
Status cupti_library_load(CuptiLibrary *out);

// The failure of a call, with CUPTI's own words; what is its name.
Status cupti_library_error(const CuptiLibrary *cupti, CUptiResult result, const char *what);
