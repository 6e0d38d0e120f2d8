#include "profiler/gpu_check.h"
#include "base/random.h"
#include "profiler/memory_reference.h"

#include <math.h>
#include <string.h>

// A half unit in the last place of bfloat16 is 2^-9 of the value, and the fast exponential of the
// GPU adds a little; sums of floats in another order differ in their last bits.
static double tolerance_of(Number dtype) {
    switch (dtype) {
    case NUMBER_BFLOAT16:
    case NUMBER_FLOAT16:
        return 0.006;
    case NUMBER_FLOAT32:
        return 1e-4;
    default:
        return 1e-9; // whole numbers
    }
}

double gpu_check_error(Number dtype, const void *found, const void *expected, size_t num_elements) {
    double squares = 0, most = 0;
    for (size_t i = 0; i < num_elements; i++)
        squares += pow(number_read(dtype, expected, i), 2) / (double)num_elements;
    double typical = sqrt(squares);
    for (size_t i = 0; i < num_elements; i++) {
        double want = number_read(dtype, expected, i), got = number_read(dtype, found, i);
        double difference = fabs(got - want);
        if (!isfinite(difference)) return INFINITY;
        if (difference > 0) most = fmax(most, difference / (fabs(want) + typical));
    }
    return most;
}

static double normal(uint64_t seed, size_t i) {
    uint32_t counter[RANDOM_WORDS] = {(uint32_t)i, (uint32_t)(i >> 32), 0, 0};
    return random_normal(seed, counter);
}

static void fill(const MemoryBuffer *buffer, void *array, size_t n, int64_t columns,
                 uint64_t seed) {
    for (size_t i = 0; i < n; i++) {
        double value = buffer->fill == FILL_ZERO ? 0 : normal(seed, i);
        // Whole numbers spread by the fraction of a normal number's thousandfold.
        double frac = fabs(value) * 1000 - floor(fabs(value) * 1000);
        if (buffer->fill == FILL_POSITIVE) value = fabs(value);
        if (buffer->fill == FILL_VOCAB) value = floor(frac * MEMORY_VOCAB);
        if (buffer->fill == FILL_COLUMN) value = floor(frac * (double)columns);
        number_write(buffer->dtype, array, i, value);
    }
}

static void check_add(GpuChecks *checks, const GpuCheck *check) {
    checks->checks[checks->num_checks++] = *check;
    checks->num_wrong += !(check->error <= check->tolerance);
}

// The share of ones in a mask, as an error that is 0 within five standard deviations.
static double mask_error(const uint8_t *mask, size_t n) {
    double kept = 0, expected = (double)MEMORY_DROPOUT_KEEP;
    for (size_t i = 0; i < n; i++) {
        if (mask[i] > 1) return INFINITY;
        kept += mask[i];
    }
    double deviation = sqrt(expected * (1 - expected) / (double)n);
    double off = fabs(kept / (double)n - expected);
    return off <= 5 * deviation ? 0 : off;
}

static Status check_memory(const GpuPlugin *plugin, GpuSession *session, const MemoryOp *op,
                           int64_t rows, int64_t columns, Arena *scratch, GpuCheck *check) {
    void *found[MEMORY_MAX_BUFFERS], *expected[MEMORY_MAX_BUFFERS];
    for (int i = 0; i < op->num_buffers; i++) {
        const MemoryBuffer *buffer = &op->buffers[i];
        size_t n = memory_buffer_elements(buffer, rows, columns);
        size_t bytes = n * number_bytes(buffer->dtype);
        found[i] = arena_alloc(scratch, bytes);
        expected[i] = arena_alloc(scratch, bytes);
        fill(buffer, found[i], n, columns, (uint64_t)i + 1);
        memcpy(expected[i], found[i], bytes);
    }
    MemoryRequest request = {.op = op->name, .rows = rows, .columns = columns};
    TRY(plugin->apply_memory(session, &request, found));
    bool dropout = strcmp(op->name, "dropout_add") == 0;
    if (dropout) memcpy(expected[3], found[3], (size_t)(rows * columns));
    memory_reference(op, rows, columns, expected);
    for (int i = 0; i < op->num_buffers; i++) {
        const MemoryBuffer *buffer = &op->buffers[i];
        if (buffer->use == BUFFER_READ || buffer->use == BUFFER_SCRATCH) continue;
        size_t n = memory_buffer_elements(buffer, rows, columns);
        double error = dropout && i == 3 ? mask_error(found[3], n)
                                         : gpu_check_error(buffer->dtype, found[i], expected[i], n);
        double tolerance = tolerance_of(buffer->dtype);
        if (check->array && !(error / tolerance > check->error / check->tolerance)) continue;
        check->array = buffer->name;
        check->error = error;
        check->tolerance = tolerance;
    }
    return status_ok();
}

