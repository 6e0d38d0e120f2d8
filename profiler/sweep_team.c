// What several GPUs do together, and products beside something else.
#include "profiler/sweep.h"

// Messages of 512 B to 512 MiB.
static const int64_t LEAST_ELEMENTS = 1 << 8, MOST_ELEMENTS = 1 << 28;

// Groups of 2, 4, ... and of all.
static int next_size(int size, int num_gpus) {
    if (size == num_gpus) return size + 1;
    return 2 * size < num_gpus ? 2 * size : num_gpus;
}

static void add_sizes(Sweep *sweep, bool quick, TeamOp op, int num_gpus, Arena *arena) {
    for (int64_t n = LEAST_ELEMENTS; n <= MOST_ELEMENTS; n *= quick ? 8 : 2) {
        int64_t whole = (n + num_gpus - 1) / num_gpus * num_gpus; // parts are equal
        TeamRequest team = {.op = op, .num_gpus = num_gpus, .num_elements = whole};
        sweep_add(sweep, (GpuRequest){.kind = GPU_WORK_TEAM, .team = team}, arena);
    }
}

static int most_ranks(int num_gpus) {
    return num_gpus < TEAM_MOST_RANKS ? num_gpus : TEAM_MOST_RANKS;
}

void sweep_nccl(Sweep *sweep, bool quick, int num_gpus, Arena *arena) {
    num_gpus = most_ranks(num_gpus);
    for (int size = 2; size <= num_gpus; size = next_size(size, num_gpus))
        for (TeamOp op = TEAM_ALL_GATHER; op <= TEAM_REDUCE_SCATTER; op++)
            add_sizes(sweep, quick, op, size, arena);
}

void sweep_send_recv(Sweep *sweep, bool quick, int num_gpus, Arena *arena) {
    num_gpus = most_ranks(num_gpus);
    for (int size = 2; size <= num_gpus; size = next_size(size, num_gpus)) {
        if (size == 2) add_sizes(sweep, quick, TEAM_SEND_RECV, size, arena);
        add_sizes(sweep, quick, TEAM_EXCHANGE, size, arena);
    }
}

// --- Contention

static void add_beside(Sweep *sweep, const int *shape, int num_blocks, TeamRequest team,
                       Arena *arena) {
    GpuRequest request = {.kind = GPU_WORK_BESIDE,
                          .gemm = {.dtype = NUMBER_BFLOAT16,
                                   .out_dtype = NUMBER_BFLOAT16,
                                   .layout = GEMM_FORWARD,
                                   .m = shape[0],
                                   .n = shape[1],
                                   .k = shape[2]},
                          .team = team,
                          .beside = {.num_blocks = num_blocks}};
    sweep_add(sweep, request, arena);
}

// A copy on some SMs and, where there are more GPUs, collectives of 64 MiB among all of them.
void sweep_contention(Sweep *sweep, bool quick, int num_gpus, Arena *arena) {
    static const int SHAPES[][3] = {
        {8192, 4096, 4096}, {8192, 8192, 8192}, {4096, 14336, 4096}, {4096, 4096, 1024}};
    static const int BLOCKS[] = {4, 8, 16, 24, 32, 0}, QUICK_BLOCKS[] = {8, 16, 0};
    int num_shapes = quick ? 1 : (int)(sizeof SHAPES / sizeof *SHAPES);
    num_gpus = most_ranks(num_gpus);
    for (int i = 0; i < num_shapes; i++) {
        for (const int *blocks = quick ? QUICK_BLOCKS : BLOCKS; *blocks; blocks++)
            add_beside(sweep, SHAPES[i], *blocks, (TeamRequest){0}, arena);
        for (TeamOp op = TEAM_ALL_GATHER; num_gpus >= 2 && op <= TEAM_REDUCE_SCATTER; op++) {
            int64_t whole = ((1 << 25) + num_gpus - 1) / num_gpus * num_gpus;
            TeamRequest team = {.op = op, .num_gpus = num_gpus, .num_elements = whole};
            add_beside(sweep, SHAPES[i], 0, team, arena);
        }
    }
}
