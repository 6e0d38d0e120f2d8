#include "profiler/cupti/cupti_library.h"

#include "profiler/cupti/cupti_find.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Field of CuptiLibrary, symbol.
#define FUNCTIONS(ROW)                                                                             \
    ROW(version, cuptiGetVersion)                                                                  \
    ROW(result_string, cuptiGetResultString)                                                       \
    ROW(timestamp, cuptiGetTimestamp)                                                              \
    ROW(thread_id_type, cuptiGetThreadIdType)                                                      \
    ROW(enable, cuptiActivityEnable)                                                               \
    ROW(disable, cuptiActivityDisable)                                                             \
    ROW(flush_all, cuptiActivityFlushAll)                                                          \
    ROW(next_record, cuptiActivityGetNextRecord)                                                   \
    ROW(register_callbacks, cuptiActivityRegisterCallbacks)                                        \
    ROW(num_dropped, cuptiActivityGetNumDroppedRecords)                                            \
    ROW(push_tag, cuptiActivityPushExternalCorrelationId)                                          \
    ROW(pop_tag, cuptiActivityPopExternalCorrelationId)

// The fields have the types that the header declares.
#define TYPE_CHECK(field, symbol)                                                                  \
    _Static_assert(_Generic(&symbol, __typeof__(((CuptiLibrary *)0)->field) : 1, default : 0),     \
                   "the type of " #symbol);
FUNCTIONS(TYPE_CHECK)

// Another version that the process has loaded: its name, or NULL.
static const char *other_version_loaded(void) {
    static const char *const OTHERS[] = {"libcupti.so.14", "libcupti.so.12", "libcupti.so.11.8",
                                         "libcupti.so.11.7"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        void *handle = dlopen(OTHERS[i], RTLD_NOW | RTLD_NOLOAD);
        if (!handle) continue;
        dlclose(handle);
        return OTHERS[i];
    }
    return NULL;
}

static Status handle_open(void **out) {
    *out = dlopen(CUPTI_SONAME, RTLD_NOW | RTLD_NOLOAD);
    if (*out) return status_ok();
    const char *other = other_version_loaded();
    if (other)
        return status_error(STATUS_MACHINE, "the process has loaded %s; only %s can be read", other,
                            CUPTI_SONAME);
    const char *chosen = getenv("MESHWRIGHT_CUPTI");
    char path[4096];
    if (chosen && *chosen)
        *out = dlopen(chosen, RTLD_NOW);
    else if (!(*out = dlopen(CUPTI_SONAME, RTLD_NOW)) && cupti_find(NULL, path, sizeof path))
        *out = dlopen(path, RTLD_NOW);
    if (*out) return status_ok();
    const char *why = dlerror();
    return status_error(STATUS_MACHINE,
                        "CUPTI cannot be loaded: %.300s (MESHWRIGHT_CUPTI names it)",
                        why ? why : "not found");
}

// A function of the library; ISO C has no conversion from an object's pointer.
static bool function_find(void *handle, const char *symbol, void *field, size_t size) {
    void *found = dlsym(handle, symbol);
    memcpy(field, &found, size);
    return found != NULL;
}

Status cupti_library_load(CuptiLibrary *out) {
    *out = (CuptiLibrary){0};
    void *handle;
    TRY(handle_open(&handle)); // never closed: CUPTI keeps threads of its own
#define FIND(field, symbol)                                                                        \
    if (!function_find(handle, #symbol, &out->field, sizeof out->field))                           \
        return status_error(STATUS_MACHINE, "CUPTI has no %s", #symbol);
    FUNCTIONS(FIND)
    return status_ok();
}

Status cupti_library_error(const CuptiLibrary *cupti, CUptiResult result, const char *what) {
    const char *text = NULL;
    if (cupti->result_string(result, &text) != CUPTI_SUCCESS || !text) text = "unknown";
    return status_error(STATUS_MACHINE, "CUPTI: %s: %s (%d)", what, text, (int)result);
}
