#include "import/shell_sum.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *at;
    SumValue value;
    void *context;
    Arena *arena;
    bool good;
    int depth;
} Sum;

enum { MAX_DEPTH = 50 };

static long long sum_read(Sum *sum);

static void spaces_skip(Sum *sum) {
    sum->at += strspn(sum->at, " \t\n");
}

static long long name_read(Sum *sum) {
    bool braces = false;
    if (*sum->at == '$') braces = *++sum->at == '{';
    sum->at += braces;
    size_t length = 0;
    while (isalnum((unsigned char)sum->at[length]) || sum->at[length] == '_') length++;
    char *name = arena_alloc(sum->arena, length + 1);
    memcpy(name, sum->at, length);
    name[length] = '\0';
    sum->at += length;
    if (braces && *sum->at != '}') sum->good = false;
    sum->at += braces && *sum->at == '}';
    const char *text = length > 0 ? sum->value(sum->context, name) : NULL;
    char *end = NULL;
    long long number = text ? strtoll(text, &end, 10) : 0;
    if (!text || end == text || *end) sum->good = false;
    return number;
}

static long long factor_read(Sum *sum) {
    spaces_skip(sum);
    if (*sum->at == '(') {
        if (++sum->depth > MAX_DEPTH) sum->good = false;
        sum->at++;
        long long value = sum->good ? sum_read(sum) : 0;
        spaces_skip(sum);
        if (*sum->at != ')') sum->good = false;
        sum->at += *sum->at == ')';
        sum->depth--;
        return value;
    }
    if (!isdigit((unsigned char)*sum->at)) return name_read(sum);
    char *end;
    long long value = strtoll(sum->at, &end, 10);
    sum->at = end;
    return value;
}

static long long product_read(Sum *sum) {
    long long value = factor_read(sum);
    for (spaces_skip(sum); sum->good && *sum->at && strchr("*/%", *sum->at); spaces_skip(sum)) {
        char operation = *sum->at++;
        long long other = factor_read(sum);
        if (operation == '*') {
            if (__builtin_mul_overflow(value, other, &value)) sum->good = false;
        } else if (other <= 0) {
            sum->good = false;
        } else {
            value = operation == '/' ? value / other : value % other;
        }
    }
    return value;
}

static long long sum_read(Sum *sum) {
    long long value = product_read(sum);
    for (spaces_skip(sum); sum->good && *sum->at && strchr("+-", *sum->at); spaces_skip(sum)) {
        bool minus = *sum->at++ == '-';
        long long other = product_read(sum);
        bool over = minus ? __builtin_sub_overflow(value, other, &value)
                          : __builtin_add_overflow(value, other, &value);
        if (over) sum->good = false;
    }
    return value;
}

bool shell_sum(const char *text, SumValue value, void *context, Arena *arena, long long *out) {
    Sum sum = {.at = text, .value = value, .context = context, .arena = arena, .good = true};
    *out = sum_read(&sum);
    spaces_skip(&sum);
    return sum.good && *sum.at == '\0';
}
