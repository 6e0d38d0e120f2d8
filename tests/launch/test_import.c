// Reading scripts: words, sums, lists and layouts.
#include "import/layer_list.h"
#include "import/shell_sum.h"
#include "import/shell_words.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

// Claims that the command's words, joined by '|', are these.
static void expect_words(const char *script, const char *words) {
    Arena arena = {0};
    static const Setting settings[] = {{"GIVEN", "7"}, {"EMPTY", ""}};
    ShellCommand command = shell_command(script, "pretrain", settings, 2, &arena);
    const char *text = "";
    for (int i = 0; i < command.words.num_words; i++)
        text = arena_printf(&arena, "%s%s%s", text, i ? "|" : "", command.words.words[i]);
    CU_ASSERT_STRING_EQUAL(text, words);
    if (strcmp(text, words) != 0) printf("\n%s\nexpected: %s\n", text, words);
    arena_free(&arena);
}

static void quotes_keep_words_together(void) {
    expect_words("pretrain.py 'a b' \"c  d\" e\\ f ''", "pretrain.py|a b|c  d|e f|");
    expect_words("pretrain.py \\\n  --a 1 # --b 2\n", "pretrain.py|--a|1");
    expect_words("pretrain.py \"it's $5 \\\"x\\\"\"", "pretrain.py|it's $5 \"x\"");
}

static void variables_are_split_where_a_shell_would(void) {
    expect_words("A='x y'; pretrain.py $A \"$A\" ${A}z", "pretrain.py|x|y|x y|x|yz");
    expect_words("A=(1 '2 3'); A+=(4)\npretrain.py \"${A[@]}\" \"${A[*]}\"",
                 "pretrain.py|1|2 3|4|1 2 3 4");
    expect_words("A=\"--a \\\n 1\"\nA+=\" --b\"\npretrain.py $A", "pretrain.py|--a|1|--b");
    expect_words("pretrain.py ${B:-7} ${C:-$D} $E", "pretrain.py|7|$D|$E");
    expect_words("B=8; pretrain.py ${B:-7} $((B * (2 + 1) / 4 % 5))", "pretrain.py|8|1");
    expect_words("pretrain.py $((B + 1)) $(date +%s) `x y`",
                 "pretrain.py|$((B + 1))|$(date +%s)|`x y`");
}

static void commands_are_found(void) {
    expect_words("cat <<-X >f\npretrain.py 2\n\tX\npretrain.py 3", "pretrain.py|3");
    expect_words("A=5 srun bash -c 'exec torchrun pretrain.py $A'", "exec|torchrun|pretrain.py|5");
    expect_words("--a 1 --b", "--a|1|--b");
    expect_words("echo nothing", "");
    expect_words("cd x && mkdir y || exit 1; pretrain.py 1", "pretrain.py|1");
    expect_words("false && pretrain.py 1; pretrain.py 2", "pretrain.py|2");
    expect_words("cd x || pretrain.py 1; pretrain.py 2", "pretrain.py|2");
}

