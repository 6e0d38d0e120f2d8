#include "profiler/cpu_shapes.h"

#include <CUnit/CUnit.h>
#include <string.h>

// No row is measured twice, and quick ones are few.
static void keys_differ(void) {
    Arena arena = {0};
    for (int kind = 0; kind < NUM_CPU_KINDS; kind++) {
        CpuShapes all = cpu_shapes((CpuKind)kind, false, 4, &arena);
        CpuShapes quick = cpu_shapes((CpuKind)kind, true, 4, &arena);
        CU_ASSERT(quick.num_shapes >= 1 && quick.num_shapes <= all.num_shapes);
        const char **keys = ARENA_ARRAY(&arena, quick.num_shapes, const char *);
        int num_same = 0;
        for (int i = 0; i < quick.num_shapes; i++) {
            keys[i] = cpu_key(&quick.shapes[i], &arena);
            for (int j = 0; j < i; j++) num_same += strcmp(keys[i], keys[j]) == 0;
        }
        CU_ASSERT_EQUAL(num_same, 0);
    }
    arena_free(&arena);
}

// A key has as many cells as the header says.
static void keys_fit_their_headers(void) {
    Arena arena = {0};
    for (int kind = 0; kind < NUM_CPU_KINDS; kind++) {
        CpuShapes list = cpu_shapes((CpuKind)kind, true, 2, &arena);
        int num_keys, num_cells = 1;
        cpu_header((CpuKind)kind, &num_keys);
        for (const char *c = cpu_key(&list.shapes[0], &arena); *c; c++) num_cells += *c == ',';
        CU_ASSERT_EQUAL(num_cells, num_keys);
    }
    arena_free(&arena);
}

// 10 rows of 100 in fp32: an addition moves 3 x 4000 bytes; SwiGLU's backward reads the input of
// twice the width and dy and writes dx, 5 x 4000; the embedding's backward reads 4 and adds to 4
// bytes, counted as 12 each. In fp64 an addition moves twice that.
static void bytes_are_those_of_the_program(void) {
    CpuShape shape = {.op = CPU_OP_ADD, .dtype = DTYPE_FP32, .rows = 10, .columns = 100};
    CU_ASSERT_EQUAL(cpu_shape_bytes(&shape), 12000);
    shape.op = CPU_OP_SWIGLU_BACKWARD;
    CU_ASSERT_EQUAL(cpu_shape_bytes(&shape), 20000);
    shape.op = CPU_OP_EMBEDDING_BACKWARD;
    CU_ASSERT_EQUAL(cpu_shape_bytes(&shape), 12000);
    shape.op = CPU_OP_ADD;
    shape.dtype = DTYPE_FP64;
    CU_ASSERT_EQUAL(cpu_shape_bytes(&shape), 24000);
}

// 2 x 3 heads of 4 tokens: 10 pairs each, 60 together, of 8 numbers: 4 x 480 flops, 10 x 480 back.
static void attention_counts_causal_pairs(void) {
    CpuShape shape = {
        .op = CPU_OP_ATTENTION_FORWARD, .batch = 2, .tokens = 4, .heads = 3, .head_dim = 8};
    CU_ASSERT_EQUAL(cpu_shape_flops(&shape), 1920);
    shape.op = CPU_OP_ATTENTION_BACKWARD;
    CU_ASSERT_EQUAL(cpu_shape_flops(&shape), 4800);
}

// Of 6 ranks: groups of 2, of 4 and of all.
static void groups_grow_to_all_ranks(void) {
    Arena arena = {0};
    CpuShapes list = cpu_shapes(CPU_KIND_COMM, true, 6, &arena);
    bool seen[7] = {false};
    for (int i = 0; i < list.num_shapes; i++) seen[list.shapes[i].num_ranks] = true;
    CU_ASSERT(seen[2] && seen[4] && seen[6] && !seen[3] && !seen[5]);
    arena_free(&arena);
}

CU_TestInfo cpu_shapes_tests[] = {
    {"keys_differ", keys_differ},
    {"keys_fit_their_headers", keys_fit_their_headers},
    {"bytes_are_those_of_the_program", bytes_are_those_of_the_program},
    {"attention_counts_causal_pairs", attention_counts_causal_pairs},
    {"groups_grow_to_all_ranks", groups_grow_to_all_ranks},
    CU_TEST_INFO_NULL,
};
