// import/shell_state.h - what shell_words.c (expansions), shell_assign.c (variables), shell_test.c
// (conditions), shell_blocks.c (which commands run) and shell_script.c (commands) share.
#pragma once

#include "import/shell_words.h"

#include <stddef.h>

// Whether something holds, or a command runs.
typedef enum { TRUTH_NO, TRUTH_YES, TRUTH_UNKNOWN } Truth;

typedef struct {
    const char *name;
    WordList words; // one, where it is no array
    bool given;     // by --set, and as given
    bool read;
} Variable;

typedef enum { BLOCK_IF, BLOCK_LOOP, BLOCK_CASE, BLOCK_GROUP, BLOCK_SUBSHELL } BlockKind;

typedef struct {
    const char *name, *body; // body: behind its "{" or "("
    BlockKind kind;          // of its body
    int line;
} Function;

typedef struct {
    BlockKind kind;
    int line;               // of the condition that decides
    bool in_condition;      // up to "then" or "do"; of case: in a pattern
    bool negated;           // until
    Truth condition;        // as far as it was read
    Truth taken;            // whether a branch before this one ran
    Truth runs;             // whether this branch runs
    Truth around;           // whether what stands before it in && and || lets it run
    Truth before;           // what that said
    Truth exited, returned; // of a subshell: as Shell has them before it
    const char *subject;    // of case
} Block;

enum { MAX_VARIABLES = 400, MAX_NESTED = 8, MAX_BLOCKS = 40, MAX_FUNCTIONS = 40, MAX_CALLS = 200 };

typedef struct {
    Arena *arena;
    const char *name; // in that of the program
    const char *at;
    int line;
    int nested, num_defaults; // scripts in words, words in ${NAME:-WORD}
    int in_function, num_calls;
    Variable variables[MAX_VARIABLES];
    int num_variables;
    Function functions[MAX_FUNCTIONS];
    int num_functions;
    Block blocks[MAX_BLOCKS];
    int num_blocks, num_deeper; // deeper: blocks that found no place
    bool brackets;              // between "[[" and "]]", behind && or ||
    bool either;                // there, behind a ||
    Truth outer, outer_before;  // chain and before, as they stand around those
    Truth chain;                // of && and ||: whether the next command runs
    Truth said;                 // what the last command says to them
    Truth before;               // what those before it said
    Truth exited, returned;     // whether the script, or its function, has ended
    int end_line;               // of what does not decide that
    ShellCommand out;
} Shell;

// The variable of a name; NULL where it is not set. read: also notes that the script asks for it.
Variable *variable_find(Shell *shell, const char *name);
const Variable *variable_read(Shell *shell, const char *name);

// The same, made where it is not set; NULL where there is no place for it.
Variable *variable_make(Shell *shell, const char *name);

// NAME=VALUE, NAME=(WORDS), NAME+=...: true where one stands at shell->at, and is read.
bool assignment_read(Shell *shell);

// Notes that the script is more than can be followed here.
void shell_overflow(Shell *shell);

// Spaces and lines that go on; with_lines: also ends of lines and comments.
void gap_skip(Shell *shell, bool with_lines);
void comment_skip(Shell *shell);

// Whether the word is one of the names, which end with NULL.
bool word_is(const char *word, const char *const *names);

// The value of one that is no array; NULL where it is unknown. shell is a Shell.
const char *variable_value(void *shell, const char *name);

// Letters of the name at text; 0 where there is none.
size_t name_length(const char *text);

char *text_part(Shell *shell, const char *text, size_t length);

// The place behind the bracket that closes the one at text.
const char *bracket_end(const char *text, char open, char close);

// Whether a word ends before this letter.
bool word_ends(char c);

// One word at shell->at, which may become none or several.
void word_read(Shell *shell, WordList *out);

// Whether the words are a test ("[ ... ]", "test", "true"), and what it says. A part of "[[ a && b
// ]]" counts as one.
bool test_is(const WordList *words);
Truth test_value(const WordList *words);

// The same of "((SUM OPERATOR SUM))"; text is what stands between the brackets.
Truth sum_test_value(Shell *shell, const char *text);

Truth truth_not(Truth a);
Truth truth_and(Truth a, Truth b);

// Whether the command that is read now runs: as all blocks around it and the chain before it let
// it.
Truth shell_runs(const Shell *shell);

// Opens and closes { ... } and ( ... ).
void shell_block_open(Shell *shell, BlockKind kind, Truth runs, int line);
void shell_block_close(Shell *shell);

// "exit" and "return", which end the script or the function. True where the command is one.
bool end_follow(Shell *shell, const char *word);

// Keywords of blocks at the start of a command, and commands of a condition. True where the words
// are such and nothing to run.
bool blocks_follow(Shell *shell, const WordList *words, int line);

// What the value of a condition's command, or of "((...))", does to the block that asks for it.
bool block_asks(const Shell *shell);
void block_answer(Shell *shell, Truth value);

// Patterns of the innermost case. True where the words are such.
bool case_follow(Shell *shell, const WordList *words);

// At the ";;" that ends a branch of it.
void case_next(Shell *shell);

// The line of the innermost condition that nothing decides.
int undecided_line(const Shell *shell);