// What a script sets itself, or is given, decides.
static void conditions_are_decided(void) {
    static const struct {
        const char *condition;
        bool holds;
    } CASES[] = {
        {"[ $A = 1 ]", true},
        {"[ \"$A\" == 2 ]", false},
        {"[[ $A != 2 ]]", true},
        {"test $A -lt 2", true},
        {"[ $A -ge 2 ]", false},
        {"! [ $A -ge 2 ]", true},
        {"[ ! $A -eq 1 ]", false},
        {"[ -z \"$EMPTY\" ]", true},
        {"[ -n \"$EMPTY\" ]", false},
        {"[ -z $EMPTY ]", true},
        {"[ \"$EMPTY\" ]", false},
        {"[[ -n $EMPTY ]]", false},
        {"[ -n $EMPTY ]", true}, // of no word: so says POSIX
        {"[[ $EMPTY == x ]]", false},
        {"[[ $EMPTY != x ]]", true},
        {"[[ x == $EMPTY ]]", false},
        {"[ $GIVEN -eq 7 ]", true},
        {"[ ${UNSET:-3} = 3 ]", true},
        {"[[ llama-70b == llama* ]]", true},
        {"[ llama-70b = 'llama*' ]", false},
        {"[[ $A == 1 && $GIVEN == 8 ]]", false},
        {"[[ $A == 1 && $GIVEN == 7 && -z $EMPTY ]]", true},
        {"[[ $A == 2 || $GIVEN == 7 ]]", true},
        {"[ $A = 2 ] || [ $GIVEN = 8 ]", false},
        {"[ $A = 1 ] && [ $GIVEN = 7 ]", true},
        {"(( A * 4 >= GIVEN ))", false},
        {"((A + 6 == $GIVEN))", true},
        {"true", true},
        {"false", false},
        {"[ $# -gt 0 ]", false},
        {"[ ${1:-none} = none ]", true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        expect_words(arena_printf(&arena,
                                  "A=1\nif %s; then B=yes\nelse\n  B=no; fi\npretrain.py $B",
                                  CASES[i].condition),
                     CASES[i].holds ? "pretrain.py|yes" : "pretrain.py|no");
        expect_words(
            arena_printf(&arena, "A=1 B=no; %s && B=yes; pretrain.py $B", CASES[i].condition),
            CASES[i].holds ? "pretrain.py|yes" : "pretrain.py|no");
        arena_free(&arena);
    }
}

static void branches_are_followed(void) {
    expect_words("M=70b\nif [ $M = 8b ]; then\n  T=1\nelif [ $M = 70b ]\nthen\n"
                 "  if [ $GIVEN = 7 ]; then T=4; fi\n  A+=(--x $T)\nelse\n  T=8\nfi\n"
                 "pretrain.py $T ${A[@]}",
                 "pretrain.py|4|--x|4");
    expect_words("case $GIVEN in 6) A=6 ;; 7|8) A=78;; *) A=0 ;; esac; pretrain.py $A",
                 "pretrain.py|78");
    expect_words("case \"x-70b\" in\n  (*-8b)\n    A=1\n    ;;\n  *-70b)\n    A=2 ;;\n"
                 "  *)\n    A=3\nesac\npretrain.py $A",
                 "pretrain.py|2");
    expect_words("while [[ $# -gt 0 ]]; do case $1 in --tp) TP=$2; shift;; esac; done\n"
                 "pretrain.py ${TP:-4}",
                 "pretrain.py|4");
    expect_words("set_up() {\n  A=5\n}\nfunction unused {\n  A=6\n}\nset_up\npretrain.py $A",
                 "pretrain.py|5");
    expect_words("run () { pretrain.py \"$1\" $A; }\nA=2\nrun x", "pretrain.py|$1|2");
    expect_words("{ A=1; B=2; }; if true; then pretrain.py $A$B; fi", "pretrain.py|12");
}

// What is not known decides nothing: a variable that it may set is unknown from then on.
static void what_is_undecided_is_unknown(void) {
    Arena arena = {0};
    const char *script =
        "A=1 C=3\nif [ x = $X ]; then\n  for i in 1; do A=2; done\nelse\n  B=2\nfi\n"
        "[ -f y ] && C=4\nif [ -z \"$UNKNOWN\" ]; then :; fi\npretrain.py $A ${B:-5} $C >log "
        "2>&1\n";
    ShellCommand command = shell_command(script, "pretrain", NULL, 0, &arena);
    CU_ASSERT_EQUAL(command.num_skipped, 2);
    CU_ASSERT_EQUAL(command.first_skipped, 2);
    CU_ASSERT_EQUAL_FATAL(command.num_undecided, 3);
    CU_ASSERT_STRING_EQUAL(command.undecided[0].name, "A");
    CU_ASSERT_EQUAL(command.undecided[1].line, 2);
    CU_ASSERT_EQUAL(command.undecided[2].line, 7);
    expect_words(script, "pretrain.py|$A|$B|$C");
    expect_words("if [ x = $X ]; then A=1; fi; A=2; pretrain.py $A", "pretrain.py|2");
    expect_words("A=1; case $X in y) A=2;; *) A=3;; esac; pretrain.py $A", "pretrain.py|$A");
    expect_words("A=1; for i in 1 2; do A=$i; done; pretrain.py $A", "pretrain.py|$A");
    command = shell_command("\nif [ $X ]; then\npretrain.py 1\nfi", "pretrain", NULL, 0, &arena);
    CU_ASSERT(!command.found);
    CU_ASSERT_EQUAL(command.hidden, 3);
    arena_free(&arena);
}

static const char *no_value(void *context, const char *name) {
    (void)context;
    return strcmp(name, "N") == 0 ? "6" : NULL;
}

// Whatever stands there, reading ends.
static void broken_scripts_end(void) {
    static const char *const scripts[] = {"pretrain.py 'a",
                                          "pretrain.py \"a",
                                          "A=(1",
                                          "${",
                                          "$((",
                                          "`",
                                          "pretrain.py <<X",
                                          "\\",
                                          "if",
                                          "if if if then else fi fi }",
                                          "case",
                                          "case x in",
                                          "case x in a|",
                                          "case x in a) ;;",
                                          "f() { f; }; f",
                                          "f() f() {",
                                          "[[ a && b",
                                          "((",
                                          "while true; do",
                                          "&& || ;; ;",
                                          "}",
                                          ")",
                                          "$",
                                          "A=$(",
                                          "<<",
                                          "&"};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        Arena arena = {0};
        shell_command(scripts[i], "pretrain", NULL, 0, &arena);
        arena_free(&arena);
    }
    Arena arena = {0};
    enum { DEEP = 20000 };
    char *text = arena_alloc(&arena, 6 * DEEP + 1);
    for (int i = 0; i < DEEP; i++) memcpy(text + 5 * i, "${A:-", 5);
    memset(text + 5 * DEEP, '}', DEEP);
    text[6 * DEEP] = '\0';
    shell_command(text, "pretrain", NULL, 0, &arena);
    memset(text, '(', DEEP);
    long long value;
    CU_ASSERT(!shell_sum(text, no_value, NULL, &arena, &value));
    arena_free(&arena);
    CU_PASS("all ended");
}

