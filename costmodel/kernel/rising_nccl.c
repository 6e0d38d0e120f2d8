#include "costmodel/kernel/rising_nccl.h"

#include "costmodel/kernel/rising.h"

#include <math.h>
#include <stddef.h>

enum { GPUS, BYTES, NUM_AXES };
enum { FEW_GPUS = 16 }; // up to here every group is a knot
static const double MOST_GPUS = 1 << 20, MOST_BYTES = 1e15;

typedef struct {
    RisingAxis axes[NUM_AXES];
    RisingLattice lattice;
    bool made, absent;
} Collective;

struct RisingNccl {
    const NcclKernels *kernels;
    Arena *arena;
    Collective collectives[NUM_NCCL_OPS][NUM_NCCL_DTYPES];
};

RisingNccl *rising_nccl_new(const NcclKernels *kernels, Arena *arena) {
    RisingNccl *nccl = ARENA_NEW(arena, RisingNccl);
    nccl->kernels = kernels;
    nccl->arena = arena;
    return nccl;
}

typedef struct {
    const NcclKernels *kernels;
    NcclOp op;
    NcclDtype dtype;
} Law;

static double law_s(const void *context, const double *place) {
    const Law *law = context;
    return kernel_nccl_s(law->kernels, law->op, law->dtype, place[GPUS], place[BYTES]);
}

// The groups and messages that were measured; false where there are none.
static bool axes_fill(const Law *law, RisingAxis axes[NUM_AXES]) {
    for (int i = 0; i < law->kernels->num_curves; i++) {
        const NcclCurve *curve = &law->kernels->curves[i];
        if (curve->op != (int)law->op ||
            (curve->dtype != NCCL_ANY && curve->dtype != (int)law->dtype))
            continue;
        rising_axis_add(&axes[GPUS], curve->num_gpus, true);
        for (int p = 0; p < curve->num_points; p++)
            rising_axis_add(&axes[BYTES], curve->bytes[p], true);
    }
    if (axes[GPUS].num_knots == 0) return false;
    for (int gpus = 1; gpus <= FEW_GPUS; gpus++) rising_axis_add(&axes[GPUS], gpus, false);
    for (double gpus = FEW_GPUS; gpus <= MOST_GPUS; gpus *= 2)
        rising_axis_add(&axes[GPUS], gpus, false);
    rising_axis_fill(&axes[BYTES], MOST_BYTES, MOST_BYTES);
    return true;
}

static const Collective *collective_of(RisingNccl *nccl, const NcclCall *call) {
    Collective *collective = &nccl->collectives[call->op][call->dtype];
    if (collective->made) return collective;
    const Law law = {nccl->kernels, call->op, call->dtype};
    collective->made = true;
    collective->absent = !axes_fill(&law, collective->axes);
    if (!collective->absent)
        collective->lattice =
            rising_make(NUM_AXES, collective->axes, true, law_s, &law, nccl->arena);
    return collective;
}

double rising_nccl_s(RisingNccl *nccl, const NcclCall *call) {
    const Collective *collective = collective_of(nccl, call);
    if (collective->absent) return NAN;
    return rising_s(&collective->lattice, (double[NUM_AXES]){
                                              call->num_gpus,
                                              call->num_elements * call->element_bytes,
                                          });
}

typedef struct {
    RisingNccl *nccl;
    const NcclCall *call;
    int axis;
} Along;

static double along_s(const void *context, double size) {
    const Along *along = context;
    NcclCall other = *along->call;
    *(along->axis == GPUS ? &other.num_gpus : &other.num_elements) = size;
    return rising_nccl_s(along->nccl, &other);
}

void rising_nccl_edges(RisingNccl *nccl, const NcclCall *call, KernelEdges *edges) {
    const Collective *collective = collective_of(nccl, call);
    const Along gpus = {nccl, call, GPUS}, elements = {nccl, call, BYTES};
    const KernelDimension of_gpus = {"num_gpus", call->num_gpus, along_s, &gpus};
    const KernelDimension of_elements = {"message_size", call->num_elements, along_s, &elements};
    if (collective->absent) return;
    kernel_edges_along(&of_gpus, &collective->axes[GPUS], 1, edges);
    kernel_edges_along(&of_elements, &collective->axes[BYTES], call->element_bytes, edges);
}
