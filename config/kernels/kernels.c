#include "config/kernels/kernels.h"

#include "base/data_dir.h"
#include "config/machine/profile.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char FOLDER[] = "hw-profiles/kernels";

static const JsonField FIELDS[] = {
    {"schema", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
    {"gpu", JSON_FIELD_STRING, offsetof(KernelProfile, gpu), 0, 0, NULL, true},
    {"command", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    {"sources", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
    {"measured", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    // One row per kind.
    {"gemm", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    {"moe", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    {"nccl", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    {"context_attention", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    {"context_mla", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    {"generation_attention", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    {"generation_mla", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
};

bool kernels_exist(const char *gpu_name, Arena *arena) {
    const char *const *names;
    int num_names;
    if (data_list(arena, FOLDER, &names, &num_names).code != STATUS_OK) return false;
    for (int i = 0; i < num_names; i++)
        if (strcmp(names[i], gpu_name) == 0) return true;
    return false;
}

static Status attention_read(const JsonNode *root, Arena *arena, KernelProfile *profile) {
    JsonNode context = json_get(root, "context_attention");
    JsonNode generation = json_get(root, "generation_attention");
    JsonNode context_mla = json_get(root, "context_mla");
    JsonNode generation_mla = json_get(root, "generation_mla");
    if (json_is_present(&context))
        TRY(context_kernels_read(&context, arena, &profile->context_attention));
    if (json_is_present(&generation))
        TRY(generation_kernels_read(&generation, arena, &profile->generation_attention));
    if (json_is_present(&context_mla))
        TRY(context_kernels_read(&context_mla, arena, &profile->context_mla));
    if (json_is_present(&generation_mla))
        TRY(generation_kernels_read(&generation_mla, arena, &profile->generation_mla));
    return status_ok();
}

// Number formats that the GPU does not have cannot have been measured on it.
static Status format_check(const JsonNode *root, const Gpu *gpu, Precision precision,
                           const char *section, const char *format) {
    JsonNode node = json_get(root, section);
    if (gpu->peak_flops_per_s[precision] > 0) return status_ok();
    return json_error(&node, "has kernels of %s, and %s has no such units", format, gpu->name);
}

static Status formats_check(const JsonNode *root, const KernelProfile *p, const Gpu *gpu) {
    static const Precision GEMM[NUM_GEMM_DTYPES] = {PRECISION_BF16, PRECISION_FP8, PRECISION_FP8,
                                                    PRECISION_NVFP4};
    static const Precision MOE[NUM_MOE_DTYPES] = {PRECISION_BF16, PRECISION_FP8, PRECISION_FP8,
                                                  PRECISION_NVFP4};
    static const Precision ATTENTION[NUM_ATTENTION_DTYPES] = {PRECISION_BF16, PRECISION_FP8};
    for (int d = 0; d < NUM_GEMM_DTYPES; d++)
        if (p->gemm.dtypes[d].present)
            TRY(format_check(root, gpu, GEMM[d], "gemm", GEMM_DTYPE_NAMES[d]));
    for (int i = 0; i < p->moe.num_kernels; i++) {
        int d = p->moe.kernels[i].moe_dtype;
        TRY(format_check(root, gpu, MOE[d], "moe", MOE_DTYPE_NAMES[d]));
    }
    for (int i = 0; i < p->context_attention.num_kernels; i++) {
        int d = p->context_attention.kernels[i].variant.attn_dtype;
        TRY(format_check(root, gpu, ATTENTION[d], "context_attention", ATTENTION_DTYPE_NAMES[d]));
    }
    return status_ok();
}

// expected: the GPU that the profile must be of; NULL for any. own: one that may be known to no
// bundled file; NULL for none.
static Status kernels_read(const JsonNode *root, const char *expected, const Gpu *own, Arena *arena,
                           KernelProfile *out) {
    KernelProfile profile = {0};
    TRY(json_read_object(root, FIELDS, sizeof FIELDS / sizeof *FIELDS, arena, &profile));
    JsonNode schema = json_get(root, "schema"), gemm = json_get(root, "gemm");
    int version;
    TRY(json_read_int(&schema, 1, 1, &version));
    JsonNode gpu_node = json_get(root, "gpu");
    if (expected && strcmp(profile.gpu, expected) != 0)
        return json_error(&gpu_node, "\"%.60s\"; expected a profile of %s", profile.gpu, expected);
    Gpu gpu;
    if (own && strcmp(profile.gpu, own->name) == 0)
        gpu = *own;
    else
        TRY(gpu_load(&gpu_node, arena, &gpu));
    JsonNode moe = json_get(root, "moe");
    JsonNode nccl = json_get(root, "nccl");
    if (json_is_present(&nccl)) TRY(nccl_kernels_read(&nccl, arena, &profile.nccl));
    if (json_is_present(&moe)) TRY(moe_kernels_read(&moe, arena, &profile.moe));
    if (json_is_present(&gemm)) TRY(gemm_kernels_read(&gemm, arena, &profile.gemm));
    TRY(attention_read(root, arena, &profile));
    TRY(formats_check(root, &profile, &gpu));
    *out = profile;
    return status_ok();
}

Status kernels_load_named(const char *gpu_name, Arena *arena, KernelProfile *out) {
    JsonNode root;
    TRY(profile_load_named(NULL, "calibrated GPU", FOLDER, gpu_name, arena, &root));
    return kernels_read(&root, gpu_name, NULL, arena, out);
}

// "FILE: kernels_of: FOUND; expected ...".
static Status kernels_of_refuse(const Gpu *gpu, const char *found, Arena *arena) {
    const char *const *names, *list = "";
    int num_names;
    TRY(data_list(arena, FOLDER, &names, &num_names));
    for (int i = 0; i < num_names; i++)
        list = arena_printf(arena, "%s%s%s", list, i ? ", " : "", names[i]);
    return status_at(STATUS_INVALID, gpu->file, "kernels_of",
                     "%s; expected the path of a kernel profile, or one of %s", found, list);
}

// The file that kernels_of names.
static Status kernels_path(const Gpu *gpu, Arena *arena, const char **path) {
    const char *name = gpu->kernels_of;
    if (value_is_path(name)) {
        *path = path_beside(arena, gpu->file, name);
        if (access(*path, R_OK) == 0) return status_ok();
        const char *why = strerror(errno);
        return kernels_of_refuse(
            gpu, arena_printf(arena, "\"%.150s\" cannot be read: %s", name, why), arena);
    }
    *path = data_path(arena, FOLDER, name);
    if (kernels_exist(name, arena)) return status_ok();
    return kernels_of_refuse(gpu, arena_printf(arena, "unknown GPU \"%.60s\"", name), arena);
}

// Who the relative is, and the peaks that its kernels are priced with.
static Status inherit(const Gpu *gpu, Arena *arena, CalibratedKernels *kernels) {
    Gpu relative;
    TRY(gpu_load_named(kernels->profile.gpu, arena, &relative));
    kernels->foreign = strcmp(relative.architecture, gpu->architecture) != 0;
    for (int p = 0; p < NUM_PRECISIONS; p++)
        if (relative.efficiency.gemm_max_frac[p] > 0)
            kernels->gpu.peak_flops_per_s[p] *=
                gpu->efficiency.gemm_max_frac[p] / relative.efficiency.gemm_max_frac[p];
    return status_ok();
}

// skipped: sections that are not read, ending with NULL.
static Status kernels_without(const Gpu *gpu, const char *const *skipped, Arena *arena,
                              const CalibratedKernels **out) {
    *out = NULL;
    if (!gpu->kernels_of) return status_ok();
    const char *path, *expected = value_is_path(gpu->kernels_of) ? NULL : gpu->kernels_of;
    JsonNode root;
    TRY(kernels_path(gpu, arena, &path));
    TRY(json_load_without(path, skipped, arena, &root));
    CalibratedKernels *kernels = ARENA_ARRAY(arena, 1, CalibratedKernels);
    TRY(kernels_read(&root, expected, gpu, arena, &kernels->profile));
    kernels->products = memo_new(arena);
    kernels->gpu = *gpu;
    kernels->inherited = strcmp(kernels->profile.gpu, gpu->name) != 0;
    *out = kernels;
    return kernels->inherited ? inherit(gpu, arena, kernels) : status_ok();
}

Status kernels_load_for(const Gpu *gpu, Arena *arena, const CalibratedKernels **out) {
    // Parsing is most of the time of a small question.
    static const char *const SKIPPED[] = {
        "moe", "context_attention", "generation_attention", "context_mla", "generation_mla", NULL};
    return kernels_without(gpu, SKIPPED, arena, out);
}

Status kernels_load_whole(const Gpu *gpu, Arena *arena, const CalibratedKernels **out) {
    static const char *const SKIPPED[] = {NULL};
    if (!gpu->kernels_of) return kernels_of_refuse(gpu, "is absent", arena);
    return kernels_without(gpu, SKIPPED, arena, out);
}

Status kernels_load(const char *path, const Gpu *gpu, Arena *arena, KernelProfile *out) {
    JsonNode root;
    TRY(json_load(path, arena, &root));
    return kernels_read(&root, gpu->name, gpu, arena, out);
}

Status kernels_parse(const char *text, size_t size, const char *file, const Gpu *gpu, Arena *arena,
                     KernelProfile *out) {
    JsonNode root;
    TRY(json_parse(text, size, file, arena, &root));
    return kernels_read(&root, gpu->name, gpu, arena, out);
}
