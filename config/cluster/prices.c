#include "config/cluster/prices.h"

#include "base/data_dir.h"
#include "base/quantity.h"

#include <string.h>
#include <strings.h>

static const double MAX_USD_PER_GPU_HOUR = 1e5;

// The list itself, which may stand in a file.
static Status list_open(const JsonNode *value, Arena *arena, JsonNode *out) {
    *out = *value;
    if (!cJSON_IsString(value->item)) return json_expect_object(value);
    const char *path = value->item->valuestring;
    if (!value_is_json_path(path))
        return json_error(value,
                          "\"%.60s\": expected a path that ends in .json, or an object of "
                          "GPUs and dollars an hour, as in {\"h100-sxm-80g\": 2.1}",
                          path);
    TRY(json_load_named(value, path_beside(arena, value->file ? value->file : "", path), arena,
                        out));
    return json_expect_object(out);
}

static bool is_gpu_of(const Cluster *cluster, const char *name) {
    for (int i = 0; i < cluster->num_pools; i++)
        if (strcmp(cluster->pools[i].gpu.name, name) == 0) return true;
    return false;
}

// The first name that begins as this one does, whatever the capitals: "H100" of h100-pcie-80g.
static const char *name_begins(const char *name, const char *const *names) {
    const size_t length = strlen(name);
    for (int i = 0; names[i] && length >= 4; i++)
        if (strncasecmp(names[i], name, length) == 0) return names[i];
    return NULL;
}

static Status name_check(const JsonNode *price, const char *name, const Cluster *cluster,
                         Arena *arena) {
    const char *const *names;
    int num_names;
    if (is_gpu_of(cluster, name)) return status_ok();
    TRY(data_list(arena, "hw-profiles/gpus", &names, &num_names));
    const char **known = ARENA_ARRAY(arena, num_names + 1, const char *);
    for (int i = 0; i < num_names; i++) {
        known[i] = names[i];
        if (strcmp(names[i], name) == 0) return status_ok();
    }
    const char *nearest = name_begins(name, known);
    if (!nearest) nearest = name_nearest(name, known);
    return json_error(price,
                      "unknown GPU%s%s%s; expected names as in meshwright clusters, or "
                      "\"source\"",
                      nearest ? "; the nearest known one is \"" : "", nearest ? nearest : "",
                      nearest ? "\"" : "");
}

// A number, or a text in dollars: "$2.5", "2.5 USD/h".
static Status usd_read(const JsonNode *price, double *usd) {
    char why[200] = "";
    if (!cJSON_IsString(price->item)) return json_read_double(price, 0, MAX_USD_PER_GPU_HOUR, usd);
    if (!quantity_parse(price->item->valuestring, QUANTITY_USD, usd, why, sizeof why))
        return json_error(
            price, "%s", why[0] ? why : "expected US dollars a GPU hour, as in 2.1 or \"$2.10/h\"");
    if (*usd >= 0 && *usd <= MAX_USD_PER_GPU_HOUR) return status_ok();
    return json_error(price, "%.15g is out of range; expected 0 to %.15g", *usd,
                      MAX_USD_PER_GPU_HOUR);
}

static void price_set(const char *name, double usd, const char *source, Pool *pool) {
    if (pool->price_is_stated || strcmp(pool->gpu.name, name) != 0) return;
    pool->price_usd_per_gpu_hour = usd;
    pool->price_source = source;
}

Status prices_take(const JsonNode *value, Arena *arena, Cluster *cluster) {
    JsonNode list;
    if (!json_is_present(value)) return status_ok();
    TRY(list_open(value, arena, &list));
    const JsonNode stated = json_get(&list, "source");
    const char *source = cJSON_IsString(value->item) ? value->item->valuestring : "prices";
    if (json_is_present(&stated)) TRY(json_read_string(&stated, arena, &source));
    Pool *pools = cluster_own_pools(cluster, arena);
    const cJSON *item;
    cJSON_ArrayForEach(item, list.item) {
        const JsonNode price = json_get(&list, item->string);
        double usd;
        if (strcmp(item->string, "source") == 0) continue;
        TRY(name_check(&price, item->string, cluster, arena));
        TRY(usd_read(&price, &usd));
        for (int i = 0; i < cluster->num_pools; i++)
            price_set(item->string, usd, source, &pools[i]);
    }
    return status_ok();
}