// --- Products

void gemm_reference(const GemmRequest *request, const void *left, const void *right, void *output) {
    size_t m = (size_t)request->m, n = (size_t)request->n, k = (size_t)request->k;
    bool left_turned = gemm_operands(request) == GEMM_BACKWARD_WEIGHT;
    bool right_turned = gemm_operands(request) == GEMM_FORWARD;
    Number left_dtype = gemm_left_dtype(request);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum =
                request->accumulate ? number_read(request->out_dtype, output, i * n + j) : 0;
            for (size_t l = 0; l < k; l++)
                sum += number_read(left_dtype, left, left_turned ? l * m + i : i * k + l) *
                       number_read(request->dtype, right, right_turned ? j * k + l : l * n + j);
            number_write(request->out_dtype, output, i * n + j, sum);
        }
    }
}

static void *normal_array(Number dtype, size_t n, uint64_t seed, Arena *scratch) {
    void *array = arena_alloc(scratch, n * number_bytes(dtype));
    for (size_t i = 0; i < n; i++) number_write(dtype, array, i, normal(seed, i));
    return array;
}

static Status check_gemm(const GpuPlugin *plugin, GpuSession *session, const GemmRequest *request,
                         Arena *scratch, GpuCheck *check) {
    size_t m = (size_t)request->m, n = (size_t)request->n, k = (size_t)request->k;
    void *left = normal_array(gemm_left_dtype(request), m * k, 1, scratch);
    void *right = normal_array(request->dtype, k * n, 2, scratch);
    void *found = normal_array(request->out_dtype, m * n, 3, scratch);
    void *expected = normal_array(request->out_dtype, m * n, 3, scratch);
    TRY(plugin->apply_gemm(session, request, left, right, found));
    gemm_reference(request, left, right, expected);
    check->array = "output";
    check->error = gpu_check_error(request->out_dtype, found, expected, m * n);
    // tf32 keeps 10 bits of each factor; Hopper's fp8 units add up about 13 bits of the sum, as far
    // as they go without handing it on.
    bool rough = request->dtype == NUMBER_TF32 || request->dtype == NUMBER_FP8;
    check->tolerance = rough ? 0.006 : tolerance_of(request->out_dtype);
    return status_ok();
}

// All sides differ, so that no two can be mistaken for each other.
static const GemmRequest GEMMS[] = {
    {NUMBER_BFLOAT16, NUMBER_BFLOAT16, GEMM_FORWARD, 96, 160, 224, false, false},
    {NUMBER_BFLOAT16, NUMBER_BFLOAT16, GEMM_FORWARD, 1000, 64, 512, false, false},
    {NUMBER_BFLOAT16, NUMBER_BFLOAT16, GEMM_BACKWARD_INPUT, 96, 160, 224, false, false},
    {NUMBER_BFLOAT16, NUMBER_FLOAT32, GEMM_BACKWARD_WEIGHT, 96, 160, 224, true, false},
    {NUMBER_BFLOAT16, NUMBER_BFLOAT16, GEMM_BACKWARD_WEIGHT, 96, 160, 224, false, false},
    {NUMBER_FLOAT16, NUMBER_FLOAT16, GEMM_FORWARD, 96, 160, 224, false, false},
    {NUMBER_FLOAT16, NUMBER_FLOAT16, GEMM_BACKWARD_INPUT, 96, 160, 224, false, false},
    {NUMBER_FLOAT16, NUMBER_FLOAT32, GEMM_BACKWARD_WEIGHT, 96, 160, 224, true, false},
    {NUMBER_FLOAT16, NUMBER_FLOAT16, GEMM_BACKWARD_WEIGHT, 96, 160, 224, false, false},
    {NUMBER_TF32, NUMBER_FLOAT32, GEMM_FORWARD, 96, 160, 224, false, false},
    {NUMBER_TF32, NUMBER_FLOAT32, GEMM_BACKWARD_INPUT, 96, 160, 224, false, false},
    {NUMBER_TF32, NUMBER_FLOAT32, GEMM_BACKWARD_WEIGHT, 96, 160, 224, true, false},
    {NUMBER_TF32, NUMBER_FLOAT32, GEMM_BACKWARD_WEIGHT, 96, 160, 224, false, false},
    {NUMBER_FP8, NUMBER_BFLOAT16, GEMM_FORWARD, 96, 160, 224, false, false},
    {NUMBER_FP8, NUMBER_BFLOAT16, GEMM_BACKWARD_INPUT, 96, 160, 224, false, false},
    {NUMBER_FP8, NUMBER_FLOAT32, GEMM_BACKWARD_WEIGHT, 96, 160, 224, true, false},
    {NUMBER_FP8, NUMBER_BFLOAT16, GEMM_BACKWARD_WEIGHT, 96, 160, 224, false, false},
};
enum { NUM_GEMMS = sizeof GEMMS / sizeof *GEMMS };

