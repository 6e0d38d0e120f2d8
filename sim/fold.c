#include "sim/fold.h"

#include "costmodel/network/collective.h"
#include "plan/layer_plans.h"
#include "sim/disturb_network.h"
#include "sim/likeness.h"
#include "sim/lower.h"
#include "sim/rotation.h"

#include <math.h>

const char *const FOLD_NAMES[NUM_FOLD_MODES + 1] = {"auto", "none",        "tp",
                                                    "full", "approximate", NULL};

// --- Tensor-parallel ranks

// Whether groups of a kind that may be flows inside computations (sim/lower_inner.h) cross domains
// in another way than from a whole block of tensor-parallel ranks to a whole block.
static bool inner_leaves_block(const Cluster *cluster, const Plan *plan, GroupKind kind) {
    Group group = plan_group(plan, kind);
    if (group.size == 1 || group.stride % plan->tp == 0) return false;
    const GroupKind base = group_base_kind(kind);
    if (base != GROUP_TP && base != GROUP_EP && base != GROUP_ETP && base != GROUP_LAYOUT)
        return false;
    // Of several pools, on which none of them are flows, the first stands for all.
    GroupLayout layout = group_layout(&cluster->pools[0], group);
    return layout.num_domains > 1 && (layout.ranks_per_domain * group.stride % plan->tp != 0 ||
                                      group.size * group.stride % plan->tp != 0);
}

static const char *crossing_sentence(GroupKind kind, Arena *arena) {
    return arena_printf(arena,
                        "the %s groups cross scale-up domains inside a block of tensor-parallel "
                        "ranks",
                        group_name(kind));
}

// Why they cannot be folded; NULL where they can.
static const char *tp_obstacle(const Cluster *cluster, const Plan *plan, const Program *program,
                               Arena *arena) {
    if (plan->tp == 1) return "there is one tensor-parallel rank";
    if (plan_num_layouts(plan) > 1)
        return "layers differ in the ranks that share their activations";
    for (int i = 0; i < program->num_collectives; i++) {
        GroupKind kind = program->collectives[i].group;
        Group group = plan_group(plan, kind);
        if (group.size == 1 || group.stride % plan->tp == 0) continue;
        if (group_base_kind(kind) == GROUP_TP) { // of the ranks that are folded
            const Pool *own = &cluster->pools[program->collectives[i].pool];
            if (group_layout(own, group).num_domains > 1) return crossing_sentence(kind, arena);
            continue;
        }
        return arena_printf(arena, "the %s groups of %s run across tensor-parallel ranks",
                            group_name(kind), program->collectives[i].name);
    }
    for (GroupKind kind = GROUP_TP; (int)kind < plan_num_group_kinds(plan); kind++) {
        if (!inner_leaves_block(cluster, plan, kind)) continue;
        return crossing_sentence(kind, arena);
    }
    const char *why = network_folds(cluster, plan->tp);
    return why ? arena_printf(arena, "a tensor-parallel group cannot be folded: %s", why) : NULL;
}

// A link that is not as the others; slow GPUs and jitter are no obstacle.
static const char *disturb_obstacle(const Scenario *scenario, Arena *arena) {
    for (int i = 0; i < scenario->num_disturb; i++) {
        DisturbKind kind = scenario->disturb[i].kind;
        if (!disturb_is_network(kind)) continue;
        return arena_printf(arena,
                            "disturb[%d].%s makes the network of the tensor-parallel ranks uneven",
                            i, DISTURB_NAMES[kind]);
    }
    return NULL;
}

static Folding tp_folding(const Scenario *scenario, const Plan *plan, const Program *program,
                          Arena *arena) {
    const char *slowest = scenario->num_disturb > 0
                              ? ", its computations as long as those of the slowest of them"
                              : "";
    return (Folding){
        .num_folded = plan->tp,
        .period = program->multiplicity,
        .name = "tp",
        .reason = arena_printf(arena,
                               "the %d tensor-parallel ranks of a stage do the same and share the "
                               "network evenly: one of them is simulated%s",
                               plan->tp, slowest),
    };
}

// --- Data-parallel replicas

// Whether a rotation turns the groups of a kind into one another: each as a whole, or the one group
// of all in itself, with its ring and the parts of that in scale-up domains.
static bool group_rotates(const Cluster *cluster, const Plan *plan, GroupKind kind,
                          const Rotation *rotation) {
    Group group = plan_lane_group(plan, kind);
    if (group.size == 1 || rotation->period % (group.size * group.stride) == 0) return true;
    if (group.size * group.stride != rotation->multiplicity) return false;
    if (rotation->period % group.stride != 0) return false;
    // Several pools never rotate (sim/rotation.c).
    GroupLayout layout = group_layout(&cluster->pools[0], plan_group(plan, kind));
    int places = rotation->period / group.stride;
    return layout.num_domains == 1 || places % layout.ranks_per_domain == 0;
}

// Whether some layer gathers or scatters its shards in every pass.
static bool shards_in_layers(const Plan *plan) {
    bool some = false;
    for (int s = 0; s < plan_num_shardings(plan); s++)
        some |= plan_exchanges_shards(plan_sharding(plan, s));
    return some;
}

