#include "cli/plan/plan_options.h"
#include "cli/job_options.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    KEY_TOP = KEY_LONG,
    KEY_OBJECTIVE,
    KEY_EXHAUSTIVE,
    KEY_BUDGET,
    KEY_MAX_MEMORY,
    KEY_VARIANTS,
    KEY_PARETO,
    KEY_ROBUST,
    KEY_COMPARE,
    KEY_MIN_GPUS_FOR,
    KEY_DEADLINE,
    KEY_LAYERWISE,
    KEY_WRITE_LP,
    KEY_PLACEMENT_MOVES,
    KEY_SEED,
    KEY_FIT_PROBABILITY,
    KEY_TUNE,
    KEY_EXPLAIN_RULE,
    KEY_FORCE,
};
enum { MAX_TOP = 1000, MAX_MOVES = 1000000000 };

static const struct argp_option OPTIONS[] = {
    {"top", KEY_TOP, "K", 0, "how many of the best plans are wanted (default: 5)", 0},
    {"objective", KEY_OBJECTIVE, "throughput|cost|energy|memory", 0,
     "what is best (default: throughput)", 0},
    {"robust", KEY_ROBUST, NULL, 0, "rank by the upper end of the step's interval", 0},
    {"output", 'o', "DIR", 0,
     "writes plan.json, the launch files, trace.json, report.txt and report.html there", 0},
    OPTION_FORCE(KEY_FORCE, 0),
    {"max-memory", KEY_MAX_MEMORY, "BYTES", 0, "a plan may not need more on one GPU (70GB, 64GiB)",
     0},
    OPTION_FIT_PROBABILITY(KEY_FIT_PROBABILITY, 0),
    {"pareto", KEY_PARETO, NULL, 0,
     "list every plan that no other beats in time, memory and energy together", 0},
    {"compare", KEY_COMPARE, "KEY=VALUE,...", 0,
     "why the best plan with these values of `parallel` loses, term by term", 0},
    {"explain-rule", KEY_EXPLAIN_RULE, "KEY=VALUE,...", 0,
     "which rule of the software forbids these values of `parallel` or `training` here, what is "
     "legal, and where its source says so; no search",
     0},
    {"min-gpus-for", KEY_MIN_GPUS_FOR, "TOKENS_PER_S", 0,
     "the fewest GPUs, in whole nodes, whose best plan is that fast", 0},
    {"deadline", KEY_DEADLINE, "TOKENS,SECONDS", 0,
     "the fewest GPUs that train so many tokens in so long (15T,60d)", 0},
    {"layerwise", KEY_LAYERWISE, NULL, 0,
     "a strategy for each layer: tp, cp, ZeRO stage, recomputation", 0},
    {"write-lp", KEY_WRITE_LP, "FILE", 0,
     "with --layerwise: writes the integer program of the best plan's slowest stage", 0},
    {"placement-moves", KEY_PLACEMENT_MOVES, "N", 0,
     "where links between nodes differ, try so many moves to place the best plan's nodes (default: "
     "12000 a node; 0: leave them in their order)",
     0},
    {"seed", KEY_SEED, "N", 0, "of the placement's random numbers (default: 0)", 0},
    {"budget", KEY_BUDGET, "SECONDS", 0, "stop searching after this time", 0},
    {"variants", KEY_VARIANTS, NULL, 0,
     "also list plans that differ only in chunks, schedule, ZeRO stage or group, context-parallel "
     "method or order of ranks",
     0},
    {"tune", KEY_TUNE, NULL, 0,
     "search the software's switches that the scenario leaves open, too (dispatcher, overlaps, "
     "CUDA "
     "graphs, FP8 recipe, formats of moments and gradients, fused loss)",
     0},
    {"exhaustive", KEY_EXHAUSTIVE, NULL, 0, "price everything that fits, for doubters", 0},
    OPTION_JSON,
    OPTIONS_JOB,
    {0},
};

// No plan runs in less than a megabyte: a smaller number is in other units.
static error_t parse_bytes(struct argp_state *state, const char *text, double *out) {
    error_t error = parse_quantity(state, "max-memory", text, QUANTITY_BYTES, 1, out);
    if (error || *out >= 1e6) return error;
    return parse_refuse(state,
                        "--max-memory: \"%.60s\" is less than a megabyte; write bytes, as in "
                        "70e9 or 70GB",
                        text);
}