static void sums_are_whole_numbers(void) {
    static const struct {
        const char *text;
        bool good;
        long long value;
    } CASES[] = {{"1+2*3", true, 7},  {" ( $N - 2 ) / 4 ", true, 1},
                 {"${N}%4", true, 2}, {"N*", false, 0},
                 {"M+1", false, 0},   {"1/0", false, 0},
                 {"(1", false, 0},    {"1 2", false, 0},
                 {"", false, 0},      {"9223372036854775807+1", false, 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        long long value;
        bool good = shell_sum(CASES[i].text, no_value, NULL, &arena, &value);
        CU_ASSERT_EQUAL(good, CASES[i].good);
        if (good) CU_ASSERT_EQUAL(value, CASES[i].value);
        arena_free(&arena);
    }
}

static void lists_are_written_out(void) {
    int out[10];
    CU_ASSERT_EQUAL(number_list("([0]*3+[1]*2)", 10, out), 5);
    CU_ASSERT_EQUAL(out[2], 0);
    CU_ASSERT_EQUAL(out[3], 1);
    CU_ASSERT_EQUAL(number_list("[1, 0]*2 + [7]", 10, out), 5);
    CU_ASSERT_EQUAL(out[4], 7);
    CU_ASSERT_EQUAL(number_list("[1]*11", 10, out), -1);
    CU_ASSERT_EQUAL(number_list("[1", 10, out), -1);
    CU_ASSERT_EQUAL(number_list("exit()", 10, out), -1);
}

static void layouts_are_unfolded(void) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(layout_unfold("Et*2|(tt|)*2tmL", 100, &arena), "Ett|tt|tt|tmL");
    CU_ASSERT_STRING_EQUAL(layout_unfold("E|t*3|L", 100, &arena), "E|ttt|L");
    CU_ASSERT_PTR_NULL(layout_unfold("E(t", 100, &arena));
    CU_ASSERT_PTR_NULL(layout_unfold("Ex", 100, &arena));
    CU_ASSERT_PTR_NULL(layout_unfold("Et*200", 100, &arena));
    arena_free(&arena);
}

CU_TestInfo import_tests[] = {
    {"quotes_keep_words_together", quotes_keep_words_together},
    {"variables_are_split_where_a_shell_would", variables_are_split_where_a_shell_would},
    {"commands_are_found", commands_are_found},
    {"conditions_are_decided", conditions_are_decided},
    {"branches_are_followed", branches_are_followed},
    {"what_is_undecided_is_unknown", what_is_undecided_is_unknown},
    {"broken_scripts_end", broken_scripts_end},
    {"sums_are_whole_numbers", sums_are_whole_numbers},
    {"lists_are_written_out", lists_are_written_out},
    {"layouts_are_unfolded", layouts_are_unfolded},
    CU_TEST_INFO_NULL,
};
