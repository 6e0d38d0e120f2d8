// import/shell_words.h - the command of a training script, without running it.
//
// It understands these parts of bash. Quotes, comments, lines that go on, here documents and eval.
// Variables and arrays that the script sets itself or that are given, ${NAME:-WORD} and the like,
// $((sums)) and ((sums)). A command inside a quoted word (bash -c), which sees exported variables
// alone. Functions with their arguments and variables, exit and return. The words if, while, case,
// && and || where what they test is known: comparisons of texts and numbers. Pipes, groups of
// commands, subshells and the background, with what they keep to themselves. The script gets no
// arguments ($# is 0) but those given. Not followed: $(commands), read, the passes of a loop, tests
// of files and of unknown variables, and what stands behind && and || of a command that may fail.
// What is set there is unknown, and an unknown variable stays in the words as it was written
// ("$NAME"). An exit that may or may not run is taken not to: the command that is looked for would
// not run.
//
// Source: what the words become, bash(1) 5.2; the variables of "#SBATCH" lines, sbatch(1).
#pragma once

#include "base/arena.h"

#include <stdbool.h>

typedef struct {
    const char **words;
    int num_words, capacity;
} WordList;

void words_add(Arena *arena, WordList *list, const char *word);

// Words with a space between each two.
const char *words_join(Arena *arena, const char *const *words, int num_words);

// A variable that a block sets which may or may not run.
typedef struct {
    const char *name;
    int line; // of the block's condition
} Undecided;

// A file that the script writes of a here document.
typedef struct {
    const char *name, *text;
} Document;

enum { MAX_UNDECIDED = 200, MAX_MAYBE = 64, MAX_DOCUMENTS = 32 };

typedef struct {
    WordList words;  // of the command
    int program;     // index of the word that names the program; -1: the words are flags alone
    bool found;      // there is such a command
    int hidden;      // line of one that may or may not run, where none was found; 0: there is none
    int num_skipped; // blocks of if, for, ... that were not followed
    int first_skipped; // line of the first
    Undecided undecided[MAX_UNDECIDED];
    int num_undecided;
    Undecided
        maybe[MAX_MAYBE]; // flags that such a block adds to a variable; it has none of them here
    int num_maybe;
    Document documents[MAX_DOCUMENTS];
    int num_documents;
    Undecided sourced; // the first file whose commands the script reads, which is not done here
    int num_sourced;
    int num_nodes;         // of a queue's header ("#SBATCH --nodes=4"); 0: it does not say
    int exit_line;         // where the script ends before its last line; 0: it does not
    int overflow;          // line where it is more than can be followed here; 0: it is not
    Undecided syntax;      // a word that bash stops at, as it has no place there; name NULL: none
    int unended;           // line of a block that nothing ends; 0: there is none
    int too_large;         // line where values take more room than that below; 0: nowhere
    const char *unread;    // a setting that nothing reads; NULL: all are read
    Undecided overwritten; // a setting that a line sets before anything reads it; name NULL: none
} ShellCommand;

// Of a word, and of all that is read and expanded of a script: what doubles in every line ends.
enum { SHELL_MAX_WORD_BYTES = 1 << 20, SHELL_MAX_BYTES = 32 << 20 };

// A variable of the environment, or argument $NAME.
typedef struct {
    const char *name, *value;
} Setting;

// The last command with a word that ends in ".py" and has `name` in it; where there is none, the
// first whose words begin with "--".
ShellCommand shell_command(const char *text, const char *name, const Setting *settings,
                           int num_settings, Arena *arena);
