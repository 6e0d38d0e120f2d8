#include "sim/job_flows.h"

#include "costmodel/network/collective.h"
#include "sim/inner_pattern.h"
#include "sim/lower_inner.h"
#include "sim/lowering.h"
#include "sim/meeting.h"

#include <string.h>

typedef enum { WAY_MESSAGE, WAY_RING, WAY_PIPELINE, WAY_INNER } WayKind;

typedef struct {
    WayKind kind;
    int rank;
    int peer;               // of a message: pipeline rank
    Group group;            // of a ring: of lanes; among pipeline ranks: of them
    int inside;             // its ranks in a scale-up domain
    bool across;            // domains, or inside them
    int pattern_key, step;  // of a flow inside computations
    const InnerPattern *to; // the same
} Way;

typedef struct {
    const LowerInput *input;
    const Network *network;
    const Lanes *lanes; // all replicas, each by itself
    Arena *arena, *scratch;
    Way *ways;
    int num_ways, max_ways;
    const int **group_firsts;
    int num_groups, max_groups;
    bool *is_noted;                // [plan_num_group_kinds] among these
    const InnerPattern **patterns; // [4 plan_num_group_kinds] NULL until asked for
} Finder;

// --- Ways

static bool way_is(const Way *a, const Way *b) {
    return a->kind == b->kind && a->rank == b->rank && a->peer == b->peer &&
           a->group.size == b->group.size && a->group.stride == b->group.stride &&
           a->inside == b->inside && a->across == b->across && a->pattern_key == b->pattern_key &&
           a->step == b->step;
}

static void way_note(Finder *finder, Way way) {
    for (int i = 0; i < finder->num_ways; i++)
        if (way_is(&finder->ways[i], &way)) return;
    if (finder->num_ways == finder->max_ways) {
        finder->max_ways = finder->max_ways ? 2 * finder->max_ways : 64;
        finder->ways = arena_grow(finder->scratch, finder->ways,
                                  (size_t)finder->max_ways * sizeof *finder->ways);
    }
    finder->ways[finder->num_ways++] = way;
}

static void firsts_note(Finder *finder, const int *firsts) {
    const size_t size = (size_t)finder->lanes->num_replicas * sizeof *firsts;
    for (int i = 0; i < finder->num_groups; i++)
        if (memcmp(finder->group_firsts[i], firsts, size) == 0) return;
    if (finder->num_groups == finder->max_groups) {
        finder->max_groups = finder->max_groups ? 2 * finder->max_groups : 8;
        finder->group_firsts =
            arena_grow(finder->arena, finder->group_firsts,
                       (size_t)finder->max_groups * sizeof *finder->group_firsts);
    }
    finder->group_firsts[finder->num_groups++] = firsts;
}

static void ring_note(Finder *finder, Way way, const Pool *pool, Group group) {
    const GroupLayout layout = group_layout(pool, group);
    way.inside = layout.ranks_per_domain;
    if (layout.ranks_per_domain > 1) way_note(finder, way);
    way.across = true;
    if (layout.num_domains > 1) way_note(finder, way);
}

static void collective_note(Finder *finder, int rank, int collective) {
    const LowerInput *input = finder->input;
    const ProgramCollective *what = &input->program->collectives[collective];
    const Pool *pool = &input->cluster->pools[what->pool];
    const Group group = plan_group(input->plan, what->group);
    Way way = {.kind = WAY_PIPELINE, .rank = rank, .group = group};
    if (what->pipeline_queue == 0) {
        way.kind = WAY_RING;
        way.group = plan_lane_group(input->plan, what->group);
        if (!finder->is_noted[what->group])
            firsts_note(finder, lanes_group_firsts(finder->lanes, way.group, finder->arena));
        finder->is_noted[what->group] = true;
    }
    if (group.size > 1 && !collective_is_timer(input, what)) ring_note(finder, way, pool, group);
}

static const InnerPattern *pattern_find(Finder *finder, const InnerCollective *inner, bool across) {
    const InnerPattern **pattern = &finder->patterns[inner_pattern_key(inner, across)];
    if (*pattern) return *pattern;
    InnerPattern *found = ARENA_NEW(finder->scratch, InnerPattern);
    *found = inner_pattern(finder->input, finder->network, inner, across, finder->scratch);
    return *pattern = found;
}

