// import/shell_state.h - what shell_words.c (words), shell_expand.c (${...}), shell_assign.c and
// shell_scope.c (variables), shell_test.c (conditions), shell_blocks.c and shell_loops.c (which
// commands run), shell_command.c and shell_script.c (commands) share.
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
    bool absent;   // it was unset, or is another scope's
    bool exported; // processes see it, but for arrays
    bool array;
} Variable;

// What variables were: at the begin of a subshell, or of a function for its own.
typedef struct {
    const Variable *variables; // [num]
    int num;
    const WordList *args;
} Scope;

// A word in the making: what it has so far, and whether it is one even where that is nothing.
typedef struct {
    char *text;
    size_t size, capacity;
    bool begun;
    bool vanished; // of "$@" without arguments, which is no word
} Piece;

typedef enum { BLOCK_IF, BLOCK_LOOP, BLOCK_CASE, BLOCK_GROUP, BLOCK_SUBSHELL } BlockKind;

typedef struct {
    const char *name, *body; // body: behind its "{" or "("
    BlockKind kind;          // of its body
    int line;
} Function;

// Where a loop's body is read from again, and what was noted before it.
typedef struct {
    const char *at; // behind "while" and "until": their condition runs in each turn; or the words
    int line;
    const char *here_end; // as Shell has it
    size_t here_num_lines;
    bool counted;    // of "for" and "select"
    int num_unknown; // when it was last read from there
    int num_skipped, num_documents, num_sourced;
    Truth once;       // as Block has it at "do"
    bool again;       // it is read again
    bool took, takes; // a turn, and the last one that was read, has the command
} Turn;

typedef struct {
    BlockKind kind;
    int line;               // of the condition that decides
    bool in_condition;      // up to "then" or "do"; of case: in a pattern
    bool negated;           // until
    bool last;              // behind "else"
    Truth condition;        // as far as it was read
    Truth taken;            // whether a branch before this one ran
    Truth runs;             // whether this branch runs
    Truth once;             // of a loop: whether it runs at least once
    Turn turn;              // of a loop
    Truth around;           // whether what stands before it in && and || lets it run
    Truth before;           // what that said
    Truth exited, returned; // as Shell has them before it, for a block in a process of its own
    Scope scope;            // the same
    bool piped;             // it reads from a pipe: it is in one
    const char *subject;    // of case
} Block;

enum {
    MAX_VARIABLES = 400,
    MAX_NESTED = 8,
    MAX_BLOCKS = 40,
    MAX_FUNCTIONS = 40,
    MAX_CALLS = 200,
    MAX_LOCALS = 200,
    MAX_SCOPES = 500,
    MAX_PREFIXES = 16,
    MAX_STEPS_AGAIN = 20000
};

typedef struct {
    Arena *arena;
    const char *name; // in that of the program
    const char *at;
    int line;
    size_t used_before;       // of the arena
    int nested, num_defaults; // scripts in words, words in ${NAME:-WORD}
    int in_function, num_calls;
    const char *here;      // the here document that the command reads; NULL: none
    int here_line;         // where it begins
    const char *here_end;  // the newline behind which documents stood; NULL: there was none yet
    size_t here_num_lines; // of them: as many empty ones stand there instead
    const char *output;    // the file that the command writes; NULL: none
    bool appends;          // to it
    bool unsure;           // the command has words of which parts are unknown
    bool whole;            // in NAME=TEXT, between brackets: values are not parted at spaces
    const WordList *args;  // $1, $2, ...; NULL: unknown
    Variable variables[MAX_VARIABLES];
    int num_variables;
    Variable locals[MAX_LOCALS]; // what a function's own variables were outside
    int num_locals, num_scopes;
    int num_again, num_steps_again; // loops that are read again; commands that were
    Function functions[MAX_FUNCTIONS];
    int num_functions;
    Block blocks[MAX_BLOCKS];
    Variable *kept[MAX_BLOCKS]; // [MAX_VARIABLES] room for the scopes of blocks; NULL: not yet
    int num_blocks, num_deeper; // deeper: blocks that found no place
    int floor;                  // blocks that the text that is read now did not open
    bool piped;                 // what is read next reads from a pipe
    bool filled;                // a command stands since the list that is read now began
    bool closed;                // a block, or "((SUM))", ends right before
    bool exports_all;           // set -a
    bool brackets;              // between "[[" and "]]", behind && or ||
    bool either;                // there, behind a ||
    Truth outer, outer_before;  // chain and before, as they stand around those
    Truth chain;                // of && and ||: whether the next command runs
    Truth said;                 // what the last command says to them
    Truth before;               // what those before it said
    Truth exited, returned;     // whether the script, or its function, has ended
    int end_line;               // of what does not decide that
    int taken_line;             // of the command
    ShellCommand out;
} Shell;

