#include "plan/plan.h"

#include "config/model/model_front.h"
#include "plan/layer_plans.h"
#include "plan/rule_check.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char *const PLAN_ORDER_NAMES[NUM_PLAN_ORDERS + 1] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp",
                                                           NULL};

static int value_or(int given, int otherwise) {
    return given == ABSENT ? otherwise : given;
}

int plan_default_modules(const Scenario *scenario) {
    return scenario->execution.stack.training.selective_per_operator ? 0 : MODULE_CORE_ATTN;
}

// Layers of chunk c by the contract's default (header).
static int default_num_layers(int num_layers, int num_chunks, int c) {
    if (num_layers % num_chunks == 0) return num_layers / num_chunks;
    if ((num_layers + 2) % num_chunks == 0)
        return (num_layers + 2) / num_chunks - (c == 0) - (c == num_chunks - 1);
    return num_layers / num_chunks + (c >= 1 && c <= num_layers % num_chunks);
}

Status plan_default_chunks(const Model *model, int num_chunks, Arena *arena,
                           const PlanChunk **out) {
    const int own_layers = model_own_layers(model);
    if (num_chunks > own_layers + 2)
        return status_error(STATUS_INVALID, "%d chunks are more than num_hidden_layers %d + 2",
                            num_chunks, own_layers);
    PlanChunk *chunks = ARENA_ARRAY(arena, num_chunks, PlanChunk);
    int first_layer = 0;
    for (int c = 0; c < num_chunks; c++) {
        int num_layers = default_num_layers(own_layers, num_chunks, c);
        if (c == 0) num_layers += model->num_front_layers;
        chunks[c] = (PlanChunk){.first_layer = first_layer, .num_layers = num_layers};
        first_layer += num_layers;
    }
    assert(first_layer == model->num_layers);
    chunks[0].embedding = true;
    chunks[num_chunks - 1].loss = true;
    chunks[num_chunks - 1].num_mtp = model->num_mtp_layers;
    *out = chunks;
    return status_ok();
}

const PlanChunk *plan_dual_chunks(const PlanChunk *stages, int pp, Arena *arena) {
    PlanChunk *chunks = ARENA_ARRAY(arena, 2 * pp, PlanChunk);
    for (int c = 0; c < 2 * pp; c++) chunks[c] = stages[c % pp];
    return chunks;
}

static Status num_stages_check(const Scenario *scenario, const Plan *plan) {
    const int given = scenario->parallel.num_stages;
    if (given == plan_num_stages(plan)) return status_ok();
    if (plan_is_dual(plan))
        return status_at(STATUS_INVALID, scenario->file, "parallel.stages",
                         "%d entries; expected pp %d, of which schedule %s holds two copies", given,
                         plan->pp, plan_schedule_name(plan));
    return status_at(STATUS_INVALID, scenario->file, "parallel.stages",
                     "%d entries; expected pp %d x vpp %d = %d", given, plan->pp, plan->vpp,
                     plan->num_chunks);
}

// The chunks of a list `stages`. Where no entry names MTP layers they are with the loss.
static Status stages_to_chunks(const Scenario *scenario, Arena *arena, Plan *plan) {
    const ParallelSpec *spec = &scenario->parallel;
    TRY(num_stages_check(scenario, plan));
    PlanChunk *chunks = ARENA_ARRAY(arena, spec->num_stages, PlanChunk);
    int num_layers = 0, num_mtp = 0, loss = 0;
    for (int c = 0; c < spec->num_stages; c++) {
        const StageSpec *stage = &spec->stages[c];
        chunks[c] = (PlanChunk){.first_layer = num_layers,
                                .num_layers = stage->layers,
                                .embedding = stage->embedding,
                                // A layout may name a place for MTP layers that the model lacks.
                                .num_mtp = scenario->model.num_mtp_layers ? stage->mtp : 0,
                                .loss = stage->loss};
        num_layers += stage->layers;
        num_mtp += chunks[c].num_mtp;
        if (stage->loss) loss = c;
    }
    if (num_mtp == 0) num_mtp = chunks[loss].num_mtp = scenario->model.num_mtp_layers;
    char text[FRONT_LAYERS_TEXT];
    if (num_layers != scenario->model.num_layers)
        return status_at(STATUS_INVALID, scenario->file, "parallel.stages",
                         "the layers add up to %d; expected %s", num_layers,
                         front_layers_text(&scenario->model, text));
    if (num_mtp != scenario->model.num_mtp_layers)
        return status_at(STATUS_INVALID, scenario->file, "parallel.stages",
                         "the MTP layers add up to %d; expected num_nextn_predict_layers %d",
                         num_mtp, scenario->model.num_mtp_layers);
    plan->chunks = chunks;
    return status_ok();
}