// Why the replicas of a rotation cannot be folded; NULL where they can.
static const char *rotation_obstacle(const Cluster *cluster, const Plan *plan,
                                     const Program *program, const Network *network,
                                     const Rotation *rotation, Arena *arena) {
    // Those that meet inside computations, and those of collectives beside them. Groups of pipeline
    // ranks are of one replica each, so they turn with it.
    for (GroupKind kind = GROUP_TP; (int)kind < plan_num_group_kinds(plan); kind++) {
        const GroupKind base = group_base_kind(kind);
        if (base == GROUP_PP) continue;
        bool shards = base == GROUP_ZERO || base == GROUP_EZERO;
        bool meets = base == GROUP_TP || base == GROUP_CP || base == GROUP_EP ||
                     base == GROUP_ETP || base == GROUP_LAYOUT ||
                     (shards && shards_in_layers(plan));
        for (int i = 0; i < program->num_collectives; i++)
            meets |= program->collectives[i].group == kind;
        if (!meets || group_rotates(cluster, plan, kind, rotation)) continue;
        return arena_printf(arena, "their %s groups do not lie alike", group_name(kind));
    }
    if (cluster->network.order) return "the placement takes their nodes out of their order";
    return network_rotates(network, rotation);
}

// The shortest period after which replicas are alike: the multiplicity and why, where there is
// none.
static int period_find(const Scenario *scenario, const Plan *plan, const Program *program,
                       int num_folded, Arena *arena, const char **obstacle) {
    const int multiplicity = program->multiplicity;
    *obstacle = "there is one of them";
    if (scenario->num_disturb > 0) {
        *obstacle = arena_printf(arena, "disturb[0].%s breaks their lockstep",
                                 DISTURB_NAMES[scenario->disturb[0].kind]);
        return multiplicity;
    }
    Network network = network_build(&scenario->cluster, 1, arena);
    for (int period = num_folded; period < multiplicity; period += num_folded) {
        if (multiplicity % period != 0) continue;
        Rotation rotation = {program->num_ranks, multiplicity, program->block_gpus, period};
        *obstacle =
            rotation_obstacle(&scenario->cluster, plan, program, &network, &rotation, arena);
        if (!*obstacle) return period;
    }
    return multiplicity;
}

static const char *full_reason(const Folding *folding, const char *why_not_tp, int multiplicity,
                               Arena *arena) {
    int num_lanes = folding->period / folding->num_folded;
    return arena_printf(arena,
                        "the %d GPUs of a stage run in lockstep and lie alike in the network every "
                        "%d: %d of them %s simulated, each for %d%s%s",
                        multiplicity, folding->period, num_lanes, num_lanes == 1 ? "is" : "are",
                        multiplicity / num_lanes,
                        why_not_tp ? "; tensor-parallel ranks are not folded: " : "",
                        why_not_tp ? why_not_tp : "");
}

// --- Replicas that nothing tells apart, or little

// Instructions on all simulated GPUs that take about a second: where a rotation leaves more,
// sorting pays.
static const double SOME_INSTRUCTIONS = 1e5;

// The same of some ten seconds: up to here all is played that no exact fold leaves out.
static const double MANY_INSTRUCTIONS = 5e5;

// The same where the fold is approximate: sorted as finely as a simulation of some seconds allows.
static const double FEW_INSTRUCTIONS = 2e5;

static int folding_num_lanes(const Folding *folding) {
    if (folding->likeness) return folding->likeness->lanes.num_lanes;
    return folding->period / folding->num_folded;
}

// On the simulated GPUs of a lane, one in each stage.
static double lane_instructions(const Program *program) {
    double num = 0;
    for (int rank = 0; rank < program->num_ranks; rank++)
        num += program->ranks[rank].num_instructions;
    return num;
}

static double folding_instructions(const Folding *folding, const Program *program) {
    return lane_instructions(program) * folding_num_lanes(folding);
}

static bool is_sortable(const Scenario *scenario, bool stepwise) {
    const ClusterNetwork *network = &scenario->cluster.network;
    return scenario->num_disturb == 0 && !stepwise && !network->sites && !network->order &&
           !cluster_only_pool(&scenario->cluster)->wires;
}

static const char *exact_sentence(int num_gpus, int num_lanes, Arena *arena) {
    return arena_printf(arena,
                        "the %d GPUs of a stage run in lockstep and are of %d sort%s by what "
                        "shares links with what they send: one of each sort is simulated, and "
                        "contends with as much on its links as each does",
                        num_gpus, num_lanes, num_lanes == 1 ? "" : "s");
}

static const char *approximate_sentence(int num_gpus, int num_lanes, Arena *arena) {
    return arena_printf(arena,
                        "the %d GPUs of a stage run in lockstep but differ in what shares links "
                        "with what they send, and are taken for %d sort%s: one of each sort is "
                        "simulated, and contends with what its sort meets in the mean, so the "
                        "answer is approximate",
                        num_gpus, num_lanes, num_lanes == 1 ? "" : "s");
}

