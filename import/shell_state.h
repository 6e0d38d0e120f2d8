// import/shell_state.h - what shell_words.c (expansions) and shell_script.c (commands) share.
#pragma once

#include "import/shell_words.h"

#include <stddef.h>

typedef struct {
    const char *name;
    WordList words; // one, where it is no array
} Variable;

enum { MAX_VARIABLES = 400, MAX_NESTED = 8 };

typedef struct {
    Arena *arena;
    const char *name; // in that of the program
    const char *at;
    int line, depth;
    int nested, num_defaults; // scripts in words, words in ${NAME:-WORD}
    Variable variables[MAX_VARIABLES];
    int num_variables;
    ShellCommand out;
} Shell;

void words_add(Arena *arena, WordList *list, const char *word);

// The variable of a name; NULL where it is not set.
Variable *variable_find(Shell *shell, const char *name);

// Letters of the name at text; 0 where there is none.
size_t name_length(const char *text);

char *text_part(Shell *shell, const char *text, size_t length);

// The place behind the bracket that closes the one at text.
const char *bracket_end(const char *text, char open, char close);

// Whether a word ends before this letter.
bool word_ends(char c);

// One word at shell->at, which may become none or several.
void word_read(Shell *shell, WordList *out);
