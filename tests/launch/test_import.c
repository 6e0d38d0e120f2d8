// Reading scripts: words, sums, lists and layouts.
#include "import/import.h"
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
        // Texts between [[ ]]: as words are sorted.
        {"[[ $GIVEN > 8 ]]", false},
        {"[[ $GIVEN > 10 ]]", true},
        {"[[ 3<4 ]]", true},
        {"[[ $A < 0 || $GIVEN > 6 ]]", true},
        {"[[ $A > 0 && $GIVEN < 8 ]]", true},
        {"[[ $EMPTY < a ]]", true},
        {"[ 4 \\> 3 ]", true},
        {"! [[ $A == 1 ]]", false},
        {"true || false || true && [ $A = 1 ]", true},
        {"false && true || [ $A = 2 ]", false},
        {"true || true && [ $A = 2 ]", false},
        {"true || [[ $A == 1 && $A == 2 ]] && true", true},
        {"false && [[ $A == 2 || $A == 1 ]]", false},
        {"[[ $A == 1\n && $GIVEN == 7 ]]", true},
        {"[[ $A == 2 || $GIVEN == 7 ]] && [[ $A == 1 || $A == 3 ]]", true},
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
    expect_words("run () { pretrain.py \"$1\" $A; }\nA=2\nrun x", "pretrain.py|x|2");
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
    CU_ASSERT_EQUAL_FATAL(command.num_undecided, 4);
    CU_ASSERT_STRING_EQUAL(command.undecided[0].name, "i");
    CU_ASSERT_STRING_EQUAL(command.undecided[1].name, "A");
    CU_ASSERT_EQUAL(command.undecided[2].line, 2);
    CU_ASSERT_EQUAL(command.undecided[3].line, 7);
    expect_words(script, "pretrain.py|$A|$B|$C");
    expect_words("if [ x = $X ]; then A=1; fi; A=2; pretrain.py $A", "pretrain.py|2");
    expect_words("A=1; case $X in y) A=2;; *) A=3;; esac; pretrain.py $A", "pretrain.py|$A");
    expect_words("A=1; for i in 1 2; do A=$i; done; pretrain.py $A", "pretrain.py|$A");
    command = shell_command("\nif [ $X ]; then\npretrain.py 1\nfi", "pretrain", NULL, 0, &arena);
    CU_ASSERT(!command.found);
    CU_ASSERT_EQUAL(command.hidden, 3);
    arena_free(&arena);
}

// A condition that nothing here decides leaves what it guards unknown.
static void conditions_stay_open(void) {
    static const char *const open[] = {
        "[[ a < B ]]",
        "[[ $A =~ ^(1|2)$ ]]",
        "[[ ( $A == 1 || $A == 2 ) && $A == 3 ]]",
        "[[ $A == 1 || $A == 1 && $A == 2 ]]",
        "! [[ $A == 1 && $A == 2 ]]",
        "grep -q H100 gpus.txt",
        "! nvidia-smi",
        "grep -q H100 gpus.txt &>/dev/null",
        "grep -q H100 gpus.txt >/dev/null 2>&1",
        "nvidia-smi | grep -q H100",
        "C=$(nvidia-smi)",
        "(grep -q H100 gpus.txt)",
        "{ true; grep -q H100 gpus.txt; }",
        "{ grep -q H100 gpus.txt; } >log",
        "grep -q H100 gpus.txt && cd /",
        "f",
    };
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        Arena arena = {0};
        const char *before = "f() { [ -f x ]; }; A=1 T=2; ";
        expect_words(arena_printf(&arena, "%s%s && T=8; pretrain.py $T", before, open[i]),
                     "pretrain.py|$T");
        expect_words(arena_printf(&arena, "%s%s || T=8; pretrain.py $T", before, open[i]),
                     "pretrain.py|$T");
        expect_words(arena_printf(&arena, "%s%s && { T=8; }; pretrain.py $T", before, open[i]),
                     "pretrain.py|$T");
        expect_words(arena_printf(&arena, "%sif %s; then T=8; fi; pretrain.py $T", before, open[i]),
                     "pretrain.py|$T");
        arena_free(&arena);
    }
}