// ", or idle_gpus 4": where so many of the cluster's GPUs could be used; text has 40 characters.
static const char *idle_hint(const Scenario *scenario, double used, char *text) {
    const int total = cluster_total_gpus(&scenario->cluster);
    text[0] = '\0';
    if (used >= 1 && used < total && cluster_can_use(&scenario->cluster, (int)used))
        snprintf(text, 40, ", or idle_gpus %d", total - (int)used);
    return text;
}

// Degrees as given, 1 where absent; dp fills the cluster.
static Status degrees_resolve(const Scenario *scenario, Plan *plan) {
    const ParallelSpec *spec = &scenario->parallel;
    plan->tp = value_or(spec->tp, 1);
    plan->pp = value_or(spec->pp, 1);
    plan->cp = value_or(spec->cp, 1);
    plan->ep = value_or(spec->ep, 1);
    plan->etp = value_or(spec->etp, 1);
    plan->micro_batch = value_or(spec->micro_batch, 1);
    double model_ranks = (double)plan->tp * plan->cp * plan->pp;
    int num_gpus = scenario->cluster.num_gpus;
    double dp = num_gpus / model_ranks;
    char text[40];
    if (dp != (int)dp) {
        double below = (int)dp * model_ranks, above = below + model_ranks;
        return status_at(STATUS_INVALID, scenario->file, "parallel",
                         "tp %d x cp %d x pp %d = %.0f does not divide num_gpus %d%s; "
                         "num_gpus %.0f would be filled%s",
                         plan->tp, plan->cp, plan->pp, model_ranks, num_gpus,
                         scenario->cluster.idle_gpus ? " that its nodes can use alike" : "",
                         below > 0 ? below : above, idle_hint(scenario, below, text));
    }
    if (spec->dp != ABSENT && spec->dp != (int)dp)
        return status_at(
            STATUS_INVALID, scenario->file, "parallel.dp",
            "tp %d x cp %d x dp %d x pp %d = %.0f, but num_gpus is %d; expected dp %d%s", plan->tp,
            plan->cp, spec->dp, plan->pp, model_ranks * spec->dp, num_gpus, (int)dp,
            idle_hint(scenario, model_ranks * spec->dp, text));
    plan->dp = (int)dp;
    return status_ok();
}

static Placement placement_of(const Plan *plan) {
    if (plan->schedule_file) return plan->schedule_file->placement;
    return schedule_find(plan->schedule)->placement;
}

bool plan_is_v(const Plan *plan) {
    return plan->pp > 1 && placement_of(plan) == PLACEMENT_V;
}

bool plan_is_dual(const Plan *plan) {
    return plan->pp > 1 && placement_of(plan) == PLACEMENT_DUAL;
}

bool plan_joins_ends(const Plan *plan) {
    return plan_chunk_rank(plan, plan->pp * plan->vpp - 1) == 0;
}

int plan_num_layers(const Plan *plan) {
    int sum = 0;
    for (int c = 0; c < plan_num_stages(plan); c++) sum += plan->chunks[c].num_layers;
    return sum;
}

Plan plan_copy(const Plan *plan, Arena *arena) {
    Plan copy = *plan;
    size_t size = (size_t)plan->num_chunks * sizeof *plan->chunks;
    copy.chunks = arena_copy(arena, plan->chunks, size);
    if (plan->node_order)
        copy.node_order =
            node_order_new(plan->node_order->node, plan->node_order->num_nodes, arena);
    if (plan->schedule_file) copy.schedule_file = schedule_file_copy(plan->schedule_file, arena);
    if (plan->layers) copy.layers = layer_plans_copy(plan->layers, copy.chunks, arena);
    return copy;
}

const char *plan_schedule_name(const Plan *plan) {
    return plan->schedule_file ? plan->schedule_file->name : SCHEDULE_NAMES[plan->schedule];
}

int plan_num_stages(const Plan *plan) {
    return plan_is_dual(plan) ? plan->pp : plan->pp * plan->vpp;
}

int64_t plan_chunk_microbatches(const Plan *plan) {
    return plan_is_dual(plan) ? plan->num_microbatches / 2 : plan->num_microbatches;
}

static bool goes_back(const Plan *plan) {
    return plan_is_v(plan) || plan_is_dual(plan);
}

int64_t plan_stage_gpus(const Plan *plan) {
    return (int64_t)plan->tp * plan->cp * plan->dp;
}

int plan_rank_pool(const Cluster *cluster, const Plan *plan, int rank) {
    return cluster_pool_of_gpu(cluster, rank * plan_stage_gpus(plan));
}

Machines plan_rank_machines(const Cluster *cluster, const Plan *plan, int rank) {
    return cluster_machines(cluster, plan_rank_pool(cluster, plan, rank));
}

