// Files of GPUs, links, clusters, kernels and calibrations.
#include "config/cluster/cluster.h"
#include "config/job/calibration.h"
#include "config/kernels/kernels.h"
#include "config/machine/gpu.h"
#include "config/machine/link.h"
#include "tests/fuzz/fuzz.h"

void fuzz_read(char *text, size_t size, Arena *arena) {
    JsonNode value = fuzz_path_node(arena);
    Gpu gpu;
    Link link;
    Cluster cluster;
    KernelProfile kernels;
    const Calibration *calibration;
    gpu_load(&value, arena, &gpu);
    link_load(&value, arena, &link);
    cluster_load(&value, arena, &cluster);
    calibration_load(&value, arena, &calibration);
    if (gpu_load_named("h100-sxm-80g", arena, &gpu).code == STATUS_OK)
        kernels_parse(text, size, "input.json", &gpu, arena, &kernels);
}
