// Linked into every target: from libFuzzer's bytes to a reader's text or file.
#include "tests/fuzz/fuzz.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char *input_bytes;
static size_t input_size;
static int input_fd = -1;
static char input_path[64];

static void must(bool good, const char *what) {
    if (good) return;
    perror(what);
    abort();
}

const char *fuzz_path(void) {
    if (input_fd >= 0) return input_path;
    input_fd = memfd_create("input", 0);
    must(input_fd >= 0, "memfd_create");
    must(write(input_fd, input_bytes, input_size) == (ssize_t)input_size, "write");
    snprintf(input_path, sizeof input_path, "/proc/self/fd/%d", input_fd);
    return input_path;
}

JsonNode fuzz_path_node(Arena *arena) {
    cJSON *name = cJSON_CreateString(fuzz_path());
    json_own(arena, name);
    return (JsonNode){.file = "input", .item = name};
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    Arena arena = {0};
    char *text = malloc(size + 1); // of its own, so that a byte too far is seen
    must(text != NULL, "malloc");
    if (size > 0) memcpy(text, bytes, size);
    text[size] = '\0';
    input_bytes = (const char *)bytes;
    input_size = size;
    fuzz_read(text, size, &arena);
    arena_free(&arena);
    free(text);
    if (input_fd >= 0) close(input_fd);
    input_fd = -1;
    return 0;
}
