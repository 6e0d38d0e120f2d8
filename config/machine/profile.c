#include "config/machine/profile.h"

#include "base/aliases.h"
#include "base/data_dir.h"
#include "base/json_shelf.h"

#include <string.h>

static Status unknown_name(const JsonNode *value, const char *what, const char *name,
                           const char *const *names) {
    char text[400];
    const char *nearest = name_nearest(name, names);
    if (nearest) {
        snprintf(text, sizeof text, "unknown %s \"%.60s\"; the nearest known one is \"%s\"", what,
                 name, nearest);
    } else {
        int used = snprintf(text, sizeof text, "unknown %s \"%.60s\"; known are", what, name);
        for (int i = 0; names[i] && used < (int)sizeof text - 40; i++)
            used +=
                snprintf(text + used, sizeof text - (size_t)used, "%s %s", i ? "," : "", names[i]);
    }
    return value ? json_error(value, "%s", text) : status_error(STATUS_INVALID, "%s", text);
}

Status residuals_check(const JsonNode *node, double residual_median_frac,
                       double residual_p90_frac) {
    JsonNode p90 = json_get(node, "residual_p90_frac");
    if (residual_p90_frac >= residual_median_frac) return status_ok();
    return json_error(&p90, "%.4g lies below residual_median_frac %.4g", residual_p90_frac,
                      residual_median_frac);
}

Status profile_load_named(const JsonNode *value, const char *what, const char *folder,
                          const char *name, Arena *arena, JsonNode *root) {
    const char *const *names;
    int num_names;
    Status shelved;
    if (json_shelf_take(data_path(arena, folder, name), &shelved, root) &&
        shelved.code == STATUS_OK)
        return shelved;
    TRY(data_list(arena, folder, &names, &num_names));
    int index = name_find(name, names);
    if (index >= 0) return json_load(data_path(arena, folder, names[index]), arena, root);
    return unknown_name(value, what, name, names);
}

Status profile_load(const JsonNode *value, const char *what, const char *folder, Arena *arena,
                    JsonNode *root) {
    const char *name;
    TRY(json_read_string(value, arena, &name));
    if (!value_is_path(name)) return profile_load_named(value, what, folder, name, arena, root);
    return json_load_named(value, path_beside(arena, value->file ? value->file : "", name), arena,
                           root);
}
