// profiler/rank_team.h - threads of this process that each have a rank, and a GPU, for themselves.
//
// What CUDA and NCCL know of a device belongs to the thread that chose it, so a rank's work is
// always done by the same thread.
#pragma once

#include "base/status.h"

typedef struct RankTeam RankTeam;

// A rank's part; what all ranks share is in shared.
typedef Status (*RankTask)(int rank, void *shared);

// Starts num_ranks (>= 1) threads.
Status rank_team_open(int num_ranks, RankTeam **out);

// Every rank does its part at the same time as the others; returns once all have, with the failure
// of the lowest rank that failed. A rank that waits for another that has failed waits for ever:
// what may fail alone (memory) is to be done in a task before what is done together.
Status rank_team_run(RankTeam *team, RankTask task, void *shared);

void rank_team_close(RankTeam *team); // accepts NULL
