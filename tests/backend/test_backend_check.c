// Does backend/check.h find a device that is wrong? Each mutant is the CPU in fp32 with one
// operation broken in a way that such operations break.
#include "backend/check_case.h"
#include "backend/cpu/cpu_state.h"
#include "backend/cpu_backend.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

// --- The mutants

static void product_overwrites(Backend *backend, const Product *call, BackendStream *stream) {
    Product broken = *call;
    broken.accumulate = false;
    CPU_TABLE_FP32.product(backend, &broken, stream);
}

static void product_forgets_bias(Backend *backend, const Product *call, BackendStream *stream) {
    Product broken = *call;
    broken.bias = NULL;
    CPU_TABLE_FP32.product(backend, &broken, stream);
}

static void norm_forgets_last_column(Backend *backend, const NormBackward *call,
                                     BackendStream *stream) {
    float kept = ((float *)call->dweight)[call->columns - 1];
    CPU_TABLE_FP32.norm_backward(backend, call, stream);
    ((float *)call->dweight)[call->columns - 1] = kept;
}

static void norm_keeps_its_sum(Backend *backend, const NormForward *call, BackendStream *stream) {
    NormForward broken = *call;
    static float sum[1 << 20];
    if (call->rows * call->columns <= 1 << 20) broken.sum = sum;
    CPU_TABLE_FP32.norm_forward(backend, &broken, stream);
}

static void attention_is_one_late(Backend *backend, const Attention *call, BackendStream *stream) {
    Attention broken = *call;
    broken.query_first -= call->causal;
    CPU_TABLE_FP32.attention_forward(backend, &broken, stream);
}

static void attention_forgets_window(Backend *backend, const Attention *call,
                                     BackendStream *stream) {
    Attention broken = *call;
    broken.window = 0;
    CPU_TABLE_FP32.attention_backward(backend, &broken, stream);
}

static void loss_forgets_padding(Backend *backend, const CrossEntropy *call,
                                 BackendStream *stream) {
    float kept = ((float *)call->logits)[call->stride - 1];
    CPU_TABLE_FP32.cross_entropy(backend, call, stream);
    if (call->stride > call->num_columns) ((float *)call->logits)[call->stride - 1] = kept;
}

static void embedding_writes_behind(Backend *backend, const Embedding *call,
                                    BackendStream *stream) {
    CPU_TABLE_FP32.embedding_forward(backend, call, stream);
    ((float *)call->y)[call->rows * call->columns] = 0;
}

static void router_takes_the_last(Backend *backend, const Router *call, BackendStream *stream) {
    CPU_TABLE_FP32.router_forward(backend, call, stream);
    int32_t first = call->chosen[0];
    call->chosen[0] = call->chosen[call->num_chosen - 1];
    call->chosen[call->num_chosen - 1] = first;
}

static void adamw_forgets_decay(Backend *backend, const AdamW *call, BackendStream *stream) {
    AdamW broken = *call;
    broken.weight_decay = 0;
    CPU_TABLE_FP32.adamw(backend, &broken, stream);
}

static void sum_changes_its_input(Backend *backend, void *sum, const void *x, int64_t count,
                                  BackendStream *stream) {
    CPU_TABLE_FP32.sum_squares(backend, sum, x, count, stream);
    memset((char *)(uintptr_t)x, 0, sizeof(float));
}

static void stream_does_not_wait(Backend *backend, void *to, const void *from, size_t bytes,
                                 BackendStream *stream) {
    if (stream == backend->stream) CPU_TABLE_FP32.copy(backend, to, from, bytes, stream);
}

// --- Finding them

typedef struct {
    const char *name; // of the operation that is broken
    int num_cases, num_wrong, num_elsewhere;
} Found;

static void note(void *context, const BackendCheck *check) {
    Found *found = context;
    bool own = strcmp(check->name, found->name) == 0;
    found->num_cases++;
    found->num_wrong += check->wrong && own;
    found->num_elsewhere += check->wrong && !own;
    if (check->wrong && !own) printf("\n  %s %s is wrong\n", check->name, check->sizes);
}

