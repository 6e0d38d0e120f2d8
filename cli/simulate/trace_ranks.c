#include "cli/simulate/trace_ranks.h"

#include "cli/command.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

// A rank as it was typed, for messages: it may be larger than any number here.
typedef struct {
    const char *text;
    int length, value; // value: INT_MAX where it is too large
} TypedRank;

enum { MAX_SHOWN = 40 };

// Reads digits and moves *text behind them. False where there are none.
static bool rank_read(const char **text, TypedRank *out) {
    if (!isdigit((unsigned char)**text)) return false;
    char *end;
    errno = 0;
    long value = strtol(*text, &end, 10);
    int length = (int)(end - *text);
    *out = (TypedRank){.text = *text,
                       .length = length < MAX_SHOWN ? length : MAX_SHOWN,
                       .value = errno || value > INT_MAX ? INT_MAX : (int)value};
    *text = end;
    return true;
}

static Status range_show(const TypedRank *first, const TypedRank *last, int num_gpus, bool *shown) {
    if (last->value < first->value)
        return usage_error("--trace-ranks: the range %.*s-%.*s ends before it begins",
                           first->length, first->text, last->length, last->text);
    if (last->value >= num_gpus)
        return usage_error("--trace-ranks: there is no rank %.*s; this plan has ranks 0 to %d",
                           last->length, last->text, num_gpus - 1);
    for (int rank = first->value; rank <= last->value; rank++) shown[rank] = true;
    return status_ok();
}

static Status list_read(const char *text, int num_gpus, bool *shown) {
    const char *at = text;
    for (;;) {
        TypedRank first, last;
        bool good = rank_read(&at, &first);
        if (good) last = first;
        if (good && *at == '-') {
            at++;
            good = rank_read(&at, &last);
        }
        if (!good || (*at != ',' && *at != '\0'))
            return usage_error("--trace-ranks: \"%.60s\" is not a list of ranks; expected numbers "
                               "and ranges such as 0-7,64, or all",
                               text);
        TRY(range_show(&first, &last, num_gpus, shown));
        if (*at++ == '\0') return status_ok();
    }
}

Status trace_ranks_read(const char *text, int num_gpus, bool *shown) {
    if (strcmp(text, "all") != 0) return list_read(text, num_gpus, shown);
    for (int rank = 0; rank < num_gpus; rank++) shown[rank] = true;
    return status_ok();
}
