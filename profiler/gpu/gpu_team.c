#include "profiler/gpu/gpu_team.h"

#include "backend/cuda_backend.h"

#include <stdlib.h>

// --- Opening and closing, in the ranks' threads

static Status rank_open(int rank, void *shared) {
    GpuTeam *team = shared;
    GpuTimer timer = GPU_TIMER_EVENTS;
    char note[100];
    TRY(gpu_session_open(rank, &timer, &team->ranks[rank].session, note, sizeof note));
    return gpu_backend_open(team->ranks[rank].session);
}

typedef struct {
    GpuTeam *team;
    unsigned char id[CUDA_COMM_ID_BYTES];
} Meeting;

static Status rank_meet(int rank, void *shared) {
    Meeting *meeting = shared;
    TeamRank *own = &meeting->team->ranks[rank];
    return cuda_comm_create(own->session->backend, meeting->id, rank, meeting->team->num_ranks,
                            &own->comm);
}

static Status rank_close(int rank, void *shared) {
    TeamRank *own = &((GpuTeam *)shared)->ranks[rank];
    gpu_work_release(own->work);
    if (own->comm) own->comm->table->free(own->comm);
    gpu_session_close(own->session);
    return status_ok();
}

void gpu_team_close(GpuTeam *team) {
    if (!team) return;
    if (team->threads) rank_team_run(team->threads, rank_close, team);
    rank_team_close(team->threads);
    free(team->ranks);
    free(team);
}

static Status team_make(Meeting *meeting) {
    GpuTeam *team = meeting->team;
    TRY(rank_team_open(team->num_ranks, &team->threads));
    TRY(rank_team_run(team->threads, rank_open, team));
    return rank_team_run(team->threads, rank_meet, meeting);
}

Status gpu_team_open(GpuSession *session, int num_ranks) {
    int num_devices = 0;
    CUDA_TRY(cudaGetDeviceCount(&num_devices));
    if (num_ranks < 2 || num_ranks > num_devices || num_ranks > TEAM_MOST_RANKS)
        return status_error(STATUS_NO,
                            "meshwright: a group of %d GPUs; this machine shows %d, and a group "
                            "has 2 to %d",
                            num_ranks, num_devices, TEAM_MOST_RANKS);
    if (session->team && session->team->num_ranks == num_ranks) return status_ok();
    gpu_team_close(session->team);
    session->team = NULL;
    // What is not installed is told before any thread begins.
    Meeting meeting;
    TRY(gpu_backend_open(session));
    Status status = cuda_comm_id(session->backend, meeting.id);
    CudaVersions versions;
    TRY(cuda_versions(&versions));
    if (status.code != STATUS_OK)
        return versions.nccl ? status : status_error(STATUS_NO, "%s", status.text);
    GpuTeam *team = calloc(1, sizeof *team);
    if (team) team->ranks = calloc((size_t)num_ranks, sizeof *team->ranks);
    if (!team || !team->ranks) {
        free(team);
        return status_error(STATUS_MACHINE, "meshwright: out of memory");
    }
    team->num_ranks = num_ranks;
    meeting.team = team;
    status = team_make(&meeting);
    if (status.code == STATUS_OK)
        session->team = team;
    else
        gpu_team_close(team);
    return status;
}

// --- What ranks' work shares

enum { BF16_BYTES = 2 };

Status gpu_team_arrays(TeamRank *rank, const TeamRequest *request, TeamArrays *out) {
    TeamRoom room = team_room(request);
    size_t in_bytes = gpu_aligned((size_t)room.in * BF16_BYTES);
    size_t bytes = GPU_ALIGNMENT + in_bytes + gpu_aligned((size_t)room.out * BF16_BYTES);
    cudaStream_t stream = rank->session->stream;
    CUDA_TRY(cudaMalloc(&out->number, bytes));
    out->in = (char *)out->number + GPU_ALIGNMENT;
    out->out = (char *)out->in + in_bytes;
    CUDA_TRY(cudaMemsetAsync(out->number, 0, bytes, stream));
    CUDA_TRY(cudaStreamSynchronize(stream));
    return status_ok();
}

void gpu_team_arrays_free(TeamArrays *arrays) {
    cudaFree(arrays->number);
}

Status gpu_team_align(TeamRank *rank, const TeamArrays *arrays, BackendStream *stream) {
    rank->comm->table->all_reduce(rank->comm, arrays->number, 1, DTYPE_BF16, REDUCE_SUM, stream);
    return rank->session->backend->failure;
}
