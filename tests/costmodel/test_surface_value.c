#include "costmodel/kernel/surface_value.h"

#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

// Knots 1, 2, 8 and 1, 4: log2 0, 1, 3 and 0, 2; values 0 10 / 100 110 / 300 310 thousandths.
static const char TEXT[] =
    "{\"axes\": [{\"name\": \"m\", \"knots\": [1, 2, 8]}, {\"name\": \"n\", \"knots\": [1, 4]}],"
    " \"log_ratio_e3\": [0, 10, 100, 110, 300, 310], \"spread_frac\": 0.03}";
static const char *const AXES[] = {"m", "n", NULL};

static Status surface_of(const char *text, Arena *arena, Surface *out) {
    JsonNode root;
    Status status = json_parse(text, strlen(text), "s.json", arena, &root);
    return status.code == STATUS_OK ? surface_read(&root, AXES, arena, out) : status;
}

static void surface_interpolates_and_clamps(void) {
    Arena arena = {0};
    Surface surface;
    CU_ASSERT_EQUAL_FATAL(surface_of(TEXT, &arena, &surface).code, STATUS_OK);
    CU_ASSERT_DOUBLE_EQUAL(surface_log_ratio(&surface, (double[]){0, 0}), 0, 1e-12);
    // Half way from m 2 to 8, a quarter from n 1 to 4: 0.2 + 0.0025.
    CU_ASSERT_DOUBLE_EQUAL(surface_log_ratio(&surface, (double[]){2, 0.5}), 0.2025, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(surface_log_ratio(&surface, (double[]){9, -7}), 0.3, 1e-12);
    CU_ASSERT_EQUAL(surface_outside_octaves(&surface, (double[]){2, 1}), 0);
    CU_ASSERT_DOUBLE_EQUAL(surface_outside_octaves(&surface, (double[]){5, -3}), 3, 1e-12);
    Surface none = {0};
    CU_ASSERT_EQUAL(surface_log_ratio(&none, (double[]){2, 1}), 0);
    arena_free(&arena);
}

static void surface_comes_back_from_its_document(void) {
    Arena arena = {0};
    Surface surface, again;
    CU_ASSERT_EQUAL_FATAL(surface_of(TEXT, &arena, &surface).code, STATUS_OK);
    cJSON *tree = surface_to_json(&surface);
    char *text = cJSON_PrintUnformatted(tree);
    CU_ASSERT_EQUAL_FATAL(surface_of(text, &arena, &again).code, STATUS_OK);
    for (int i = 0; i < 6; i++) CU_ASSERT_EQUAL(surface.values[i], again.values[i]);
    CU_ASSERT_EQUAL(again.spread_frac, 0.03);
    cJSON_free(text);
    cJSON_Delete(tree);
    arena_free(&arena);
}

static void numbers_of_a_string_are_those_of_a_list(void) {
    static const char NUMBERS[] = "0.1,-0.3,1234.567,0.00123,2499.99999999999,"
                                  "123.456789012345678,1.5e3,-25E-1,0.1000000000000000055,3.0000";
    static const char HEAD[] =
        "{\"axes\": [{\"name\": \"m\", \"knots\": [1, 2, 3, 4, 5]}, {\"name\": "
        "\"n\", \"knots\": [1, 4]}], \"spread_frac\": 0, "
        "\"log_ratio_e3\": ";
    Arena arena = {0};
    Surface of_string, of_list;
    const char *string = arena_printf(&arena, "%s\"%s\"}", HEAD, NUMBERS);
    const char *list = arena_printf(&arena, "%s[%s]}", HEAD, NUMBERS);
    CU_ASSERT_EQUAL_FATAL(surface_of(string, &arena, &of_string).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(surface_of(list, &arena, &of_list).code, STATUS_OK);
    for (int i = 0; i < 10; i++) CU_ASSERT_EQUAL(of_string.values[i], of_list.values[i]);
    arena_free(&arena);
}

// As bundled profiles have them: the numbers in one string.
static void values_may_stand_in_a_string(void) {
    Arena arena = {0};
    Surface surface;
    static const char HEAD[] = "{\"axes\": [{\"name\": \"m\", \"knots\": [1, 2]}, {\"name\": "
                               "\"n\", \"knots\": [1, 4]}], \"spread_frac\": 0, "
                               "\"log_ratio_e3\": ";
    Status status = surface_of(arena_printf(&arena, "%s\"5,-10,0,2500\"}", HEAD), &arena, &surface);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const double expected[] = {0.005, -0.01, 0, 2.5};
    for (int i = 0; i < 4; i++) CU_ASSERT_EQUAL(surface.values[i], expected[i]);
    ASSERT_REFUSED(surface_of(arena_printf(&arena, "%s\"5,-10,0\"}", HEAD), &arena, &surface),
                   "s.json: log_ratio_e3: 3 values; the axes make 4");
    ASSERT_REFUSED(surface_of(arena_printf(&arena, "%s\"1,2,3,4,5\"}", HEAD), &arena, &surface),
                   "s.json: log_ratio_e3: more than the 4 values that the axes make");
    static const char *const BROKEN[] = {"",           "1,2,,4",  "1,2,3,x",
                                         "1,2,3,9999", "1 2 3 4", "1,2,nan,4"};
    for (size_t i = 0; i < sizeof BROKEN / sizeof *BROKEN; i++)
        CU_ASSERT_EQUAL(
            surface_of(arena_printf(&arena, "%s\"%s\"}", HEAD, BROKEN[i]), &arena, &surface).code,
            STATUS_INVALID);
    arena_free(&arena);
}

static void bad_surfaces_are_refused(void) {
    Arena arena = {0};
    Surface surface;
    ASSERT_REFUSED(surface_of("{\"axes\": [{\"name\": \"m\", \"knots\": [2, 2]}, {\"name\": \"n\", "
                              "\"knots\": [1]}], \"log_ratio_e3\": [1, 2], \"spread_frac\": 0}",
                              &arena, &surface),
                   "s.json: axes[0].knots[1]: 2 does not lie above the knot before it");
    ASSERT_REFUSED(surface_of("{\"axes\": [{\"name\": \"m\", \"knots\": [2, 4]}, {\"name\": \"n\", "
                              "\"knots\": [1]}], \"log_ratio_e3\": [1], \"spread_frac\": 0}",
                              &arena, &surface),
                   "s.json: log_ratio_e3: 1 values; the axes make 2");
    ASSERT_REFUSED(surface_of("{\"axes\": [{\"name\": \"k\", \"knots\": [2, 4]}, {\"name\": \"n\", "
                              "\"knots\": [1]}], \"log_ratio_e3\": [1, 2], \"spread_frac\": 0}",
                              &arena, &surface),
                   "s.json: axes[0].name: \"k\"; expected the axis \"m\"");
    arena_free(&arena);
}

CU_TestInfo surface_value_tests[] = {
    {"surface_interpolates_and_clamps", surface_interpolates_and_clamps},
    {"surface_comes_back_from_its_document", surface_comes_back_from_its_document},
    {"numbers_of_a_string_are_those_of_a_list", numbers_of_a_string_are_those_of_a_list},
    {"values_may_stand_in_a_string", values_may_stand_in_a_string},
    {"bad_surfaces_are_refused", bad_surfaces_are_refused},
    CU_TEST_INFO_NULL,
};
