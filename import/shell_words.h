// import/shell_words.h - the command of a training script, without running it.
//
// Understood of bash: quotes, comments, lines that go on, variables and arrays that the script sets
// itself, ${NAME:-WORD}, $((sums)), here documents, and a command inside a quoted word (bash -c).
// Not followed: if, for, while, case, functions, $(commands); what they would set is unknown, and
// an unknown variable stays in the words as it was written ("$NAME").
#pragma once

#include "base/arena.h"

#include <stdbool.h>

typedef struct {
    const char **words;
    int num_words, capacity;
} WordList;

typedef struct {
    WordList words;    // of the command
    int program;       // index of the word that names the program; -1: the words are flags alone
    bool found;        // there is such a command
    int num_skipped;   // blocks of if, for, ... that were not followed
    int first_skipped; // line of the first
} ShellCommand;

// The last command with a word that ends in ".py" and has `name` in it; where there is none, the
// first whose words begin with "--".
ShellCommand shell_command(const char *text, const char *name, Arena *arena);
