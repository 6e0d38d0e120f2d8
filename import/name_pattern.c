#include "import/name_pattern.h"

#include <string.h>

bool name_fits(const char *name, const char *pattern) {
    const size_t length = strcspn(pattern, "*");
    return strncmp(name, pattern, length) == 0 && (pattern[length] == '*' || !name[length]);
}

bool name_is_among(const char *name, const char *const *patterns) {
    for (; *patterns; patterns++)
        if (name_fits(name, *patterns)) return true;
    return false;
}
