#include "whatif/whatif.h"

#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

// The axis of a text as compact JSON: path, then its values.
static const char *parsed(const char *text, Arena *arena) {
    WhatifAxis axis;
    Status status = whatif_parse_axis(text, arena, &axis);
    if (status.code != STATUS_OK) return arena_strdup(arena, status.text);
    const char *line = axis.path;
    for (int i = 0; i < axis.num_values; i++) {
        char *value = cJSON_PrintUnformatted(axis.values[i]);
        line = arena_printf(arena, "%s %s", line, value);
        cJSON_free(value);
    }
    return line;
}

#define ASSERT_PARSED(text, expected) CU_ASSERT_STRING_EQUAL(parsed(text, &arena), expected)

static void values_are_json_or_strings(void) {
    Arena arena = {0};
    ASSERT_PARSED("cluster.num_gpus=64,128", "cluster.num_gpus 64 128");
    ASSERT_PARSED("cluster=dgx-h100:16", "cluster \"dgx-h100:16\"");
    ASSERT_PARSED("training.compile=true,false", "training.compile true false");
    ASSERT_PARSED("parallel.recompute=none,full,null", "parallel.recompute \"none\" \"full\" null");
    ASSERT_PARSED("training.moe_routing={\"imbalance\":1.5},balanced",
                  "training.moe_routing {\"imbalance\":1.5} \"balanced\"");
    ASSERT_PARSED("a=[1,2],[3]", "a [1,2] [3]");
    ASSERT_PARSED("a=\"x,y\",z", "a \"x,y\" \"z\"");
    ASSERT_PARSED("model=models/a=b.json", "model \"models/a=b.json\"");
    ASSERT_PARSED("x=1.5e9,-2", "x 1500000000 -2");
    arena_free(&arena);
}

static void ranges_are_written_out(void) {
    Arena arena = {0};
    ASSERT_PARSED("n=8..64:x2", "n 8 16 32 64");
    ASSERT_PARSED("n=8..63:x2", "n 8 16 32");
    ASSERT_PARSED("n=1..10:+3", "n 1 4 7 10");
    ASSERT_PARSED("n=1..4", "n 1 2 3 4");
    ASSERT_PARSED("n=5..5", "n 5");
    ASSERT_PARSED("n=1.0..1.5:+0.25", "n 1 1.25 1.5");
    ASSERT_PARSED("n=0..1:+0.1,7", "n 0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1 7");
    ASSERT_PARSED("n=1e9..4e9:x2", "n 1000000000 2000000000 4000000000");
    ASSERT_PARSED("file=../a..b", "file \"../a..b\""); // no numbers: a string
    arena_free(&arena);
}

#define HELP                                                                                       \
    "; expected PATH=v1,v2,..., as in cluster.num_gpus=64,128 or training.seq_len=4096..32768:x2"

static void malformed_axes_are_refused(void) {
    Arena arena = {0};
    ASSERT_PARSED("cluster.num_gpus", "--vary cluster.num_gpus: no '='" HELP);
    ASSERT_PARSED("=4", "--vary =4: no path" HELP);
    ASSERT_PARSED("a=", "--vary a=: an empty value" HELP);
    ASSERT_PARSED("a=1,,2", "--vary a=1,,2: an empty value" HELP);
    ASSERT_PARSED("a=1,", "--vary a=1,: an empty value" HELP);
    ASSERT_PARSED("a={\"x\"", "--vary a={\"x\": {\"x\" is not JSON" HELP);
    ASSERT_PARSED("a=8..64:x1", "--vary a=8..64:x1: a range that does not grow" HELP);
    ASSERT_PARSED("a=0..64:x2", "--vary a=0..64:x2: a range that does not grow" HELP);
    ASSERT_PARSED("a=1..9:+0", "--vary a=1..9:+0: a range that does not grow" HELP);
    ASSERT_PARSED("a=1..9:+-1", "--vary a=1..9:+-1: a range that does not grow" HELP);
    ASSERT_PARSED("a=8..64:2",
                  "--vary a=8..64:2: in 8..64:2, times 2 or plus 2? write 8..64:x2 for "
                  "the former, 8..64:+2 for the latter" HELP);
    ASSERT_PARSED("a=8..64:*2", "--vary a=8..64:*2: in 8..64:*2 the step must be :xFACTOR (times) "
                                "or :+STEP (plus)" HELP);
    ASSERT_PARSED("a=8..64x2", "--vary a=8..64x2: in 8..64x2 the step must be :xFACTOR (times) or "
                               ":+STEP (plus)" HELP);
    ASSERT_PARSED("a=9..1", "--vary a=9..1: a range that ends before it begins" HELP);
    ASSERT_PARSED("a=1..1e9", "--vary a=1..1e9: 1000000000 values are more than 1000000" HELP);
    ASSERT_PARSED("a=1..inf", "--vary a=1..inf: a range that does not grow" HELP);
    arena_free(&arena);
}

// Memory that grows with their number: 60,000 values took 3.5 GB.
static void long_lists_take_little(void) {
    enum { NUM_VALUES = 100000 };
    Arena arena = {0};
    char *text = malloc(2 * NUM_VALUES + 8), *end = stpcpy(text, "a.b=");
    for (int i = 0; i < NUM_VALUES; i++) end = stpcpy(end, i > 0 ? ",1" : "1");
    WhatifAxis axis;
    CU_ASSERT_EQUAL(whatif_parse_axis(text, &arena, &axis).code, STATUS_OK);
    CU_ASSERT_EQUAL(axis.num_values, NUM_VALUES);
    CU_ASSERT(arena_used(&arena) < 200 * (size_t)NUM_VALUES);
    free(text);
    arena_free(&arena);
}

static void ranges_are_decimal(void) {
    Arena arena = {0};
    ASSERT_PARSED("n=0x8..0x40:x2", "n \"0x8..0x40:x2\""); // which no key takes
    arena_free(&arena);
}

CU_TestInfo axis_tests[] = {
    {"values_are_json_or_strings", values_are_json_or_strings},
    {"ranges_are_written_out", ranges_are_written_out},
    {"malformed_axes_are_refused", malformed_axes_are_refused},
    {"long_lists_take_little", long_lists_take_little},
    {"ranges_are_decimal", ranges_are_decimal},
    CU_TEST_INFO_NULL,
};
