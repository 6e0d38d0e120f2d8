// Branch and bound over the values of the open switches. A node has some of them decided; of the
// others it prices each at the value that is never worse, and no rule of the stack speaks of them:
// no plan of a combination below is better than the node's best. Where that plan obeys the rules
// after all it is a plan of a combination; where not, one of the switches whose rules it breaks is
// decided in turn.
#include "planner/questions/tune.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "plan/rule_check.h"
#include "planner/harvest/harvest.h"
#include "planner/questions/switch_step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POOL = 16, EASED = -1 };

static const double ROUNDING = 1e-9;

typedef struct {
    signed char value[MAX_SWITCHES]; // [num_open]; EASED: not decided
    double promise_s; // what the best of the pool takes; INFINITY where none of it runs
    int64_t number;   // order of generation
} Node;

typedef struct {
    const Scenario *scenario;
    const PlannerOptions *options;
    SwitchChoice open[MAX_SWITCHES];             // at what the scenario has
    bool legal[MAX_SWITCHES][MAX_SWITCH_VALUES]; // for some values of the others
    int num_open;
    Plan pool[MAX_POOL]; // plans by which nodes are put in order
    int num_pool;
    double best_value;
    Node best; // whose plan has it; all values decided
    Deadline deadline;
    Tuning *tuning;
    Arena *arena;
} Tuner;

static int num_values(const SwitchRow *row) {
    int num = 0;
    while (row->values[num]) num++;
    return num;
}

// --- Nodes

static Status node_apply(const Tuner *t, const Node *node, Arena *arena, Scenario *out) {
    *out = *t->scenario;
    for (int i = 0; i < t->num_open; i++) {
        const SwitchRow *row = t->open[i].row;
        const bool eased = node->value[i] == EASED;
        const int value = eased ? row->best : node->value[i];
        TRY(switch_apply(out, (SwitchChoice){row, value}, arena, out));
        if (eased) out->undecided = rule_set_union(out->undecided, row->variables);
    }
    return status_ok();
}

static Status promise_set(const Tuner *t, Node *node, Arena *scratch) {
    Scenario changed;
    arena_reset(scratch);
    node->promise_s = INFINITY;
    TRY(node_apply(t, node, scratch, &changed));
    if (!switches_run(&changed, t->open, t->num_open)) return status_ok();
    const Scenario limited = planner_limited(&changed, t->options, scratch);
    for (int i = 0; i < t->num_pool; i++)
        node->promise_s =
            fmin(node->promise_s, switch_step_s(&limited, &t->pool[i], node->promise_s, scratch));
    return status_ok();
}

