// Reading scripts as a shell would: what is expected was compared with bash 5.2.
#include "import/shell_words.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *script, *words; // '|' between them, from the one behind the program on
} Case;

static const char *words_joined(const char *script, Arena *arena) {
    ShellCommand command = shell_command(script, "pretrain", NULL, 0, arena);
    const char *text = "";
    for (int i = command.program + 1; i < command.words.num_words; i++)
        if (command.words.words[i][0])
            text = arena_printf(arena, "%s%s%s", text, text[0] ? "|" : "", command.words.words[i]);
    return command.found ? text : "none";
}

static void expect_all(const Case *cases, size_t num) {
    for (size_t i = 0; i < num; i++) {
        Arena arena = {0};
        const char *words = words_joined(cases[i].script, &arena);
        CU_ASSERT_STRING_EQUAL(words, cases[i].words);
        if (strcmp(words, cases[i].words) != 0)
            printf("\n%s\nexpected: %s\nis:       %s\n", cases[i].script, cases[i].words, words);
        arena_free(&arena);
    }
}

#define EXPECT_ALL(cases) expect_all(cases, sizeof(cases) / sizeof *(cases))

static void absent_values_have_others(void) {
    static const Case cases[] = {
        {": ${A:=4}; : \"${B=2}\"; pretrain.py $A $B", "4|2"},
        {"A=; pretrain.py x${A:-4} ${A-5}", "x4"},
        {"A=; if [ \"${A:-0}\" = 0 ]; then B=8; else B=2; fi; pretrain.py $B", "8"},
        {"A=1; pretrain.py ${A:+--fp8 hybrid} ${A+--x}", "--fp8|hybrid|--x"},
        {"A=; pretrain.py ${A:+--fp8 hybrid} ${A+--x}", "--x"},
        {"A=2; if [ -z ${A+x} ]; then A=8; fi; pretrain.py $A ${A:?none}", "2|2"},
        {"pretrain.py ${A:+--x} ${A:?none}", "${A:+--x}|${A:?none}"},
        {"A=$(x); pretrain.py ${A:+--x}", "${A:+--x}"},
    };
    EXPECT_ALL(cases);
}

static void parts_of_texts(void) {
    static const Case cases[] = {
        {"M=llama-70b; pretrain.py ${M##*-} ${M#*l} ${M%-*} ${M%%a*} ${#M}",
         "70b|lama-70b|llama|ll|9"},
        {"P=BF16; pretrain.py --${P,,} ${P,}", "--bf16|bF16"},
        {"P=ab; pretrain.py ${P^^} ${P^} ${P:1} ${P:0:1}", "AB|Ab|b|a"},
        {"A='--tp 4 4'; A=\"${A/4/8}\"; pretrain.py $A ${A//[48]/x}", "--tp|8|4|${A//[48]/x}"},
        {"V=TP_$M; M=70b; V=TP_$M; TP_70b=8; pretrain.py ${!V}", "8"},
        {"A=$(x); pretrain.py ${A%y}", "${A%y}"},
        {"A=$(x --y z)/1; B=`u v`; pretrain.py $A $B ${C:-$(w (x) y)}",
         "$(x --y z)/1|`u v`|$(w (x) y)"},
    };
    EXPECT_ALL(cases);
}

static void arrays_have_elements(void) {
    static const Case cases[] = {
        {"A=(2 4 8); pretrain.py ${A[1]} ${#A[@]} $A ${A[@]:1}", "4|3|2|4|8"},
        {"declare -A L=([8b]=32 [70b]=80); M=70b; pretrain.py ${L[$M]} ${L[9b]}", "80|${L[9b]}"},
        {"declare -A L; L[8b]=32; L[70b]=80; M=70b; pretrain.py ${L[$M]}", "80"},
        {"A=(--tp 1); A[1]=8; pretrain.py ${A[@]}", "$A"},
        {"A=($(x) 4); pretrain.py ${A[1]}", "${A[1]}"},
    };
    EXPECT_ALL(cases);
}

