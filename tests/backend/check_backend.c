// tests/backend/check_backend.c - runs backend/check.h on a device and prints one line per case.
//
// Usage: check-backend cpu|cuda [fp32|bf16|fp64]
// Exit:  0 all right, 1 some wrong, 2 bad usage, 3 no such device, or it failed.
#include "backend/check.h"
#include "backend/cpu_backend.h"
#include "backend/cuda_backend.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    int num_right, num_wrong;
} Counts;

static void print_check(void *context, const BackendCheck *check) {
    Counts *counts = context;
    *(check->wrong ? &counts->num_wrong : &counts->num_right) += 1;
    printf("%-5s %-20s %-68s %-13s error %.2e of %.0e, largest %.2e\n",
           check->wrong ? "WRONG" : "ok", check->name, check->sizes, check->array, check->error,
           check->tolerance, check->largest);
    fflush(stdout);
}

static Status open_device(const char *kind, Dtype act, Backend **out) {
    if (strcmp(kind, "cpu") == 0) return cpu_backend_open(act, 0, out);
    return cuda_backend_open(0, act, out);
}

static int fail(const Status *status) {
    fprintf(stderr, "check-backend: %s\n", status->text);
    return 3;
}

int main(int argc, char **argv) {
    bool cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
    Dtype act = cuda ? DTYPE_BF16 : DTYPE_FP32;
    bool known = cuda || (argc > 1 && strcmp(argv[1], "cpu") == 0);
    if (argc > 2) {
        for (act = 0; act < DTYPE_INT32 && strcmp(argv[2], dtype_name(act)) != 0; act++) continue;
    }
    if (!known || argc > 3 || act == DTYPE_INT32) {
        fprintf(stderr, "Usage: check-backend cpu|cuda [fp32|bf16|fp64]\n");
        return 2;
    }
    Backend *device;
    Status status = open_device(argv[1], act, &device);
    if (status.code != STATUS_OK) return fail(&status);
    printf("%s, %s\n", device->name, dtype_name(act));
    Counts counts = {0};
    status = backend_check(device, print_check, &counts);
    device->table->close(device);
    if (status.code != STATUS_OK) return fail(&status);
    printf("%d right, %d wrong\n", counts.num_right, counts.num_wrong);
    return counts.num_wrong == 0 ? 0 : 1;
}
