#include "calibrate/core_files.h"

#include "calibrate/fit.h"
#include "config/machine/gpu.h"

#include <math.h>

// A guess, so that answers in watts have a number: a share of 15 W of a server's package.
static const double CORE_WATTS = 15, CORE_IDLE_WATTS = 1;

static const Precision PRECISIONS[NUM_CORE_DTYPES] = {PRECISION_FP32, PRECISION_FP64};

typedef struct {
    Arena *arena;
    const CoreMachine *machine;
    const CoreFit *fit;
    const char *measured; // "measured DATE on CPU with OpenBLAS: COMMAND"
} Writer;

static cJSON *file_new(const char *name, const char *title) {
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON_AddStringToObject(tree, "name", name);
    cJSON_AddStringToObject(tree, "title", title);
    return tree;
}

static const char *title(const Writer *w, const char *what) {
    return arena_printf(w->arena, "%s %s", what, w->machine->cpu);
}

// --- cpu.json

// Nothing is faster, neither what was measured nor a law at sizes beyond: bounds go by it.
static double peak_of(const CoreFit *fit, int dtype) {
    const CoreLaws *laws = &fit->laws[dtype];
    double peak = fit->best_flops_per_s[dtype];
    for (int i = 0; i < CORE_NUM_PRODUCTS; i++) peak = fmax(peak, laws->products[i].flops_per_s);
    for (int i = 0; i < 2; i++) peak = fmax(peak, laws->attention[i].flops_per_s);
    return peak;
}

static double share(double part, double whole) {
    return fit_round(fmin(1, fmax(0.001, part / whole)));
}

// The compact constants of a GPU file (costmodel/kernel/compute.h), for readers: the section core
// prices.
static void efficiency_add(const Writer *w, cJSON *tree) {
    const CoreFit *fit = w->fit;
    const CoreLaws *laws = &fit->laws[CORE_FP32];
    const CoreAttention *forward = &laws->attention[0], *backward = &laws->attention[1];
    double peak = peak_of(fit, CORE_FP32), bandwidth = fmax(fit->copy_bytes_per_s, 1e8);
    cJSON *e = cJSON_AddObjectToObject(tree, "efficiency");
    cJSON *frac = cJSON_AddObjectToObject(e, "gemm_max_frac");
    for (int d = 0; d < NUM_CORE_DTYPES; d++)
        json_add_number(frac, PRECISION_NAMES[PRECISIONS[d]],
                        share(fit->laws[d].products[0].flops_per_s, peak_of(fit, d)));
    double forward_128 = 1 + forward->half_head_dim / 128, forward_64 = 2 * forward_128 - 1;
    double backward_128 = 1 + backward->half_head_dim / 128;
    json_add_number(e, "gemm_tile_m", 1);
    json_add_number(e, "gemm_tile_n", 1);
    json_add_number(e, "gemm_half_k", laws->products[0].half_k);
    json_add_number(e, "full_rate_watts", CORE_WATTS);
    json_add_number(e, "light_rate_watts", CORE_WATTS);
    json_add_number(e, "memory_frac", fmax(0.01, share(fit->add_bytes_per_s, bandwidth)));
    json_add_number(e, "launch_s", fmin(1e-3, laws->products[0].call_s));
    json_add_number(e, "attention_forward_frac", share(forward->flops_per_s / forward_128, peak));
    json_add_number(e, "attention_backward_frac",
                    share(backward->flops_per_s / backward_128, peak));
    json_add_number(e, "attention_head64_frac", fmax(0.1, fit_round(forward_128 / forward_64)));
    json_add_number(e, "attention_half_tokens", fit_round(forward->half_tokens / forward_128));
    double median = fit->scores[CORE_SCORE_FORWARD].median_frac;
    json_add_number(e, "residual_median_frac", fit_round(median));
    json_add_number(e, "residual_p90_frac",
                    fmax(fit_round(median), fit_round(fit->scores[CORE_SCORE_FORWARD].p90_frac)));
}

static void gpu_sources_add(const Writer *w, cJSON *tree) {
    static const char *const MEASURED[] = {"peak_flops_per_s", "memory_bandwidth_bytes_per_s",
                                           "efficiency", "core"};
    cJSON *sources = cJSON_AddObjectToObject(tree, "sources");
    for (size_t i = 0; i < sizeof MEASURED / sizeof *MEASURED; i++)
        cJSON_AddStringToObject(sources, MEASURED[i], w->measured);
    cJSON_AddStringToObject(sources, "memory_bytes",
                            "the operating system: its part of all ranks, one a core");
    cJSON_AddStringToObject(sources, "power_watts", "a guess, not measured: no price goes by it");
}