static void functions_have_arguments(void) {
    static const Case cases[] = {
        {"run() { local t=$1; shift; pretrain.py $t ${1} \"${@:2}\" $#; }; run 4 2 --x",
         "4|2|--x|2"},
        {"run() { pretrain.py \"$@\"; }; run --tp 4 \"a b\"", "--tp|4|a b"},
        {"run() { pretrain.py ${1:-4} $2; }; run", "4"},
        {"run() { if [ \"$1\" = big ]; then T=8; else T=2; fi; pretrain.py $T; }; run big", "8"},
        {"f() { g $1; }; g() { pretrain.py $1; }; f 3", "3"},
        {"set -- --tp 4; pretrain.py $@", "--tp|4"},
        {"pretrain.py --x $@ \"$@\" ${@:1} y", "--x|y"},
        {"[ -f x ] && shift; pretrain.py $@ $1", "$@|$1"},
        {"set -- 1 \"$@\"; pretrain.py $# $@", "1|1"},
        {"set -- $1 2; pretrain.py $#", "$#"},
        {"(set -- 1 2); pretrain.py $#", "0"},
    };
    EXPECT_ALL(cases);
}

static void variables_have_their_place(void) {
    static const Case cases[] = {
        {"f() { local T=8 U; U=1; V=3; }; T=2; U=5; f; pretrain.py $T $U $V", "2|5|3"},
        {"T=2; (cd x; T=8); pretrain.py $T", "2"},
        {"T=2; bash -c 'T=8'; pretrain.py $T", "2"},
        {"T=2; T=8 pretrain.py $T", "2"},
        {"T=2; T=8 ls; pretrain.py $T", "2"},
        {"T=2; T=8 bash -c 'pretrain.py $T'", "8"},
        {"T=4; unset T; pretrain.py ${T:-1}", "1"},
        {"T=2; eval T=8; pretrain.py $T", "8"},
        {"typeset T=8; pretrain.py $T", "8"},
    };
    EXPECT_ALL(cases);
}

// What sets a variable to something that is not known here.
static void changes_are_seen(void) {
    static const Case cases[] = {
        {"T=4; ((T *= 2)); ((P = T + 1)); ((T++)); let Q=2; pretrain.py $T $P $Q", "9|9|2"},
        {"T=4; ((T = U)); pretrain.py $T", "$T"},
        {"T=4; X=$((T++)); pretrain.py $T", "5"},
        {"T=4; [ -f x ] && ((T = 8)); pretrain.py $T", "$T"},
        {"T=1; read -r T <<<4; pretrain.py $T", "$T"},
        {"T=1; printf -v T %d 4; pretrain.py $T", "$T"},
        {"A=(1); mapfile -t A < <(x); pretrain.py ${A[@]}", "$A"},
        {"T=4; [ -f x ] && unset T; pretrain.py $T", "$T"},
        {"T=8; for T in 1 2; do :; done; pretrain.py $T", "$T"},
    };
    EXPECT_ALL(cases);
}

static void conditions_of_more_kinds(void) {
    static const Case cases[] = {
        {"A=1; B=2; if [ $A = 1 -a $B = 3 -o $A = 1 ]; then T=8; fi; pretrain.py $T", "8"},
        {"A=1; B=2; if (( A == 1 && B == 3 )); then T=8; else T=2; fi; pretrain.py $T", "2"},
        {"M=llama-70b; [[ $M =~ [0-9]+b ]] && T=8; [[ $M =~ ^70 ]] && T=2; pretrain.py $T", "8"},
        {"A='a b'; B=${A:1}; [[ $A == 'a b' && $B == ' b' ]] && T=8; pretrain.py $T", "8"},
        {"A='a b'; case $A in a) T=1;; 'a b') T=2;; esac; pretrain.py $T", "2"},
        {"M=llama; T=2; [[ $M == \"l*\" ]] && T=8; pretrain.py $T", "$T"},
    };
    EXPECT_ALL(cases);
}

