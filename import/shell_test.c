// Conditions: comparisons of texts and numbers that the script itself decides.
#include "import/shell_state.h"

#include "import/shell_sum.h"

#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

Truth truth_not(Truth a) {
    return a == TRUTH_UNKNOWN ? a : a == TRUTH_YES ? TRUTH_NO : TRUTH_YES;
}

Truth truth_and(Truth a, Truth b) {
    if (a == TRUTH_NO || b == TRUTH_NO) return TRUTH_NO;
    return a == TRUTH_YES && b == TRUTH_YES ? TRUTH_YES : TRUTH_UNKNOWN;
}

static Truth truth_of(bool value) {
    return value ? TRUTH_YES : TRUTH_NO;
}

static bool number_of(const char *word, long long *value) {
    char *end;
    errno = 0;
    *value = strtoll(word, &end, 10);
    return end != word && *end == '\0' && errno == 0;
}

// a OPERATOR b, of numbers; text is "-eq" or "==".
static Truth numbers_compare(const char *text, long long a, long long b) {
    static const struct {
        const char *word, *sign;
        bool less, equal, more;
    } OPERATORS[] = {
        {"-eq", "==", false, true, false}, {"-ne", "!=", true, false, true},
        {"-lt", "<", true, false, false},  {"-le", "<=", true, true, false},
        {"-gt", ">", false, false, true},  {"-ge", ">=", false, true, true},
    };
    for (size_t i = 0; i < sizeof OPERATORS / sizeof *OPERATORS; i++) {
        if (strcmp(text, OPERATORS[i].word) != 0 && strcmp(text, OPERATORS[i].sign) != 0) continue;
        return truth_of(a < b    ? OPERATORS[i].less
                        : a == b ? OPERATORS[i].equal
                                 : OPERATORS[i].more);
    }
    return TRUTH_UNKNOWN;
}

// a =~ b. What the two languages of patterns may take differently is not known.
static Truth pattern_matches(const char *a, const char *b) {
    regex_t pattern;
    if (strpbrk(b, "\\{}") || regcomp(&pattern, b, REG_EXTENDED | REG_NOSUB) != 0)
        return TRUTH_UNKNOWN;
    const bool matches = regexec(&pattern, a, 0, NULL, 0) == 0;
    regfree(&pattern);
    return truth_of(matches);
}

