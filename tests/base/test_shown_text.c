#include "base/shown_text.h"
#include "base/status.h"

#include <CUnit/CUnit.h>
#include <string.h>

static void assert_shown(const char *text, const char *expected) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(shown_text(text, &arena), expected);
    arena_free(&arena);
}

static void plain_text_is_itself(void) {
    Arena arena = {0};
    // U+00E9, U+4E2D, U+1F600: letters of two, three and four bytes.
    static const char TEXT[] = "llama-3 \\u001b \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80";
    CU_ASSERT_PTR_EQUAL(shown_text(TEXT, &arena), TEXT);
    CU_ASSERT_STRING_EQUAL(shown_text("", &arena), "");
    arena_free(&arena);
}

static void what_a_terminal_obeys_is_escaped(void) {
    assert_shown("a\x1b[2J\x1b]0;x\x07"
                 "b\nc\td\re\x7f",
                 "a\\u001b[2J\\u001b]0;x\\u0007b\\nc\\td\\u000de\\u007f");
    assert_shown("\xc2\x9b"
                 "2J",
                 "\\u009b2J");            // C1 CSI
    assert_shown("\xc2\xa0", "\xc2\xa0"); // the first after C1
}

// U+202E turns the letters that follow around, U+2066 isolates, U+200B is invisible, U+2028 is a
// line's end, U+FEFF a byte order mark.
static void what_turns_or_hides_letters_is_escaped(void) {
    assert_shown("gpj\xe2\x80\xae"
                 "exe",
                 "gpj\\u202eexe");
    assert_shown("\xe2\x81\xa6\xe2\x80\x8b\xe2\x80\xa8\xef\xbb\xbf",
                 "\\u2066\\u200b\\u2028\\ufeff");
}

static void bytes_that_are_no_letters_are_escaped(void) {
    assert_shown("\xff", "\\xff");
    assert_shown("\xc3", "\\xc3");                            // cut off
    assert_shown("\xc0\xaf", "\\xc0\\xaf");                   // a slash in two bytes
    assert_shown("\xc1\x9b", "\\xc1\\x9b");                   // '[' in two
    assert_shown("\xed\xa0\x80", "\\xed\\xa0\\x80");          // a surrogate
    assert_shown("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); // beyond U+10FFFF
    assert_shown("\x9b", "\\x9b");                            // C1 CSI of eight bits
}

static void a_sentence_shows_what_it_quotes(void) {
    const Status status =
        status_at(STATUS_INVALID, "a\x1b.json", "", "\"%s\" is unknown", "\n\xc2\x9b");
    CU_ASSERT_STRING_EQUAL(status.text, "a\\u001b.json: \"\\n\\u009b\" is unknown");
    // Escapes are longer than what they stand for: none is cut in the middle.
    char many[599];
    memset(many, '\x01', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    const Status full = status_error(STATUS_INVALID, "%s", many);
    CU_ASSERT_EQUAL(strlen(full.text), (sizeof full.text - 1) / 6 * 6);
}

CU_TestInfo shown_text_tests[] = {
    {"plain text is itself", plain_text_is_itself},
    {"what a terminal obeys is escaped", what_a_terminal_obeys_is_escaped},
    {"what turns or hides letters is escaped", what_turns_or_hides_letters_is_escaped},
    {"bytes that are no letters are escaped", bytes_that_are_no_letters_are_escaped},
    {"a sentence shows what it quotes", a_sentence_shows_what_it_quotes},
    CU_TEST_INFO_NULL,
};
