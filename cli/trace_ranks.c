#include "cli/trace_ranks.h"

#include "cli/command.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

// Reads digits and moves *text behind them. False where there are none; too many are INT_MAX.
static bool rank_read(const char **text, int *out) {
    if (!isdigit((unsigned char)**text)) return false;
    char *end;
    errno = 0;
    long value = strtol(*text, &end, 10);
    *out = errno || value > INT_MAX ? INT_MAX : (int)value;
    *text = end;
    return true;
}

static Status range_show(int first, int last, int num_gpus, bool *shown) {
    if (last < first)
        return usage_error("--trace-ranks: the range %d-%d ends before it begins", first, last);
    if (last >= num_gpus)
        return usage_error("--trace-ranks: there is no rank %d; this plan has ranks 0 to %d", last,
                           num_gpus - 1);
    for (int rank = first; rank <= last; rank++) shown[rank] = true;
    return status_ok();
}

Status trace_ranks_read(const char *text, int num_gpus, bool *shown) {
    if (strcmp(text, "all") == 0) return range_show(0, num_gpus - 1, num_gpus, shown);
    const char *at = text;
    for (;;) {
        int first, last;
        bool good = rank_read(&at, &first);
        last = first;
        if (good && *at == '-') {
            at++;
            good = rank_read(&at, &last);
        }
        if (!good || (*at != ',' && *at != '\0'))
            return usage_error("--trace-ranks: \"%.60s\" is not a list of ranks; expected numbers "
                               "and ranges such as 0-7,64, or all",
                               text);
        TRY(range_show(first, last, num_gpus, shown));
        if (*at++ == '\0') return status_ok();
    }
}
