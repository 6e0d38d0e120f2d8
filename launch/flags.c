#include "launch/flags.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const FlagRow *row_find(const FlagRow *rows, const char *flag) {
    for (; rows->flag; rows++)
        if (strcmp(rows->flag, flag) == 0) return rows;
    return NULL;
}

static void flag_add(FlagList *list, const char *flag, const char *value, const char *plain) {
    const FlagRow *row = row_find(list->rows, flag);
    assert(row && (row->value != NULL) == (value != NULL));
    if (list->num_flags == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 64;
        Flag *flags = ARENA_ARRAY(list->arena, capacity, Flag);
        for (int i = 0; i < list->num_flags; i++) flags[i] = list->flags[i];
        list->flags = flags;
        list->capacity = capacity;
    }
    list->flags[list->num_flags++] = (Flag){.row = row, .value = value, .plain = plain};
}

void flag_raw(FlagList *list, const char *flag, const char *value) {
    flag_add(list, flag, value, NULL);
}

void flag_words(FlagList *list, const char *flag, const char *words) {
    flag_add(list, flag, words, words);
}

void flag_switch(FlagList *list, const char *flag) {
    flag_add(list, flag, NULL, NULL);
}

void flag_int(FlagList *list, const char *flag, long long value) {
    flag_words(list, flag, arena_printf(list->arena, "%lld", value));
}

void flag_number(FlagList *list, const char *flag, double value) {
    flag_words(list, flag, number_text(value, list->arena));
}

void flag_text(FlagList *list, const char *flag, const char *value) {
    flag_add(list, flag, shell_quote(value, list->arena), arena_strdup(list->arena, value));
}

void flags_write(Script *script, const FlagList *list) {
    const char *group = "";
    for (int i = 0; i < list->num_flags; i++) {
        const Flag *flag = &list->flags[i];
        if (strcmp(group, flag->row->group) != 0)
            script_add(script, "    # %s\n", flag->row->group);
        group = flag->row->group;
        script_add(script, "    %s%s%s\n", flag->row->flag, flag->value ? " " : "",
                   flag->value ? flag->value : "");
    }
}

const char *shell_quote(const char *text, Arena *arena) {
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "_-+./:@%"; // a comma is safe, but looks like a mistake to shellcheck
    if (text[0] && text[strspn(text, safe)] == '\0') return arena_strdup(arena, text);
    char *out = arena_alloc(arena, 4 * strlen(text) + 3);
    char *at = out;
    *at++ = '\'';
    for (; *text; text++) {
        if (*text == '\'') {
            memcpy(at, "'\\''", 4);
            at += 4;
        } else {
            *at++ = *text;
        }
    }
    *at++ = '\'';
    *at = '\0';
    return out;
}

const char *shell_name(const char *text, Arena *arena) {
    char *out = arena_strdup(arena, text);
    for (char *c = out; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-.", *c)) *c = '_';
    return out;
}
