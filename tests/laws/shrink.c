#include "tests/laws/shrink.h"

typedef struct {
    cJSON *root;
    bool (*fails)(const cJSON *document, void *context);
    void *context;
    int left; // tries
} Shrink;

static bool still_fails(Shrink *shrink) {
    if (shrink->left <= 0) return false;
    shrink->left--;
    return shrink->fails(shrink->root, shrink->context);
}

// Takes an item out; puts it back where the rest does not fail.
static bool item_remove(Shrink *shrink, cJSON *parent, int index) {
    cJSON *item = cJSON_GetArrayItem(parent, index);
    cJSON_DetachItemViaPointer(parent, item);
    if (still_fails(shrink)) {
        cJSON_Delete(item);
        return true;
    }
    cJSON *rest[4096];
    int num = 0;
    while (cJSON_GetArraySize(parent) > index && num < 4096)
        rest[num++] = cJSON_DetachItemFromArray(parent, index);
    cJSON_AddItemToArray(parent, item); // it keeps its name
    for (int i = 0; i < num; i++) cJSON_AddItemToArray(parent, rest[i]);
    return false;
}

// 1, 2, half: the first with which it still fails.
static bool number_reduce(Shrink *shrink, cJSON *item) {
    const double was = item->valuedouble;
    const double smaller[] = {1, 2, (double)(long long)(was / 2)};
    for (int i = 0; i < 3; i++) {
        if (smaller[i] >= was || smaller[i] < 1) continue;
        cJSON_SetNumberHelper(item, smaller[i]);
        if (still_fails(shrink)) return true;
    }
    cJSON_SetNumberHelper(item, was);
    return false;
}

static bool item_shrink(Shrink *shrink, cJSON *parent) {
    bool changed = false;
    for (int i = cJSON_GetArraySize(parent) - 1; i >= 0 && shrink->left > 0; i--) {
        if (item_remove(shrink, parent, i)) {
            changed = true;
            continue;
        }
        cJSON *item = cJSON_GetArrayItem(parent, i);
        if (item->child) changed |= item_shrink(shrink, item);
        if (cJSON_IsNumber(item)) changed |= number_reduce(shrink, item);
    }
    return changed;
}

cJSON *document_shrink(const cJSON *document, bool (*fails)(const cJSON *document, void *context),
                       void *context, int max_tries) {
    Shrink shrink = {cJSON_Duplicate(document, true), fails, context, max_tries};
    while (shrink.left > 0 && item_shrink(&shrink, shrink.root)) continue;
    return shrink.root;
}
