#include "tests/laws/shell_scripts.h"

static const char *const NAMES[] = {"A", "B", "C", "TP", NULL};
static const char *const FUNCTIONS[] = {"f", "g", NULL};

enum { MOST_DEPTH = 3 };

// A number or word, or what depends on another variable.
static const char *value_draw(Draw *draw, Arena *arena) {
    const char *name = draw_text(draw, NAMES);
    const int n = draw_int(draw, 1, 9);
    switch (draw_int(draw, 0, 11)) {
    case 0:
        return arena_printf(arena, "$%s", name);
    case 1:
        return arena_printf(arena, "\"${%s:-%d}\"", name, n);
    case 2:
        return arena_printf(arena, "$(( %d * %d + 1 ))", n, draw_int(draw, 1, 9));
    case 3:
        return arena_printf(arena, "'%d'", n);
    case 4:
        return arena_printf(arena, "\"%d\"", n);
    case 5:
        return arena_printf(arena, "$((0%d + 0x%d))", draw_int(draw, 1, 7), n);
    case 6:
        return arena_printf(arena, "${%s:+%d}", name, n);
    case 7:
        return arena_printf(arena, "${%s}%d", name, n);
    case 8:
        return arena_printf(arena, "\"$1\"");
    case 9:
        return arena_printf(arena, "$'%d\\t\\x3%d'", n, n);
    default:
        return arena_printf(arena, "%d", n);
    }
}

static const char *test_draw(Draw *draw, Arena *arena) {
    static const char *const SIGNS[] = {"-eq", "-ne", "-gt", "-lt", NULL};
    const char *name = draw_text(draw, NAMES);
    const int n = draw_int(draw, 1, 9);
    switch (draw_int(draw, 0, 7)) {
    case 0:
        return arena_printf(arena, "[ -z \"$%s\" ]", name);
    case 1:
        return arena_printf(arena, "[[ $%s == %d* ]]", name, n);
    case 2:
        return arena_printf(arena, "! [ \"$%s\" = %d ]", name, n);
    case 3:
        return arena_printf(arena, "(( %d > %d ))", n, draw_int(draw, 1, 9));
    case 4:
        return draw_chance(draw, 0.5) ? "true" : "false";
    default:
        return arena_printf(arena, "[ \"${%s:-0}\" %s %d ]", name, draw_text(draw, SIGNS), n);
    }
}

// --- Arrays

static const char *const ARRAYS[] = {"R", "S", NULL};

static const char *elements_draw(Draw *draw, Arena *arena) {
    const char *text = "";
    for (int i = draw_int(draw, 0, 3); i > 0; i--) {
        const char *array = draw_text(draw, ARRAYS);
        switch (draw_int(draw, 0, 7)) {
        case 0:
            text = arena_printf(arena, "%s \"${%s[@]}\"", text, array);
            break;
        case 1:
            text = arena_printf(arena, "%s ${%s[*]}", text, array);
            break;
        case 2:
            text =
                arena_printf(arena, "%s '%d %d'", text, draw_int(draw, 1, 9), draw_int(draw, 1, 9));
            break;
        case 3:
            text = arena_printf(arena, "%s%s--e", text, draw_chance(draw, 0.5) ? "\n" : " ");
            break;
        default:
            text = arena_printf(arena, "%s %s", text, value_draw(draw, arena));
        }
    }
    return text;
}