static void what_only_names_the_program_is_not_it(void) {
    static const Case cases[] = {
        {"pretrain.py 4; pkill -f pretrain.py; echo pretrain.py 5; echo \"pretrain.py 6\"", "4"},
        {"pretrain.py 4; python convert_pretrained.py 5", "4"},
        {"trap 'echo pretrain.py 5' EXIT; pretrain.py 4", "4"},
        {"T=4; bash <<E\npretrain.py $T \\$U\nE\n", "4|$U"},
        {"export T=4; sbatch <<'E'\npretrain.py $T\nE\n", "4"},
        {"cat <<E >x\npretrain.py 5\nE\n", "none"},
        {"T=4; cat >x.sh <<E\npretrain.py $T \\$U\nE\nsbatch --wait x.sh", "4|$U"},
        {"cat <<'E' > x.sh\npretrain.py 4\nE\nchmod +x x.sh; ./x.sh", "4"},
        {"tee x.sh <<'E'\npretrain.py \\\nE\ncat >>x.sh <<E\n  4\nE\nbash x.sh", "4"},
        {"[ -f y ] && cat >x.sh <<E\npretrain.py 4\nE\nbash x.sh", "none"},
    };
    EXPECT_ALL(cases);
}

// What stands behind "<<WORD" on its line is read, documents of one line follow each other, and
// only the word itself ends one.
static void documents_stand_behind_their_line(void) {
    static const Case cases[] = {
        {"A=1; cat >/dev/null <<E; A=2\nx\nE\npretrain.py $A", "2"},
        {"f() { A=$1; }; A=1; f 2 <<E | cat\nE\npretrain.py $A", "1"},
        {"A=1; A=2 <<E &\nE\npretrain.py $A", "1"},
        {"cat <<E >x <<F\n1\nE\npretrain.py 2\nF\npretrain.py 3", "3"},
        {"cat <<E >x; cat <<F # >y\nF\nE\nE\nF\npretrain.py 3", "3"},
        {"cat <<E \\\n >x\npretrain.py 5\nE\npretrain.py 4", "4"},
        {"cat >x <<E\n\tE\npretrain.py 5\nE\npretrain.py 4", "4"},
        {"cat >x <<E\n1 \\\nE\npretrain.py 5\nE\npretrain.py 4", "4"},
        {"cat >x <<'E'\n1 \\\nE\npretrain.py 4", "4"},
        {"cat >x.sh <<-E\n\tpretrain.py 4\n\tE\nbash x.sh", "4"},
        {"B=2; B=6 bash <<E\npretrain.py $B\nE\n", "2"},
        {"export B=2; B=6 bash <<'E'\npretrain.py $B\nE\n", "6"},
        {"cat <<E | bash\npretrain.py 4\nE\n", "none"},
        {"f() { bash; }; f <<E\npretrain.py 4\nE\n", "none"},
    };
    EXPECT_ALL(cases);
}

// Where IFS is set, values that it parts are not followed.
static void separators_are_minded(void) {
    static const Case cases[] = {
        {"A='1 2'; IFS=,; pretrain.py $A '3 4'", "1 2|3 4"},
        {"IFS=$'\\n\\t'; A='--x 4'; B=5; pretrain.py $A $B", "--x 4|5"},
        {"A=1,2; IFS=,; pretrain.py $A \"$A\"", "$IFS|1,2"},
        {"A='1 2'; IFS=; pretrain.py $A $B", "1 2|$B"},
        {"A='1 2'; IFS=' '$'\\t\\n'; pretrain.py $A", "1|2"},
        {"A='1 2'; IFS=,; unset IFS; pretrain.py $A", "1|2"},
        {"A='1 2'; IFS=, true; pretrain.py $A", "1|2"},
        {"A='1 2'; IFS=, read B C; pretrain.py $A", "1|2"},
        {"A='1 2'; f() { local IFS=,; }; f; pretrain.py $A", "1|2"},
        {"A='1 2'; read IFS; pretrain.py $A \"$A\"", "$IFS|1 2"},
        {"A=(1 2); IFS=,; pretrain.py \"${A[*]}\" \"${A[@]}\" ${A[*]}", "1,2|1|2|1|2"},
        {"A=(1 2); IFS=,; B=${A[*]}; C=\"${A[*]}\"; pretrain.py \"$B\" \"$C\"", "$IFS|1,2"},
        {"A=(1 2); IFS=; pretrain.py \"${A[*]}\"", "12"},
        {"export A='1 2'; export IFS=,; bash -c 'pretrain.py $A'", "1|2"},
    };
    EXPECT_ALL(cases);
}

