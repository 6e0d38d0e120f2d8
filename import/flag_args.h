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
} FlagArg;

typedef struct {
    Imported *out; // for refusals
    FlagArg *args; // [num_args] in their order; the last of one name counts
    int num_args;
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

// "--a, --b": those that nobody read; "" where there are none.
const char *args_unused(const FlagArgs *args);
