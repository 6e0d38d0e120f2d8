#include "report/summary.h"

#include "plan/layer_plans.h"
#include "report/fit_text.h"
#include "report/report.h"
#include "report/units.h"

#include <math.h>

// "each layer over 4 GPUs, each sequence over 2, ...": the ways in which the plan splits.
static const char *splits_text(const Plan *plan, Arena *arena) {
    const struct {
        int degree;
        const char *before, *after;
    } splits[] = {
        {plan->tp, "every layer is split over", "GPUs (tensor parallel)"},
        {plan->cp, "every sequence over", "(context parallel)"},
        {plan->pp, "the layers are dealt to", "groups of GPUs in line (pipeline stages)"},
        {plan->ep, "experts are spread over", "GPUs (expert parallel)"},
        {plan->dp, "the batch is shared by",
         plan->tp * plan->cp * plan->pp > 1 ? "copies of all that (data parallel)"
                                            : "copies of the model (data parallel)"},
    };
    const char *text = "";
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        if (splits[i].degree > 1)
            text = arena_printf(arena, "%s%s%s %d %s", text, text[0] ? ", " : "", splits[i].before,
                                splits[i].degree, splits[i].after);
    return text[0] ? text : "one GPU does it all";
}

// What is done to save memory, a sentence each.
static const char *saving_text(const Plan *plan, Arena *arena) {
    static const char *const SHARED[] = {"", "the optimizer's state",
                                         "the optimizer's state and the gradients",
                                         "weights, gradients and the optimizer's state"};
    const char *shards = "";
    if (plan->zero_stage > 0 && plan->dp * plan->cp > 1)
        shards = arena_printf(arena, "The copies share out %s (ZeRO-%d). %s%s",
                              SHARED[plan->zero_stage], plan->zero_stage,
                              plan->zero_stage >= 2 && !plan_scatters_gradients(plan)
                                  ? "Until the end of a step each keeps whole gradients. "
                                  : "",
                              plan_zero_level(plan) == ZERO_LEVEL_KEPT
                                  ? "What a forward gathers stays until its backward. "
                                  : "");
    const bool again = plan->recompute != RECOMPUTE_NONE || plan_mixes_recompute(plan);
    return arena_printf(arena, "%s%s", shards,
                        again ? "Part of the forward is computed again in the backward, to save "
                                "memory. "
                              : "");
}

static const char *memory_text(const Estimate *e, Arena *arena) {
    char needed[UNITS_SIZE], available[UNITS_SIZE];
    units_bytes(e->memory.device_bytes, needed);
    units_bytes(e->memory_available_bytes, available);
    return arena_printf(arena, "It %s: the fullest GPU needs %s and has %s.",
                        fit_text(e->fits_probability_frac, arena), needed, available);
}

// What a step waits for, in words, largest first; as report_exposed.
static const char *waits_text(const Estimate *e, Arena *arena) {
    static const char *const WORDS[NUM_TERMS] = {
        [TERM_TP] = "tensor-parallel communication",
        [TERM_CP] = "context-parallel communication",
        [TERM_EP] = "expert-parallel communication",
        [TERM_DP] = "data-parallel communication",
        [TERM_PP] = "messages between pipeline stages",
        [TERM_BUBBLE] = "work from other stages (the pipeline bubble)",
        [TERM_OPTIMIZER] = "the optimizer",
        [TERM_OTHER] = "the host and the rest",
    };
    const char *text = "";
    bool told[NUM_TERMS] = {false};
    for (int i = 0; i < NUM_TERMS; i++) {
        int most = -1;
        for (int t = 0; t < NUM_TERMS; t++)
            if (WORDS[t] && !told[t] && (most < 0 || e->term_s[t] > e->term_s[most])) most = t;
        if (most < 0 || e->term_s[most] < 1e-3 * e->step_time_s) break;
        told[most] = true;
        char percent[UNITS_SIZE];
        text = arena_printf(arena, "%s%s%s %s", text, text[0] ? ", " : "", WORDS[most],
                            units_percent(e->term_s[most] / e->step_time_s, percent));
    }
    return text[0] ? text : "nothing";
}