static void escapes_are_letters(void) {
    static const Case cases[] = {
        {"pretrain.py $'a\\tb' $'\\x41\\101\\'' $\"4\" \"$'4'\"", "a\tb|AA'|4|$'4'"},
        {"pretrain.py $'a\\u0041'", "a$0041"},
    };
    EXPECT_ALL(cases);
}

// Of an array NAME=VALUE sets the first element; no process sees it.
static void arrays_stay_arrays(void) {
    static const Case cases[] = {
        {"R=(1 2); R=3; pretrain.py ${R[@]}", "3|2"},
        {"R=(1 2); R+=3; pretrain.py ${R[@]}", "13|2"},
        {"R=(1); R=3; R+=(4); pretrain.py ${R[@]}", "3|4"},
        {"R=(1 2); unset R; R=3; pretrain.py ${R[@]}", "3"},
        {"R=(1 2); unset R[0]; pretrain.py ${R[@]}", "$R"},
        {"declare -A R=([a]=1); R=3; pretrain.py ${R[@]}", "$R"},
        {"R=(1 2); f() { local R=3; pretrain.py ${R[@]}; }; f", "3"},
        {"R=([3]=1 2); pretrain.py ${R[@]} $R", "${R[@]}|$R"},
        {"export R=(5); bash -c 'pretrain.py $R'", "$R"},
        {"export R=5; bash -c 'pretrain.py $R'", "5"},
    };
    EXPECT_ALL(cases);
}

static void numbers_have_bases(void) {
    static const Case cases[] = {
        {"G=010; pretrain.py $((G*8)) $((010+1)) $((0x1F)) $((0XaB))", "64|9|31|171"},
        {"G=0x10; H=-012; pretrain.py $((G)) $((H + 0)) $((2#101)) $((16#fF)) $((0))",
         "16|-10|5|255|0"},
        {"G=08; pretrain.py $((G)) $((09)) $((1.5)) $((3#5))", "$((G))|$((09))|$((1.5))|$((3#5))"},
        {"G=12ab; pretrain.py $((G)) $((12ab)) $((0x))", "$((G))|$((12ab))|$((0x))"},
        {"G=' 7 '; pretrain.py $((G)) $((99999999999999999999))", "7|$((99999999999999999999))"},
        {"G=07; if (( G == 7 && 010 == 8 )); then pretrain.py a; fi", "a"},
    };
    EXPECT_ALL(cases);
}

// The run of a loop that runs at least once: what its turns change is unknown.
static void loops_run_once(void) {
    static const Case cases[] = {
        {"while true; do pretrain.py 4 && break; done", "4"},
        {"for i in 1 2 3; do pretrain.py 4; done", "4"},
        {"for T in 1 2; do pretrain.py $T; done", "$T"},
        {"T=1; for i in 1 2; do pretrain.py $T; T=$((T * 2)); done", "$T"},
        {"R=0; while true; do pretrain.py 4; R=$((R + 1)); [ $R -gt 3 ] && break; done", "4"},
        {"while ! pretrain.py 4; do sleep 1; done", "4"},
        {"for i in *.json; do pretrain.py 4; done", "none"},
        {"while [ -f x ]; do pretrain.py 4; done", "none"},
    };
    EXPECT_ALL(cases);
}

