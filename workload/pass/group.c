#include "workload/pass/group.h"

#include "plan/layer_plans.h"

const char *const GROUP_NAMES[NUM_GROUPS] = {
    "tp",  "cp",  "dp",          "zero",           "replica", "ep",
    "etp", "edp", "expert-zero", "expert-replica", "layout",  "pp",
};

// The shards of expert weights are spread over as many of the expert replicas as the dense ones
// are over theirs, at most all.
static int expert_zero_size(const Plan *plan) {
    int all = plan->dp * plan->cp;
    if (plan->zero_group >= all) return plan->expert_dp;
    int size = plan->zero_group < plan->expert_dp ? plan->zero_group : plan->expert_dp;
    while (plan->expert_dp % size != 0) size--;
    return size;
}

RankSpan plan_stage_span(const Plan *plan, int stage) {
    const int64_t block = plan_block_gpus(plan);
    RankSpan span = {.first = stage * block, .num = plan_stage_gpus(plan)};
    if (!plan_stages_alternate(plan)) return span;
    span.block = block;
    span.pitch = block * plan->pp;
    return span;
}

// Of ranks that are several in each block, and in several blocks (data parallelism over cp ranks
// where stages alternate): the stride at which as many of them would lie in each scale-up domain
// that holds some. With pp blocks, one of each stage, to a domain or a part of one, they are that
// dense everywhere; with fewer, a domain holds the members of its one block of the stage; a block
// of whole domains is as where stages do not alternate.
static int spread_stride(const Plan *plan, int stride) {
    const int block = (int)plan_block_gpus(plan), pitch = block * plan->pp;
    const int num_in_block = block / stride, domain = plan->domain_gpus;
    if (domain > 0 && domain % pitch == 0) return pitch / num_in_block;
    if (domain > 0 && domain % block == 0) return domain / num_in_block;
    return stride;
}

// Groups lie in a block, take the same place of each, or are spread over several.
Group plan_group(const Plan *plan, GroupKind kind) {
    Group group = plan_lane_group(plan, kind);
    if (!plan_stages_alternate(plan)) return group;
    const int block = (int)plan_block_gpus(plan);
    if (group_base_kind(kind) == GROUP_PP) return (Group){plan->pp, block};
    if (group.stride >= block)
        group.stride *= plan->pp;
    else if ((int64_t)group.size * group.stride > block)
        group.stride = spread_stride(plan, group.stride);
    return group;
}

static Group layers_group(const Plan *plan, GroupKind kind) {
    const int place = (int)kind / NUM_GROUPS;
    const int *spans, num_spans = plan_layout_spans(plan, &spans);
    if (group_base_kind(kind) == GROUP_LAYOUT)
        return (Group){place <= num_spans ? spans[place - 1] : 1, 1};
    if (place >= plan_num_shardings(plan)) return (Group){1, 1};
    return plan_lane_group(plan_sharding(plan, place), group_base_kind(kind));
}

Group plan_lane_group(const Plan *plan, GroupKind kind) {
    if ((int)kind >= NUM_GROUPS) return layers_group(plan, kind);
    const int stage = plan->tp * plan->cp * plan->dp;
    const int expert_stride = plan->etp * plan->ep;
    const int zero = plan->zero_group, expert_zero = expert_zero_size(plan);
    switch (kind) {
    case GROUP_TP:
        return (Group){plan->tp, 1};
    case GROUP_CP:
        return (Group){plan->cp, plan->tp};
    case GROUP_DP:
        return (Group){plan->dp * plan->cp, plan->tp};
    case GROUP_ZERO:
        return (Group){zero, plan->tp};
    case GROUP_REPLICA:
        return (Group){plan->dp * plan->cp / zero, plan->tp * zero};
    case GROUP_EP:
        return (Group){plan->ep, plan->etp};
    case GROUP_ETP:
        return (Group){plan->etp, 1};
    case GROUP_EDP:
        return (Group){plan->expert_dp, expert_stride};
    case GROUP_EZERO:
        return (Group){expert_zero, expert_stride};
    case GROUP_EREPLICA:
        return (Group){plan->expert_dp / expert_zero, expert_stride * expert_zero};
    case GROUP_PP:
        return (Group){plan->pp, stage};
    case GROUP_LAYOUT:
    case NUM_GROUPS:
        break;
    }
    return (Group){1, 1};
}

int plan_num_group_kinds(const Plan *plan) {
    const int *spans, num_spans = plan_layout_spans(plan, &spans);
    const int shardings = plan_num_shardings(plan);
    return NUM_GROUPS * (1 + num_spans > shardings ? 1 + num_spans : shardings);
}

static GroupKind kind_at(GroupKind kind, int place) {
    return (GroupKind)((int)kind + NUM_GROUPS * place);
}

GroupKind sharding_group_kind(const Plan *plan, int sharding, GroupKind kind) {
    const Group own = plan_group(plan_sharding(plan, sharding), kind);
    for (int s = 0; s < sharding; s++) {
        const Group other = plan_group(plan_sharding(plan, s), kind);
        if (own.size == other.size && own.stride == other.stride) return kind_at(kind, s);
    }
    return kind_at(kind, sharding);
}

GroupKind layout_group_kind(const Plan *plan, int span) {
    const int *spans;
    int place = 0;
    plan_layout_spans(plan, &spans);
    while (spans[place] != span) place++;
    return kind_at(GROUP_LAYOUT, 1 + place);
}

double plan_sharded_parameters(const Plan *plan, double dense, double expert) {
    return (plan_group(plan, GROUP_ZERO).size > 1 ? dense : 0) +
           (plan_group(plan, GROUP_EZERO).size > 1 ? expert : 0);
}