static const char *array_draw(Draw *draw, Arena *arena) {
    static const char *const SETTERS[] = {"", "", "declare -a ", "export ", "readonly Z; ", NULL};
    const char *array = draw_text(draw, ARRAYS), *name = draw_text(draw, NAMES);
    const char *elements = elements_draw(draw, arena), *value = value_draw(draw, arena);
    const int n = draw_int(draw, 0, 3);
    switch (draw_int(draw, 0, 13)) {
    case 0:
    case 1:
        return arena_printf(arena, "%s%s=(%s)", draw_text(draw, SETTERS), array, elements);
    case 2:
    case 3:
        return arena_printf(arena, "%s+=(%s)", array, elements);
    case 4:
        return arena_printf(arena, "%s[%d]=%s", array, n, value);
    case 5:
        return arena_printf(arena, "%s[%d]+=%s", array, n, value);
    case 6:
        return arena_printf(arena, "%s=${%s[%d]}", name, array, n);
    case 7:
        return arena_printf(arena, "%s=${#%s[@]}", name, array);
    case 8:
        return arena_printf(arena, "%s=\"${%s[*]}\"", name, array);
    case 9:
        return arena_printf(arena, "unset %s%s", array, draw_chance(draw, 0.5) ? "" : "[1]");
    case 10:
        return arena_printf(arena, "%s=%s", array, value);
    case 11:
        return arena_printf(arena, "%s=(\"${%s[@]:%d}\")", array, array, n);
    case 12:
        return arena_printf(arena, "set -- \"${%s[@]}\"", array);
    default:
        return arena_printf(arena, "%s=$%s", name, array);
    }
}

// --- Here documents

static const char *document_line_draw(Draw *draw, Arena *arena) {
    static const char *const LINES[] = {
        "A=9",           "export B=8", "$A ${B:-3}", "pretrain.py --h \"$A\" $TP",
        "don't",         "EOF ",       " EOF",       "\\$A \\\\$B",
        "$((1 + 2)) $R", "}",          "\"",         "one \\",
        "# fi",          "",           NULL};
    (void)arena;
    return draw_text(draw, LINES);
}

// What stands behind a command, and the lines behind that one's line.
static const char *document_draw(Draw *draw, Arena *arena, const char **body) {
    static const char *const WORDS[] = {"<<EOF",   "<<EOF",    "<<'EOF'",  "<<\"EOF\"", "<<\\EOF",
                                        "<<- EOF", "<<-'EOF'", "<< E'O'F", NULL};
    const char *word = draw_text(draw, WORDS), *tab = word[2] == '-' ? "\t" : "";
    *body = "";
    for (int i = draw_int(draw, 0, 3); i > 0; i--)
        *body = arena_printf(arena, "%s%s%s\n", *body, draw_chance(draw, 0.7) ? tab : "",
                             document_line_draw(draw, arena));
    *body = arena_printf(arena, "%s%sEOF\n", *body, tab);
    return word;
}

// A command that a document may stand behind.
static const char *reader_draw(Draw *draw, Arena *arena) {
    switch (draw_int(draw, 0, 7)) {
    case 0:
        return "bash";
    case 1:
        return "bash -s 3 4";
    case 2:
        return arena_printf(arena, "read %s", draw_text(draw, NAMES));
    case 3:
        return arena_printf(arena, "read %s <<< \"%s\"", draw_text(draw, NAMES), "$B 5");
    case 4:
        return ":";
    default:
        return "cat >/dev/null";
    }
}

static const char *separator_draw(Draw *draw, Arena *arena) {
    static const char *const VALUES[] = {",",  "$'\\n\\t'", "2",     "' '", "",
                                         "$A", "1,",        "$', '", NULL};
    static const char *const ENDS[] = {"", "; unset IFS", " true", " read Z", NULL};
    return arena_printf(arena, "%sIFS=%s%s", draw_chance(draw, 0.2) ? "export " : "",
                        draw_text(draw, VALUES), draw_text(draw, ENDS));
}

static const char *assignment_draw(Draw *draw, Arena *arena) {
    if (draw_chance(draw, 0.02)) return separator_draw(draw, arena);
    if (draw_chance(draw, 0.25)) return array_draw(draw, arena);
    const char *name = draw_text(draw, NAMES), *value = value_draw(draw, arena);
    static const char *const SETTERS[] = {"export ", "readonly Z; ", "declare -x ", "! ", NULL};
    switch (draw_int(draw, 0, 13)) {
    case 0:
    case 1:
        return arena_printf(arena, "%s%s=%s", draw_text(draw, SETTERS), name, value);
    case 2:
        return arena_printf(arena, "%s+=%s", name, value);
    case 3:
        return arena_printf(arena, "unset %s", name);
    case 4:
        return arena_printf(arena, "export %s", name);
    case 5:
        return arena_printf(arena, "(( %s = %d ))", name, draw_int(draw, 1, 99));
    case 6:
        return arena_printf(arena, "eval \"%s=%s\"", name, "\\$B");
    case 7:
        return arena_printf(arena, "%s=%s %s=%s", name, value, draw_text(draw, NAMES),
                            value_draw(draw, arena));
    case 8:
        return arena_printf(arena, "set -- %d %d", draw_int(draw, 1, 9), draw_int(draw, 1, 9));
    case 9:
        return arena_printf(arena, "%s=%s true", name, value);
    default:
        return arena_printf(arena, "%s=%s", name, value);
    }
}

