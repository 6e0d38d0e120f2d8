// Activities are walked from the last that ended back to one that waited for nothing. Only some of
// them are the begin or the end of an instruction; the flows of a collective lie between the two.
#include "sim/critical_path.h"

const char *const PATH_KIND_NAMES[NUM_PATH_KINDS] = {
    "forward",
    "backward",
    "backward-input",
    "backward-weight",
    "optimizer",
    "message_latency",
    "message_transfer",
    "collective_latency",
    "collective_transfer",
    "inner_tp",
    "inner_cp",
    "inner_ep",
    "inner_shards",
    "host",
};

enum { NO_NODE = -1, NO_STAGE = -1 };

typedef struct {
    int32_t *nodes; // [num_nodes] by time
    int num_nodes;
    PathItem *owners; // [num_nodes] the instruction of each; stage is NO_STAGE until it is known
} NodePath;

// --- The activities

static int last_node(const Dag *dag, const Playback *playback) {
    int last = NO_NODE;
    for (int i = 0; i < dag->num_nodes; i++)
        if (last == NO_NODE || playback->end_s[i] > playback->end_s[last]) last = i;
    return last;
}

static bool is_flow(const Dag *dag, int node) {
    return dag->nodes[node].route != NO_ROUTE;
}

// Which activity each began after: of those that ended as it began, the first that is no flow.
static int32_t *causes_find(const Dag *dag, const Playback *playback, Arena *arena) {
    int32_t *causes = ARENA_ARRAY(arena, dag->num_nodes, int32_t);
    for (int i = 0; i < dag->num_nodes; i++) causes[i] = NO_NODE;
    for (int i = 0; i < dag->num_nodes; i++) {
        for (int k = dag->first_successor[i]; k < dag->first_successor[i + 1]; k++) {
            int after = dag->successors[k];
            // The engine's clock is the same number at both.
            if (playback->end_s[i] != playback->start_s[after]) continue;
            int32_t *cause = &causes[after];
            if (*cause == NO_NODE || (is_flow(dag, *cause) && !is_flow(dag, i))) *cause = i;
        }
    }
    return causes;
}

static NodePath nodes_walk(const Dag *dag, const Playback *playback, Arena *arena) {
    int32_t *causes = causes_find(dag, playback, arena);
    NodePath path = {0};
    int last = last_node(dag, playback);
    for (int node = last; node != NO_NODE; node = causes[node]) path.num_nodes++;
    path.nodes = ARENA_ARRAY(arena, path.num_nodes, int32_t);
    int place = path.num_nodes;
    for (int node = last; node != NO_NODE; node = causes[node]) path.nodes[--place] = node;
    return path;
}

// --- Their instructions

static void owner_note(NodePath *path, const int32_t *places, int node, PathItem owner) {
    if (places[node] == NO_NODE || path->owners[places[node]].stage != NO_STAGE) return;
    path->owners[places[node]] = owner;
}

// A message belongs to its SEND. The end of a group of messages takes no time.
static void owners_find(const Lowered *lowered, const Program *program, NodePath *path,
                        Arena *arena) {
    int32_t *places = ARENA_ARRAY(arena, lowered->dag.num_nodes, int32_t);
    for (int i = 0; i < lowered->dag.num_nodes; i++) places[i] = NO_NODE;
    path->owners = ARENA_ARRAY(arena, path->num_nodes, PathItem);
    for (int i = 0; i < path->num_nodes; i++) {
        places[path->nodes[i]] = i;
        path->owners[i].stage = NO_STAGE;
    }
    for (int rank = 0; rank < program->num_ranks; rank++) {
        int num = program->ranks[rank].num_instructions;
        for (int slot = 0; slot < num * lowered->num_lanes; slot++) {
            int kind = program->ranks[rank].instructions[slot % num].kind;
            if (kind == INSTRUCTION_RECV) continue;
            PathItem owner = {.stage = rank, .lane = slot / num, .instruction = slot % num};
            owner_note(path, places, lowered->begin_node[rank][slot], owner);
            if (kind != INSTRUCTION_SEND)
                owner_note(path, places, lowered->end_node[rank][slot], owner);
        }
    }
    // What lies before the end of a collective is of it.
    for (int i = path->num_nodes - 2; i >= 0; i--)
        if (path->owners[i].stage == NO_STAGE) path->owners[i] = path->owners[i + 1];
}

// --- Items and totals