// A later turn takes other branches, and ends where the first does not.
static void loops_are_read_until_nothing_changes(void) {
    static const Case cases[] = {
        {"X=a; for i in 1 2; do case $X in a) X=b;; b) Y=2;; esac; done; pretrain.py $X $Y",
         "$X|$Y"},
        {"X=1; Y=1; for i in 1 2 3; do [ $X = 2 ] && Y=2; X=2; done; pretrain.py $Y", "$Y"},
        {"X=1; Y=1; Z=1; for i in 1 2 3; do [ $Y = 2 ] && Z=2; [ $X = 2 ] && Y=2; X=2; done; "
         "pretrain.py $Z",
         "$Z"},
        {"X=1; Y=1; for i in 1 2; do for k in 1 2; do [ $X = 2 ] && Y=2; done; X=2; done; "
         "pretrain.py $Y",
         "$Y"},
        {"i=0; while (( i++ < 3 )); do true; done; pretrain.py $i", "$i"},
        {"X=1; while (( 2 > 3 )); do X=2; done; pretrain.py $X", "1"},
        {"X=1; for i in 1 2; do [ $X = 2 ] && pretrain.py 4; X=2; done", "none"},
        {"X=1; for i in 1 2; do [ $X = 1 ] && pretrain.py 4; X=2; done", "none"},
        {"for i in 1 2; do break; pretrain.py 4; done", "none"},
        {"for i in 1 2; do [ -f x ] && continue; pretrain.py 4; done", "none"},
        {"for i in 1 2; do for k in 1 2; do break; done; pretrain.py 4; done", "4"},
        {"for i in 1 2; do for k in 1 2; do break 2; done; pretrain.py 4; done", "none"},
        {"for i in 1 2; do (break); pretrain.py 4; done", "none"},
        {"X=1; while read x <<E; do X=2; cat <<F; done\n1\nE\npretrain.py 9\nF\npretrain.py $X",
         "$X"},
    };
    EXPECT_ALL(cases);
}

// 20,000 commands of bodies that are read again: nested loops double them.
static void what_is_read_again_has_a_limit(void) {
    Arena arena = {0};
    for (int deep = 0; deep < 2; deep++) {
        const char *script = "X=1; Y=$X; ";
        for (int i = 0; i < (deep ? 30 : 8); i++)
            script = arena_printf(&arena, "%swhile (( A%d++ < 3 )); do ", script, i);
        script = arena_printf(&arena, "%strue; ", script);
        for (int i = 0; i < (deep ? 30 : 8); i++) script = arena_printf(&arena, "%sdone; ", script);
        script = arena_printf(&arena, "%s\npretrain.py 4", script);
        const ShellCommand command = shell_command(script, "pretrain", NULL, 0, &arena);
        CU_ASSERT_EQUAL(command.overflow, deep);
        CU_ASSERT(command.found);
    }
    arena_free(&arena);
}

static void queue_headers_are_read(void) {
    static const Case cases[] = {
        {"#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n"
         "pretrain.py ${SLURM_NNODES:-2} $SLURM_JOB_NUM_NODES $SLURM_NTASKS",
         "4|4|32"},
        {"#SBATCH -N 4 -n 8 # x\npretrain.py $SLURM_NNODES $SLURM_NTASKS", "4|8"},
        {"#SBATCH -N 4\nif [ -n \"${SLURM_JOB_ID:-}\" ]; then T=8; else T=1; fi; pretrain.py $T",
         "8"},
        {"if [ -n \"${SLURM_JOB_ID:-}\" ]; then T=8; else T=1; fi; pretrain.py $T", "1"},
        {"#SBATCH --nodes=2-4\npretrain.py ${SLURM_NNODES:-2}", "2"},
        {"cd x\n#SBATCH --nodes=4\npretrain.py ${SLURM_NNODES:-2}", "2"},
    };
    EXPECT_ALL(cases);
    Arena arena = {0};
    ShellCommand command = shell_command(cases[1].script, "pretrain", NULL, 0, &arena);
    CU_ASSERT_EQUAL(command.num_nodes, 4);
    arena_free(&arena);
}

