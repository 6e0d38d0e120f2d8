#include "import/shell_sum.h"

#include <ctype.h>
#include <errno.h>
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

// 12, 014 and 0xc, as bash has them; 2#1100. What is none of these, 08 among it, ends the script.
static long long number_read(const char *text, const char **end, bool *good) {
    const char *digits = text;
    int base = 10;
    const size_t length = strspn(text, "0123456789");
    if (text[length] == '#') {
        base = length < 3 ? atoi(text) : 0;
        if (base < 2 || base > 36) *good = false;
        digits = text + length + 1;
    } else if (text[0] == '0') {
        base = text[1] == 'x' || text[1] == 'X' ? 16 : 8;
        digits = text + (base == 16 ? 2 : 0);
    }
    *end = text + length;
    if (!*good || !isalnum((unsigned char)*digits)) {
        *good = false;
        return 0;
    }
    char *stop;
    errno = 0;
    const long long number = strtoll(digits, &stop, base);
    *end = stop;
    if (errno != 0 || stop == digits || isalnum((unsigned char)*stop) ||
        (*stop && strchr("_#@.", *stop)))
        *good = false;
    return number;
}

// A number that a variable's value is, with a sign or without.
static long long value_read(const char *text, bool *good) {
    text += strspn(text, " \t\n");
    const bool minus = *text == '-';
    text += *text == '-' || *text == '+';
    const char *end;
    const long long number = number_read(text, &end, good);
    if (end[strspn(end, " \t\n")] != '\0') *good = false;
    return minus ? -number : number;
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
    if (!text) sum->good = false;
    return text ? value_read(text, &sum->good) : 0;
}

// A number, a name, what stands between brackets, or one of these with a sign before it.
static long long factor_read(Sum *sum) {
    spaces_skip(sum);
    const char sign = *sum->at;
    const bool signs = sign == '-' || sign == '+' || (sign == '!' && sum->at[1] != '=');
    if (*sum->at != '(' && !signs && !isdigit((unsigned char)*sum->at)) return name_read(sum);
    if (isdigit((unsigned char)*sum->at)) {
        return number_read(sum->at, &sum->at, &sum->good);
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
