// import/flag_args.h - flags of a command line with their values, and which of them were read.
#pragma once

#include "base/arena.h"
#include "import/import.h"
#include "import/shell_words.h"

#include <stdint.h>

typedef struct {
    const char *name; // "--num-layers"
    const char *const *values;
    int num_values;
    bool used;
    bool has_value, is_switch; // it was asked for its value; whether it is there
} FlagArg;

typedef struct {
    Imported *out; // for refusals
    FlagArg *args; // [num_args] in their order; the last of one name counts
    int num_args;
    const char *const *first; // [num_first] words in front of the first flag
    int num_first;
} FlagArgs;

// Flags among words[first], ...: a word that begins with "--", and those up to the next one.
FlagArgs flag_args(const WordList *words, int first, int end, Imported *out);

// Whether the flag is there. It counts as read.
bool args_has(FlagArgs *args, const char *name);

// Its value; absent where it is not there. A value is refused that is missing or that a variable
// hides, and a number that is none or below least.
Status args_text(FlagArgs *args, const char *name, const char *absent, const char **value);
Status args_int(FlagArgs *args, const char *name, int least, int absent, int *value);
Status args_number(FlagArgs *args, const char *name, double absent, double *value);

// Counts every flag of the names (ending with NULL) as read.
void args_use(FlagArgs *args, const char *const *names);

// Words that may be flags, of a variable or a command that is not known: refused, or noted where
// the variable is set nowhere, for then it is empty. Called when all else was read; flags of the
// names (ending with NULL; "--no-*": all that begin so) have no value.
Status args_refuse_open(const FlagArgs *args, const char *const *switches);

// "--a, --b": those that nobody read; "" where there are none.
const char *args_unused(const FlagArgs *args);