static const char *likeness_reason(const Likeness *likeness, bool exact, const char *why_not_tp,
                                   Arena *arena) {
    const Lanes *lanes = &likeness->lanes;
    const int num_gpus = lanes->num_replicas * lanes->num_folded;
    const char *what = exact ? exact_sentence(num_gpus, lanes->num_lanes, arena)
                             : approximate_sentence(num_gpus, lanes->num_lanes, arena);
    return arena_printf(arena, "%s%s%s%s", what,
                        likeness->num_leaves_left_out > 0
                            ? "; uplinks of leaf switches that carry all that their NICs can send "
                              "limit nothing and are left out"
                            : "",
                        why_not_tp ? "; tensor-parallel ranks are not folded: " : "",
                        why_not_tp ? why_not_tp : "");
}

// Folds by likeness where that leaves fewer lanes than the folding has.
static bool likeness_fold(const LowerInput *input, int most_lanes, const char *why_not_tp,
                          Arena *arena, Folding *folding) {
    const bool exact = most_lanes == LIKENESS_EXACT;
    Likeness *likeness = ARENA_NEW(arena, Likeness);
    if (!likeness_find(input, folding->num_folded, most_lanes, arena, likeness)) return false;
    if (likeness->lanes.num_lanes >= folding_num_lanes(folding)) return false;
    folding->period = input->program->multiplicity;
    folding->likeness = likeness;
    folding->name = exact ? "full" : "approximate";
    folding->reason = likeness_reason(likeness, exact, why_not_tp, arena);
    return true;
}

// As finely as can be simulated in seconds; where that is asked for, as coarsely as there is.
static bool approximate_fold(FoldMode mode, const LowerInput *input, const char *why_not_tp,
                             Arena *arena, Folding *folding) {
    const double few = FEW_INSTRUCTIONS / fmax(1, lane_instructions(input->program));
    const int most_lanes = mode == FOLD_APPROXIMATE ? 1 : (int)fmax(1, few);
    return likeness_fold(input, most_lanes, why_not_tp, arena, folding);
}

Lanes folding_lanes(const Folding *folding, const Program *program, Arena *arena) {
    if (folding->likeness) return folding->likeness->lanes;
    return lanes_by_period(folding->num_folded, program->multiplicity / folding->num_folded,
                           folding_num_lanes(folding), arena);
}

// --- The choice

// Folds replicas: exactly where that is possible, and where that is not enough, as is asked for.
//   returns NULL, or why they are not
static const char *replicas_fold(FoldMode mode, const Scenario *scenario, const LowerInput *input,
                                 bool stepwise, const char *why_not_tp, Arena *arena,
                                 Folding *folding) {
    const Program *program = input->program;
    const char *obstacle;
    folding->period =
        period_find(scenario, input->plan, program, folding->num_folded, arena, &obstacle);
    if (!obstacle) {
        folding->name = "full";
        folding->reason = full_reason(folding, why_not_tp, program->multiplicity, arena);
    }
    if (!is_sortable(scenario, stepwise) || program->multiplicity == folding->num_folded)
        return obstacle;
    if (mode == FOLD_APPROXIMATE)
        return approximate_fold(mode, input, why_not_tp, arena, folding) ? NULL : obstacle;
    if (!obstacle && folding_instructions(folding, program) <= SOME_INSTRUCTIONS) return NULL;
    if (likeness_fold(input, LIKENESS_EXACT, why_not_tp, arena, folding)) obstacle = NULL;
    if (mode == FOLD_FULL || folding_instructions(folding, program) <= MANY_INSTRUCTIONS)
        return obstacle;
    return approximate_fold(mode, input, why_not_tp, arena, folding) ? NULL : obstacle;
}

Status folding_choose(FoldMode mode, const Scenario *scenario, const LowerInput *input,
                      bool stepwise, Arena *arena, Folding *out) {
    const Plan *plan = input->plan;
    const Program *program = input->program;
    *out = (Folding){
        .num_folded = 1, .period = program->multiplicity, .name = "none", .reason = "asked for"};
    if (mode == FOLD_NONE) return status_ok();
    const char *why_not_tp = disturb_obstacle(scenario, arena);
    if (!why_not_tp) why_not_tp = tp_obstacle(&scenario->cluster, plan, program, arena);
    if (why_not_tp && mode == FOLD_TP) {
        return status_error(STATUS_INVALID, "--fold tp is not possible: %s", why_not_tp);
    }
    if (why_not_tp) {
        out->reason = why_not_tp;
    } else {
        *out = tp_folding(scenario, plan, program, arena);
    }
    if (mode == FOLD_TP) return status_ok();
    const char *why_not_full =
        replicas_fold(mode, scenario, input, stepwise, why_not_tp, arena, out);
    if (!why_not_full) return status_ok();
    if (mode == FOLD_FULL || mode == FOLD_APPROXIMATE) {
        return status_error(STATUS_INVALID,
                            "--fold %s is not possible: the data-parallel replicas cannot be "
                            "folded: %s",
                            FOLD_NAMES[mode], why_not_full);
    }
    out->reason = arena_printf(arena, "%s; the data-parallel replicas are not folded: %s",
                               out->reason, why_not_full);
    return status_ok();
}