static const char *list_draw(Draw *draw, Arena *arena, int depth);

static const char *const GAPS[] = {"\n", " ", NULL};
static const char *const CASE_ENDS[] = {";;", "", NULL};

// A loop whose later turns may take other branches, end before their end, or end it. Each depth has
// a counter of its own, so that all loops end.
static const char *loop_draw(Draw *draw, Arena *arena, const char *body, int depth) {
    static const char *const ENDS[] = {"break", "continue", "break 2", "break 1", NULL};
    const char *more = "";
    if (draw_chance(draw, 0.3))
        more = arena_printf(arena, "%s && %s\n%s", test_draw(draw, arena), draw_text(draw, ENDS),
                            list_draw(draw, arena, depth + 1));
    switch (draw_int(draw, 0, 5)) {
    case 0:
        return arena_printf(arena, "for i in \"${%s[@]}\"; do\n%s%sdone", draw_text(draw, ARRAYS),
                            body, more);
    case 1:
        return arena_printf(arena, "W%d=0; while (( W%d++ < %d )); do\n%s%sdone; %s=$W%d", depth,
                            depth, draw_int(draw, 0, 2), body, more, draw_text(draw, NAMES), depth);
    case 2:
        return arena_printf(arena, "{ W%d=3; until ! let W%d-=1; do\n%s%sdone; %s=$W%d; }", depth,
                            depth, body, more, draw_text(draw, NAMES), depth);
    default:
        return arena_printf(arena, "for i in 1 %d; do\n%s%sdone", draw_int(draw, 2, 9), body, more);
    }
}

// Something in braces, brackets or words, at the begin of a command.
static const char *block_draw(Draw *draw, Arena *arena, int depth) {
    const char *body = list_draw(draw, arena, depth + 1);
    switch (draw_int(draw, 0, 6)) {
    case 0:
        return arena_printf(arena, "{\n%s}", body);
    case 1:
        return arena_printf(arena, "(\n%s)", body);
    case 2:
        return arena_printf(arena, "if %s; then\n%sfi", test_draw(draw, arena), body);
    case 3:
        return arena_printf(arena, "if %s; then\n%selif %s; then\n%selse\n%sfi",
                            test_draw(draw, arena), body, test_draw(draw, arena),
                            list_draw(draw, arena, depth + 1), list_draw(draw, arena, depth + 1));
    case 4:
        return arena_printf(arena, "case $%s in%s%d|%d) %s;;%s*) %s%s\nesac",
                            draw_text(draw, NAMES), draw_text(draw, GAPS), draw_int(draw, 1, 9),
                            draw_int(draw, 1, 9), body, draw_text(draw, GAPS),
                            list_draw(draw, arena, depth + 1), draw_text(draw, CASE_ENDS));
    case 5:
        return loop_draw(draw, arena, body, depth);
    default:
        return arena_printf(arena, "while %s; do\n%sbreak; done", test_draw(draw, arena), body);
    }
}

static const char *command_draw(Draw *draw, Arena *arena, int depth) {
    if (depth < MOST_DEPTH && draw_chance(draw, 0.3)) return block_draw(draw, arena, depth);
    switch (draw_int(draw, 0, 10)) {
    case 10:
        return reader_draw(draw, arena);
    case 0:
        return arena_printf(arena, "%s %d", draw_text(draw, FUNCTIONS), draw_int(draw, 1, 9));
    case 1:
        return draw_text(draw, FUNCTIONS);
    case 2:
        return arena_printf(arena, "%s && %s", test_draw(draw, arena),
                            assignment_draw(draw, arena));
    case 3:
        return arena_printf(arena, "%s || %s", test_draw(draw, arena),
                            assignment_draw(draw, arena));
    case 4:
        return arena_printf(arena, "%s=%s %s", draw_text(draw, NAMES), value_draw(draw, arena),
                            draw_text(draw, FUNCTIONS));
    default:
        return assignment_draw(draw, arena);
    }
}

