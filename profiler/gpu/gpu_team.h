// profiler/gpu/gpu_team.h - several GPUs of this process, one thread, session and rank each.
#pragma once

#include "backend/comm.h"
#include "profiler/gpu/gpu_session.h"
#include "profiler/rank_team.h"

typedef struct {
    GpuSession *session; // used by the rank's thread alone
    Comm *comm;
    GpuWork *work; // NULL: none
    bool late;     // its last batch, as gpu_batch_once says
    GpuBatch batch;
} TeamRank;

struct GpuTeam {
    RankTeam *threads;
    int num_ranks;
    TeamRank *ranks; // [num_ranks]; rank i has GPU i
    int num_late;    // batches so far
};

// The team of a session, which stays open for others of the same size. STATUS_NO where NCCL cannot
// be loaded or there are fewer GPUs.
Status gpu_team_open(GpuSession *session, int num_ranks);
void gpu_team_close(GpuTeam *team); // accepts NULL

// Of a rank's calls, all zeros.
typedef struct {
    void *number; // of gpu_team_align
    void *in, *out;
} TeamArrays;

Status gpu_team_arrays(TeamRank *rank, const TeamRequest *request, TeamArrays *out);
void gpu_team_arrays_free(TeamArrays *arrays); // accepts zeroed ones

// A sum of one number: no rank goes on before all have come so far.
Status gpu_team_align(TeamRank *rank, const TeamArrays *arrays, BackendStream *stream);

// work_beside.c: a product of each rank, with its team's call beside it, in the rank's thread.
Status gpu_beside_rank_prepare(TeamRank *rank, const GpuRequest *request);
// How many calls the next batch has beside it.
void gpu_beside_rank_calls(GpuWork *work, int num_calls);
// Whether the last batch's ended before the products.
bool gpu_beside_rank_ended(const GpuWork *work);