// Parts of pipes, groups in the background and subshells change nothing outside.
static void processes_of_their_own_keep_what_they_set(void) {
    static const Case cases[] = {
        {"A=2\nA=4 &\nwait\npretrain.py $A", "2"},
        {"A=2; A=4 | cat; echo 1 | A=5; A=6 2>&1 |& cat; pretrain.py $A", "2"},
        {"A=2; f() { A=4; }; f | cat; f & wait; echo | f; pretrain.py $A", "2"},
        {"A=2; { A=4; } | cat; if true; then A=5; fi >/dev/null 2>&1 & pretrain.py $A", "2"},
        {"A=2; case 1 in 1) A=4;; esac 2>&1 | cat; (( A = 5 )) & pretrain.py $A", "2"},
        {"A=2; export A=4 | cat; unset A & eval A=5 | cat; pretrain.py $A", "2"},
        {"A=2; { A=4; } >\"a b\" 2>&1; { A=$((A+1)); } && true; pretrain.py $A", "5"},
        {"exit 1 | cat; { exit 2; } & pretrain.py 4", "4"},
        {"f() { return 1 | cat; A=4; }; f; pretrain.py $A", "4"},
        {"A=2; pretrain.py $A 2>&1 | tee log & wait", "2"},
        {"set -- 1 2; shift | cat; pretrain.py $1", "1"},
    };
    EXPECT_ALL(cases);
}

static void negation_is_no_command(void) {
    static const Case cases[] = {
        {"A=2; ! A=4; pretrain.py $A", "4"},
        {"A=2; ! A=4 B=5; ! A=6 true; pretrain.py $A $B", "4|5"},
        {"if ! [ 1 = 2 ]; then A=4; fi; pretrain.py $A", "4"},
        {"! export A=4; pretrain.py $A", "4"},
        {"A=2; ! let A+=1; pretrain.py $A", "3"},
        {"A=2; f() { A=4; }; ! f; pretrain.py $A", "4"},
        {"A=2; ! eval A=4; ! unset B; pretrain.py $A", "4"},
        {"set -- 1 2; ! shift; pretrain.py $1", "2"},
        {"! bash <<E\npretrain.py 4\nE\n", "4"},
        {"! pretrain.py 4", "4"},
    };
    EXPECT_ALL(cases);
}

static void processes_see_what_is_exported(void) {
    static const Case cases[] = {
        {"A=4; bash -c 'pretrain.py $A'", "$A"},
        {"export A=4; bash -c 'pretrain.py $A'", "4"},
        {"A=4; export A; bash -c 'pretrain.py $A'", "4"},
        {"declare -x A=4; typeset -x B=5; bash -c 'pretrain.py $A $B'", "4|5"},
        {"export A=4; export -n A; bash -c 'pretrain.py $A'", "$A"},
        {"A=4 bash -c 'pretrain.py $A'", "4"},
        {"set -a; A=4; set +a; B=5; bash -c 'pretrain.py $A $B'", "4|$B"},
        {"A=4; bash -c \"pretrain.py $A\"", "4"},
        {"export A=(4 5); bash -c 'pretrain.py $A'", "$A"},
        {"A=$(x); B=6 bash -c \"pretrain.py ${A:-$B} \\$B\"", "$(x)|$B"}, // B, or 6,
        {"f() { A=4; }; bash -c 'f; pretrain.py $A'", "$A"},
    };
    EXPECT_ALL(cases);
}

static void bash_stops_at(const char *script, const char *word, int line) {
    Arena arena = {0};
    const ShellCommand command = shell_command(script, "pretrain", NULL, 0, &arena);
    CU_ASSERT_PTR_NOT_NULL_FATAL(command.syntax.name);
    CU_ASSERT_STRING_EQUAL(command.syntax.name, word);
    CU_ASSERT_EQUAL(command.syntax.line, line);
    arena_free(&arena);
}

