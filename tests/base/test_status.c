#include "base/status.h"

#include <CUnit/CUnit.h>
#include <string.h>

static void ok_has_code_zero(void) {
    CU_ASSERT_EQUAL(status_ok().code, STATUS_OK);
    CU_ASSERT_EQUAL(STATUS_OK, 0);
}

static void codes_are_the_exit_codes_of_the_contract(void) {
    CU_ASSERT_EQUAL(STATUS_NO, 1);
    CU_ASSERT_EQUAL(STATUS_INVALID, 2);
    CU_ASSERT_EQUAL(STATUS_MACHINE, 3);
}

static void error_holds_its_sentence(void) {
    Status status = status_error(STATUS_NO, "needs %d bytes, has %d", 5, 4);
    CU_ASSERT_EQUAL(status.code, STATUS_NO);
    CU_ASSERT_STRING_EQUAL(status.text, "needs 5 bytes, has 4");
}

static void place_comes_before_the_sentence(void) {
    Status status = status_at(STATUS_INVALID, "job.json", "training.seq_len", "missing");
    CU_ASSERT_STRING_EQUAL(status.text, "job.json: training.seq_len: missing");
}

static void empty_path_is_left_out(void) {
    Status status = status_at(STATUS_MACHINE, "job.json", "", "cannot be read");
    CU_ASSERT_STRING_EQUAL(status.text, "job.json: cannot be read");
}

static void sentence_is_one_printable_line(void) {
    Status status = status_at(STATUS_INVALID, "a\nb", "", "\"x\ty\" is \x1b[31munknown");
    CU_ASSERT_STRING_EQUAL(status.text, "a\\nb: \"x\\ty\" is \\u001b[31munknown");
}

static void text_goes_on_behind_its_own_file(void) {
    const Status ours = status_at(STATUS_INVALID, "a\nb.json", "plan", "is bad");
    const Status other = status_at(STATUS_INVALID, "order.txt", "", "line 3");
    CU_ASSERT_STRING_EQUAL(status_text_within(&ours, "a\nb.json"), "plan: is bad");
    CU_ASSERT_STRING_EQUAL(status_text_within(&other, "a\nb.json"), "order.txt: line 3");
    CU_ASSERT_STRING_EQUAL(status_text_within(&other, "order"), "order.txt: line 3");
}

static void a_reason_is_of_failures_alone(void) {
    const Status no = status_error(STATUS_NO, "no");
    CU_ASSERT_EQUAL(no.reason, REASON_ANY);
    CU_ASSERT_EQUAL(status_because(no, REASON_UNKNOWN_KEY).reason, REASON_UNKNOWN_KEY);
    CU_ASSERT_EQUAL(status_because(status_ok(), REASON_UNKNOWN_KEY).reason, REASON_ANY);
}

static void long_sentence_is_cut(void) {
    char name[2000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    Status plain = status_error(STATUS_INVALID, "%s", name);
    Status placed = status_at(STATUS_INVALID, name, name, "%s", name);
    CU_ASSERT_EQUAL(strlen(plain.text), sizeof plain.text - 1);
    CU_ASSERT_EQUAL(strlen(placed.text), sizeof placed.text - 1);
}

static void a_long_file_is_parted_from_its_sentence(void) {
    char name[5000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    Status status = status_at(STATUS_INVALID, name, "", "the path is too long");
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "nnn...: the path is too long"));
    status = status_at(STATUS_INVALID, name, "a.b", "unknown");
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "nnn...: a.b: unknown"));
    status = status_at(STATUS_INVALID, "", "", "cannot be read");
    CU_ASSERT_STRING_EQUAL(status.text, "\"\": cannot be read");
}

static Status tries(Status inner, int *went_on) {
    TRY(inner);
    *went_on = 1;
    return status_ok();
}

static void try_hands_a_failure_on_unchanged(void) {
    int went_on = 0;
    Status status = tries(status_error(STATUS_NO, "does not fit"), &went_on);
    CU_ASSERT_EQUAL(status.code, STATUS_NO);
    CU_ASSERT_STRING_EQUAL(status.text, "does not fit");
    CU_ASSERT_EQUAL(went_on, 0);
    CU_ASSERT_EQUAL(tries(status_ok(), &went_on).code, STATUS_OK);
    CU_ASSERT_EQUAL(went_on, 1);
}

CU_TestInfo status_tests[] = {
    {"ok_has_code_zero", ok_has_code_zero},
    {"codes_are_the_exit_codes_of_the_contract", codes_are_the_exit_codes_of_the_contract},
    {"error_holds_its_sentence", error_holds_its_sentence},
    {"place_comes_before_the_sentence", place_comes_before_the_sentence},
    {"empty_path_is_left_out", empty_path_is_left_out},
    {"sentence_is_one_printable_line", sentence_is_one_printable_line},
    {"text_goes_on_behind_its_own_file", text_goes_on_behind_its_own_file},
    {"a_reason_is_of_failures_alone", a_reason_is_of_failures_alone},
    {"long_sentence_is_cut", long_sentence_is_cut},
    {"a_long_file_is_parted_from_its_sentence", a_long_file_is_parted_from_its_sentence},
    {"try_hands_a_failure_on_unchanged", try_hands_a_failure_on_unchanged},
    CU_TEST_INFO_NULL,
};