static Status gpu_write(const Writer *w, const char *folder) {
    const CoreMachine *machine = w->machine;
    const CoreFit *fit = w->fit;
    cJSON *tree = file_new("cpu", title(w, "One core of"));
    cJSON_AddStringToObject(tree, "vendor", "CPU");
    cJSON_AddStringToObject(tree, "architecture", "cpu");
    json_add_number(tree, "num_sms", 1);
    json_add_number(tree, "memory_bytes", fmax(1e9, machine->memory_bytes / machine->num_ranks));
    json_add_number(tree, "memory_available_bytes",
                    fmax(1e9, machine->memory_available_bytes / machine->num_ranks));
    json_add_number(tree, "memory_bandwidth_bytes_per_s",
                    fit_round(fmax(1e8, fit->copy_bytes_per_s)));
    json_add_number(tree, "l2_bytes", fmax(1e5, machine->cache_bytes));
    json_add_number(tree, "power_watts", CORE_WATTS);
    json_add_number(tree, "idle_power_watts", CORE_IDLE_WATTS);
    json_add_number(tree, "price_usd_per_gpu_hour", 0);
    cJSON *peaks = cJSON_AddObjectToObject(tree, "peak_flops_per_s");
    for (int d = 0; d < NUM_CORE_DTYPES; d++)
        json_add_number(peaks, PRECISION_NAMES[PRECISIONS[d]], fit_round(peak_of(fit, d)));
    efficiency_add(w, tree);
    cJSON *core = cJSON_AddObjectToObject(tree, "core");
    for (int d = 0; d < NUM_CORE_DTYPES; d++)
        cJSON_AddItemToObject(core, PRECISION_NAMES[PRECISIONS[d]], core_to_json(&fit->laws[d]));
    gpu_sources_add(w, tree);
    Status status = json_save(tree, arena_printf(w->arena, "%s/cpu.json", folder));
    cJSON_Delete(tree);
    return status;
}

// --- link.json

static Status link_write(const Writer *w, const char *folder) {
    const Link *link = &w->fit->link;
    cJSON *tree = file_new("shm", title(w, "Memory between the cores of"));
    json_add_number(tree, "bandwidth_bytes_per_s", link->bandwidth_bytes_per_s);
    cJSON_AddBoolToObject(tree, "switched", false);
    cJSON_AddBoolToObject(tree, "in_switch_reduction", false);
    json_add_number(tree, "latency_s", link->latency_s);
    json_add_number(tree, "hop_latency_s", link->hop_latency_s);
    json_add_number(tree, "chain_hop_latency_s", link->chain_hop_latency_s);
    json_add_number(tree, "efficiency_frac", fmin(1, link->efficiency_frac));
    json_add_number(tree, "half_bytes", link->half_bytes);
    json_add_number(tree, "p2p_latency_s", link->p2p_latency_s);
    json_add_number(tree, "p2p_efficiency_frac", fmin(1, link->p2p_efficiency_frac));
    cJSON_AddItemToObject(tree, "nccl", nccl_kernels_to_json(&w->fit->curves));
    cJSON *sources = cJSON_AddObjectToObject(tree, "sources");
    cJSON_AddStringToObject(sources, "bandwidth_bytes_per_s",
                            "the fastest bytes on the wire of what was measured");
    cJSON_AddStringToObject(sources, "hop_latency_s", "fitted to rows `exchange` of comm.csv");
    cJSON_AddStringToObject(sources, "p2p", "fitted to rows `send_recv` of comm.csv");
    cJSON_AddStringToObject(sources, "nccl", w->measured);
    Status status = json_save(tree, arena_printf(w->arena, "%s/link.json", folder));
    cJSON_Delete(tree);
    return status;
}

// --- cluster.json

static Status cluster_write(const Writer *w, const char *folder) {
    int num_ranks = w->machine->num_ranks;
    cJSON *tree = file_new("cpu", title(w, "The cores of"));
    cJSON_AddStringToObject(tree, "gpu", "cpu.json");
    json_add_number(tree, "num_gpus", num_ranks);
    json_add_number(tree, "gpus_per_node", num_ranks);
    cJSON *up = cJSON_AddObjectToObject(tree, "scale_up");
    cJSON_AddStringToObject(up, "link", "link.json");
    json_add_number(up, "domain_gpus", num_ranks);
    cJSON *out = cJSON_AddObjectToObject(tree, "scale_out");
    json_add_number(out, "nics_per_node", 1);
    json_add_number(out, "nic_bytes_per_s", 1.25e8);
    json_add_number(tree, "price_usd_per_gpu_hour", 0);
    cJSON *sources = cJSON_AddObjectToObject(tree, "sources");
    cJSON_AddStringToObject(sources, "gpu", w->measured);
    cJSON_AddStringToObject(sources, "scale_out", "not measured: 1 Gb/s Ethernet");
    Status status = json_save(tree, arena_printf(w->arena, "%s/cluster.json", folder));
    cJSON_Delete(tree);
    return status;
}

Status core_files_write(const char *folder, const CoreMachine *machine, const CoreFit *fit) {
    Arena arena = {0};
    const char *measured =
        arena_printf(&arena, "measured %s on %s with %s, %d ranks, all busy: %s", machine->date,
                     machine->cpu, machine->blas, machine->num_ranks, machine->command);
    Writer writer = {&arena, machine, fit, measured};
    Status status = gpu_write(&writer, folder);
    if (status.code == STATUS_OK) status = link_write(&writer, folder);
    if (status.code == STATUS_OK) status = cluster_write(&writer, folder);
    arena_free(&arena);
    return status;
}