static void words_of_blocks_have_their_place(void) {
    static const char *const LONE[] = {"fi",   "done", "esac", "}",   ")",
                                       "then", "do",   "else", "elif"};
    Arena arena = {0};
    for (size_t i = 0; i < sizeof LONE / sizeof *LONE; i++) {
        bash_stops_at(arena_printf(&arena, "A=2\n%s\npretrain.py $A", LONE[i]), LONE[i], 2);
        if (strcmp(LONE[i], ")") != 0)
            bash_stops_at(arena_printf(&arena, "(\n\n%s\n)\npretrain.py", LONE[i]), LONE[i], 3);
    }
    bash_stops_at("if true; then\ndone\nfi\npretrain.py", "done", 2);
    bash_stops_at("{ true; fi; }\npretrain.py", "fi", 1);
    bash_stops_at("if true; then true; else true\nelse true; fi\npretrain.py", "else", 2);
    bash_stops_at("if true; then true; else true\nelif true; then true; fi\npretrain.py", "elif",
                  2);
    bash_stops_at("echo | ! true\npretrain.py", "!", 1);
    static const char *const UNENDED[] = {"'", "\"", "`", "${", "$(", "$'"};
    for (size_t i = 0; i < sizeof UNENDED / sizeof *UNENDED; i++)
        bash_stops_at(arena_printf(&arena, "pretrain.py\necho %sa", UNENDED[i]), UNENDED[i], 2);
    bash_stops_at("A=(1 2\npretrain.py", "=(", 2);
    bash_stops_at("bash <<E\ndon't\npretrain.py\nE\n", "'", 2);
    const char *quoted = "A=$(echo ')' \")\" | sed \"s/'//\"); B=\"${A:-'}\"; pretrain.py \"it's\"";
    CU_ASSERT_PTR_NULL(shell_command(quoted, "pretrain", NULL, 0, &arena).syntax.name);
    static const char *const CLOSED[] = {"(true)",
                                         "{ true; }",
                                         "((1 > 2))",
                                         "f() { true; }",
                                         "if true; then true; fi",
                                         "for i in 1; do true; done",
                                         "case 1 in 1) true;; esac"};
    for (size_t i = 0; i < sizeof CLOSED / sizeof *CLOSED; i++) {
        bash_stops_at(arena_printf(&arena, "%s echo\npretrain.py", CLOSED[i]), "echo", 1);
        bash_stops_at(arena_printf(&arena, "%s >x 2>&1 echo\npretrain.py", CLOSED[i]), "echo", 1);
        bash_stops_at(arena_printf(&arena, "%s (true)\npretrain.py", CLOSED[i]), "(", 1);
        bash_stops_at(arena_printf(&arena, "%s A=1\npretrain.py", CLOSED[i]), "A", 1);
        const char *legal = arena_printf(
            &arena, "if %s then { %s } >y; fi; (%s) & %s | cat; %s && %s\npretrain.py 4", CLOSED[i],
            CLOSED[i], CLOSED[i], CLOSED[i], CLOSED[i], CLOSED[i]);
        CU_ASSERT_PTR_NULL(shell_command(legal, "pretrain", NULL, 0, &arena).syntax.name);
    }
    static const char *const OPEN[] = {"if true; then", "while true; do", "case 1 in", "{", "("};
    for (size_t i = 0; i < sizeof OPEN / sizeof *OPEN; i++) {
        const char *script = arena_printf(&arena, "A=2\n%s\npretrain.py $A\n", OPEN[i]);
        CU_ASSERT_EQUAL(shell_command(script, "pretrain", NULL, 0, &arena).unended, 2);
    }
    arena_free(&arena);
}

