// What a complete plan must be whatever runs it, cheapest and most often broken first. Nothing is
// allocated and, while all is well, nothing is formatted: the planner calls this for every
// proposal.
#include "config/model/mixer.h"
#include "config/model/model_front.h"
#include "plan/plan.h"

// Work items (micro-batches x chunks) of one step: a Program of that many fits in a gigabyte.
enum { MAX_WORK_ITEMS = 1 << 21 };

// Images of a micro-batch, which are an int.
enum { MAX_IMAGES = 1 << 30 };

#define REFUSE(path, ...) return status_at(STATUS_INVALID, scenario->file, path, __VA_ARGS__)

static Status gpus_check(const Scenario *scenario, const Plan *plan) {
    double ranks = (double)plan->tp * plan->cp * plan->dp * plan->pp;
    if (ranks != scenario->cluster.num_gpus)
        REFUSE("parallel", "tp %d x cp %d x dp %d x pp %d = %.0f, but num_gpus is %d", plan->tp,
               plan->cp, plan->dp, plan->pp, ranks, scenario->cluster.num_gpus);
    return status_ok();
}

// Ranks of a stage meet inside its layers, so a stage is of one kind of machine.
static Status groups_check(const Scenario *scenario, const Plan *plan) {
    const Cluster *cluster = &scenario->cluster;
    if (cluster->num_pools == 1) return status_ok();
    const int64_t stage_gpus = plan_stage_gpus(plan);
    for (int i = 0; i < cluster->num_pools; i++) {
        if (cluster->pools[i].num_gpus % stage_gpus == 0) continue;
        char path[64];
        snprintf(path, sizeof path, "cluster.groups[%d].num_gpus", i);
        REFUSE(path,
               "%d is not a multiple of tp %d x cp %d x dp %d: replicas on several groups of "
               "different machines are legal, but not supported yet; expected whole pipeline "
               "stages in each of the groups",
               cluster->pools[i].num_gpus, plan->tp, plan->cp, plan->dp);
    }
    if (plan->vocab_barriers)
        REFUSE("parallel.vocab_parallel",
               "true on groups of different machines is legal, but not supported yet");
    return status_ok();
}

static Status batch_check(const Scenario *scenario, const Plan *plan) {
    int64_t batch = scenario->training.global_batch;
    int64_t wave = (int64_t)plan->micro_batch * plan->dp;
    if (batch % wave != 0)
        REFUSE("training.global_batch",
               "%lld is not a multiple of micro_batch %d x data-parallel %d", (long long)batch,
               plan->micro_batch, plan->dp);
    int64_t num_chunks = (int64_t)plan->pp * plan->vpp, most = MAX_WORK_ITEMS / num_chunks;
    if (batch / wave > most)
        REFUSE("training.global_batch",
               "%lld micro-batches a replica are legal, but not supported yet; expected at most "
               "%lld with %lld chunks",
               (long long)(batch / wave), (long long)most, (long long)num_chunks);
    return status_ok();
}

Status plan_check_chunks(const Scenario *scenario, const Plan *plan) {
    const int num_layers = model_own_layers(&scenario->model);
    const double num_chunks = (double)plan->pp * plan->vpp;
    if (plan_is_dual(plan)) {
        if (plan->pp > num_layers + 2)
            REFUSE("parallel.pp", "%d is more than num_hidden_layers %d + 2", plan->pp, num_layers);
    } else if (num_chunks > num_layers + 2) {
        REFUSE("parallel.pp", "pp %d x vpp %d = %.0f is more than num_hidden_layers %d + 2",
               plan->pp, plan->vpp, num_chunks, num_layers);
    }
    return status_ok();
}