static error_t parse_deadline(struct argp_state *state, const char *text, PlanOptions *options) {
    char tokens[64];
    const char *comma = strchr(text, ',');
    if (!comma || comma - text >= (int)sizeof tokens)
        return parse_refuse(state,
                            "--deadline: \"%.60s\" is not TOKENS,SECONDS; write both, as in "
                            "15T,60d",
                            text);
    snprintf(tokens, sizeof tokens, "%.*s", (int)(comma - text), text);
    error_t error =
        parse_quantity(state, "deadline", tokens, QUANTITY_TOKENS, 1, &options->deadline_tokens);
    return error ? error
                 : parse_quantity(state, "deadline", comma + 1, QUANTITY_SECONDS, 1,
                                  &options->deadline_s);
}

// 0 moves: nodes stay where they are.
static error_t parse_moves(struct argp_state *state, const char *text, PlanOptions *options) {
    int moves = 0;
    const error_t error = parse_int(state, "placement-moves", text, 0, MAX_MOVES, &moves);
    options->placement.num_moves = moves;
    options->planner.placement = moves > 0 ? &options->placement : NULL;
    return error;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    PlanOptions *options = state->input;
    PlannerOptions *planner = &options->planner;
    int objective, seed = 0;
    error_t error;
    switch (key) {
    case KEY_TOP:
        options->has_top = true;
        return parse_int(state, "top", arg, 1, MAX_TOP, &planner->top);
    case KEY_OBJECTIVE:
        error = parse_name(state, "objective", arg, OBJECTIVE_NAMES, &objective);
        if (error) return error;
        options->has_objective = true;
        planner->objective = (PlanObjective)objective;
        return 0;
    case 'o':
        options->folder = arg;
        return 0;
    case KEY_FORCE:
        options->force = true;
        return 0;
    case KEY_MAX_MEMORY:
        return parse_bytes(state, arg, &planner->max_memory_bytes);
    case KEY_FIT_PROBABILITY:
        return parse_probability(state, arg, &planner->fit_probability_frac);
    case KEY_BUDGET:
        return parse_quantity(state, "budget", arg, QUANTITY_SECONDS, 0.001, &planner->budget_s);
    case KEY_EXHAUSTIVE:
        planner->exhaustive = true;
        return 0;
    case KEY_VARIANTS:
        options->has_variants = true;
        planner->distinct = false;
        return 0;
    case KEY_PARETO:
        options->pareto = true;
        return 0;
    case KEY_ROBUST:
        planner->robust = true;
        return 0;
    case KEY_COMPARE:
        options->compare = arg;
        return 0;
    case KEY_EXPLAIN_RULE:
        options->explain_rule = arg;
        return 0;
    case KEY_MIN_GPUS_FOR:
        return parse_quantity(state, "min-gpus-for", arg, QUANTITY_TOKENS_PER_S, 1e-3,
                              &options->min_tokens_per_s);
    case KEY_DEADLINE:
        return parse_deadline(state, arg, options);
    case KEY_TUNE:
        options->tune = true;
        return 0;
    case KEY_LAYERWISE:
        options->layerwise = true;
        return 0;
    case KEY_WRITE_LP:
        return parse_file(state, "write-lp", arg, &options->lp_file);
    case KEY_PLACEMENT_MOVES:
        return parse_moves(state, arg, options);
    case KEY_SEED:
        error = parse_int(state, "seed", arg, 0, INT_MAX, &seed);
        options->has_seed = true;
        options->placement.seed = (uint64_t)seed;
        return error;
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "SCENARIO",
    .doc = "Searches all ways to split and schedule the training job of a scenario and prints the "
           "best, why the runners-up lose, what holds each back, and what was searched. What the "
           "scenario's `parallel` states is kept; the rest is free.\v"
           "Examples:\n"
           "  meshwright plan job.json\n"
           "  meshwright plan job.json -o out && meshwright launch out/plan.json --dry-run\n"
           "  meshwright plan job.json --top 10 --objective cost\n"
           "  meshwright plan job.json --max-memory 70GB --json\n"
           "  meshwright plan job.json --compare tp=4,pp=2\n"
           "  meshwright plan job.json --pareto\n"
           "  meshwright plan job.json --tune\n"
           "  meshwright plan job.json --deadline 1T,60d\n\n"
           "DIR gets all files of the answer or none. Those of an earlier plan there, with its "
           "launch files, are replaced and removed; what is yours, what you have changed and what "
           "SCENARIO is made of is not (--force; docs/reliability.md). "
           "Ctrl-C ends a search with the best plan "
           "so far and its gap. Plans that are better than the best but less sure to fit than "
           "--fit-probability asks for are listed as riskier. Exits with 1 where nothing fits so "
           "surely, after saying what is missing, what may fit and "
           "what would fit; where the plan of --compare is not legal or does not fit; and where no "
           "number of GPUs is fast enough.",
};

// Two options that do not go together, and why.
typedef struct {
    bool first, second;
    const char *first_name, *second_name, *why;
} Pair;

static Status pairs_check(const PlanOptions *o) {
    if (o->lp_file && !o->layerwise)
        return usage_error("plan --write-lp: goes with --layerwise only");
    const bool sizing = o->min_tokens_per_s > 0, deadline = o->deadline_tokens > 0;
    const bool of_step =
        o->planner.objective == OBJECTIVE_THROUGHPUT || o->planner.objective == OBJECTIVE_COST;
    const bool not_fastest = o->planner.objective != OBJECTIVE_THROUGHPUT;
    const bool places = o->placement.num_moves > 0;
    static const char ALL[] = "a frontier lists all plans that are best in some way";
    static const char ONE[] = "they are two questions; ask one at a time";
    static const char TIME[] = "only a step's time has an interval and a rate";
    static const char RANK[] = "it ranks by step time, nothing else yet";
    static const char ORDER[] = "it leaves the nodes in their order";
    static const char TUNED[] = "switches are searched for the best plan by time or cost only";
    static const char EXACT[] = "it lists the best choice of each combination, found exactly";
    const Pair pairs[] = {
        {o->pareto, o->has_top, "pareto", "top", ALL},
        {o->pareto, o->has_objective, "pareto", "objective", ALL},
        {o->pareto, o->has_variants, "pareto", "variants", ALL},
        {o->pareto, o->compare != NULL, "pareto", "compare", ONE},
        {o->pareto, sizing, "pareto", "min-gpus-for", ONE},
        {o->pareto, deadline, "pareto", "deadline", ONE},
        {o->compare != NULL, sizing, "compare", "min-gpus-for", ONE},
        {o->compare != NULL, deadline, "compare", "deadline", ONE},
        {sizing, deadline, "min-gpus-for", "deadline", ONE},
        {o->layerwise, o->pareto, "layerwise", "pareto", ONE},
        {o->layerwise, o->compare != NULL, "layerwise", "compare", ONE},
        {o->layerwise, sizing, "layerwise", "min-gpus-for", ONE},
        {o->layerwise, deadline, "layerwise", "deadline", ONE},
        {o->layerwise, o->planner.robust, "layerwise", "robust", RANK},
        {o->layerwise, not_fastest, "layerwise", "objective", RANK},
        {o->layerwise, o->has_variants, "layerwise", "variants", EXACT},
        {o->layerwise, o->planner.exhaustive, "layerwise", "exhaustive", EXACT},
        {o->layerwise, places, "layerwise", "placement-moves", ORDER},
        {o->layerwise, o->has_seed, "layerwise", "seed", ORDER},
        {o->pareto, places, "pareto", "placement-moves", ORDER},
        {o->pareto, o->has_seed, "pareto", "seed", ORDER},
        {o->planner.robust, !of_step, "robust", "objective", TIME},
        {o->tune, !of_step, "tune", "objective", TUNED},
        {o->tune, o->pareto, "tune", "pareto", TUNED},
        {o->tune, o->layerwise, "tune", "layerwise", TUNED},
        {o->tune, sizing, "tune", "min-gpus-for", TUNED},
        {o->tune, deadline, "tune", "deadline", TUNED},
        {sizing, !of_step, "min-gpus-for", "objective", TIME},
        {deadline, !of_step, "deadline", "objective", TIME},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (!pairs[i].first || !pairs[i].second) continue;
        const char *value = strcmp(pairs[i].second_name, "objective") == 0 && !o->pareto
                                ? OBJECTIVE_NAMES[o->planner.objective]
                                : "";
        return status_error(STATUS_INVALID, "meshwright: plan: --%s does not go with --%s%s%s: %s",
                            pairs[i].first_name, pairs[i].second_name, value[0] ? " " : "", value,
                            pairs[i].why);
    }
    return status_ok();
}

Status plan_options_read(int argc, char **argv, PlanOptions *out) {
    *out = (PlanOptions){.planner.distinct = true};
    out->planner.placement = &out->placement;
    TRY(command_parse(&ARGP, argc, argv, &out->common));
    return pairs_check(out);
}
