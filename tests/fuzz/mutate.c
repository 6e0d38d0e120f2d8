#include "tests/fuzz/mutate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// splitmix64, Steele et al., "Fast splittable pseudorandom number generators", OOPSLA 2014.
uint64_t random_next(Random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

size_t random_below(Random *random, size_t bound) {
    return (size_t)(random_next(random) % bound);
}

// Puts piece in place of text[at .. at + length); does nothing where there is no room.
static void text_replace(char *text, size_t *size, size_t at, size_t length, const char *piece,
                         size_t piece_size) {
    if (*size - length + piece_size > MUTATE_MAX_BYTES) return;
    memmove(text + at + piece_size, text + at + length, *size - at - length);
    memcpy(text + at, piece, piece_size);
    *size = *size - length + piece_size;
}

// --- Bytes

static void byte_flip(Random *random, char *text, size_t *size) {
    if (*size) text[random_below(random, *size)] ^= (char)(1 << random_below(random, 8));
}

static void byte_replace(Random *random, char *text, size_t *size) {
    static const char BYTES[] = "{}[]\",:\\0123456789eE.+-tfn \n\t\x01\x7f\x80\xc3\xff";
    if (*size) text[random_below(random, *size)] = BYTES[random_below(random, sizeof BYTES)];
}

static void text_cut(Random *random, char *text, size_t *size) {
    (void)text;
    *size = random_below(random, *size + 1);
}

static void range_delete(Random *random, char *text, size_t *size) {
    size_t at = random_below(random, *size + 1), length = random_below(random, *size - at + 1);
    if (length > 40) length = 40;
    text_replace(text, size, at, length, "", 0);
}

static void range_copy(Random *random, char *text, size_t *size) {
    char piece[200];
    size_t from = random_below(random, *size + 1), length = *size - from;
    if (length > sizeof piece) length = random_below(random, sizeof piece);
    memcpy(piece, text + from, length);
    text_replace(text, size, random_below(random, *size + 1), 0, piece, length);
}

// --- Tokens

typedef struct {
    size_t at, length;
} Span;

enum { MAX_TOKENS = 4096 };

static size_t token_length(const char *text, size_t size, size_t at) {
    size_t end = at + 1;
    if (text[at] == '"') {
        while (end < size && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
        return end < size ? end + 1 - at : size - at;
    }
    if (memchr("{}[],:", text[at], 6)) return 1;
    while (end < size && !memchr("{}[],:\" \n\t\r", text[end], 11)) end++;
    return end - at;
}

static size_t tokens_find(const char *text, size_t size, Span *tokens) {
    size_t num_tokens = 0;
    for (size_t at = 0; at < size && num_tokens < MAX_TOKENS;) {
        if (memchr(" \n\t\r", text[at], 4)) {
            at++;
            continue;
        }
        tokens[num_tokens] = (Span){at, token_length(text, size, at)};
        at += tokens[num_tokens++].length;
    }
    return num_tokens;
}

static bool is_value(const char *text, const Span *token) {
    return !memchr("{}[],:", text[token->at], 6);
}

// A random token for which is_value holds where values_only; false where none was met.
static bool token_pick(Random *random, const char *text, size_t size, bool values_only, Span *out) {
    static Span tokens[MAX_TOKENS];
    size_t num_tokens = tokens_find(text, size, tokens);
    for (int tries = 0; num_tokens && tries < 50; tries++) {
        *out = tokens[random_below(random, num_tokens)];
        if (!values_only || is_value(text, out)) return true;
    }
    return false;
}

// Extends a token that opens a bracket to the matching one.
static Span subtree_of(const char *text, size_t size, Span token) {
    int depth = 0;
    if (is_value(text, &token)) return token;
    for (size_t at = token.at; at < size; at += token_length(text, size, at)) {
        if (text[at] == '{' || text[at] == '[') depth++;
        if (text[at] == '}' || text[at] == ']') depth--;
        if (depth <= 0) return (Span){token.at, at + 1 - token.at};
    }
    return token;
}

static void token_delete(Random *random, char *text, size_t *size) {
    Span token;
    if (token_pick(random, text, *size, false, &token))
        text_replace(text, size, token.at, token.length, "", 0);
}

static void token_repeat(Random *random, char *text, size_t *size) {
    Span token;
    if (!token_pick(random, text, *size, false, &token) || token.length > 1000) return;
    char piece[1000];
    memcpy(piece, text + token.at, token.length);
    text_replace(text, size, token.at, 0, piece, token.length);
}

static void tokens_swap(Random *random, char *text, size_t *size) {
    Span first, second;
    if (!token_pick(random, text, *size, true, &first) ||
        !token_pick(random, text, *size, true, &second))
        return;
    if (first.at > second.at) {
        Span other = first;
        first = second;
        second = other;
    }
    if (first.at == second.at || first.length > 200 || second.length > 200) return;
    char left[200], right[200];
    memcpy(left, text + first.at, first.length);
    memcpy(right, text + second.at, second.length);
    text_replace(text, size, second.at, second.length, left, first.length);
    text_replace(text, size, first.at, first.length, right, second.length);
}

// Extremes, and words that some key of the documents knows.
static void value_replace(Random *random, char *text, size_t *size) {
    static const char *const VALUES[] = {
        "0",
        "1",
        "2",
        "3",
        "7",
        "8",
        "64",
        "96",
        "1000003",
        "-1",
        "-0",
        "0.5",
        "1e-308",
        "1e308",
        "-1e308",
        "1e400",
        "2147483647",
        "2147483648",
        "-2147483649",
        "4294967296",
        "1048576",
        "9007199254740993",
        "9223372036854775808",
        "1e18",
        "NaN",
        "Infinity",
        "null",
        "true",
        "false",
        "\"8\"",
        "\"\"",
        "[]",
        "{}",
        "[[[[1]]]]",
        "\"interleaved\"",
        "\"gpipe\"",
        "\"file:x\"",
        "\"dualpipe\"",
        "\"v-half\"",
        "\"full\"",
        "\"selective\"",
        "\"none\"",
        "\"ulysses\"",
        "\"all-gather\"",
        "\"bf16\"",
        "\"fp64\"",
        "\"mxfp8\"",
        "\"nvfp4\"",
        "\"cpu\"",
        "\"gpt2-124m\"",
        "\"mixtral-8x7b\"",
        "\"deepseek-v3\"",
        "\"dgx-h100:1\"",
        "\"dgx-b200:1000000\"",
        "\"gb200-nvl72:2\"",
        "\"../models/gpt2-124m.json\"",
        "\"/dev/null\"",
        "\"torchtitan\"",
        "\"llm.c\"",
        "\"nic:0.0\"",
        "\"leaf:0-leaf:1\"",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"%s%n%d\"",
    };
    Span token;
    const char *value = VALUES[random_below(random, sizeof VALUES / sizeof *VALUES)];
    if (token_pick(random, text, *size, true, &token))
        text_replace(text, size, token.at, token.length, value, strlen(value));
}

// A number becomes another of its kind: doubled, halved, one more, one less.
static void number_nudge(Random *random, char *text, size_t *size) {
    Span token;
    for (int tries = 0; tries < 20; tries++) {
        if (!token_pick(random, text, *size, true, &token)) return;
        char digits[20], piece[40];
        if (token.length >= sizeof digits || !memchr("-0123456789", text[token.at], 11)) continue;
        memcpy(digits, text + token.at, token.length);
        digits[token.length] = '\0';
        double value = strtod(digits, NULL);
        const double values[] = {2 * value, value / 2, value + 1, value - 1};
        int length = snprintf(piece, sizeof piece, "%.15g", values[random_below(random, 4)]);
        text_replace(text, size, token.at, token.length, piece, (size_t)length);
        return;
    }
}

// A key goes with its value and one comma.
static void member_delete(Random *random, char *text, size_t *size) {
    Span key, value;
    for (int tries = 0; tries < 20; tries++) {
        if (!token_pick(random, text, *size, true, &key)) return;
        size_t at = key.at + key.length;
        if (at + 2 >= *size || text[at] != ':') continue;
        while (++at < *size && memchr(" \n\t\r", text[at], 4)) continue;
        if (at == *size) return;
        value = subtree_of(text, *size, (Span){at, token_length(text, *size, at)});
        size_t end = value.at + value.length, start = key.at;
        if (end < *size && text[end] == ',')
            end++;
        else
            while (start > 0 && memchr(" \n\t\r,", text[start - 1], 5)) start--;
        text_replace(text, size, start, end - start, "", 0);
        return;
    }
}

static void value_nest(Random *random, char *text, size_t *size) {
    static const char OPEN[] = "[[[[[[[[", CLOSE[] = "]]]]]]]]";
    size_t depth = 1 + random_below(random, 8);
    Span token;
    if (!token_pick(random, text, *size, true, &token)) return;
    text_replace(text, size, token.at + token.length, 0, CLOSE, depth);
    text_replace(text, size, token.at, 0, OPEN, depth);
}

static void subtree_splice(Random *random, const char *donor, size_t donor_size, char *text,
                           size_t *size) {
    Span from, to;
    if (!token_pick(random, donor, donor_size, false, &from) ||
        !token_pick(random, text, *size, false, &to))
        return;
    from = subtree_of(donor, donor_size, from);
    to = subtree_of(text, *size, to);
    text_replace(text, size, to.at, to.length, donor + from.at, from.length);
}

void text_mutate(Random *random, const char *donor, size_t donor_size, char *text, size_t *size) {
    typedef void Mutation(Random *, char *, size_t *);
    static Mutation *const MUTATIONS[] = {
        byte_flip,     byte_replace,  text_cut,      range_delete,  range_copy,    token_delete,
        token_repeat,  tokens_swap,   value_nest,    value_replace, value_replace, value_replace,
        value_replace, value_replace, value_replace, number_nudge,  number_nudge,  number_nudge,
        number_nudge,  number_nudge,  number_nudge,  number_nudge,  member_delete, member_delete,
        member_delete, member_delete, member_delete,
    };
    enum { NUM_MUTATIONS = sizeof MUTATIONS / sizeof *MUTATIONS };
    size_t kind = random_below(random, NUM_MUTATIONS + 2);
    if (kind < NUM_MUTATIONS)
        MUTATIONS[kind](random, text, size);
    else
        subtree_splice(random, donor, donor_size, text, size);
}