// Dual pipelines have a mirror of every rank and as many micro-batches each; DualPipe has at least
// two of these a rank (deepseek-ai/DualPipe, dualpipe/dualpipe.py, step).
static Status dual_check(const Scenario *scenario, const Plan *plan) {
    if (!plan_is_dual(plan)) return status_ok();
    const char *schedule = plan_schedule_name(plan);
    const Schedule *row = schedule_find(plan->schedule);
    const int64_t least = row ? (int64_t)row->least_microbatches * plan->pp : 2;
    const int64_t num = scenario->training.global_batch / ((int64_t)plan->micro_batch * plan->dp);
    if (plan->pp % 2 != 0)
        REFUSE("parallel.pp", "%d is odd; schedule %s runs on an even number of ranks", plan->pp,
               schedule);
    if (num % 2 != 0 || num < least)
        REFUSE("training.global_batch",
               "%lld micro-batches a replica; schedule %s takes an even number from %lld on",
               (long long)num, schedule, (long long)least);
    return status_ok();
}

static Status pipeline_check(const Scenario *scenario, const Plan *plan) {
    TRY(plan_check_chunks(scenario, plan));
    const char *schedule = plan_schedule_name(plan);
    const Schedule *row = schedule_find(plan->schedule);
    if (!row && plan->vpp != 2 && (plan_is_v(plan) || plan_is_dual(plan)))
        REFUSE("parallel.vpp",
               "%d, but the placement in %s holds 2 chunks a rank; expected 2 or absent", plan->vpp,
               plan->schedule_file->file);
    if (row && row->num_chunks == 1 && plan->vpp > 1)
        REFUSE("parallel.vpp",
               "%d, but schedule %s holds 1 chunk a rank; expected 1 or schedule %s", plan->vpp,
               schedule, SCHEDULE_NAMES[schedule_default(2)]);
    if (row && row->num_chunks > 1 && plan->vpp != row->num_chunks && plan->pp > 1)
        REFUSE("parallel.vpp", "%d, but schedule %s holds %d chunks a rank; expected %d or absent",
               plan->vpp, schedule, row->num_chunks, row->num_chunks);
    return dual_check(scenario, plan);
}

static Status mixer_tp_check(const Scenario *scenario, const Mixer *mixer, int tp) {
    char text[MIXER_CONFLICT];
    if (!mixer_row(mixer->kind)->tp_conflict(mixer, tp, text)) return status_ok();
    REFUSE("parallel.tp", "%s", text);
}

static Status ffn_tp_check(const Scenario *scenario, const FeedForward *ffn, int tp) {
    if (ffn->num_experts == 0 && ffn->intermediate_size % tp != 0)
        REFUSE("parallel.tp", "%d does not divide intermediate_size %d", tp,
               ffn->intermediate_size);
    if (ffn->shared_intermediate_size % tp != 0)
        REFUSE("parallel.tp", "%d does not divide shared_expert_intermediate_size %d", tp,
               ffn->shared_intermediate_size);
    return status_ok();
}

// Of every kind of layer; a front that tp does not divide is whole on every rank
// (workload/pass/front.h).
static Status tp_check(const Scenario *scenario, const Plan *plan) {
    const Model *model = &scenario->model;
    const int tp = plan->tp;
    if (tp == 1) return status_ok();
    for (int k = 0; k < model->num_kinds; k++)
        if (!model->kinds[k].front) TRY(mixer_tp_check(scenario, &model->kinds[k].mixer, tp));
    if (model->hidden_size % tp != 0)
        REFUSE("parallel.tp", "%d does not divide hidden_size %d", tp, model->hidden_size);
    for (int k = 0; k < model->num_kinds; k++)
        if (!model->kinds[k].front) TRY(ffn_tp_check(scenario, &model->kinds[k].ffn, tp));
    return status_ok();
}

Status plan_check_tp(const Scenario *scenario, const Plan *plan) {
    return status_because(tp_check(scenario, plan), REASON_TENSOR_PARALLEL);
}

// A tower that tp does not divide is whole on every rank (workload/pass/front.h).
static Status images_check(const Scenario *scenario, const Plan *plan) {
    const int64_t images = scenario->training.images_per_sequence;
    if (images * plan->micro_batch > MAX_IMAGES)
        REFUSE("training.images_per_sequence",
               "%lld in each of micro_batch %d sequences is legal, but not supported yet; expected "
               "at most %d in all",
               (long long)images, plan->micro_batch, MAX_IMAGES);
    return status_ok();
}

