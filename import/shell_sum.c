#include "import/shell_sum.h"

#include <ctype.h>
#include <limits.h>
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

static long long choice_read(Sum *sum);

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

// A number, a name, what stands between brackets, or one of these with a sign before it.
static long long factor_read(Sum *sum) {
    spaces_skip(sum);
    const char sign = *sum->at;
    const bool signs = sign == '-' || sign == '+' || (sign == '!' && sum->at[1] != '=');
    if (*sum->at != '(' && !signs && !isdigit((unsigned char)*sum->at)) return name_read(sum);
    if (isdigit((unsigned char)*sum->at)) {
        char *end;
        long long value = strtoll(sum->at, &end, 10);
        sum->at = end;
        return value;
    }
    if (++sum->depth > MAX_DEPTH || (signs && sum->at[1] == sign)) sum->good = false;
    sum->at++;
    long long value = !sum->good ? 0 : signs ? factor_read(sum) : choice_read(sum);
    sum->depth--;
    if (signs) return sign == '!' ? !value : sign == '+' || value == LLONG_MIN ? value : -value;
    spaces_skip(sum);
    if (*sum->at != ')') sum->good = false;
    sum->at += *sum->at == ')';
    return value;
}

static long long product_read(Sum *sum) {
    long long value = factor_read(sum);
    for (spaces_skip(sum); sum->good && *sum->at && strchr("*/%", *sum->at); spaces_skip(sum)) {
        char operation = *sum->at++;
        long long other = factor_read(sum);
        if (operation == '*') {
            if (__builtin_mul_overflow(value, other, &value)) sum->good = false;
        } else if (other <= 0 || value < 0) {
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

// The sign that stands there, of those (ending with NULL); -1: none of them.
static int sign_read(Sum *sum, const char *const *signs) {
    spaces_skip(sum);
    for (int i = 0; signs[i]; i++) {
        if (strncmp(sum->at, signs[i], strlen(signs[i])) != 0) continue;
        sum->at += strlen(signs[i]);
        return i;
    }
    return -1;
}

static long long order_read(Sum *sum) {
    static const char *const signs[] = {"<=", ">=", "<", ">", NULL};
    long long value = sum_read(sum);
    for (int sign; sum->good && strncmp(sum->at, "<<", 2) && strncmp(sum->at, ">>", 2) &&
                   (sign = sign_read(sum, signs)) >= 0;) {
        const long long other = sum_read(sum);
        value = sign == 0   ? value <= other
                : sign == 1 ? value >= other
                : sign == 2 ? value < other
                            : value > other;
    }
    return value;
}

static long long equality_read(Sum *sum) {
    static const char *const signs[] = {"==", "!=", NULL};
    long long value = order_read(sum);
    for (int sign; sum->good && (sign = sign_read(sum, signs)) >= 0;)
        value = (value == order_read(sum)) == (sign == 0);
    return value;
}

static long long both_read(Sum *sum) {
    static const char *const signs[] = {"&&", NULL};
    long long value = equality_read(sum);
    while (sum->good && sign_read(sum, signs) >= 0) {
        const bool other = equality_read(sum) != 0;
        value = value && other;
    }
    return value;
}

static long long either_read(Sum *sum) {
    static const char *const signs[] = {"||", NULL};
    long long value = both_read(sum);
    while (sum->good && sign_read(sum, signs) >= 0) {
        const bool other = both_read(sum) != 0;
        value = value || other;
    }
    return value;
}

// A ? B : C, of which both are read.
static long long choice_read(Sum *sum) {
    if (++sum->depth > MAX_DEPTH) sum->good = false;
    const long long value = sum->good ? either_read(sum) : 0;
    spaces_skip(sum);
    if (!sum->good || *sum->at != '?') {
        sum->depth--;
        return value;
    }
    sum->at++;
    const long long yes = choice_read(sum);
    spaces_skip(sum);
    if (*sum->at != ':') sum->good = false;
    sum->at += *sum->at == ':';
    const long long no = choice_read(sum);
    sum->depth--;
    return value ? yes : no;
}

bool shell_sum(const char *text, SumValue value, void *context, Arena *arena, long long *out) {
    Sum sum = {.at = text, .value = value, .context = context, .arena = arena, .good = true};
    *out = choice_read(&sum);
    spaces_skip(&sum);
    return sum.good && *sum.at == '\0';
}
