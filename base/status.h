// base/status.h - how every function that can be refused its input answers.
//
// A Status is a code and a finished sentence. Callers pass a failure on unchanged with TRY;
// only cli/main.c turns it into text on standard error and an exit code.
#pragma once

typedef enum {
    STATUS_OK = 0,      // done
    STATUS_NO = 1,      // a well-formed question whose answer is "no"
    STATUS_INVALID = 2, // bad usage or bad input; nothing was written
    STATUS_MACHINE = 3, // the machine failed us: file, memory, missing component
} StatusCode;           // the values are the exit codes

// What a caller may want to know of a refusal, besides that it is one.
typedef enum {
    REASON_ANY,
    REASON_UNKNOWN_KEY,
    REASON_TENSOR_PARALLEL,       // tp does not divide what it must
    REASON_TENSOR_PARALLEL_VALUES // the same, and the sentence names those that do
} StatusReason;

// All but the code is only set where that is not STATUS_OK.
typedef struct {
    StatusCode code;
    StatusReason reason;
    char text[600]; // one sentence without a newline
} Status;

// Success.
Status status_ok(void);

// A failure with a printf-style sentence.
Status status_error(StatusCode code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// A failure at a place of a document: "FILE: PATH: SENTENCE", or "FILE: SENTENCE" where path is "".
Status status_at(StatusCode code, const char *file, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// The sentence without the name of this file, where it begins with that.
const char *status_text_within(const Status *status, const char *file);

// Gives a failure a reason, which a caller may know. Success stays success.
Status status_because(Status status, StatusReason reason);

// Hands a failure to the caller unchanged.
#define TRY(expression)                                                                            \
    do {                                                                                           \
        Status try_status_ = (expression);                                                         \
        if (try_status_.code != STATUS_OK) return try_status_;                                     \
    } while (0)