// An encoder is split as the decoder is.
static Status front_check(const Scenario *scenario, const Plan *plan) {
    const ModelFront *front = scenario->model.front;
    const long long tokens = (long long)scenario->training.encoder_seq_len;
    if (!front || front->kind != FRONT_ENCODER) return images_check(scenario, plan);
    if (plan->pp > 1 || plan->cp > 1)
        REFUSE(plan->pp > 1 ? "parallel.pp" : "parallel.cp",
               "%d with an encoder and a decoder is legal, but not supported yet; expected 1",
               plan->pp > 1 ? plan->pp : plan->cp);
    if (plan->sequence_parallel && tokens % plan->tp != 0)
        REFUSE("training.encoder_seq_len", "%lld is not a multiple of tp %d", tokens, plan->tp);
    return status_ok();
}

// Ranks of cp that trade tokens of a sequence for heads, whole ones.
static Status heads_check(const Scenario *scenario, const Plan *plan) {
    const Model *model = &scenario->model;
    if (plan->cp == 1) return status_ok();
    for (int k = 0; k < model->num_kinds; k++) {
        const Mixer *mixer = &model->kinds[k].mixer;
        const MixerRow *row = mixer_row(mixer->kind);
        char text[MIXER_CONFLICT];
        if (model->kinds[k].front) continue;
        if (!row->always_trades_heads && plan->cp_method != CP_ULYSSES) continue;
        if (row->heads_conflict(mixer, plan->tp, plan->cp, text)) REFUSE("parallel.cp", "%s", text);
    }
    return status_ok();
}

// How one sequence is cut: over cp (each rank an early and a late part where causal, so that all
// have the same work), then over tp outside the attention.
static Status sequence_check(const Scenario *scenario, const Plan *plan) {
    const long long seq_len = (long long)scenario->training.seq_len;
    const bool paired = scenario->training.causal && plan->cp_method != CP_ULYSSES;
    if (plan->cp > 1 && paired && seq_len % (2LL * plan->cp) != 0)
        REFUSE("training.seq_len", "%lld is not a multiple of 2 x cp %d", seq_len, plan->cp);
    if (seq_len % plan->cp != 0)
        REFUSE("training.seq_len", "%lld is not a multiple of cp %d", seq_len, plan->cp);
    if (plan->sequence_parallel && seq_len / plan->cp % plan->tp != 0)
        REFUSE("training.seq_len",
               "%lld / cp %d is not a multiple of tp %d; expected that, or sequence_parallel false",
               seq_len, plan->cp, plan->tp);
    return status_ok();
}

static Status ffn_experts_check(const Scenario *scenario, const FeedForward *ffn, int ep, int etp) {
    if (ffn->num_experts % ep != 0)
        REFUSE("parallel.ep", "%d does not divide num_experts %d", ep, ffn->num_experts);
    if (ffn->moe_intermediate_size % etp != 0)
        REFUSE("parallel.etp", "%d does not divide moe_intermediate_size %d", etp,
               ffn->moe_intermediate_size);
    return status_ok();
}

static Status experts_check(const Scenario *scenario, const Plan *plan) {
    const Model *model = &scenario->model;
    const int ep = plan->ep, etp = plan->etp;
    if (ep == 1 && etp == 1) return status_ok();
    if (!model_is_moe(model))
        REFUSE(ep > 1 ? "parallel.ep" : "parallel.etp", "%d, but %s has no experts; expected 1",
               ep > 1 ? ep : etp, model->name);
    for (int k = 0; k < model->num_kinds; k++)
        if (kind_is_moe(&model->kinds[k]))
            TRY(ffn_experts_check(scenario, &model->kinds[k].ffn, ep, etp));
    int64_t stage_ranks = (int64_t)plan->tp * plan->cp * plan->dp;
    if (stage_ranks % ((int64_t)ep * etp) != 0)
        REFUSE("parallel.ep", "ep %d x etp %d does not divide tp %d x cp %d x dp %d = %lld", ep,
               etp, plan->tp, plan->cp, plan->dp, (long long)stage_ranks);
    return status_ok();
}

