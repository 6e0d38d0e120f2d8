#include "config/machine/gpu_link.h"

#include "base/data_dir.h"
#include "base/json.h"

#include <string.h>

static const char FOLDER[] = "hw-profiles/clusters";

Status gpu_link_find(const char *gpu_name, Arena *arena, Link *out, bool *found) {
    const char *const *names;
    int num_names;
    *found = false;
    TRY(data_list(arena, FOLDER, &names, &num_names));
    for (int i = 0; i < num_names; i++) {
        JsonNode root;
        TRY(json_load(data_path(arena, FOLDER, names[i]), arena, &root));
        JsonNode gpu = json_get(&root, "gpu"), up = json_get(&root, "scale_up");
        JsonNode name = json_get(&up, "link");
        if (!cJSON_IsString(gpu.item) || strcmp(gpu.item->valuestring, gpu_name) != 0) continue;
        Link link;
        TRY(link_load(&name, arena, &link));
        if (!*found || link.bandwidth_bytes_per_s > out->bandwidth_bytes_per_s) *out = link;
        *found = true;
    }
    return status_ok();
}
