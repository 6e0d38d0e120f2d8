#include "import/flag_args.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_flag(const char *word) {
    return word[0] == '-' && word[1] == '-' && word[2] != '\0';
}

FlagArgs flag_args(const WordList *words, int first, int end, Imported *out) {
    FlagArgs args = {.out = out};
    args.args = ARENA_ARRAY(out->arena, end - first + 1, FlagArg);
    for (int i = first; i < end;) {
        const char *word = words->words[i++];
        if (!is_flag(word)) continue;
        FlagArg arg = {.name = word, .values = &words->words[i]};
        const char *equals = strchr(word, '=');
        if (equals) { // --flag=value
            char *name = arena_strdup(out->arena, word);
            name[equals - word] = '\0';
            const char **value = ARENA_NEW(out->arena, const char *);
            *value = equals + 1;
            arg = (FlagArg){.name = name, .values = value, .num_values = 1};
        } else {
            while (i < end && !is_flag(words->words[i])) {
                arg.num_values++;
                i++;
            }
        }
        args.args[args.num_args++] = arg;
    }
    return args;
}

// The last of that name, all of which count as read.
static const FlagArg *arg_find(FlagArgs *args, const char *name) {
    const FlagArg *found = NULL;
    for (int i = 0; i < args->num_args; i++) {
        if (strcmp(args->args[i].name, name) != 0) continue;
        args->args[i].used = true;
        found = &args->args[i];
    }
    return found;
}

bool args_has(FlagArgs *args, const char *name) {
    return arg_find(args, name) != NULL;
}

// A variable in the text that only some runs of the script set; NULL: none.
static const Undecided *undecided_in(const FlagArgs *args, const char *text) {
    for (int i = 0; i < args->out->num_undecided; i++) {
        const Undecided *hidden = &args->out->undecided[i];
        const size_t length = strlen(hidden->name);
        for (const char *at = strstr(text, hidden->name); at; at = strstr(at + 1, hidden->name)) {
            bool begins = at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
            if (begins && !isalnum((unsigned char)at[length]) && at[length] != '_') return hidden;
        }
    }
    return NULL;
}

static Status unknown_refuse(const FlagArgs *args, const char *name, const char *text) {
    const Undecided *hidden = undecided_in(args, text);
    if (hidden)
        return import_refuse(args->out, name,
                             "%.60s depends on line %d, which the file does not decide; give --set "
                             "NAME=VALUE for what that line asks",
                             text, hidden->line);
    return import_refuse(args->out, name,
                         "%.60s is not set in the file; expected a value, or a line that sets it",
                         text);
}

Status args_text(FlagArgs *args, const char *name, const char *absent, const char **value) {
    const FlagArg *arg = arg_find(args, name);
    *value = absent;
    if (!arg) return status_ok();
    const char *text = arg->num_values > 0 ? arg->values[0] : "";
    for (int i = 1; i < arg->num_values; i++)
        text = arena_printf(args->out->arena, "%s %s", text, arg->values[i]);
    if (arg->num_values == 0) return import_refuse(args->out, name, "a value is missing");
    if (strpbrk(text, "$`")) return unknown_refuse(args, name, text);
    *value = text;
    return status_ok();
}

Status args_int(FlagArgs *args, const char *name, int least, int absent, int *value) {
    const char *text;
    *value = absent;
    TRY(args_text(args, name, NULL, &text));
    if (!text) return status_ok();
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end || errno || number < least || number > 2000000000)
        return import_refuse(args->out, name,
                             "\"%.60s\" is not a whole number from %d to 2000000000", text, least);
    *value = (int)number;
    return status_ok();
}

Status args_number(FlagArgs *args, const char *name, double absent, double *value) {
    const char *text;
    *value = absent;
    TRY(args_text(args, name, NULL, &text));
    if (!text) return status_ok();
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !isfinite(number) || number < 0)
        return import_refuse(args->out, name, "\"%.60s\" is not a number from 0 on", text);
    *value = number;
    return status_ok();
}

void args_use(FlagArgs *args, const char *const *names) {
    for (; *names; names++) arg_find(args, *names);
}

const char *args_unused(const FlagArgs *args) {
    const char *text = "";
    for (int i = 0; i < args->num_args; i++)
        if (!args->args[i].used)
            text = arena_printf(args->out->arena, "%s%s%s", text, text[0] ? ", " : "",
                                args->args[i].name);
    return text;
}