// a < b or a > b, of texts. What the user's language says of capitals and signs is not known.
static Truth texts_compare(const char *operation, const char *a, const char *b) {
    static const char sure[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    if (a[strspn(a, sure)] || b[strspn(b, sure)]) return TRUTH_UNKNOWN;
    return truth_of(operation[0] == '<' ? strcmp(a, b) < 0 : strcmp(a, b) > 0);
}

static Truth words_compare(const char *a, const char *operation, const char *b, bool patterns) {
    long long x, y;
    if (!is_known(a) || !is_known(b)) return TRUTH_UNKNOWN;
    bool equal = strcmp(operation, "=") == 0 || strcmp(operation, "==") == 0;
    if (equal || strcmp(operation, "!=") == 0) {
        bool same = patterns ? fnmatch(b, a, 0) == 0 : strcmp(a, b) == 0;
        return truth_of(same == equal);
    }
    if (strcmp(operation, "=~") == 0) return patterns ? pattern_matches(a, b) : TRUTH_UNKNOWN;
    if (strcmp(operation, "<") == 0 || strcmp(operation, ">") == 0)
        return texts_compare(operation, a, b);
    if (operation[0] == '-' && number_of(a, &x) && number_of(b, &y))
        return numbers_compare(operation, x, y);
    return TRUTH_UNKNOWN;
}

static bool is_comparison(const char *word) {
    static const char *const words[] = {"=",   "==",  "!=",  "<",   ">",   "-eq",
                                        "-ne", "-lt", "-le", "-gt", "-ge", NULL};
    return word_is(word, words);
}

// "[[ $A == x ]]" where $A is empty: no word stands for it there, but it counts.
static Truth empty_compare(const char *const *words) {
    if (is_comparison(words[0])) return words_compare("", words[0], words[1], true);
    if (is_comparison(words[1])) return words_compare(words[0], words[1], "", true);
    return TRUTH_UNKNOWN;
}

static Truth expression_value(const char *const *words, int num_words, bool twice);

// "a -a b", "a -o b" between single brackets; -a binds closer.
static Truth joined_value(const char *const *words, int num_words) {
    static const char *const joints[] = {"-o", "-a"};
    for (int k = 0; k < 2; k++)
        for (int i = 1; i + 1 < num_words; i++) {
            if (strcmp(words[i], joints[k]) != 0) continue;
            Truth a = expression_value(words, i, false);
            Truth b = expression_value(words + i + 1, num_words - i - 1, false);
            return k == 1 ? truth_and(a, b) : truth_not(truth_and(truth_not(a), truth_not(b)));
        }
    return TRUTH_UNKNOWN;
}

// What stands between the brackets; twice: between "[[" and "]]".
static Truth expression_value(const char *const *words, int num_words, bool twice) {
    static const char *const groups[] = {"(", ")", "|", NULL};
    for (int i = 0; i < num_words; i++)
        if (word_is(words[i], groups)) return TRUTH_UNKNOWN;
    if (num_words > 0 && strcmp(words[0], "!") == 0)
        return truth_not(expression_value(words + 1, num_words - 1, twice));
    if (num_words == 0) return TRUTH_NO;
    if (num_words == 1 && twice && strcmp(words[0], "-n") == 0) return TRUTH_NO;
    if (num_words == 1) return is_known(words[0]) ? truth_of(words[0][0] != '\0') : TRUTH_UNKNOWN;
    if (num_words == 2 && (strcmp(words[0], "-n") == 0 || strcmp(words[0], "-z") == 0))
        return is_known(words[1]) ? truth_of((words[1][0] != '\0') == (words[0][1] == 'n'))
                                  : TRUTH_UNKNOWN;
    if (num_words == 2 && twice) return empty_compare(words);
    if (num_words == 3) return words_compare(words[0], words[1], words[2], twice);
    return twice ? TRUTH_UNKNOWN : joined_value(words, num_words);
}

bool test_is(const WordList *words) {
    static const char *const names[] = {"[", "[[", "test", "true", "false", ":"};
    int first = words->num_words > 0 && strcmp(words->words[0], "!") == 0;
    for (size_t i = 0; words->num_words > first && i < sizeof names / sizeof *names; i++)
        if (strcmp(words->words[first], names[i]) == 0) return true;
    return words->num_words > 0 && strcmp(words->words[words->num_words - 1], "]]") == 0;
}

Truth test_value(const WordList *words) {
    const char *const *at = words->words;
    int left = words->num_words;
    if (left > 1 && strcmp(at[0], "!") == 0) {
        bool part = strcmp(at[1], "[[") == 0 && strcmp(at[left - 1], "]]") != 0;
        if (part) return TRUTH_UNKNOWN; // ! [[ a || b ]] is not of a alone
        const WordList rest = {.words = words->words + 1, .num_words = left - 1};
        return truth_not(test_value(&rest));
    }
    if (left == 1 && (strcmp(at[0], "true") == 0 || strcmp(at[0], ":") == 0)) return TRUTH_YES;
    if (left == 1 && strcmp(at[0], "false") == 0) return TRUTH_NO;
    bool closed = left > 0 && strcmp(at[left - 1], "]]") == 0;
    bool plain = left > 0 && (strcmp(at[0], "[") == 0 || strcmp(at[0], "test") == 0);
    bool opened = left > 0 && strcmp(at[0], "[[") == 0;
    if (plain && at[0][0] == '[' && strcmp(at[left - 1], "]") != 0) return TRUTH_UNKNOWN;
    left -= (plain && at[0][0] == '[') || closed;
    if (plain || opened) {
        at++;
        left--;
    }
    return expression_value(at, left < 0 ? 0 : left, !plain);
}

Truth sum_test_value(Shell *shell, const char *text) {
    long long value;
    if (!shell_sum(text, variable_value, shell, shell->arena, &value)) return TRUTH_UNKNOWN;
    return truth_of(value != 0);
}
