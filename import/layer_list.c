#include "import/layer_list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *at;
    int *out;
    int most, size; // entries; size < 0: it is no list
    int depth;
} List;

enum { MAX_DEPTH = 20 };

static void list_sum(List *list);

static void spaces_skip(List *list) {
    list->at += strspn(list->at, " ");
}

static bool letter_take(List *list, char c) {
    spaces_skip(list);
    if (*list->at != c) return false;
    list->at++;
    return true;
}

static void entry_add(List *list, int value) {
    if (list->size < 0) return;
    if (list->size == list->most)
        list->size = -1;
    else
        list->out[list->size++] = value;
}

static void entries_read(List *list) {
    while (list->size >= 0 && !letter_take(list, ']')) {
        char *end;
        long value = strtol(list->at, &end, 10);
        if (end == list->at || value < -1000000 || value > 1000000) {
            list->size = -1;
            return;
        }
        list->at = end;
        entry_add(list, (int)value);
        letter_take(list, ',');
    }
}

// [1,0]*3 or (...)*3: what stands there once is written out.
static void list_product(List *list) {
    int first = list->size;
    if (letter_take(list, '[')) {
        entries_read(list);
    } else if (letter_take(list, '(') && list->depth++ < MAX_DEPTH) {
        list_sum(list);
        list->depth--;
        if (!letter_take(list, ')')) list->size = -1;
    } else {
        list->size = -1;
    }
    while (list->size >= 0 && letter_take(list, '*')) {
        char *end;
        long times = strtol(list->at, &end, 10);
        int length = list->size - first;
        if (end == list->at || times < 0 || times > list->most) {
            list->size = -1;
            return;
        }
        list->at = end;
        if (times == 0) list->size = first;
        for (long t = 1; t < times; t++)
            for (int i = 0; i < length && list->size >= 0; i++)
                entry_add(list, list->out[first + i]);
    }
}

static void list_sum(List *list) {
    list_product(list);
    while (list->size >= 0 && letter_take(list, '+')) list_product(list);
}

int number_list(const char *text, int most, int *out) {
    List list = {.at = text, .out = out, .most = most};
    list_sum(&list);
    spaces_skip(&list);
    return *list.at ? -1 : list.size;
}

typedef struct {
    char *text;
    int size, most;
} Unfolded;

static bool letters_add(Unfolded *out, const char *text, int length) {
    if (out->size + length > out->most) return false;
    memmove(out->text + out->size, text, (size_t)length);
    out->size += length;
    return true;
}

const char *layout_unfold(const char *text, int most, Arena *arena) {
    Unfolded out = {.text = arena_alloc(arena, (size_t)most + 1), .most = most};
    int group = -1, last = 0; // where a bracket opened; where what a * repeats begins
    for (; *text; text++) {
        if (*text == '(' && group < 0) {
            group = out.size;
        } else if (*text == ')' && group >= 0) {
            last = group;
            group = -1;
        } else if (*text == '*' && isdigit((unsigned char)text[1])) {
            char *end;
            long times = strtol(text + 1, &end, 10);
            int length = out.size - last;
            if (times < 1 || times > most) return NULL;
            for (long t = 1; t < times; t++)
                if (!letters_add(&out, out.text + last, length)) return NULL;
            text = end - 1;
        } else if (strchr("EtmL|", *text)) {
            if (group < 0) last = out.size;
            if (!letters_add(&out, text, 1)) return NULL;
        } else if (*text != ',' && *text != ' ') {
            return NULL;
        }
    }
    out.text[out.size] = '\0';
    return group < 0 ? out.text : NULL;
}
