// tests/support.h - what several tests need.
#pragma once

#include "config/job/scenario.h"

// Reads a scenario from text; messages name it job.json.
Status scenario_of(const char *text, Arena *arena, Scenario *out);

// A scenario of these parts, each as it stands in the document; parallel may be NULL.
const char *scenario_text(Arena *arena, const char *model, const char *cluster,
                          const char *training, const char *parallel);

// A cluster of one pool of the tests' own, which lasts as long as they do.
Cluster test_cluster(const Pool *pool);

// Gives a cluster copies of its pools of its own, to be changed: [num_pools]. Clusters that were
// copied before keep theirs; a pointer from an earlier call is of no cluster any more.
Pool *test_pool(Cluster *cluster);

// Of a cluster of one pool.
static inline Machines machines_of(const Cluster *cluster) {
    return cluster_machines(cluster, 0);
}

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