static const char *idle_text(const Scenario *scenario, Arena *arena) {
    const Cluster *cluster = &scenario->cluster;
    if (cluster->idle_gpus == 0) return "";
    return arena_printf(arena, " (%d of %d stay idle, and are paid for)", cluster->idle_gpus,
                        cluster_total_gpus(cluster));
}

const char *summary_of_plan(const PlanView *view, Arena *arena) {
    const Estimate *e = view->estimate;
    const Scenario *scenario = view->scenario;
    const TrainingJob *training = &scenario->training;
    char step[UNITS_SIZE], low[UNITS_SIZE], high[UNITS_SIZE], rate[UNITS_SIZE], mfu[UNITS_SIZE];
    char tokens[UNITS_SIZE], usd[UNITS_SIZE];
    units_seconds(e->step_time_s, step);
    units_seconds(e->step_time_low_s, low);
    units_seconds(e->step_time_high_s, high);
    units_count(e->tokens_per_s, rate);
    units_percent(e->mfu_frac, mfu);
    units_count((double)training->seq_len * (double)training->global_batch, tokens);
    units_usd(e->usd_per_1e9_tokens, usd);
    return arena_printf(
        arena,
        "To train %s on %d GPUs%s: %s. %sOne step of %lld sequences (%s tokens) should take %s; "
        "with "
        "80 %% certainty it takes between %s and %s. That is %s tokens a second, %s of what the "
        "GPUs could compute at their best, at %s for a billion tokens. %s What a step waits for "
        "besides computing: %s.",
        scenario->model.name, scenario->cluster.num_gpus, idle_text(scenario, arena),
        splits_text(view->plan, arena), saving_text(view->plan, arena),
        (long long)training->global_batch, tokens, step, low, high, rate, mfu, usd,
        memory_text(e, arena), waits_text(e, arena));
}

const char *summary_of_simulation(const PlanView *view, Arena *arena) {
    const SimResult *result = view->simulation;
    char step[UNITS_SIZE];
    if (!result) return NULL;
    units_seconds(result->step_time_s, step);
    const double difference = result->step_time_s / result->estimate_step_time_s - 1;
    const char *beside = fabs(difference) < 5e-4 ? "as estimated"
                                                 : arena_printf(arena, "%.1f %% %s than estimated",
                                                                fabs(difference) * 100,
                                                                difference < 0 ? "less" : "more");
    return arena_printf(arena,
                        "Played message by message on a simulated network with shared links it "
                        "takes %s, %s.",
                        step, beside);
}

// The best of a list that comes without its plan.
static const char *best_text(const JsonNode *best, Arena *arena) {
    char step[UNITS_SIZE];
    double step_s;
    const JsonNode parallel = json_get(best, "parallel");
    if (number_at(best, "step_time_s", true, &step_s).code != STATUS_OK) return "";
    return arena_printf(arena, "The first plan, %s, takes %s a step. ",
                        parallel_describe(parallel.item, arena), units_seconds(step_s, step));
}

static const char *goodput_text(const JsonNode *root, Arena *arena) {
    const JsonNode goodput = json_get(root, "goodput");
    double share, steps, spares;
    char interval[UNITS_SIZE];
    double interval_s;
    const JsonNode spare = json_get(&goodput, "spares");
    if (number_at(&goodput, "goodput_frac", true, &share).code != STATUS_OK ||
        number_at(&goodput, "checkpoint_every_steps", true, &steps).code != STATUS_OK ||
        number_at(&goodput, "checkpoint_interval_s", true, &interval_s).code != STATUS_OK ||
        number_at(&spare, "num_nodes", true, &spares).code != STATUS_OK)
        return NULL;
    return arena_printf(arena,
                        "With failures %.1f %% of the time is progress, with a checkpoint every "
                        "%.0f steps (%s) and %.0f spare nodes.",
                        share * 100, steps, units_span(interval_s, interval), spares);
}

// A figure of a point: of what was played, where it was; NAN where it has none or does not fit.
static double point_number(const JsonNode *point, const char *key) {
    const JsonNode answer = json_get(point, "answer"), fits = json_get(&answer, "fits");
    const JsonNode simulated = json_get(&answer, "simulated"), played = json_get(&simulated, key);
    double value;
    const Status status =
        number_at(json_is_present(&played) ? &simulated : &answer, key, true, &value);
    return status.code == STATUS_OK && !cJSON_IsFalse(fits.item) ? value : NAN;
}