static void inner_note(Finder *finder, int rank, const Instruction *instruction) {
    const LowerInput *input = finder->input;
    const InnerPass *pass =
        input->inner ? instruction_inner(&input->inner->across, instruction) : NULL;
    for (int i = 0; pass && i < pass->num; i++) {
        const InnerCollective *inner = &pass->list[i];
        const Group group = plan_group(input->plan, inner->group);
        const bool across = group_layout(cluster_only_pool(input->cluster), group).num_domains > 1;
        const InnerPattern *pattern = pattern_find(finder, inner, across);
        for (int step = pattern->first_step; step <= pattern->last_step; step++)
            way_note(finder, (Way){.kind = WAY_INNER,
                                   .rank = rank,
                                   .pattern_key = inner_pattern_key(inner, across),
                                   .step = step,
                                   .to = pattern});
    }
}

static void ways_find(Finder *finder) {
    const Program *program = finder->input->program;
    for (int rank = 0; rank < program->num_ranks; rank++) {
        for (int i = 0; i < program->ranks[rank].num_instructions; i++) {
            const Instruction *instruction = &program->ranks[rank].instructions[i];
            if (instruction->kind == INSTRUCTION_SEND)
                way_note(finder,
                         (Way){.kind = WAY_MESSAGE, .rank = rank, .peer = instruction->peer});
            else if (instruction->kind == INSTRUCTION_COLLECTIVE)
                collective_note(finder, rank, instruction->collective);
            else if (instruction->kind != INSTRUCTION_RECV)
                inner_note(finder, rank, instruction);
        }
    }
}

// --- Flows

static int rank_of(const Finder *finder, int rank, int replica) {
    return program_gpu(finder->input->program, rank, replica * finder->lanes->num_folded);
}

// The rank that a replica of a way sends to.
static int way_target(const Finder *finder, const Way *way, int replica) {
    if (way->kind == WAY_MESSAGE) return rank_of(finder, way->peer, replica);
    if (way->kind == WAY_INNER)
        return inner_target(way->to, rank_of(finder, way->rank, replica), way->step);
    if (way->kind == WAY_PIPELINE) {
        const int next = ring_next(way->rank, way->group.size, way->inside, way->across);
        return rank_of(finder, next, replica);
    }
    const int place = replica_place(finder->lanes, way->group, replica);
    const int next = ring_next(place, way->group.size, way->inside, way->across);
    return rank_of(finder, way->rank, replica_at_place(finder->lanes, way->group, replica, next));
}

static int way_links(const Finder *finder, const Way *way, int replica, int32_t *out) {
    const Cluster *cluster = finder->input->cluster;
    int links[MAX_HOPS];
    const int from = (int)cluster_gpu_of_rank(cluster, rank_of(finder, way->rank, replica));
    const int to = (int)cluster_gpu_of_rank(cluster, way_target(finder, way, replica));
    const int num = network_route(finder->network, from, to, links);
    for (int i = 0; i < num; i++) out[i] = links[i];
    return num;
}

JobFlows job_flows(const LowerInput *input, const Network *network, int num_folded, Arena *arena) {
    Arena scratch = {0};
    const int num = input->program->multiplicity / num_folded;
    const Lanes lanes = lanes_by_period(num_folded, num, num, &scratch);
    Finder finder = {input, network, &lanes, arena, &scratch, .num_ways = 0};
    finder.patterns =
        ARENA_ARRAY(&scratch, 4 * plan_num_group_kinds(input->plan), const InnerPattern *);
    finder.is_noted = ARENA_ARRAY(&scratch, plan_num_group_kinds(input->plan), bool);
    firsts_note(&finder, lanes_meeting_firsts(&lanes, input->plan, arena));
    ways_find(&finder);
    const size_t num_flows = (size_t)finder.num_ways * (size_t)num;
    int32_t *first_link = ARENA_ARRAY(arena, num_flows + 1, int32_t);
    int32_t *links = ARENA_ARRAY(arena, num_flows * MAX_HOPS, int32_t);
    for (size_t flow = 0; flow < num_flows; flow++) {
        const Way *way = &finder.ways[flow / (size_t)num];
        const int replica = (int)(flow % (size_t)num);
        first_link[flow + 1] =
            first_link[flow] + way_links(&finder, way, replica, links + first_link[flow]);
    }
    arena_free(&scratch);
    return (JobFlows){
        finder.num_ways,  num, first_link, links, (const int *const *)finder.group_firsts,
        finder.num_groups};
}
