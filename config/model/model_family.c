#include "config/model/model_family.h"

#include <string.h>

#define X(name) extern const ModelFamily name##_FAMILIES[];
#include "config/model/families.def"
#undef X

// The rows of all files; NULL ends them.
static const ModelFamily *const LISTS[] = {
#define X(name) name##_FAMILIES,
#include "config/model/families.def"
#undef X
    NULL};

const ModelFamily *model_family_find(const char *model_type) {
    for (int i = 0; LISTS[i]; i++)
        for (const ModelFamily *row = LISTS[i]; row->model_type; row++)
            if (strcmp(row->model_type, model_type) == 0) return row;
    return NULL;
}

const char *const *model_family_names(Arena *arena) {
    static const char *const OTHERS[] = {"t5", "mt5", "generic"};
    enum { NUM_OTHERS = sizeof OTHERS / sizeof *OTHERS };
    int num = 0;
    for (int i = 0; LISTS[i]; i++)
        for (const ModelFamily *row = LISTS[i]; row->model_type; row++) num++;
    const char **names = ARENA_ARRAY(arena, num + NUM_OTHERS + 1, const char *);
    int at = 0;
    for (int i = 0; LISTS[i]; i++)
        for (const ModelFamily *row = LISTS[i]; row->model_type; row++)
            names[at++] = row->model_type;
    for (int i = 0; i < NUM_OTHERS; i++) names[at++] = OTHERS[i];
    return names;
}