// Of the last item: it counts once in a total, whatever activities of it are on the path.
static void totals_add(CriticalPath *path, PathKind kind, double simulated_s, double estimated_s) {
    PathTotal *total = &path->totals[kind];
    total->count += total->last_item != path->num_items;
    total->last_item = path->num_items;
    total->simulated_s += simulated_s;
    total->estimated_s += estimated_s;
}

// Of a flow of collectives inside a computation.
static PathKind inner_kind(GroupKind group) {
    switch (group) {
    case GROUP_TP:
    case GROUP_ETP:
    case GROUP_LAYOUT:
        return PATH_INNER_TP;
    case GROUP_CP:
        return PATH_INNER_CP;
    case GROUP_EP:
        return PATH_INNER_EP;
    default:
        return PATH_INNER_SHARDS;
    }
}

static void node_account(const Dag *dag, const Playback *playback, int node, InstructionKind kind,
                         CriticalPath *path) {
    static const PathKind computations[] = {
        [INSTRUCTION_FORWARD] = PATH_FORWARD,
        [INSTRUCTION_BACKWARD] = PATH_BACKWARD,
        [INSTRUCTION_BACKWARD_INPUT] = PATH_BACKWARD_INPUT,
        [INSTRUCTION_BACKWARD_WEIGHT] = PATH_BACKWARD_WEIGHT,
        [INSTRUCTION_OPTIMIZER] = PATH_OPTIMIZER,
    };
    double delay_s = dag->nodes[node].delay_s, flow_s = dag_flow_s(dag, node);
    double taken_s = playback->end_s[node] - playback->start_s[node];
    bool message = kind == INSTRUCTION_SEND;
    if (message || kind == INSTRUCTION_COLLECTIVE) {
        totals_add(path, message ? PATH_MESSAGE_LATENCY : PATH_COLLECTIVE_LATENCY, delay_s,
                   delay_s);
        totals_add(path, message ? PATH_MESSAGE_TRANSFER : PATH_COLLECTIVE_TRANSFER,
                   taken_s - delay_s, flow_s);
    } else if (is_flow(dag, node)) {
        GroupKind group = (GroupKind)(dag->routes[dag->nodes[node].route].inner - 1);
        totals_add(path, inner_kind(group_base_kind(group)), taken_s, delay_s + flow_s);
    } else {
        totals_add(path, computations[kind], taken_s, delay_s);
    }
}

// Whether they are one instruction, or pieces of one.
static bool is_same(const Program *program, const PathItem *a, const PathItem *b) {
    if (a->stage != b->stage || a->lane != b->lane) return false;
    if (a->instruction == b->instruction) return true;
    const Instruction *x = &program->ranks[a->stage].instructions[a->instruction];
    const Instruction *y = &program->ranks[b->stage].instructions[b->instruction];
    bool computation = x->stream == STREAM_COMPUTE && x->num_parts > 1;
    return computation && x->kind == y->kind && x->chunk == y->chunk &&
           x->microbatch == y->microbatch;
}

static CriticalPath path_account(const Lowered *lowered, const Program *program,
                                 const Playback *playback, const NodePath *nodes, Arena *arena) {
    CriticalPath path = {0};
    PathItem *items = ARENA_ARRAY(arena, nodes->num_nodes, PathItem);
    for (int i = 0; i < nodes->num_nodes; i++) {
        int node = nodes->nodes[i];
        PathItem item = nodes->owners[i];
        item.start_s = playback->start_s[node];
        item.end_s = playback->end_s[node];
        if (item.end_s <= item.start_s) continue;
        if (path.num_items == 0 || !is_same(program, &items[path.num_items - 1], &item))
            items[path.num_items++] = item;
        else
            items[path.num_items - 1].end_s = item.end_s;
        InstructionKind kind =
            (InstructionKind)program->ranks[item.stage].instructions[item.instruction].kind;
        node_account(&lowered->dag, playback, node, kind, &path);
    }
    path.items = items;
    return path;
}

CriticalPath critical_path_find(const Lowered *lowered, const Program *program,
                                const Playback *playback, double step_s, double estimate_step_s,
                                Arena *arena) {
    Arena scratch = {0};
    NodePath nodes = nodes_walk(&lowered->dag, playback, &scratch);
    owners_find(lowered, program, &nodes, &scratch);
    CriticalPath path = path_account(lowered, program, playback, &nodes, arena);
    if (step_s > 0) path.totals[PATH_HOST] = (PathTotal){1, step_s, step_s, 0};
    path.slack_s = estimate_step_s;
    for (int kind = 0; kind < NUM_PATH_KINDS; kind++) path.slack_s -= path.totals[kind].estimated_s;
    arena_free(&scratch);
    return path;
}
