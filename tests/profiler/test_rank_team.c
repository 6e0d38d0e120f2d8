#include "profiler/rank_team.h"

#include <CUnit/CUnit.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { NUM_RANKS = 5 };

typedef struct {
    pthread_t threads[NUM_RANKS];
    bool moved[NUM_RANKS]; // another thread did this rank's part
    int num_parts[NUM_RANKS];
    atomic_int num_there;
    int failing; // ranks from this one on fail
} Shared;

// Each rank waits for all others, so the parts are done at the same time or the test never ends.
static Status part(int rank, void *argument) {
    Shared *shared = argument;
    int round = shared->num_parts[rank]++;
    if (round == 0) shared->threads[rank] = pthread_self();
    if (!pthread_equal(shared->threads[rank], pthread_self())) shared->moved[rank] = true;
    atomic_fetch_add(&shared->num_there, 1);
    while (atomic_load(&shared->num_there) < (round + 1) * NUM_RANKS) continue;
    if (rank < shared->failing) return status_ok();
    return status_error(STATUS_MACHINE, "rank %d failed", rank);
}

static void ranks_keep_their_threads_and_work_together(void) {
    Shared shared = {.failing = NUM_RANKS};
    RankTeam *team = NULL;
    CU_ASSERT_EQUAL_FATAL(rank_team_open(NUM_RANKS, &team).code, STATUS_OK);
    for (int i = 0; i < 3; i++) CU_ASSERT_EQUAL(rank_team_run(team, part, &shared).code, STATUS_OK);
    rank_team_close(team);
    for (int i = 0; i < NUM_RANKS; i++) {
        CU_ASSERT_EQUAL(shared.num_parts[i], 3);
        CU_ASSERT_FALSE(shared.moved[i]);
        CU_ASSERT_FALSE(pthread_equal(shared.threads[i], pthread_self()));
        for (int j = 0; j < i; j++)
            CU_ASSERT_FALSE(pthread_equal(shared.threads[i], shared.threads[j]));
    }
}

static void the_first_failure_is_told_and_the_team_goes_on(void) {
    Shared shared = {.failing = 2};
    RankTeam *team = NULL;
    CU_ASSERT_EQUAL_FATAL(rank_team_open(NUM_RANKS, &team).code, STATUS_OK);
    Status status = rank_team_run(team, part, &shared);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text, "rank 2 failed");
    shared.failing = NUM_RANKS;
    CU_ASSERT_EQUAL(rank_team_run(team, part, &shared).code, STATUS_OK);
    rank_team_close(team);
    rank_team_close(NULL);
}

CU_TestInfo rank_team_tests[] = {
    {"ranks_keep_their_threads_and_work_together", ranks_keep_their_threads_and_work_together},
    {"the_first_failure_is_told_and_the_team_goes_on",
     the_first_failure_is_told_and_the_team_goes_on},
    CU_TEST_INFO_NULL,
};
