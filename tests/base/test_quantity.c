#include "base/json.h"
#include "base/quantity.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

static void reads(const char *text, QuantityKind kind, double expected) {
    char why[300];
    double value = -1;
    bool good = quantity_parse(text, kind, &value, why, sizeof why);
    CU_ASSERT_TRUE(good);
    CU_ASSERT_TRUE(fabs(value - expected) <= 1e-12 * fabs(expected));
    if (!good || fabs(value - expected) > 1e-12 * fabs(expected))
        printf("%s: %.15g, not %.15g (%s)\n", text, value, expected, why);
}

static void refused(const char *text, QuantityKind kind, const char *expected) {
    char why[300];
    double value = -1;
    CU_ASSERT_FALSE(quantity_parse(text, kind, &value, why, sizeof why));
    CU_ASSERT_STRING_EQUAL(why, expected);
    if (strcmp(why, expected) != 0) printf("%s\n  not %s\n", why, expected);
}

// Powers of 1000 and of 1024: 80 x 1024^3 = 85899345920.
static void sizes_are_decimal_or_binary(void) {
    reads("70GB", QUANTITY_BYTES, 70e9);
    reads("80GiB", QUANTITY_BYTES, 85899345920.0);
    reads(" 1.5 TB ", QUANTITY_BYTES, 1.5e12);
    reads("512 KiB", QUANTITY_BYTES, 524288);
    reads("3e9", QUANTITY_BYTES, 3e9);
    reads("16 B", QUANTITY_BYTES, 16);
    refused("80Gb", QUANTITY_BYTES,
            "\"80Gb\": bytes, or bits? write 80GB for bytes, 10GB for bits");
    refused("80gb", QUANTITY_BYTES,
            "\"80gb\": bytes, or bits? write 80GB for bytes, 10GB for bits");
    refused("80G", QUANTITY_BYTES,
            "\"80G\": 80GB (powers of 1000) or 80GiB (powers of 1024)? write which");
    refused("80XB", QUANTITY_BYTES,
            "\"80XB\": unknown unit \"XB\"; expected B, kB, MB, GB, TB (powers of 1000) or KiB, "
            "MiB, GiB, TiB (powers of 1024)");
}

// A byte is eight bits: 400 Gb/s are 50 GB/s.
static void rates_are_of_bytes_or_of_bits(void) {
    reads("400Gb/s", QUANTITY_BYTES_PER_S, 50e9);
    reads("400 Gbit/s", QUANTITY_BYTES_PER_S, 50e9);
    reads("400Gbps", QUANTITY_BYTES_PER_S, 50e9);
    reads("400GbE", QUANTITY_BYTES_PER_S, 50e9);
    reads("50GB/s", QUANTITY_BYTES_PER_S, 50e9);
    reads("1GiB/s", QUANTITY_BYTES_PER_S, 1073741824);
    refused("400gbps", QUANTITY_BYTES_PER_S,
            "\"400gbps\": bits or bytes? write 400Gb/s for bits, 400GB/s for bytes");
    refused("400G", QUANTITY_BYTES_PER_S,
            "\"400G\": a rate, per second: 400Gb/s (bits) or 400GB/s (bytes)? write which");
    refused("400GB", QUANTITY_BYTES_PER_S,
            "\"400GB\": a rate, per second: 400Gb/s (bits) or 400GB/s (bytes)? write which");
}

static void times_tokens_and_others_have_their_units(void) {
    reads("60d", QUANTITY_SECONDS, 60 * 86400);
    reads("5us", QUANTITY_SECONDS, 5e-6);
    reads("5\xC2\xB5s", QUANTITY_SECONDS, 5e-6);
    reads("1.5h", QUANTITY_SECONDS, 5400);
    refused("5m", QUANTITY_SECONDS,
            "\"5m\": minutes, milliseconds or months? write 5min, 5ms or days");
    reads("15T", QUANTITY_TOKENS, 15e12);
    reads("300B tokens", QUANTITY_TOKENS, 300e9);
    reads("1.2M", QUANTITY_TOKENS_PER_S, 1.2e6);
    reads("1.2M/s", QUANTITY_TOKENS_PER_S, 1.2e6);
    reads("989TFLOPS", QUANTITY_FLOPS_PER_S, 989e12);
    reads("1.2 PFLOP/s", QUANTITY_FLOPS_PER_S, 1.2e15);
    reads("5%", QUANTITY_FRAC, 0.05);
    reads("$2.5", QUANTITY_USD, 2.5);
    reads("2.50 USD/h", QUANTITY_USD, 2.5);
    reads("1.2kW", QUANTITY_WATTS, 1200);
    refused("2.5EUR", QUANTITY_USD,
            "\"2.5EUR\": unknown unit \"EUR\"; expected USD, as in 2.5, \"$2.5\" or \"2.5 USD\"");
}

// 8k tokens are 8000 to some and 8192 to others.
static void counts_ask_which_thousand_is_meant(void) {
    reads("8Ki", QUANTITY_COUNT, 8192);
    reads("8192", QUANTITY_COUNT, 8192);
    reads("1.5e13", QUANTITY_COUNT, 1.5e13);
    refused("8k", QUANTITY_COUNT, "\"8k\": 8000 or 8192? write the number, or 8Ki for the latter");
    refused("4M", QUANTITY_COUNT,
            "\"4M\": 4000000 or 4194304? write the number, or 4Mi for the latter");
    refused(
        "8GB", QUANTITY_COUNT,
        "\"8GB\": unknown unit \"GB\"; expected a number alone, or Ki, Mi, Gi (powers of 1024)");
    refused("1,024", QUANTITY_COUNT, "\"1,024\": expected digits without \",\"");
    refused("1_024", QUANTITY_COUNT, "\"1_024\": expected digits without \"_\"");
    refused("0x10", QUANTITY_COUNT, "\"0x10\": expected a decimal number");
    refused("1e999", QUANTITY_COUNT, "\"1e999\" is beyond what a double holds");
    static const char *const TEXTS[] = {"", "many", "-", "inf", "nan", "."};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) refused(TEXTS[i], QUANTITY_COUNT, "");
}

