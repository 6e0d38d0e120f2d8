#include "profiler/rank_team.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct {
    RankTeam *team;
    int rank;
    pthread_t thread;
    Status status; // of its last part
} Member;

struct RankTeam {
    pthread_mutex_t lock;
    pthread_cond_t begun, done;
    unsigned round; // tasks so far
    int num_busy;   // members that have not done their part
    bool over;
    RankTask task;
    void *shared;
    int num_members;
    Member members[];
};

// Waits for a task after `round`; false where there will be none.
static bool task_await(RankTeam *team, unsigned round) {
    pthread_mutex_lock(&team->lock);
    while (!team->over && team->round == round) pthread_cond_wait(&team->begun, &team->lock);
    bool more = team->round != round;
    pthread_mutex_unlock(&team->lock);
    return more;
}

static void *member_run(void *argument) {
    Member *member = argument;
    RankTeam *team = member->team;
    for (unsigned round = 0; task_await(team, round); round++) {
        member->status = team->task(member->rank, team->shared);
        pthread_mutex_lock(&team->lock);
        if (--team->num_busy == 0) pthread_cond_signal(&team->done);
        pthread_mutex_unlock(&team->lock);
    }
    return NULL;
}

Status rank_team_run(RankTeam *team, RankTask task, void *shared) {
    pthread_mutex_lock(&team->lock);
    team->task = task;
    team->shared = shared;
    team->num_busy = team->num_members;
    team->round++;
    pthread_cond_broadcast(&team->begun);
    while (team->num_busy > 0) pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
    for (int i = 0; i < team->num_members; i++) TRY(team->members[i].status);
    return status_ok();
}

void rank_team_close(RankTeam *team) {
    if (!team) return;
    pthread_mutex_lock(&team->lock);
    team->over = true;
    pthread_cond_broadcast(&team->begun);
    pthread_mutex_unlock(&team->lock);
    for (int i = 0; i < team->num_members; i++) pthread_join(team->members[i].thread, NULL);
    pthread_cond_destroy(&team->begun);
    pthread_cond_destroy(&team->done);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

Status rank_team_open(int num_ranks, RankTeam **out) {
    RankTeam *team = calloc(1, sizeof *team + (size_t)num_ranks * sizeof *team->members);
    if (!team) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->begun, NULL);
    pthread_cond_init(&team->done, NULL);
    for (int i = 0; i < num_ranks; i++) {
        Member *member = &team->members[i];
        *member = (Member){.team = team, .rank = i};
        if (pthread_create(&member->thread, NULL, member_run, member) != 0) {
            rank_team_close(team);
            return status_error(STATUS_MACHINE,
                                "meshwright: a thread for rank %d cannot be started", i);
        }
        team->num_members++;
    }
    *out = team;
    return status_ok();
}
