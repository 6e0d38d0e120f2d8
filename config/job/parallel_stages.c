// The list `stages`: what each chunk of the pipeline holds, in pipeline order.
#include "config/job/parallel.h"

#include "config/model/model.h"

static Status stage_read(const JsonNode *node, Arena *arena, StageSpec *out) {
    static const JsonField FIELDS[] = {
        {"layers", JSON_FIELD_INT, offsetof(StageSpec, layers), 0, MODEL_MAX_LAYERS, NULL, true},
        {"embedding", JSON_FIELD_BOOL, offsetof(StageSpec, embedding), 0, 0, NULL, false},
        {"mtp", JSON_FIELD_INT, offsetof(StageSpec, mtp), 0, MODEL_MAX_LAYERS, NULL, false},
        {"loss", JSON_FIELD_BOOL, offsetof(StageSpec, loss), 0, 0, NULL, false},
    };
    return json_read_object(node, FIELDS, sizeof FIELDS / sizeof *FIELDS, arena, out);
}

// One embedding, before all layers; one loss, after all layers. Where no entry names them they are
// in the first and in the last chunk.
static Status ends_settle(const JsonNode *node, StageSpec *stages, int n) {
    int num_embeddings = 0, num_losses = 0;
    for (int i = 0; i < n; i++) {
        num_embeddings += stages[i].embedding;
        num_losses += stages[i].loss;
    }
    if (num_embeddings > 1)
        return json_error(node, "%d chunks hold the embedding; expected 1", num_embeddings);
    if (num_losses > 1) return json_error(node, "%d chunks hold the loss; expected 1", num_losses);
    if (num_embeddings == 0) stages[0].embedding = true;
    if (num_losses == 0) stages[n - 1].loss = true;
    return status_ok();
}

// Data passes the embedding, the layers, the MTP layers and the loss in this order.
static const char *entry_misplaced(const StageSpec *stages, int n, int *at) {
    bool embedded = false, lost = false, mtp = false;
    for (int i = 0; i < n; i++) {
        *at = i;
        embedded |= stages[i].embedding;
        if (!embedded && (stages[i].layers || stages[i].mtp || stages[i].loss))
            return "comes before the chunk that holds the embedding";
        if (lost && (stages[i].layers || stages[i].mtp))
            return "comes after the chunk that holds the loss";
        if (mtp && stages[i].layers) return "holds layers after a chunk that holds MTP layers";
        mtp |= stages[i].mtp > 0;
        lost |= stages[i].loss;
    }
    return NULL;
}

Status parallel_stages_read(const JsonNode *node, Arena *arena, ParallelSpec *out) {
    if (!json_is_present(node)) return status_ok();
    TRY(json_expect_array(node));
    int n = json_size(node);
    if (n == 0) return json_error(node, "is empty; expected pp x vpp entries");
    if (n > MODEL_MAX_LAYERS + 2)
        return json_error(node, "%d entries; expected at most %d", n, MODEL_MAX_LAYERS + 2);
    StageSpec *stages = ARENA_ARRAY(arena, n, StageSpec);
    int i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, node->item) {
        JsonNode entry = {.file = node->file, .item = item, .parent = node, .index = i};
        TRY(stage_read(&entry, arena, &stages[i++]));
    }
    TRY(ends_settle(node, stages, n));
    const char *misplaced = entry_misplaced(stages, n, &i);
    if (misplaced) {
        JsonNode entry = json_at(node, i);
        return json_error(&entry, "%s", misplaced);
    }
    out->stages = stages;
    out->num_stages = n;
    return status_ok();
}