static void a_key_says_its_unit(void) {
    CU_ASSERT_EQUAL(quantity_of_key("nic_bytes_per_s"), QUANTITY_BYTES_PER_S);
    CU_ASSERT_EQUAL(quantity_of_key("bytes_per_s"), QUANTITY_BYTES_PER_S);
    CU_ASSERT_EQUAL(quantity_of_key("host_bytes"), QUANTITY_BYTES);
    CU_ASSERT_EQUAL(quantity_of_key("latency_s"), QUANTITY_SECONDS);
    CU_ASSERT_EQUAL(quantity_of_key("price_usd_per_gpu_hour"), QUANTITY_USD);
    CU_ASSERT_EQUAL(quantity_of_key("power_watts_per_gpu"), QUANTITY_WATTS);
    CU_ASSERT_EQUAL(quantity_of_key("rate_per_s"), QUANTITY_PLAIN);
    CU_ASSERT_EQUAL(quantity_of_key("num_hidden_layers"), QUANTITY_COUNT);
}

static void documents_hold_texts_with_units(void) {
    Arena arena = {0};
    JsonNode root;
    const char *text = "{\"nic_bytes_per_s\": \"400Gb/s\", \"seq_len\": \"8Ki\", \"tp\": \"8\","
                       "\"time_s\": [\"5us\", \"5m\"], \"bad\": \"8.5\"}";
    CU_ASSERT_EQUAL_FATAL(json_parse(text, strlen(text), "a.json", &arena, &root).code, STATUS_OK);
    JsonNode rate = json_get(&root, "nic_bytes_per_s"), tp = json_get(&root, "tp");
    JsonNode list = json_get(&root, "time_s"), first = json_at(&list, 0),
             second = json_at(&list, 1);
    JsonNode bad = json_get(&root, "bad");
    double value;
    int count;
    CU_ASSERT_EQUAL(json_read_double(&rate, 0, 1e300, &value).code, STATUS_OK);
    CU_ASSERT_EQUAL(value, 50e9);
    CU_ASSERT_EQUAL(json_read_int(&tp, 1, 64, &count).code, STATUS_OK);
    CU_ASSERT_EQUAL(count, 8);
    CU_ASSERT_EQUAL(json_read_double(&first, 0, 1, &value).code, STATUS_OK);
    CU_ASSERT_DOUBLE_EQUAL(value, 5e-6, 1e-18);
    ASSERT_REFUSED(json_read_double(&second, 0, 1, &value),
                   "a.json: time_s[1]: \"5m\": minutes, milliseconds or months? write 5min, 5ms "
                   "or days");
    ASSERT_REFUSED(json_read_int(&bad, 1, 64, &count), "a.json: bad: 8.5 is not a whole number");
    ASSERT_REFUSED(json_read_int(&tp, 1, 4, &count),
                   "a.json: tp: 8 is out of range; expected 1 to 4");
    arena_free(&arena);
}

static void numbers_of_others_are_decimal(void) {
    static const struct {
        const char *text;
        int length; // of the number, with white space before it; 0: none
        double number;
    } CASES[] = {
        {"12,3", 2, 12}, {" -1.5e3x", 7, -1500}, {".5", 2, 0.5}, {"5.", 2, 5},
        {"0", 1, 0},     {"+7", 2, 7},           {"0x10", 0, 0}, {"-0X1p3", 0, 0},
        {"inf", 0, 0},   {"nan", 0, 0},          {"", 0, 0},     {"-", 0, 0},
        {".", 0, 0},     {"x1", 0, 0},           {"00x1", 2, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char *end;
        CU_ASSERT_EQUAL(decimal_read(CASES[i].text, &end), CASES[i].number);
        CU_ASSERT_EQUAL(end - CASES[i].text, CASES[i].length);
    }
}

// 1e300 x 1e9 is beyond 1.8e308.
static void a_unit_does_not_lead_beyond_a_double(void) {
    refused("1e300GB", QUANTITY_BYTES, "\"1e300GB\" is beyond what a double holds");
    refused("1e308d", QUANTITY_SECONDS, "\"1e308d\" is beyond what a double holds");
    reads("1e290GB", QUANTITY_BYTES, 1e299);
}

CU_TestInfo quantity_tests[] = {
    {"sizes_are_decimal_or_binary", sizes_are_decimal_or_binary},
    {"rates_are_of_bytes_or_of_bits", rates_are_of_bytes_or_of_bits},
    {"times_tokens_and_others_have_their_units", times_tokens_and_others_have_their_units},
    {"counts_ask_which_thousand_is_meant", counts_ask_which_thousand_is_meant},
    {"a_key_says_its_unit", a_key_says_its_unit},
    {"documents_hold_texts_with_units", documents_hold_texts_with_units},
    {"numbers_of_others_are_decimal", numbers_of_others_are_decimal},
    {"a_unit_does_not_lead_beyond_a_double", a_unit_does_not_lead_beyond_a_double},
    CU_TEST_INFO_NULL,
};
