#include "import/flag_args.h"

#include "base/quantity.h"
#include "import/name_pattern.h"

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
    args.first = &words->words[first];
    while (first + args.num_first < end && !is_flag(args.first[args.num_first])) args.num_first++;
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

static void kind_mark(FlagArgs *args, const char *name, bool has_value) {
    for (int i = 0; i < args->num_args; i++) {
        if (strcmp(args->args[i].name, name) != 0) continue;
        if (has_value)
            args->args[i].has_value = true;
        else
            args->args[i].is_switch = true;
    }
}

bool args_has(FlagArgs *args, const char *name) {
    kind_mark(args, name, false);
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
    kind_mark(args, name, true);
    if (!arg) return status_ok();
    const char *text = words_join(args->out->arena, arg->values, arg->num_values);
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
    double number = decimal_read(text, &end);
    if (end == text || *end || !isfinite(number) || number < 0)
        return import_refuse(args->out, name, "\"%.60s\" is not a number from 0 on", text);
    *value = number;
    return status_ok();
}

// Whether the word is of a variable alone, as $NAME, ${NAME}, ${NAME[@]}, ${NAME:+WORD}.
static bool is_variable(const char *word) {
    const bool braces = word[0] == '$' && word[1] == '{';
    const char *name = word + 1 + braces;
    const size_t length =
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    if (word[0] != '$' || length == 0) return false;
    if (!braces) return name[length] == '\0';
    return strchr("}[:+", name[length]) && name[strlen(name) - 1] == '}' &&
           !strpbrk(name + length, "/%#");
}

static Status open_refuse(const FlagArgs *args, const char *word) {
    const Undecided *hidden = undecided_in(args, word);
    if (hidden)
        return import_refuse(args->out, "",
                             "%.60s, which may hold flags, depends on line %d, which the file does "
                             "not decide; give --set NAME=VALUE for what that line asks",
                             word, hidden->line);
    return import_refuse(args->out, "",
                         "%.60s stands where flags may, and is not known before it runs; write out "
                         "what it stands for",
                         word);
}

// words of a flag behind its value, or in front of all flags.
static Status words_refuse_open(const FlagArgs *args, const char *const *words, int num_words,
                                NoteNames *unset) {
    for (int i = 0; i < num_words; i++) {
        if (words[i][0] != '$' && words[i][0] != '`') continue;
        if (!is_variable(words[i]) || undecided_in(args, words[i]))
            return open_refuse(args, words[i]);
        note_names_add(unset, words[i], "");
    }
    return status_ok();
}

Status args_refuse_open(const FlagArgs *args, const char *const *switches) {
    static const char *const lists[] = {"--data-path",         "--train-data-path",
                                        "--valid-data-path",   "--test-data-path",
                                        "--rampup-batch-size", NULL};
    NoteNames unset = {.length = 0};
    TRY(words_refuse_open(args, args->first, args->num_first, &unset));
    for (int i = 0; i < args->num_args; i++) {
        const FlagArg *arg = &args->args[i];
        // Of other flags the first word is taken as their value.
        const bool switched = arg->is_switch || name_is_among(arg->name, switches);
        const int from = arg->num_values > 0 && (arg->has_value || !switched) ? 1 : 0;
        if (name_is_among(arg->name, lists)) continue;
        TRY(words_refuse_open(args, arg->values + from, arg->num_values - from, &unset));
    }
    if (unset.length > 0)
        import_note(args->out,
                    "%s: set nowhere in the file, and taken as empty; --set NAME=VALUE says "
                    "otherwise.",
                    note_names_text(&unset, args->out->arena));
    return status_ok();
}

void args_use(FlagArgs *args, const char *const *names) {
    for (; *names; names++) arg_find(args, *names);
}

const char *args_unused(const FlagArgs *args) {
    NoteNames names = {.length = 0};
    for (int i = 0; i < args->num_args; i++)
        if (!args->args[i].used) note_names_add(&names, args->args[i].name, "");
    return note_names_text(&names, args->out->arena);
}
