// tests/profiler/played_buffers.h - reads files of CUPTI's buffers (profiler/cupti/buffer_file.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint8_t *bytes;
    size_t valid_bytes;
} PlayedBuffer;

typedef struct {
    PlayedBuffer *buffers;
    size_t num_buffers;
} PlayedBuffers; // zero-initialise

// Appends the file's. The kernels have their names. All of it stays: records name parts of it.
bool played_buffers_read(const char *path, PlayedBuffers *out);
