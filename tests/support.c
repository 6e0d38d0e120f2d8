#include "tests/support.h"

#include <string.h>

Status scenario_of(const char *text, Arena *arena, Scenario *out) {
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    TRY(json_parse(text, strlen(text), "job.json", arena, root));
    return scenario_read(root, arena, out);
}

static Arena pools; // of test_cluster and test_pool

Cluster test_cluster(const Pool *pool) {
    Pool *own = ARENA_NEW(&pools, Pool);
    *own = *pool;
    return cluster_of_pools("made-up", own, 1, &(ClusterNetwork){0});
}

Pool *test_pool(Cluster *cluster) {
    return cluster_own_pools(cluster, &pools);
}

const char *scenario_text(Arena *arena, const char *model, const char *cluster,
                          const char *training, const char *parallel) {
    return arena_printf(
        arena,
        "{\"schema\": 1, \"model\": %s, \"cluster\": %s, \"training\": %s, \"parallel\": %s}",
        model, cluster, training, parallel ? parallel : "null");
}

void report_difference(const Status *status, const char *sentence, const char *file, int line) {
    if (status->code == STATUS_INVALID && strcmp(status->text, sentence) == 0) return;
    fprintf(stderr, "%s:%d: expected 2: %s\n%s:%d: found    %d: %s\n", file, line, sentence, file,
            line, status->code, status->code == STATUS_OK ? "" : status->text);
}

Status without_rule(Status status) {
    char *rule = strstr(status.text, " (rule ");
    if (rule && strstr(rule, "/") && strstr(rule, "@") &&
        status.text[strlen(status.text) - 1] == ')')
        *rule = '\0';
    return status;
}
