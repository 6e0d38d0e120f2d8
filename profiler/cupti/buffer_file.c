#include "profiler/cupti/buffer_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static Status failed(void) {
    return status_error(STATUS_MACHINE, "CUPTI's buffers cannot be written: %s", strerror(errno));
}

Status cupti_file_new(const CuptiLibrary *cupti, const char *path, FILE **out) {
    uint32_t version = 0;
    cupti->version(&version);
    CuptiFileHead head = {.cupti_version = version};
    memcpy(head.magic, CUPTI_FILE_MAGIC, sizeof head.magic);
    *out = fopen(path, "wbe");
    if (!*out) return status_error(STATUS_MACHINE, "%s: %s", path, strerror(errno));
    if (fwrite(&head, sizeof head, 1, *out) == 1) return status_ok();
    Status status = failed();
    fclose(*out);
    *out = NULL;
    return status;
}

// Of a kernel, NULL of all else.
static const char *name_of(const CUpti_Activity *activity) {
    if (activity->kind != CUPTI_ACTIVITY_KIND_KERNEL &&
        activity->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        return NULL;
    const CUpti_ActivityKernel10 *kernel = (const void *)activity;
    return kernel->name;
}

static uint64_t names_count(CuptiNextRecord next, uint8_t *buffer, size_t valid_bytes) {
    CUpti_Activity *activity = NULL;
    uint64_t num_names = 0;
    while (next(buffer, valid_bytes, &activity) == CUPTI_SUCCESS)
        if (name_of(activity)) num_names++;
    return num_names;
}

static void addresses_clear(uint8_t *record, CUpti_ActivityKind kind) {
    if (kind == CUPTI_ACTIVITY_KIND_OVERHEAD)
        ((CUpti_ActivityOverhead3 *)(void *)record)->overheadData = NULL;
    else if (kind == CUPTI_ACTIVITY_KIND_KERNEL || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        ((CUpti_ActivityKernel10 *)(void *)record)->name = NULL;
}

// The names go into the file, the addresses out of the copy.
static bool names_add(FILE *file, CuptiNextRecord next, uint8_t *buffer, size_t valid_bytes,
                      uint8_t *copy) {
    CUpti_Activity *activity = NULL;
    while (next(buffer, valid_bytes, &activity) == CUPTI_SUCCESS) {
        size_t at = (size_t)((uint8_t *)activity - buffer);
        addresses_clear(copy + at, activity->kind);
        const char *text = name_of(activity);
        if (!text) continue;
        CuptiFileName name = {.record_at = at, .num_bytes = strlen(text)};
        if (fwrite(&name, sizeof name, 1, file) != 1) return false;
        if (fwrite(text, 1, name.num_bytes, file) != name.num_bytes) return false;
    }
    return true;
}

Status cupti_file_add(FILE *file, CuptiNextRecord next, uint8_t *buffer, size_t valid_bytes) {
    CuptiFileBuffer head = {.valid_bytes = valid_bytes,
                            .num_names = names_count(next, buffer, valid_bytes)};
    uint8_t *copy = aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, (valid_bytes + 7) / 8 * 8);
    if (!copy) return status_error(STATUS_MACHINE, "out of memory");
    memcpy(copy, buffer, valid_bytes);
    bool good = fwrite(&head, sizeof head, 1, file) == 1 &&
                names_add(file, next, buffer, valid_bytes, copy) &&
                fwrite(copy, 1, valid_bytes, file) == valid_bytes && fflush(file) == 0;
    Status status = good ? status_ok() : failed();
    free(copy);
    return status;
}
