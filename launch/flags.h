// launch/flags.h - a command line in the making.
#pragma once

#include "base/arena.h"
#include "launch/script.h"

// One flag a target understands.
typedef struct {
    const char *group;   // heading it stands under
    const char *flag;    // "--num-layers"
    const char *value;   // what follows it, for the documentation; NULL for a switch
    const char *meaning; // one sentence
} FlagRow;

typedef struct {
    const FlagRow *row;
    const char *value; // ready for the shell; NULL for a switch
    const char *plain; // as the program gets it; NULL for a switch and where the shell makes it
} Flag;

typedef struct {
    Arena *arena;
    const FlagRow *rows; // all that the target understands; ends with a zero row
    Flag *flags;
    int num_flags, capacity;
} FlagList;

// Each names a flag of rows; any other is our mistake (assert).
void flag_switch(FlagList *list, const char *flag);
void flag_int(FlagList *list, const char *flag, long long value);
void flag_number(FlagList *list, const char *flag, double value);
void flag_text(FlagList *list, const char *flag, const char *value);  // quoted for the shell
void flag_words(FlagList *list, const char *flag, const char *words); // words in no need of quotes
void flag_raw(FlagList *list, const char *flag, const char *value);   // the shell makes the value

// A line for each, indented, under its group as a comment.
void flags_write(Script *script, const FlagList *list);

// text as one word of a POSIX shell; unchanged where nothing in it needs quotes.
const char *shell_quote(const char *text, Arena *arena);

// text for a comment or a job's name: one line, anything unusual replaced by '_'.
const char *shell_name(const char *text, Arena *arena);
