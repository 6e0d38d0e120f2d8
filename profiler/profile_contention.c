// A product by itself, what runs beside it by itself, and both: what each takes from the other.
#include "profiler/profile_run.h"

Status profile_contend(const GpuPlugin *plugin, GpuSession *session, const GpuRequest *request,
                       const MeasureLimits *limits, Arena *scratch, Contention *out) {
    GpuRequest product = {.kind = GPU_WORK_GEMM, .gemm = request->gemm}, neighbour = *request;
    neighbour.beside.alone = true;
    if (request->beside.num_blocks == 0) { // the slowest GPU counts, as beside the calls
        product = *request;
        product.beside.product_alone = true;
    }
    Measured product_alone, neighbour_alone;
    TRY(measure_shape(plugin, session, &product, limits, scratch, &product_alone));
    TRY(measure_shape(plugin, session, &neighbour, limits, scratch, &neighbour_alone));
    TRY(measure_shape(plugin, session, request, limits, scratch, &out->both));
    out->alone_s = product_alone.latency_s;
    out->beside_alone_bytes_per_s = neighbour_alone.beside_bytes_per_s;
    return status_ok();
}