// "cluster.num_gpus 64, training.seq_len 4096"
static const char *point_name(const JsonNode *point, Arena *arena) {
    const JsonNode values = json_get(point, "values");
    const char *text = "";
    const cJSON *value;
    cJSON_ArrayForEach(value, values.item) {
        char *printed = cJSON_IsString(value) ? NULL : cJSON_PrintUnformatted(value);
        text = arena_printf(arena, "%s%s%s %s", text, text[0] ? ", " : "", value->string,
                            printed ? printed : value->valuestring);
        cJSON_free(printed);
    }
    return text;
}

static const char *grid_text(const JsonNode *root, Arena *arena) {
    const JsonNode points = json_get(root, "points");
    JsonNode most = {0}, cheapest = {0};
    double best = 0, worst = INFINITY, usd = INFINITY, dearest = 0;
    int num_fit = 0;
    for (JsonNode point = json_at(&points, 0); point.item; point = json_next(&point)) {
        const double rate = point_number(&point, "tokens_per_s");
        const double cost = point_number(&point, "usd_per_1e9_tokens");
        if (isnan(rate)) continue;
        num_fit++;
        if (rate > best) most = point;
        if (cost > 0 && cost < usd) cheapest = point;
        best = fmax(best, rate);
        worst = fmin(worst, rate);
        if (cost > 0) usd = fmin(usd, cost);
        if (cost > 0) dearest = fmax(dearest, cost);
    }
    char high[UNITS_SIZE], low[UNITS_SIZE], price[UNITS_SIZE];
    if (num_fit == 0) return "Of the changes that were asked none fits.";
    const char *text =
        arena_printf(arena, "Of %d changes that were asked %d fit.", json_size(&points), num_fit);
    if (best > worst)
        text = arena_printf(arena, "%s Tokens a second: most, %s, with %s; fewest are %s.", text,
                            units_count(best, high), point_name(&most, arena),
                            units_count(worst, low));
    if (dearest > usd)
        text = arena_printf(arena, "%s A billion tokens cost least, %s, with %s.", text,
                            units_usd(usd, price), point_name(&cheapest, arena));
    return text;
}

const char *summary_of_answer(const Answer *answer, bool with_plan, Arena *arena) {
    if (answer->kind == ANSWER_GOODPUT) return goodput_text(&answer->root, arena);
    if (answer->kind == ANSWER_COMPARISON) return compare_verdict(&answer->root, arena);
    if (answer->kind == ANSWER_GRID) return grid_text(&answer->root, arena);
    if (answer->kind == ANSWER_SENSITIVITY) return sensitivity_limit_text(&answer->root, arena);
    if (answer->kind != ANSWER_PLANS) return NULL;
    const JsonNode plans = json_get(&answer->root, "plans");
    const JsonNode best = json_at(&plans, 0), second = json_at(&plans, 1);
    const JsonNode noise = json_get(&second, "within_noise_of_best");
    const JsonNode parallel = json_get(&second, "parallel");
    const char *first = with_plan ? "" : best_text(&best, arena);
    double best_s, second_s;
    const JsonNode axes = json_get(&answer->root, "pareto");
    if (json_size(&plans) == 0)
        return "Nothing fits: no way to split this job leaves every GPU enough memory.";
    if (number_at(&best, "step_time_s", true, &best_s).code != STATUS_OK ||
        number_at(&second, "step_time_s", true, &second_s).code != STATUS_OK)
        return first[0] ? first : NULL;
    if (json_is_present(&axes)) return first[0] ? first : NULL; // a trade, not a ranking
    return arena_printf(
        arena, "%sThe next one, %s, takes %.2f %% %s%s.", first,
        parallel_describe(parallel.item, arena), fabs(second_s / best_s - 1) * 100,
        second_s < best_s ? "less" : "more",
        cJSON_IsTrue(noise.item) ? ", which is within the noise: try both if you can" : "");
}