int plan_chunk_rank(const Plan *plan, int chunk) {
    return goes_back(plan) && chunk >= plan->pp ? 2 * plan->pp - 1 - chunk : chunk % plan->pp;
}

int plan_all_chunks(const Plan *plan) {
    return plan->num_chunks + (plan->vocab_barriers ? NUM_VOCAB_CHUNKS : 0);
}

int plan_rank_chunks(const Plan *plan) {
    return plan->vpp + (plan->vocab_barriers ? NUM_VOCAB_CHUNKS : 0);
}

int plan_vocab_barriers(const Scenario *scenario, int pp) {
    if (scenario->parallel.vocab_parallel != 1 || pp == 1) return 0;
    return value_or(scenario->parallel.vocab_barriers, 1);
}

int plan_rank_chunk(const Plan *plan, int rank, int k) {
    if (k >= plan->vpp) return plan->num_chunks + k - plan->vpp;
    return goes_back(plan) && k > 0 ? 2 * plan->pp - 1 - rank : k * plan->pp + rank;
}

int plan_fullest_rank(const Plan *plan) {
    int most = 0;
    for (int r = 0; r < plan->pp; r++) {
        int num_layers = 0;
        for (int k = 0; k < plan->vpp; k++)
            num_layers += plan->chunks[plan_rank_chunk(plan, r, k)].num_layers;
        if (num_layers > most) most = num_layers;
    }
    return most;
}

static Status schedule_resolve(const Scenario *scenario, Arena *arena, Plan *plan) {
    const ParallelSpec *spec = &scenario->parallel;
    if (spec->schedule == ABSENT) {
        plan->vpp = value_or(spec->vpp, 1);
        plan->schedule = schedule_default(plan->vpp);
        return status_ok();
    }
    plan->schedule = (ScheduleKind)spec->schedule;
    if (plan->schedule == SCHEDULE_FILE) {
        ScheduleFile *file = ARENA_NEW(arena, ScheduleFile);
        TRY(schedule_file_read(scenario->file, spec->schedule_file, arena, file));
        plan->schedule_file = file;
    }
    plan->vpp = value_or(spec->vpp, placement_of(plan) == PLACEMENT_ROUND ? 1 : 2);
    if (plan->vpp == 1) plan->schedule = schedule_with_chunks(plan->schedule, 1);
    return status_ok();
}

// Replaces the order that was read by one that was checked.
static Status schedule_bind(Arena *arena, Plan *plan) {
    if (!plan->schedule_file) return status_ok();
    ScheduleFile *file = ARENA_NEW(arena, ScheduleFile);
    TRY(schedule_file_bind(plan->schedule_file, plan, arena, file));
    plan->schedule_file = file;
    return status_ok();
}

int plan_zero_group(const Scenario *scenario, int dp, int cp) {
    const int stated = scenario->parallel.zero_group;
    if (stated == ABSENT) return dp * cp;
    return stated == dp && scenario->execution.stack.training.shards_over_cp ? dp * cp : stated;
}

int plan_zero_stage(const Scenario *scenario, int dp, int cp) {
    const Stack *stack = &scenario->execution.stack;
    if (stack->training.sharding == SHARDING_PER_PARAMETER && dp * cp == 1) return 0;
    return value_or(scenario->parallel.zero_stage, stack->defaults.default_zero_stage);
}

bool plan_scatters_gradients(const Plan *plan) {
    return plan->zero_stage >= 2 && !plan->reduces_once;
}

bool plan_exchanges_shards(const Plan *plan) {
    return plan->zero_stage == 3 || plan_scatters_gradients(plan);
}

// The only backward of a step reduces what it makes.
static bool reduces_once(const Scenario *scenario, const Plan *plan) {
    const int when = scenario->execution.grad_reduce;
    if (plan->num_microbatches <= 1) return false;
    return when == GRAD_REDUCE_STEP || (when == GRAD_REDUCE_PIPELINE && plan->pp > 1);
}

int plan_zero_level(const Plan *plan) {
    if (plan->zero_stage < 3) return plan->zero_stage;
    return plan->reshard_after_forward ? ZERO_LEVEL_RESHARDED : ZERO_LEVEL_KEPT;
}

void plan_set_zero_level(Plan *plan, int level) {
    plan->zero_stage = level < ZERO_LEVEL_KEPT ? level : 3;
    if (level >= ZERO_LEVEL_KEPT) plan->reshard_after_forward = level == ZERO_LEVEL_RESHARDED;
}

bool plan_splits_sequence(const Scenario *scenario, int tp) {
    return value_or(scenario->parallel.sequence_parallel,
                    tp > 1 && scenario->execution.stack.defaults.sequence_parallel);
}

