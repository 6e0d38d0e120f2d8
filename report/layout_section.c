#include "config/cluster/node_order.h"
#include "config/model/model_front.h"
#include "plan/rank_place.h"
#include "report/plan_sections.h"
#include "workload/pass/front.h"

static const char *stage_layers(const Plan *plan, int stage, Arena *arena) {
    const char *text = "";
    for (int k = 0; k < plan->vpp; k++) {
        const PlanChunk *chunk = &plan->chunks[plan_rank_chunk(plan, stage, k)];
        if (chunk->num_layers == 0) continue;
        const int last = chunk->first_layer + chunk->num_layers - 1;
        const char *join = text[0] ? ", " : "";
        text = last == chunk->first_layer
                   ? arena_printf(arena, "%s%s%d", text, join, last)
                   : arena_printf(arena, "%s%s%d-%d", text, join, chunk->first_layer, last);
    }
    return text[0] ? text : "none";
}

static const char *stage_extras(const Plan *plan, int stage, Arena *arena) {
    const char *text = "";
    if (plan->vocab_barriers) return "a share of embedding and loss";
    for (int k = 0; k < plan->vpp; k++) {
        const PlanChunk *chunk = &plan->chunks[plan_rank_chunk(plan, stage, k)];
        if (chunk->embedding) text = arena_printf(arena, "%s%sembedding", text, *text ? ", " : "");
        if (chunk->num_mtp)
            text = arena_printf(arena, "%s%s%d MTP", text, *text ? ", " : "", chunk->num_mtp);
        if (chunk->loss) text = arena_printf(arena, "%s%sloss", text, *text ? ", " : "");
    }
    return text;
}

// Where a GPU stands.
typedef struct {
    int node, index; // of the GPU in it
} GpuPlace;

static GpuPlace place_of_gpu(const Cluster *cluster, int64_t gpu) {
    const int pool = cluster_pool_of_gpu(cluster, gpu);
    const int64_t in_pool = gpu - cluster_pool_first_gpu(cluster, pool);
    return (GpuPlace){
        .node = cluster_node_of_gpu(cluster, gpu),
        .index = (int)(in_pool % cluster->pools[pool].gpus_per_node),
    };
}

// node, GPU, rank, stage, dp, cp, tp: within a stage tp is the fastest, then cp, then dp.
static void gpu_add(cJSON *gpus, const Cluster *cluster, const Plan *plan, int64_t rank) {
    const GpuPlace place = place_of_gpu(cluster, cluster_gpu_of_rank(cluster, rank));
    const RankPlace own = plan_rank_place(plan, rank);
    const int cells[] = {
        place.node,
        place.index,
        (int)rank,
        own.stage,
        (int)(own.lane / (plan->tp * plan->cp)),
        (int)(own.lane / plan->tp % plan->cp),
        (int)(own.lane % plan->tp),
    };
    cJSON_AddItemToArray(gpus, cJSON_CreateIntArray(cells, sizeof cells / sizeof *cells));
}

// Of the largest nodes there are.
static int most_node_gpus(const Cluster *cluster) {
    int most = 0;
    for (int i = 0; i < cluster->num_pools; i++)
        if (cluster->pools[i].gpus_per_node > most) most = cluster->pools[i].gpus_per_node;
    return most;
}