static void commands_that_succeed_decide(void) {
    expect_words("cd x && mkdir -p y >log && export A=3; pretrain.py $A", "pretrain.py|3");
    expect_words("source env.sh || A=3; pretrain.py ${A:-4}", "pretrain.py|4");
    expect_words("B=2 && A=3; pretrain.py $A", "pretrain.py|3");
    expect_words("false && echo x | tee log && A=3; pretrain.py ${A:-4}", "pretrain.py|4");
    expect_words("pretrain.py 1 && pretrain.py 2", "pretrain.py|2");
    expect_words("false && { A=3; }; pretrain.py ${A:-4}", "pretrain.py|4");
    expect_words("true || { exit 1; } && A=3; pretrain.py ${A:-4}", "pretrain.py|3");
    expect_words("f() { A=3; }; grep -q x y && f; pretrain.py $A", "pretrain.py|$A");
    expect_words("f() { A=3; }; if f; then B=4; fi; pretrain.py $A $B", "pretrain.py|3|$B");
}

static void exit_and_return_end(void) {
    const char *set = "set_up() {\n if [ $M = 8b ]; then T=2; return; fi\n T=8\n}\nset_up\n";
    Arena arena = {0};
    expect_words(arena_printf(&arena, "M=8b\n%spretrain.py $T", set), "pretrain.py|2");
    expect_words(arena_printf(&arena, "M=70b\n%spretrain.py $T", set), "pretrain.py|8");
    expect_words(arena_printf(&arena, "T=1\n%spretrain.py $T", set), "pretrain.py|$T");
    expect_words("f() { return; T=8; }\nT=1; f; T2=3; pretrain.py $T $T2", "pretrain.py|1|3");
    expect_words("pretrain.py 1; exit 0; pretrain.py 2", "pretrain.py|1");
    expect_words("f() { pretrain.py 1; exit; }; f; pretrain.py 2", "pretrain.py|1");
    expect_words("case $GIVEN in 7) pretrain.py 1; exit ;; esac; pretrain.py 2", "pretrain.py|1");
    expect_words("(cd x; exit 1); bash -c 'pretrain.py 1; exit'; pretrain.py 2", "pretrain.py|2");
    // Whoever asks for the training command means the run in which it is reached.
    expect_words("[ -f x ] || exit 1; T=8; pretrain.py $T", "pretrain.py|8");
    expect_words("[ -f x ] || { echo no; exit 1; }; pretrain.py 1", "pretrain.py|1");
    ShellCommand command = shell_command(
        "if [ -f x ]; then\n pretrain.py 1\n exit\nfi\npretrain.py 2", "pretrain", NULL, 0, &arena);
    CU_ASSERT(!command.found);
    CU_ASSERT_EQUAL(command.hidden, 2);
    arena_free(&arena);
}

static void subshells_are_blocks(void) {
    expect_words("log() ( echo hi )\npretrain.py 1", "pretrain.py|1");
    expect_words("log() (\n echo hi\n)\nA=2\nlog x\npretrain.py $A", "pretrain.py|2");
    expect_words("function run ( pretrain.py $A )\nA=3; run", "pretrain.py|3");
    expect_words("(cd x && pretrain.py 1) 2>&1 | tee log", "pretrain.py|1");
    expect_words("case x in (x) A=1;; esac; (\npretrain.py $A\n)", "pretrain.py|1");
}

