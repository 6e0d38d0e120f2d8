// profiler/cupti/cupti_session.h - records of CUPTI, from the buffers it fills to the one who reads
// them.
//
// CUPTI asks for buffers and hands them back full, from threads of its own or of the program. They
// come from a pool. There is one session per process, as CUPTI's callbacks carry no context.
// With MESHWRIGHT_CUPTI_RECORD in the environment the buffers are written to a file too
// (buffer_file.h).
#pragma once

#include "profiler/cupti/cupti_library.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    // A buffer to be walked by next; several threads may call at once.
    void (*on_buffer)(void *user, CuptiNextRecord next, uint8_t *buffer, size_t valid_bytes);
    void (*on_dropped)(void *user, size_t num_dropped); // records CUPTI had no room for
    void *user;
} CuptiSink;

// Begins to record these kinds. The library has to outlive the session.
//   fails with STATUS_MACHINE where one is recording, CUPTI refuses a kind, or the file that
//   MESHWRIGHT_CUPTI_RECORD asks for cannot be made
Status cupti_session_start(const CuptiLibrary *cupti, const CUpti_ActivityKind *kinds,
                           int num_kinds, CuptiSink sink);

// Hands over all records; those of work that has not ended come incomplete and are lost. Fails also
// where the copies of buffers could not be written.
Status cupti_session_flush(void);

// Ends recording. What has not been flushed is lost. Does nothing where none is recording.
void cupti_session_stop(void);