// The variable of a name; NULL where it is not set. read: also notes that the script asks for it.
Variable *variable_find(Shell *shell, const char *name);
const Variable *variable_read(Shell *shell, const char *name);

// Whether it is an array whose elements have keys; NULL is none.
bool variable_is_keyed(const Variable *variable);

// The variable of a name, which is made where it is not set; NULL where there is no place for it.
Variable *variable_make(Shell *shell, const char *name);

// That a line sets the variable to what is not known, or may set it.
void variable_hide(Shell *shell, const char *name);

// Notes, for what is said to the user, that the variable depends on the line that is read now.
void undecided_note(Shell *shell, const char *name);

// Sets a variable of the same name as this one is.
void variable_put(Shell *shell, const Variable *as);

// Makes a variable the function's own, until locals_end.
void local_begin(Shell *shell, const char *name);
void locals_end(Shell *shell, int num_before);

// Variables as they are, and back to that.
//   room  [MAX_VARIABLES] for them; NULL: in the arena
Scope scope_keep(Shell *shell, Variable *room);
void scope_restore(Shell *shell, const Scope *scope);

// What commands that change variables do to them: unset, read, let, shift, set --, NAME[KEY]=...
void command_changes(Shell *shell, const WordList *words);

// What a sum changes: "((i += 2))", "((i++))".
void sum_changes(Shell *shell, const char *text);

// Whether nothing of it is known: variable_hide made it so.
bool variable_is_hidden(const Variable *variable);

// Whether a value is unknown: it has what was not expanded.
bool is_known(const char *text);
bool words_known(const WordList *words);

// Adds to a word in the making, or ends it.
void piece_add(Shell *shell, Piece *piece, const char *text, size_t length);
void piece_end(Shell *shell, Piece *piece, WordList *out);

// What parts unquoted values: IFS; NULL: spaces, tabs and newlines.
const char *separators(Shell *shell);

// Adds what stands for something that is not known, as "$NAME".
void unknown_add(Shell *shell, Piece *piece, const char *text);

// Adds words to the word in the making: unquoted, text parts at spaces.
void value_add(Shell *shell, const WordList *value, bool quoted, Piece *piece, WordList *out);

// Reads all of a text as parts of a word.
void words_read(Shell *shell, const char *text, bool quoted, Piece *piece, WordList *out);

// What stands between ${ and }, of which `whole` is all.
void braces_add(Shell *shell, const char *inside, const char *whole, bool quoted, Piece *piece,
                WordList *out);

// $1, $@, $*, $# at text, behind the '$'. Returns its letters; 0 where it is none of these, or is
// unknown.
size_t parameter_add(Shell *shell, const char *text, bool quoted, Piece *piece, WordList *out);

// Whether one of these stands at shell->at.
bool assignment_is(const Shell *shell);

// NAME=VALUE, NAME=(WORDS), NAME+=...: true where one stands at shell->at, and is read.
// own: of a variable that is the function's own.
bool assignment_read(Shell *shell, bool own);

// Whether values take more room than they may: nothing is read any more.
bool shell_is_full(Shell *shell);

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

// What "((SUM OPERATOR SUM))" says; text is what stands between the brackets.
Truth sum_test_value(Shell *shell, const char *text);

Truth truth_not(Truth a);
Truth truth_and(Truth a, Truth b);

// Whether the command that is read now runs: as all blocks around it and the chain before it let
// it.
Truth shell_runs(const Shell *shell);