// Flags that a block may add or take away, not those that its variable has anyway.
static void maybe_is_what_differs(void) {
    static const struct {
        const char *before, *block, *maybe;
    } CASES[] = {
        {"A='--a 1'", "A+=' --b 2'", "--b"},         {"A='--a 1'", "A=\"$A --b\"", "--b"},
        {"A=(--a 1)", "A+=(--b 2)", "--b"},          {"A=(--a 1)", "A=(\"${A[@]}\" --b)", "--b"},
        {"A='--a 1'", "A='--b 2'", "--b,--a"},       {"A='--a 1'", "A=", "--a"},
        {"A='--a 1'", "A+=' --b=3 --c'", "--b,--c"}, {"A=1", "A=2", ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        const char *script = arena_printf(&arena, "%s\n[ -f x ] && %s\npretrain.py $A",
                                          CASES[i].before, CASES[i].block);
        ShellCommand command = shell_command(script, "pretrain", NULL, 0, &arena);
        const char *maybe = "";
        for (int k = 0; k < command.num_maybe; k++)
            maybe = arena_printf(&arena, "%s%s%s", maybe, k ? "," : "", command.maybe[k].name);
        CU_ASSERT_STRING_EQUAL(maybe, CASES[i].maybe);
        if (command.num_maybe > 0) CU_ASSERT_EQUAL(command.maybe[0].line, 2);
        arena_free(&arena);
    }
}

static void settings_are_accounted_for(void) {
    static const Setting tp[] = {{"TP", "8"}};
    Arena arena = {0};
    ShellCommand command = shell_command("\nTP=4\npretrain.py $TP", "pretrain", tp, 1, &arena);
    CU_ASSERT_STRING_EQUAL_FATAL(command.overwritten.name, "TP");
    CU_ASSERT_EQUAL(command.overwritten.line, 2);
    command = shell_command("TP=${TP:-4}\npretrain.py $TP", "pretrain", tp, 1, &arena);
    CU_ASSERT_PTR_NULL(command.overwritten.name);
    CU_ASSERT_PTR_NULL(command.unread);
    CU_ASSERT_STRING_EQUAL(command.words.words[1], "8");
    command = shell_command("pretrain.py $PT", "pretrain", tp, 1, &arena);
    CU_ASSERT_STRING_EQUAL(command.unread, "TP");
    command = shell_command("pretrain.py $((TP * 2))", "pretrain", tp, 1, &arena);
    CU_ASSERT_PTR_NULL(command.unread);
    arena_free(&arena);
}

// What is more than can be followed is said, with its line.
static void too_much_is_said(void) {
    Arena arena = {0};
    const char *deep = "";
    for (int i = 0; i < 45; i++) deep = arena_printf(&arena, "%sif true; then\n", deep);
    ShellCommand command = shell_command(deep, "pretrain", NULL, 0, &arena);
    CU_ASSERT_EQUAL(command.overflow, 41);
    command = shell_command("f() { f; }\nf\npretrain.py", "pretrain", NULL, 0, &arena);
    CU_ASSERT_EQUAL(command.overflow, 1);
    const char *flags = "[ -f x ] && A='";
    for (int i = 0; i < 65; i++) flags = arena_printf(&arena, "%s --x%d", flags, i);
    command = shell_command(arena_printf(&arena, "%s'", flags), "pretrain", NULL, 0, &arena);
    CU_ASSERT_EQUAL(command.overflow, 1);
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
    } CASES[] = {{"1+2*3", true, 7},
                 {" ( $N - 2 ) / 4 ", true, 1},
                 {"${N}%4", true, 2},
                 {"N*", false, 0},
                 {"M+1", false, 0},
                 {"1/0", false, 0},
                 {"(1", false, 0},
                 {"1 2", false, 0},
                 {"1 < 2 && (3 != 3 || -N + 7 == 1)", true, 1},
                 {"($N > 5) ? N * 2 : 0", true, 12},
                 {"!N", true, 0},
                 {"N << 1", false, 0},
                 {"1 ? 2", false, 0},
                 {"", false, 0},
                 {"9223372036854775807+1", false, 0}};
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

static void a_note_counts_the_names_that_have_no_room(void) {
    Arena arena = {0};
    NoteNames names = {.length = 0};
    CU_ASSERT_STRING_EQUAL(note_names_text(&names, &arena), "");
    note_names_add(&names, "model.", "a");
    note_names_add(&names, "b", "");
    CU_ASSERT_STRING_EQUAL(note_names_text(&names, &arena), "model.a, b");
    char name[300] = "";
    memset(name, 'x', sizeof name - 1);
    note_names_add(&names, name, ""); // of which 200 bytes count
    for (int i = 0; i < 100000; i++) note_names_add(&names, name, "y");
    const char *text = note_names_text(&names, &arena);
    CU_ASSERT_EQUAL(strlen(text), strlen("model.a, b, ") + 200 + strlen(" and 100000 more"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "x and 100000 more"));
    CU_ASSERT(arena_used(&arena) < 10000);
    arena_free(&arena);
}

CU_TestInfo import_tests[] = {
    {"quotes_keep_words_together", quotes_keep_words_together},
    {"variables_are_split_where_a_shell_would", variables_are_split_where_a_shell_would},
    {"commands_are_found", commands_are_found},
    {"conditions_are_decided", conditions_are_decided},
    {"branches_are_followed", branches_are_followed},
    {"what_is_undecided_is_unknown", what_is_undecided_is_unknown},
    {"conditions_stay_open", conditions_stay_open},
    {"commands_that_succeed_decide", commands_that_succeed_decide},
    {"exit_and_return_end", exit_and_return_end},
    {"subshells_are_blocks", subshells_are_blocks},
    {"maybe_is_what_differs", maybe_is_what_differs},
    {"settings_are_accounted_for", settings_are_accounted_for},
    {"too_much_is_said", too_much_is_said},
    {"broken_scripts_end", broken_scripts_end},
    {"sums_are_whole_numbers", sums_are_whole_numbers},
    {"lists_are_written_out", lists_are_written_out},
    {"layouts_are_unfolded", layouts_are_unfolded},
    {"a_note_counts_the_names_that_have_no_room", a_note_counts_the_names_that_have_no_room},
    CU_TEST_INFO_NULL,
};