static void what_is_not_followed_is_said(void) {
    Arena arena = {0};
    ShellCommand command =
        shell_command("\nsource env.sh\n. more.sh\npretrain.py", "pretrain", NULL, 0, &arena);
    CU_ASSERT_EQUAL(command.num_sourced, 2);
    CU_ASSERT_EQUAL(command.sourced.line, 2);
    CU_ASSERT_STRING_EQUAL(command.sourced.name, "env.sh");
    command = shell_command("if [ $# -lt 1 ]; then\necho usage\nexit 1\nfi\npretrain.py",
                            "pretrain", NULL, 0, &arena);
    CU_ASSERT(!command.found);
    CU_ASSERT_EQUAL(command.exit_line, 3);
    arena_free(&arena);
}

static int too_large_at(const char *script) {
    Arena arena = {0};
    const ShellCommand command = shell_command(script, "pretrain", NULL, 0, &arena);
    CU_ASSERT(arena_used(&arena) < 3 * SHELL_MAX_BYTES);
    CU_ASSERT_EQUAL(command.too_large > 0, !command.found);
    arena_free(&arena);
    return command.too_large;
}

// `first`, a line so many times, and the program.
static char *script_of(Arena *arena, const char *first, const char *line, int times) {
    char *text = arena_alloc(arena, strlen(first) + strlen(line) * (size_t)times + 32);
    char *end = stpcpy(text, first);
    for (int i = 0; i < times; i++) end = stpcpy(end, line);
    stpcpy(end, "pretrain.py --x\n");
    return text;
}

// Of 2^20 letters in a word, and values that double in each line.
static void values_have_limits(void) {
    Arena arena = {0};
    const char *doubles = script_of(&arena, "A=x\n", "A=$A$A\n", 20);
    CU_ASSERT_EQUAL(too_large_at(doubles), 0);
    doubles = script_of(&arena, "A=xy\n", "A=$A$A\n", 20);
    CU_ASSERT_EQUAL(too_large_at(doubles), 21);
    static const char *const LINES[] = {"A=$A$A\n",
                                        "A+=$A\n",
                                        "A=${A:+$A$A}\n",
                                        "eval \"A=\\$A\\$A\"\n",
                                        "A=(\"${A[@]}\" \"${A[@]}\")\n",
                                        "A=\"$A $A\"; B=($A)\n",
                                        "A=$A$A; B=$A$B; C=$B$A\n"};
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        const int line = too_large_at(script_of(&arena, "A=xy\n", LINES[i], 100));
        CU_ASSERT(line > 10 && line < 30);
    }
    CU_ASSERT_EQUAL(too_large_at(script_of(&arena, "", "A=1\n", 20000)), 0);
    arena_free(&arena);
}

CU_TestInfo shell_tests[] = {
    {"absent_values_have_others", absent_values_have_others},
    {"parts_of_texts", parts_of_texts},
    {"arrays_have_elements", arrays_have_elements},
    {"functions_have_arguments", functions_have_arguments},
    {"variables_have_their_place", variables_have_their_place},
    {"changes_are_seen", changes_are_seen},
    {"conditions_of_more_kinds", conditions_of_more_kinds},
    {"what_only_names_the_program_is_not_it", what_only_names_the_program_is_not_it},
    {"documents_stand_behind_their_line", documents_stand_behind_their_line},
    {"separators_are_minded", separators_are_minded},
    {"escapes_are_letters", escapes_are_letters},
    {"arrays_stay_arrays", arrays_stay_arrays},
    {"numbers_have_bases", numbers_have_bases},
    {"loops_run_once", loops_run_once},
    {"loops_are_read_until_nothing_changes", loops_are_read_until_nothing_changes},
    {"what_is_read_again_has_a_limit", what_is_read_again_has_a_limit},
    {"queue_headers_are_read", queue_headers_are_read},
    {"processes_of_their_own_keep_what_they_set", processes_of_their_own_keep_what_they_set},
    {"negation_is_no_command", negation_is_no_command},
    {"processes_see_what_is_exported", processes_see_what_is_exported},
    {"words_of_blocks_have_their_place", words_of_blocks_have_their_place},
    {"what_is_not_followed_is_said", what_is_not_followed_is_said},
    {"values_have_limits", values_have_limits},
    CU_TEST_INFO_NULL,
};