static int compare_nodes(const void *a, const void *b) {
    const Node *x = a, *y = b;
    if (x->promise_s != y->promise_s) return x->promise_s < y->promise_s ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static Status nodes_order(const Tuner *t, int num, Node *nodes) {
    Arena scratch = {0};
    Status status = status_ok();
    for (int i = 0; i < num && status.code == STATUS_OK; i++) {
        nodes[i].number = i;
        status = promise_set(t, &nodes[i], &scratch);
    }
    arena_free(&scratch);
    qsort(nodes, (size_t)num, sizeof *nodes, compare_nodes);
    return status;
}

// --- A node's best plan

static bool plan_runs(const Tuner *t, const Scenario *changed, const Plan *plan) {
    RulesInForce rules;
    if (!switches_run(changed, t->open, t->num_open)) return false;
    rules_in_force(changed, &rules);
    return !rules.never && plan_obeys(changed, &rules, plan);
}

// A switch whose rules forbid the plan, though it was eased; -1: none does.
static Status forbidden_find(const Tuner *t, const Node *node, const Plan *plan, int *forbidden) {
    Arena arena = {0};
    Status status = status_ok();
    *forbidden = -1;
    for (int i = 0; i < t->num_open && *forbidden < 0 && status.code == STATUS_OK; i++) {
        if (node->value[i] != EASED) continue;
        Node decided = *node;
        Scenario changed;
        decided.value[i] = (signed char)t->open[i].row->best;
        status = node_apply(t, &decided, &arena, &changed);
        if (status.code != STATUS_OK) break;
        if (!plan_runs(t, &changed, plan)) *forbidden = i;
    }
    arena_free(&arena);
    return status;
}

// All rules together, with every switch decided: those that speak of two eased switches.
static Status runs_decided(const Tuner *t, const Node *node, const Plan *plan, Node *decided,
                           bool *runs) {
    Arena arena = {0};
    Scenario changed;
    *decided = *node;
    for (int i = 0; i < t->num_open; i++)
        if (decided->value[i] == EASED) decided->value[i] = (signed char)t->open[i].row->best;
    const Status status = node_apply(t, decided, &arena, &changed);
    if (status.code == STATUS_OK) *runs = plan_runs(t, &changed, plan);
    arena_free(&arena);
    return status;
}

static int first_eased(const Tuner *t, const Node *node) {
    for (int i = 0; i < t->num_open; i++)
        if (node->value[i] == EASED) return i;
    return -1;
}

// What to decide next for a plan that a node found; -1: nothing, it is a plan of a combination,
// and no other of the node's is better.
static Status plan_judge(Tuner *t, const Node *node, const PlannedEntry *entry, int *next) {
    Node decided;
    bool runs = false;
    TRY(runs_decided(t, node, &entry->plan, &decided, &runs));
    *next = -1;
    if (runs) {
        t->best_value = objective_value(t->options->objective, &entry->estimate);
        t->best = decided;
        return status_ok();
    }
    TRY(forbidden_find(t, node, &entry->plan, next));
    if (*next < 0) *next = first_eased(t, node);
    return status_ok();
}

// --- Search

static bool may_go_on(Tuner *t) {
    const PlannerOptions *options = t->options;
    if (options->standing)
        *options->standing = (SearchStanding){.best_value = t->best_value, .bound_value = 0};
    if (options->progress)
        options->progress(options->progress_context, "combinations of switches",
                          t->tuning->num_searches, 0);
    if (deadline_is_over(&t->deadline)) t->tuning->proven = false;
    return t->tuning->proven;
}

static PlannerOptions node_options(const Tuner *t) {
    PlannerOptions options = *t->options;
    options.top = 1;
    options.distinct = false;
    options.brief = true;
    options.only_better = true;
    options.worst_value = t->best_value * (1 - ROUNDING);
    if (!isfinite(t->best_value)) options.worst_value = 0;
    options.extra = isfinite(t->best_value);
    options.budget_s = 0; // the deadline is ours
    options.progress = NULL;
    options.standing = NULL;
    return options;
}

// Looks for a plan that beats what is known; with one that is not a combination's, below.
static Status node_search(Tuner *t, const Node *node) {
    Arena arena = {0};
    Scenario changed;
    PlannerResult result = {0};
    int next = -1;
    if (!may_go_on(t)) return status_ok();
    const PlannerOptions options = node_options(t);
    Status status = node_apply(t, node, &arena, &changed);
    if (status.code == STATUS_OK && !switches_run(&changed, t->open, t->num_open)) {
        arena_free(&arena);
        return status;
    }
    t->tuning->num_searches++;
    if (status.code == STATUS_OK) status = planner_search(&changed, &options, &arena, &result);
    if (status.code == STATUS_OK && result.stats.stopped_early) t->tuning->proven = false;
    if (status.code == STATUS_OK && result.num_entries > 0)
        status = plan_judge(t, node, &result.entries[0], &next);
    arena_free(&arena);
    if (status.code != STATUS_OK || next < 0) return status;
    const SwitchRow *row = t->open[next].row;
    for (int value = num_values(row) - 1; value >= 0; value--) { // the best stands last
        if (!t->legal[next][value]) continue;
        Node below = *node;
        below.value[next] = (signed char)value;
        TRY(node_search(t, &below));
    }
    return status_ok();
}

// --- Roots

// Which values the stack can run whatever the other switches are.
static Status legal_set(Tuner *t) {
    Arena scratch = {0};
    Status status = status_ok();
    for (int i = 0; i < t->num_open; i++)
        for (int value = 0; t->open[i].row->values[value]; value++) {
            Scenario changed;
            status = switch_apply(t->scenario, (SwitchChoice){t->open[i].row, value}, &scratch,
                                  &changed);
            if (status.code != STATUS_OK) break;
            for (int k = 0; k < t->num_open; k++)
                if (k != i)
                    changed.undecided =
                        rule_set_union(changed.undecided, t->open[k].row->variables);
            t->legal[i][value] = switches_run(&changed, t->open, t->num_open);
        }
    arena_free(&scratch);
    return status;
}

static bool is_eased(const Tuner *t, int i) {
    const int best = t->open[i].row->best;
    return best >= 0 && t->legal[i][best];
}

static int num_legal(const Tuner *t, int i) {
    int num = 0;
    for (int value = 0; t->open[i].row->values[value]; value++) num += t->legal[i][value];
    return num;
}

static signed char nth_legal(const Tuner *t, int i, int64_t n) {
    int value = 0;
    while (!t->legal[i][value] || n-- > 0) value++;
    return (signed char)value;
}

// Every combination of the switches of which no value is best, the others eased.
static Node *roots_make(const Tuner *t, Arena *arena, int *num_roots) {
    int64_t num = 1;
    for (int i = 0; i < t->num_open; i++)
        if (!is_eased(t, i)) num *= num_legal(t, i);
    Node *roots = ARENA_ARRAY(arena, num > 0 ? num : 1, Node);
    for (int64_t r = 0; r < num; r++) {
        int64_t rest = r;
        for (int i = 0; i < t->num_open; i++) {
            roots[r].value[i] = EASED;
            if (is_eased(t, i)) continue;
            roots[r].value[i] = nth_legal(t, i, rest % num_legal(t, i));
            rest /= num_legal(t, i);
        }
    }
    *num_roots = (int)num;
    return roots;
}

// Plans as the scenario is; they say what has to be beaten, and which nodes look well.
static Status base_search(Tuner *t) {
    PlannerOptions options = *t->options;
    PlannerResult result = {0};
    options.brief = true;
    const Status status = planner_search(t->scenario, &options, t->arena, &result);
    // Nothing is legal as the scenario is: it may be with other switches.
    if (status.code == STATUS_INVALID) return status_ok();
    TRY(status);
    for (int i = 0; i < result.num_entries && t->num_pool < MAX_POOL; i++)
        t->pool[t->num_pool++] = plan_copy(&result.entries[i].plan, t->arena);
    if (result.num_entries > 0)
        t->best_value = objective_value(options.objective, &result.entries[0].estimate);
    return status_ok();
}

static void choices_set(const Tuner *t, Tuning *out) {
    for (int i = 0; i < t->num_open; i++)
        if (t->best.value[i] != t->open[i].value)
            out->choices[out->num_choices++] = (SwitchChoice){t->open[i].row, t->best.value[i]};
}

Status planner_tune(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    Tuning *out) {
    const double start_s = clock_now_s();
    Tuner t = {.scenario = scenario,
               .options = options,
               .best_value = INFINITY,
               .tuning = out,
               .arena = arena};
    *out = (Tuning){.proven = true, .num_combinations = 1};
    deadline_start(&t.deadline, options->budget_s, options->end_soon);
    t.num_open = out->num_open = switches_open(scenario, t.open);
    for (int i = 0; i < t.num_open; i++) {
        out->num_combinations *= num_values(t.open[i].row);
        t.best.value[i] = (signed char)t.open[i].value;
    }
    TRY(legal_set(&t));
    TRY(base_search(&t));
    deadline_arm(&t.deadline);
    int num_roots;
    Node *roots = roots_make(&t, arena, &num_roots);
    TRY(nodes_order(&t, num_roots, roots));
    for (int i = 0; i < num_roots && out->proven; i++) TRY(node_search(&t, &roots[i]));
    choices_set(&t, out);
    out->wall_s = clock_now_s() - start_s;
    return status_ok();
}
