#include "backend/check.h"

#include "backend/check_case.h"
#include "backend/cpu_backend.h"

static void (*const CHECKS[])(Checker *) = {
    check_moves,     check_elementwise,     check_products,   check_norms,      check_activations,
    check_attention, check_attention_merge, check_vocabulary, check_optimizers, check_routing,
};

Status backend_check(Backend *device, CheckReport report, void *context) {
    Backend *reference;
    TRY(cpu_backend_open(DTYPE_FP64, 0, &reference));
    Checker checker = {.sides = {device, reference}, .report = report, .context = context};
    Status status = backend_sync(device);
    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS && status.code == STATUS_OK; i++) {
        CHECKS[i](&checker);
        status = backend_sync(device);
        if (status.code == STATUS_OK) status = backend_sync(reference);
    }
    arena_free(&checker.arena);
    reference->table->close(reference);
    return status;
}