// A command, a document that it reads, what it writes to and what stands behind it.
static const char *line_draw(Draw *draw, Arena *arena, int depth) {
    static const char *const ENDS[] = {
        "",        "",         "",        "",  "", " | cat", " &", " >/dev/null", " 2>&1 | cat",
        " # text", " && true", " |& cat", NULL};
    const char *before = draw_chance(draw, 0.08) ? "echo 1 | " : "";
    const char *end = draw_text(draw, ENDS), *command = command_draw(draw, arena, depth);
    const char *body = "", *word = "";
    if (draw_chance(draw, 0.15)) word = document_draw(draw, arena, &body);
    return arena_printf(arena, "%s%s%s%s%s\n%s", before, command, *word ? " " : "", word, end,
                        body);
}

// At times an empty one, which bash takes in a case alone.
static const char *list_draw(Draw *draw, Arena *arena, int depth) {
    const char *text = "";
    if (depth > 0 && draw_chance(draw, 0.005)) return text;
    for (int i = draw_int(draw, 1, 3); i > 0; i--)
        text = arena_printf(arena, "%s%s", text, line_draw(draw, arena, depth));
    return text;
}

static const char *launch_draw(Draw *draw, Arena *arena) {
    static const char LAUNCH[] =
        "pretrain.py --a $A --b \"$B\" --c ${C:-none} --tp=$TP \"${R[@]}\" ${S[*]} \"$@\"";
    switch (draw_int(draw, 0, 11)) {
    case 6:
        return "bash <<EOF\npretrain.py --a $A --b \\$B ${R[@]} $1\nEOF\n";
    case 7:
        return "bash -s \"$A\" <<'EOF'\npretrain.py --b $B \"$1\" $TP $R\nEOF\n";
    case 8:
        return arena_printf(arena, "S=(%s --s)\npretrain.py \"${S[@]}\" ${R[1]} ${#R[@]} $S\n",
                            elements_draw(draw, arena));
    case 9:
        return arena_printf(arena, "%s <<EOF\n$A\nEOF\n", LAUNCH);
    case 0:
        return arena_printf(arena, "bash -c 'pretrain.py --a $A --b \"$B\" --tp=$TP'\n");
    case 1:
        return arena_printf(arena, "A=5 %s\n", LAUNCH);
    case 2:
        return arena_printf(arena, "{ %s; } 2>&1 | cat\n", LAUNCH);
    case 3:
        return arena_printf(arena, "run() { %s; }\nrun 7 8\n", LAUNCH);
    case 4:
        return arena_printf(arena, "%s & wait\n", LAUNCH);
    case 5:
        return arena_printf(arena, "B=6 bash -c \"pretrain.py --a $A \\$B $TP\"\n");
    default:
        return arena_printf(arena, "%s\n", LAUNCH);
    }
}

const char *shell_script_draw(Draw *draw, Arena *arena) {
    const char *text = "A=1\nexport B=2\nTP=4\nR=(1 '2 3')\nS=(6)\n";
    for (int i = 0; FUNCTIONS[i]; i++)
        text = arena_printf(arena, "%s%s() {\n%s%s}\n", text, FUNCTIONS[i],
                            draw_chance(draw, 0.5) ? "local C=3 A\n" : "",
                            draw_chance(draw, 0.8) ? "TP=$1\nB=${B}1\n"
                                                   : "[ -n \"$1\" ] || return 1\nA=$1\n");
    for (int i = draw_int(draw, 2, 6); i > 0; i--)
        text = arena_printf(arena, "%s%s", text, line_draw(draw, arena, 0));
    return arena_printf(arena, "%s%s", text, launch_draw(draw, arena));
}