// Groups of ranks lie in the blocks of a stage, or take the same place of each
// (workload/pass/group.h).
static Status order_check(const Scenario *scenario, const Plan *plan) {
    if (plan->order == ORDER_DP_PP || plan->pp == 1) return status_ok();
    if (scenario->cluster.num_pools > 1)
        REFUSE("parallel.order",
               "tp-cp-ep-pp-dp on groups of different machines would have every stage in all of "
               "them; expected tp-cp-ep-dp-pp");
    if (model_is_moe(&scenario->model) && plan->ep * plan->etp != plan->tp * plan->cp)
        REFUSE("parallel.order",
               "tp-cp-ep-pp-dp where ep x etp %d is not tp x cp %d is legal, but not supported yet",
               plan->ep * plan->etp, plan->tp * plan->cp);
    const Pool *pool = cluster_only_pool(&scenario->cluster);
    const int block = plan->tp * plan->cp, domain = pool->domain_gpus;
    const bool whole = domain % block == 0 || block % domain == 0;
    if (plan->cp > 1 && plan->dp > 1 && (scenario->cluster.network.sites || pool->wires || !whole))
        REFUSE("parallel.order",
               "tp-cp-ep-pp-dp with cp %d and dp %d is legal, but not supported yet on nodes of "
               "several networks, on domains without a switch, and where neither of tp x cp %d and "
               "domain_gpus %d divides the other; expected cp 1, or tp-cp-ep-dp-pp",
               plan->cp, plan->dp, block, domain);
    return status_ok();
}

static Status sharding_check(const Scenario *scenario, const Plan *plan) {
    if ((int64_t)plan->dp * plan->cp % plan->zero_group != 0)
        REFUSE("parallel.zero_group", "%d does not divide dp %d x cp %d", plan->zero_group,
               plan->dp, plan->cp);
    char text[FRONT_LAYERS_TEXT];
    if (plan->recompute_layers > scenario->model.num_layers)
        REFUSE("parallel.recompute_layers", "%d is more than %s", plan->recompute_layers,
               front_layers_text(&scenario->model, text));
    return status_ok();
}

// Passes over the vocabulary go with one output layer, behind the last chunk.
static Status vocab_check(const Scenario *scenario, const Plan *plan) {
    if (!plan->vocab_barriers) return status_ok();
    if (scenario->model.num_mtp_layers > 0)
        REFUSE("parallel.vocab_parallel",
               "true with num_nextn_predict_layers %d is legal, but not supported yet; expected "
               "false",
               scenario->model.num_mtp_layers);
    if (!plan->chunks) return status_ok(); // a shape without chunks yet
    if (!plan->chunks[0].embedding || !plan->chunks[plan->num_chunks - 1].loss)
        REFUSE("parallel.vocab_parallel",
               "true with a first stage without embedding or a last without loss is legal, but "
               "not supported yet");
    return status_ok();
}

Status plan_check_degrees(const Scenario *scenario, const Plan *plan) {
    TRY(gpus_check(scenario, plan));
    TRY(groups_check(scenario, plan));
    TRY(batch_check(scenario, plan));
    TRY(pipeline_check(scenario, plan));
    TRY(plan_check_tp(scenario, plan));
    TRY(sequence_check(scenario, plan));
    TRY(front_check(scenario, plan));
    TRY(experts_check(scenario, plan));
    return sharding_check(scenario, plan);
}

Status plan_check_supported(const Scenario *scenario, const Plan *plan) {
    TRY(heads_check(scenario, plan));
    TRY(order_check(scenario, plan));
    return vocab_check(scenario, plan);
}

Status plan_check(const Scenario *scenario, const Plan *plan) {
    TRY(plan_check_degrees(scenario, plan));
    return plan_check_supported(scenario, plan);
}