static void options_resolve(const Scenario *scenario, Plan *plan) {
    const ParallelSpec *spec = &scenario->parallel;
    plan->sequence_parallel = plan_splits_sequence(scenario, plan->tp);
    plan->zero_stage = plan_zero_stage(scenario, plan->dp, plan->cp);
    plan->zero_group = plan_zero_group(scenario, plan->dp, plan->cp);
    plan->reshard_after_forward = value_or(spec->reshard_after_forward, true);
    plan->recompute = (Recompute)value_or(spec->recompute, RECOMPUTE_NONE);
    if (plan->recompute == RECOMPUTE_SELECTIVE)
        plan->recompute_modules = value_or(spec->recompute_modules, plan_default_modules(scenario));
    plan->recompute_layers = spec->recompute_layers;
    plan->cp_method = (CpMethod)value_or(spec->cp_method, CP_RING);
    plan->vocab_barriers = plan_vocab_barriers(scenario, plan->pp);
}

static Status chunks_resolve(const Scenario *scenario, Arena *arena, Plan *plan) {
    TRY(plan_check_chunks(scenario, plan));
    plan->num_chunks = plan->pp * plan->vpp;
    if (scenario->parallel.stages)
        TRY(stages_to_chunks(scenario, arena, plan));
    else
        TRY(plan_default_chunks(&scenario->model, plan_num_stages(plan), arena, &plan->chunks));
    if (plan_is_dual(plan)) plan->chunks = plan_dual_chunks(plan->chunks, plan->pp, arena);
    return status_ok();
}

// "1, 2, 4, 8": what tp can be with this model.
static const char *legal_tps(const Scenario *scenario, Arena *arena) {
    const char *list = "";
    for (int tp = 1; tp <= model_mixer(&scenario->model)->num_heads; tp++)
        if (plan_check_tp(scenario, &(Plan){.tp = tp}).code == STATUS_OK)
            list = arena_printf(arena, "%s%s%d", list, tp > 1 ? ", " : "", tp);
    return list;
}

// What no plan can be, and where tp is what it refuses, the values it could have.
static Status degrees_check(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const Status status = plan_check_degrees(scenario, plan);
    if (status.code == STATUS_OK || status.reason != REASON_TENSOR_PARALLEL) return status;
    return status_because(status_error(status.code, "%s; expected one of %s", status.text,
                                       legal_tps(scenario, arena)),
                          REASON_TENSOR_PARALLEL_VALUES);
}

Status plan_order_find(const Scenario *scenario, PlanOrder *out) {
    const char *name = scenario->parallel.order;
    *out = ORDER_DP_PP;
    for (int i = 0; name && i < NUM_PLAN_ORDERS; i++) {
        if (strcmp(name, PLAN_ORDER_NAMES[i]) != 0) continue;
        *out = (PlanOrder)i;
        return status_ok();
    }
    if (!name) return status_ok();
    return status_at(STATUS_INVALID, scenario->file, "parallel.order",
                     "%s is an order that neither Megatron-LM nor TorchTitan nor DeepSpeed can "
                     "number ranks in; expected %s, or %s (Megatron-LM's --use-tp-pp-dp-mapping)",
                     name, PLAN_ORDER_NAMES[ORDER_DP_PP], PLAN_ORDER_NAMES[ORDER_PP_DP]);
}

Status plan_resolve(const Scenario *scenario, Arena *arena, Plan *out) {
    Plan plan = {0};
    TRY(degrees_resolve(scenario, &plan));
    TRY(schedule_resolve(scenario, arena, &plan));
    options_resolve(scenario, &plan);
    TRY(plan_order_find(scenario, &plan.order));
    TRY(chunks_resolve(scenario, arena, &plan));
    TRY(degrees_check(scenario, &plan, arena));
    plan_derive(scenario, &plan);
    TRY(plan_check_rules(scenario, &plan, arena));
    TRY(plan_check_supported(scenario, &plan));
    TRY(schedule_bind(arena, &plan));
    TRY(plan_resolve_layers(scenario, arena, &plan));
    *out = plan;
    return status_ok();
}

void plan_derive(const Scenario *scenario, Plan *plan) {
    int64_t stage_ranks = (int64_t)plan->tp * plan->cp * plan->dp;
    plan->idle_gpus = scenario->cluster.idle_gpus;
    plan->expert_dp = (int)(stage_ranks / ((int64_t)plan->ep * plan->etp));
    plan->num_microbatches =
        scenario->training.global_batch / ((int64_t)plan->micro_batch * plan->dp);
    plan->reduces_once = reduces_once(scenario, plan);
    // Of several pools none is asked: stages that alternate lie in one (plan/plan_check.c).
    plan->domain_gpus = scenario->cluster.pools[0].domain_gpus;
    const ClusterNetwork *network = &scenario->cluster.network;
    plan->node_order = network->order ? network->order : network->placed;
}
