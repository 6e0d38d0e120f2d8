// profiler/gpu/work_team.c - what several GPUs do together: the same calls on each, timed on each
// from the moment at which all have come so far; the slowest counts.
#include "profiler/gpu/gpu_team.h"

#include <stdlib.h>

// --- A rank's work

typedef struct {
    TeamRank *rank;
    TeamArrays arrays;
} RankCall;

static Status rank_call(GpuWork *work) {
    const RankCall *own = work->own;
    Backend *backend = work->session->backend;
    team_call(own->rank->comm, &work->request.team, own->arrays.out, own->arrays.in,
              backend->stream);
    return backend->failure;
}

static Status rank_align(GpuWork *work) {
    const RankCall *own = work->own;
    return gpu_team_align(own->rank, &own->arrays, work->session->backend->stream);
}

static void rank_free(GpuWork *work) {
    RankCall *own = work->own;
    gpu_team_arrays_free(&own->arrays);
    free(own);
}

static Status rank_call_prepare(TeamRank *rank, const GpuRequest *request) {
    GpuWork *work = calloc(1, sizeof *work);
    RankCall *own = calloc(1, sizeof *own);
    if (!work || !own) {
        free(work);
        free(own);
        return status_error(STATUS_MACHINE, "meshwright: out of memory");
    }
    own->rank = rank;
    *work = (GpuWork){.session = rank->session,
                      .request = *request,
                      .call = rank_call,
                      .before = rank_align,
                      .free_own = rank_free,
                      .own = own};
    rank->work = work;
    return gpu_team_arrays(rank, &request->team, &own->arrays);
}

// --- All ranks

typedef struct {
    GpuTeam *team;
    const GpuRequest *request;
    int num_calls, num_beside;
    bool queued;
} TeamBatch;

static Status rank_prepare(int rank, void *shared) {
    const TeamBatch *all = shared;
    TeamRank *own = &all->team->ranks[rank];
    gpu_work_release(own->work);
    own->work = NULL;
    return all->request->kind == GPU_WORK_TEAM ? rank_call_prepare(own, all->request)
                                               : gpu_beside_rank_prepare(own, all->request);
}

static Status rank_measure(int rank, void *shared) {
    const TeamBatch *all = shared;
    TeamRank *own = &all->team->ranks[rank];
    if (own->work->request.kind == GPU_WORK_BESIDE)
        gpu_beside_rank_calls(own->work, all->num_beside);
    own->batch.beside_bytes_per_s = 0;
    return gpu_batch_once(own->work, all->num_calls, all->queued, &own->late, &own->batch);
}

// The slowest of all ranks.
static void team_conclude(const GpuTeam *team, GpuBatch *out) {
    for (int i = 0; i < team->num_ranks; i++) {
        const GpuBatch *batch = &team->ranks[i].batch;
        if (i == 0 || batch->batch_s > out->batch_s) out->batch_s = batch->batch_s;
        if (i == 0 || batch->beside_bytes_per_s < out->beside_bytes_per_s)
            out->beside_bytes_per_s = batch->beside_bytes_per_s;
    }
}

enum { FIRST_BESIDE = 2, MOST_BESIDE = 1 << 14 };

typedef struct {
    int num_beside; // calls that outlast the products, as far as is known
} TeamWork;

// What is wrong with a batch of any rank is wrong with all: they measure together or wait for ever.
static void team_look(const GpuTeam *team, bool *late, bool *ended) {
    *late = *ended = false;
    for (int i = 0; i < team->num_ranks; i++) {
        const TeamRank *rank = &team->ranks[i];
        *late |= rank->late;
        *ended |= rank->work->request.kind == GPU_WORK_BESIDE && gpu_beside_rank_ended(rank->work);
    }
}

static Status measure(GpuWork *work, int num_calls, bool queued, GpuBatch *out) {
    TeamWork *own = work->own;
    GpuTeam *team = work->session->team;
    bool late = true, ended = true;
    while (late || ended) {
        TeamBatch all = {.team = team,
                         .num_calls = num_calls,
                         .num_beside = own->num_beside,
                         .queued = queued && team->num_late < GPU_MOST_LATE};
        TRY(rank_team_run(team->threads, rank_measure, &all));
        team_look(team, &late, &ended);
        if (late) team->num_late++, queued = false;
        if (ended) own->num_beside *= 2;
        if (own->num_beside > MOST_BESIDE)
            return status_error(STATUS_MACHINE,
                                "meshwright: %d calls of %lld elements ended before the products "
                                "beside them",
                                MOST_BESIDE, (long long)work->request.team.num_elements);
    }
    team_conclude(team, out);
    return status_ok();
}

static Status rank_release(int rank, void *shared) {
    TeamRank *own = &((GpuTeam *)shared)->ranks[rank];
    gpu_work_release(own->work);
    own->work = NULL;
    return status_ok();
}

// A team whose backend has failed does nothing more.
static void free_own(GpuWork *work) {
    GpuTeam *team = work->session->team;
    rank_team_run(team->threads, rank_release, team);
    bool failed = false;
    for (int i = 0; i < team->num_ranks; i++)
        failed |= team->ranks[i].session->backend->failure.code != STATUS_OK;
    if (failed) {
        gpu_team_close(team);
        work->session->team = NULL;
    }
    free(work->own);
}

Status gpu_team_prepare(GpuWork *work) {
    const TeamRequest *request = &work->request.team;
    TRY(gpu_team_open(work->session, request->num_gpus));
    TeamWork *own = calloc(1, sizeof *own);
    if (!own) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    own->num_beside = FIRST_BESIDE;
    work->own = own;
    work->free_own = free_own;
    work->measure = measure;
    TeamBatch all = {.team = work->session->team, .request = &work->request};
    return rank_team_run(all.team->threads, rank_prepare, &all);
}