static void gpus_draw(cJSON *section, const PlanView *view, Arena *arena) {
    const Plan *plan = view->plan;
    Cluster cluster = view->scenario->cluster;
    if (plan->node_order) cluster.network.order = plan->node_order;
    const int64_t of_stage = plan_stage_gpus(plan), num_gpus = of_stage * plan->pp;
    const int node_gpus = most_node_gpus(&cluster);
    int64_t shown = of_stage;
    if (num_gpus > LAYOUT_MAX_GPUS) {
        shown = LAYOUT_MAX_GPUS / plan->pp;
        shown -= shown % node_gpus; // whole nodes
        if (shown < node_gpus) shown = node_gpus;
        if (shown > of_stage) shown = of_stage;
    }
    cJSON *data = section_data(section);
    cJSON_AddNumberToObject(data, "gpus_per_node", node_gpus);
    cJSON_AddNumberToObject(data, "pp", plan->pp);
    cJSON_AddNumberToObject(data, "stage_gpus", (double)of_stage);
    cJSON_AddNumberToObject(data, "stage_gpus_drawn", (double)shown);
    cJSON *gpus = cJSON_AddArrayToObject(data, "gpus");
    for (int stage = 0; stage < plan->pp; stage++)
        for (int64_t i = 0; i < shown; i++)
            gpu_add(gpus, &cluster, plan, plan_rank_at(plan, stage, i));
    if (shown < of_stage)
        section_add_text(section, arena_printf(arena,
                                               "Drawn are the first %lld GPUs of each stage's "
                                               "%lld; the others repeat them.",
                                               (long long)shown, (long long)of_stage));
}

// Which layers stand before the text's, and how they are split where that is otherwise.
static const char *front_text(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const Model *model = &scenario->model;
    if (model->num_front_layers == 0) return "";
    const int last = model->num_front_layers - 1;
    if (model->front->kind == FRONT_ENCODER)
        return arena_printf(arena, " Layers 0-%d are the encoder's.", last);
    const int tp = front_split(model, plan).tp;
    return arena_printf(arena,
                        " Layers 0-%d are the tower's, which works on images: each is split over "
                        "%d GPU%s, and over no cp.",
                        last, tp, tp > 1 ? "s" : "");
}

static const char *layout_text(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const char *experts =
        plan->ep > 1
            ? arena_printf(arena, ", experts spread over %d of a stage's GPUs (ep)", plan->ep)
            : "";
    const char *ranks =
        plan_stages_alternate(plan)
            ? arena_printf(arena,
                           " Ranks of a stage are blocks of %lld, %d blocks apart (order "
                           "tp-cp-ep-pp-dp).",
                           (long long)plan_block_gpus(plan), plan->pp)
            : "";
    return arena_printf(
        arena,
        "Layers are dealt to %d pipeline stage%s (pp). In a stage each layer is split over %d "
        "GPU%s (tp), each sequence over %d (cp), and %d cop%s (dp) share the batch%s.%s%s",
        plan->pp, plan->pp > 1 ? "s" : "", plan->tp, plan->tp > 1 ? "s" : "", plan->cp, plan->dp,
        plan->dp > 1 ? "ies" : "y", experts, ranks, front_text(scenario, plan, arena));
}

void layout_section(Document *document, const PlanView *view, Arena *arena) {
    static const DocumentColumn columns[] = {
        {"stage", "stage"},     {"first_rank", "ranks from"},
        {"last_rank", "to"},    {"layers", "layers"},
        {"also", "also holds"}, {"tp", "tp"},
        {"cp", "cp"},           {"dp", "dp"},
        {"ep", "ep"},           {"microbatches", "micro-batches"},
    };
    const SectionSpec spec = {
        .id = "layout",
        .title = "Which GPU does what",
        .text = layout_text(view->scenario, view->plan, arena),
        .chart = "layout",
        SECTION_COLUMNS(columns),
    };
    const Plan *plan = view->plan;
    const int64_t last = plan_stage_gpus(plan) - 1;
    cJSON *section = document_section(document, &spec);
    for (int stage = 0; stage < plan->pp; stage++) {
        cJSON *row = section_row(section);
        row_number(row, stage);
        row_number(row, (double)plan_rank_at(plan, stage, 0));
        row_number(row, (double)plan_rank_at(plan, stage, last));
        row_text(row, stage_layers(plan, stage, arena));
        row_text(row, stage_extras(plan, stage, arena));
        row_number(row, plan->tp);
        row_number(row, plan->cp);
        row_number(row, plan->dp);
        row_number(row, plan->ep);
        row_number(row, (double)plan->num_microbatches);
    }
    gpus_draw(section, view, arena);
}
