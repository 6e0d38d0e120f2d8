// tests/support.h - what several tests need.
#pragma once

#include "config/job/scenario.h"

// Reads a scenario from text; messages name it job.json.
Status scenario_of(const char *text, Arena *arena, Scenario *out);

// A scenario of these parts, each as it stands in the document; parallel may be NULL.
const char *scenario_text(Arena *arena, const char *model, const char *cluster,
                          const char *training, const char *parallel);

// Claims that a status is a refusal of bad input with exactly this sentence.
#define ASSERT_REFUSED(status, sentence)                                                           \
    do {                                                                                           \
        Status refused_ = (status);                                                                \
        CU_ASSERT_EQUAL(refused_.code, STATUS_INVALID);                                            \
        CU_ASSERT_STRING_EQUAL(refused_.text, (sentence));                                         \
        report_difference(&refused_, (sentence), __FILE__, __LINE__);                              \
    } while (0)

// A refusal without " (rule STACK/ID: SOURCE)", which must be its end.
Status without_rule(Status status);

// Prints both sentences where they differ: CUnit does not.
void report_difference(const Status *status, const char *sentence, const char *file, int line);