static Status gemms_check(const GpuPlugin *plugin, GpuSession *session, Arena *arena,
                          Arena *scratch, GpuChecks *out) {
    static const char *const LAYOUTS[] = {"forward", "backward_input", "backward_weight"};
    for (int i = 0; i < NUM_GEMMS; i++) {
        const GemmRequest *gemm = &GEMMS[i];
        GpuCheck check = {.name = arena_printf(
                              arena, "%s %s %d x %d x %d %s %s", number_name(gemm->dtype),
                              LAYOUTS[gemm->layout], gemm->m, gemm->n, gemm->k,
                              gemm->accumulate ? "added to" : "to", number_name(gemm->out_dtype))};
        arena_reset(scratch);
        Status status = check_gemm(plugin, session, gemm, scratch, &check);
        if (status.code == STATUS_NO) continue; // fp8 before Hopper
        TRY(status);
        check_add(out, &check);
    }
    return status_ok();
}

// --- All

// Columns of one, two and four packs a thread; rows that are several to a block, or fewer.
static const int64_t SIZES[][2] = {{600, 256}, {50, 1600}, {9, 4096}, {6, 8192}};
enum { NUM_SIZES = sizeof SIZES / sizeof *SIZES };

static Status memory_check(const GpuPlugin *plugin, GpuSession *session, Arena *arena,
                           Arena *scratch, GpuChecks *out) {
    for (int i = 0; i < NUM_MEMORY_OPS; i++) {
        const MemoryOp *op = &MEMORY_OPS[i];
        bool table = strncmp(op->name, "embedding", 9) == 0;
        for (int j = 0; j < (table ? 1 : NUM_SIZES); j++) {
            int64_t rows = SIZES[j][0], columns = SIZES[j][1];
            if (strcmp(op->name, "rope") == 0) columns = columns / MEMORY_HEAD * MEMORY_HEAD;
            if (table) columns = 32; // of a table of 32,000 rows
            GpuCheck check = {.name = arena_printf(arena, "%s %lld x %lld", op->name,
                                                   (long long)rows, (long long)columns)};
            arena_reset(scratch);
            TRY(check_memory(plugin, session, op, rows, columns, scratch, &check));
            check_add(out, &check);
        }
    }
    return status_ok();
}

Status gpu_check(const GpuPlugin *plugin, int device, Arena *arena, GpuChecks *out) {
    *out =
        (GpuChecks){.checks = ARENA_ARRAY(arena, NUM_GEMMS + NUM_SIZES * NUM_MEMORY_OPS, GpuCheck)};
    GpuInfo info;
    TRY(plugin->probe(device, &info));
    GpuTimer timer = GPU_TIMER_EVENTS;
    GpuSession *session = NULL;
    char why[600];
    TRY(plugin->open(device, &timer, &session, why, sizeof why));
    Arena scratch = {0};
    Status status = gemms_check(plugin, session, arena, &scratch, out);
    if (status.code == STATUS_OK) status = memory_check(plugin, session, arena, &scratch, out);
    plugin->close(session);
    arena_free(&scratch);
    return status;
}