// Whether it runs at least once: a loop that does counts.
Truth shell_runs_once(const Shell *shell);

// Notes that bash stops here: the word has no place.
void syntax_note(Shell *shell, const char *word, int line);

// Whether what ends at text, but for its redirections, goes on into a pipe or the background: a
// process of its own, as is what reads from a pipe.
bool runs_apart(const Shell *shell, const char *text);

// Opens and closes { ... } and ( ... ).
void shell_block_open(Shell *shell, BlockKind kind, Truth runs, int line);
void shell_block_close(Shell *shell);

// "exit" and "return", which end the script or the function. True where the command is one.
bool end_follow(Shell *shell, const char *word);

// Notes where a command stands right behind a block, with nothing between: `(a) b`, `fi A=1`.
//   word  the first that was read; NULL: none
void block_end_check(Shell *shell, const char *word, int line);

// Keywords of blocks at the start of a command, and commands of a condition. True where the words
// are such and nothing to run.
bool blocks_follow(Shell *shell, const WordList *words, int line);

// At "then" or "do": the condition is read, its branch begins.
void branch_begin(Shell *shell, Block *block);

// "for", "while", "until", "select", and their "do" where it is read again.
void loop_open(Shell *shell, const WordList *words, int line);
void loop_do(Block *block);

// At "done" of the innermost loop: whether its body is read again, as more became unknown.
bool loop_again(Shell *shell);

// Behind it: a command that not every turn has is none.
void loop_close(Shell *shell, const Block *block);

// Notes a command of a loop that is read again: there is a limit to them.
void loop_step(Shell *shell);

// "break" and "continue". True where the command is one.
bool turn_follow(Shell *shell, const WordList *words);

// That the loops around have the command that is looked for.
void loops_take(Shell *shell);

// What the value of a condition's command, or of "((...))", does to the block that asks for it.
bool block_asks(const Shell *shell);
void block_answer(Shell *shell, Truth value);

// Patterns of the innermost case. True where the words are such.
bool case_follow(Shell *shell, const WordList *words);

// At the ";;" that ends a branch of it.
void case_next(Shell *shell);

// The line of the innermost condition that nothing decides.
int undecided_line(const Shell *shell);

// Runs all of a text as a script.
void script_read(Shell *shell, const char *text, int line);

// Whether it is the command that was looked for, or runs it.
bool command_take(Shell *shell, const WordList *words, int line, Truth runs);

// Whether there is a function of the name.
bool function_is(const Shell *shell, const char *name);

// Whether a text names the program, so that it may run it.
bool subscript_is(const Shell *shell, const char *text);

// A script in a process of its own, where it names the program: what it sets is not seen outside.
void subscript_run(Shell *shell, const char *text, int line, Truth runs);

// Runs a file that the script wrote and now gives to a shell or a queue.
void document_run(Shell *shell, const WordList *words, int line, Truth runs);

// NAME=VALUE in front of a command, which has them alone; its own words are read without them.
typedef struct {
    Variable old[MAX_PREFIXES];
    int num;
} Prefixes;

// Sets them as they were before, and keeps what they are for the next time.
void prefixes_swap(Shell *shell, Prefixes *prefixes, bool out);

// The words of a command up to its end.
//   sets  what "export NAME=VALUE" and the like set
void command_read(Shell *shell, WordList *words, Prefixes *prefixes, Prefixes *sets);

// Whether a command has "!" before it: 1 or 0.
int is_negated(const WordList *words);

// "2>FILE" and the like at text.
bool redirection_is(const char *at);

// A redirection at shell->at: its operator and its word.
void redirection_read(Shell *shell);

// What the here document of a command does: it becomes a file or runs as a script.
void here_document_take(Shell *shell, const WordList *words);

// A here document with its variables.
const char *here_text(Shell *shell, const char *text);

// "eval WORDS". True where it is one.
bool eval_follow(Shell *shell, const WordList *words, int line, Truth runs);

// Notes "source FILE".
void source_note(Shell *shell, const WordList *words, int line);

// What a queue sets for a script with such a header.
void queue_variables(Shell *shell, const char *text);
