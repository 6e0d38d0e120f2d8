// Operators that memory bounds: rows are the tokens of a micro-batch, columns what a layer has. And
// copies from and to the host.
#include "profiler/sweep.h"

#include <string.h>

enum { MOST_SIZES = 8 };

typedef struct {
    int64_t rows[MOST_SIZES], quick_rows[MOST_SIZES]; // end with 0
    int64_t columns[MOST_SIZES], quick_columns[MOST_SIZES];
    const char *ops[12]; // ends with NULL
} MemorySweep;

static const MemorySweep SWEEPS[] = {
    // On the hidden size.
    {{512, 1024, 2048, 4096, 8192, 16384},
     {1024, 8192},
     {1600, 4096, 8192},
     {4096},
     {"copy", "add", "cast_to_float32", "cast_from_float32", "rmsnorm_forward", "rmsnorm_backward",
      "layernorm_forward", "layernorm_backward", "dropout_add", "embedding_forward",
      "embedding_backward"}},
    // On heads of 128.
    {{512, 1024, 2048, 4096, 8192, 16384}, {1024, 8192}, {1024, 4096, 8192}, {4096}, {"rope"}},
    // On the MLP's width, also where it is split.
    {{512, 1024, 2048, 4096, 8192, 16384},
     {1024, 8192},
     {3584, 6400, 14336},
     {14336},
     {"swiglu_forward", "swiglu_backward", "gelu_forward", "gelu_backward"}},
    // On scores: squares of a head, four of them at least.
    {{8192, 32768, 65536},
     {32768},
     {1024, 2048, 4096, 8192},
     {2048},
     {"softmax_forward", "softmax_backward"}},
    // On logits, also where the vocabulary is split.
    {{1024, 4096, 8192},
     {4096},
     {16032, 32000, 50304, 128256},
     {16032, 50304},
     {"cross_entropy_forward", "cross_entropy_backward"}},
    // On all parameters of a shard: 1 M to 537 M.
    {{256, 2048, 16384, 65536, 131072},
     {2048, 65536},
     {4096},
     {4096},
     {"adamw", "gradient_norm", "memset"}},
};

static void add_op(Sweep *sweep, Arena *arena, const char *op, const int64_t *rows,
                   const int64_t *columns) {
    for (const int64_t *c = columns; *c; c++) {
        for (const int64_t *r = rows; *r; r++) {
            // Scores are whole squares.
            if (strncmp(op, "softmax", 7) == 0 && *r % *c != 0) continue;
            MemoryRequest memory = {.op = op, .rows = *r, .columns = *c};
            sweep_add(sweep, (GpuRequest){.kind = GPU_WORK_MEMORY, .memory = memory}, arena);
        }
    }
}

void sweep_memory(Sweep *sweep, bool quick, Arena *arena) {
    for (size_t i = 0; i < sizeof SWEEPS / sizeof *SWEEPS; i++)
        for (const char *const *op = SWEEPS[i].ops; *op; op++)
            add_op(sweep, arena, *op, quick ? SWEEPS[i].quick_rows : SWEEPS[i].rows,
                   quick ? SWEEPS[i].quick_columns : SWEEPS[i].columns);
}

// As long as the copies on the device, 1.6 to 268 MB, and shorter ones, which show the latency.
void sweep_host_copy(Sweep *sweep, bool quick, Arena *arena) {
    const int64_t least_bytes = quick ? 1 << 20 : 64 << 10, most_bytes = 256 << 20;
    for (int to_device = 1; to_device >= 0; to_device--)
        for (int64_t bytes = least_bytes; bytes <= most_bytes; bytes *= quick ? 16 : 2) {
            HostCopyRequest copy = {.to_device = to_device, .num_bytes = bytes};
            sweep_add(sweep, (GpuRequest){.kind = GPU_WORK_HOST_COPY, .host_copy = copy}, arena);
        }
}
