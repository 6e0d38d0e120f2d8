#include "costmodel/kernel/rising_gemm.h"

#include "costmodel/kernel/rising.h"

#include <stddef.h>

enum { M, N, K, NUM_AXES };
enum { SMALL_M = 16 }; // up to here every m is a knot
static const double MOST = 1e9, LEAST_NK = 64;

struct RisingGemm {
    const Gpu *gpu;
    const GemmKernels *kernels;
    GemmDtype dtype;
    RisingAxis axes[NUM_AXES];
    RisingLattice lattice;
};

static double law_s(const void *context, const double *place) {
    const RisingGemm *gemm = context;
    return kernel_gemm_s(gemm->gpu, gemm->kernels, gemm->dtype, place[M], place[N], place[K]);
}

static void axes_fill(const GemmKernel *kernel, RisingAxis axes[NUM_AXES]) {
    const Surface *grids[] = {&kernel->surface, &kernel->surface_mn, &kernel->surface_mk};
    for (int axis = N; axis <= K; axis++) {
        if (kernel->surface.num_axes == NUM_AXES)
            rising_axis_measured(&axes[axis], &kernel->surface.axes[axis]);
        else
            rising_axis_add(&axes[axis], 4096, true); // without grids the law rises nearly
        rising_axis_fill(&axes[axis], LEAST_NK, MOST);
    }
    for (int i = 0; i < 3; i++)
        if (grids[i]->num_axes > 0) rising_axis_measured(&axes[M], &grids[i]->axes[M]);
    if (axes[M].num_knots == 0) rising_axis_add(&axes[M], 4096, true);
    for (int m = 1; m <= SMALL_M; m++) rising_axis_add(&axes[M], m, false);
    rising_axis_fill(&axes[M], 1, MOST);
}

RisingGemm *rising_gemm_new(const Gpu *gpu, const GemmKernels *kernels, GemmDtype dtype,
                            Arena *arena) {
    RisingGemm *gemm = ARENA_NEW(arena, RisingGemm);
    gemm->gpu = gpu;
    gemm->kernels = kernels;
    gemm->dtype = dtype;
    axes_fill(&kernels->dtypes[dtype], gemm->axes);
    gemm->lattice = rising_make(NUM_AXES, gemm->axes, true, law_s, gemm, arena);
    return gemm;
}

double rising_gemm_s(const RisingGemm *gemm, double m, double n, double k) {
    return rising_s(&gemm->lattice, (double[NUM_AXES]){m, n, k});
}

typedef struct {
    const RisingGemm *gemm;
    double place[NUM_AXES];
    int axis;
} Along;

static double along_s(const void *context, double size) {
    const Along *along = context;
    double place[NUM_AXES] = {along->place[M], along->place[N], along->place[K]};
    place[along->axis] = size;
    return rising_s(&along->gemm->lattice, place);
}

void rising_gemm_edges(const RisingGemm *gemm, double m, double n, double k, KernelEdges *edges) {
    static const char *const NAMES[NUM_AXES] = {"m", "n", "k"};
    for (int axis = 0; axis < NUM_AXES; axis++) {
        const Along along = {gemm, {m, n, k}, axis};
        const KernelDimension dimension = {NAMES[axis], along.place[axis], along_s, &along};
        kernel_edges_along(&dimension, &gemm->axes[axis], 1, edges);
    }
}