// Checks one kind of operation of a CPU in fp32 that has this table.
static Found found_in(const BackendTable *table, void (*kind)(Checker *), const char *name) {
    Backend *device = NULL, *reference = NULL;
    CU_ASSERT_EQUAL_FATAL(cpu_backend_open(DTYPE_FP32, 0, &device).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(cpu_backend_open(DTYPE_FP64, 0, &reference).code, STATUS_OK);
    device->table = table;
    Found found = {.name = name};
    Checker checker = {.sides = {device, reference}, .report = note, .context = &found};
    kind(&checker);
    arena_free(&checker.arena);
    CU_ASSERT_EQUAL(backend_sync(device).code, STATUS_OK);
    CU_ASSERT_EQUAL(device->allocated_bytes, 0);
    cpu_close(device);
    cpu_close(reference);
    return found;
}

// The operation `field`, so broken, is found out in some case called `name`, and no other is.
#define EXPECT_FOUND(field, broken, kind, name)                                                    \
    do {                                                                                           \
        BackendTable table = CPU_TABLE_FP32;                                                       \
        table.field = (broken);                                                                    \
        Found found = found_in(&table, (kind), (name));                                            \
        CU_ASSERT(found.num_wrong > 0);                                                            \
        CU_ASSERT_EQUAL(found.num_elsewhere, 0);                                                   \
    } while (0)

static void broken_products_are_found(void) {
    EXPECT_FOUND(product, product_overwrites, check_products, "product");
    EXPECT_FOUND(product, product_forgets_bias, check_products, "product");
}

static void broken_norms_are_found(void) {
    EXPECT_FOUND(norm_forward, norm_keeps_its_sum, check_norms, "norm_forward");
    EXPECT_FOUND(norm_backward, norm_forgets_last_column, check_norms, "norm_backward");
}

static void broken_attention_is_found(void) {
    EXPECT_FOUND(attention_forward, attention_is_one_late, check_attention, "attention_forward");
    EXPECT_FOUND(attention_backward, attention_forgets_window, check_attention,
                 "attention_backward");
}

static void broken_vocabulary_is_found(void) {
    EXPECT_FOUND(cross_entropy, loss_forgets_padding, check_vocabulary, "cross_entropy");
    EXPECT_FOUND(embedding_forward, embedding_writes_behind, check_vocabulary, "embedding_forward");
}

static void other_broken_operations_are_found(void) {
    EXPECT_FOUND(router_forward, router_takes_the_last, check_routing, "router_forward");
    EXPECT_FOUND(adamw, adamw_forgets_decay, check_optimizers, "adamw");
    EXPECT_FOUND(sum_squares, sum_changes_its_input, check_elementwise, "sum_squares");
    EXPECT_FOUND(copy, stream_does_not_wait, check_moves, "streams");
}

// A failure of the device ends the check with its sentence, and nothing is reported after it.
static void failure_of_the_device_is_told(void) {
    Backend *device = NULL;
    CU_ASSERT_EQUAL_FATAL(cpu_backend_open(DTYPE_FP32, 100000, &device).code, STATUS_OK);
    Found found = {.name = ""};
    Status status = backend_check(device, note, &found);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_EQUAL(strncmp(status.text, "out of memory: ", 15), 0);
    CU_ASSERT(found.num_cases > 0);
    CU_ASSERT_EQUAL(found.num_wrong + found.num_elsewhere, 0);
    CU_ASSERT_EQUAL(device->allocated_bytes, 0);
    cpu_close(device);
}

CU_TestInfo backend_check_tests[] = {
    {"broken_products_are_found", broken_products_are_found},
    {"broken_norms_are_found", broken_norms_are_found},
    {"broken_attention_is_found", broken_attention_is_found},
    {"broken_vocabulary_is_found", broken_vocabulary_is_found},
    {"other_broken_operations_are_found", other_broken_operations_are_found},
    {"failure_of_the_device_is_told", failure_of_the_device_is_told},
    CU_TEST_INFO_NULL,
};
