// profiler/cupti/buffer_file.h - CUPTI's buffers as it filled them, in a file.
//
// For replays where there is no GPU, and to show what a machine recorded that we cannot read. With
// MESHWRIGHT_CUPTI_RECORD=PREFIX in the environment a session (cupti_session.h) writes them to
// PREFIX.PID.N.cupti, N from 0. A file is a CuptiFileHead, then for each buffer a CuptiFileBuffer,
// its names (each a CuptiFileName and its bytes) and valid_bytes of records, in the order of their
// coming. Records hold addresses: of kernels' names, which are in the file by where their record
// begins, and of data of overheads, which is not. Both are 0 in the records. Numbers are as this
// machine has them.
#pragma once

#include "profiler/cupti/cupti_library.h"

#include <stdint.h>
#include <stdio.h>

#define CUPTI_FILE_MAGIC "MWCUPTI1"

typedef struct {
    char magic[8];
    uint64_t cupti_version; // cuptiGetVersion
} CuptiFileHead;

typedef struct {
    uint64_t valid_bytes, num_names;
} CuptiFileBuffer;

typedef struct {
    uint64_t record_at; // bytes from the buffer's begin
    uint64_t num_bytes; // of the name, without a terminator
} CuptiFileName;

// A new file with its head; fails with STATUS_MACHINE where it cannot be made.
Status cupti_file_new(const CuptiLibrary *cupti, const char *path, FILE **out);

// Appends a buffer. It may be read and freed afterwards; the records are left as they are.
Status cupti_file_add(FILE *file, CuptiNextRecord next, uint8_t *buffer, size_t valid_bytes);
