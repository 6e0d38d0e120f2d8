#include "calibrate/step_rows.h"

#include "costmodel/step/estimate.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

static const double DIFFERENCE = 0.05; // of the log, for slopes

#define OF_GPU(key, unit)                                                                          \
    { #key, unit, false, offsetof(GpuEfficiency, key) }
#define OF_STACK(key, unit)                                                                        \
    { #key, unit, true, offsetof(Stack, launch.key) }

const StepQuantity STEP_QUANTITIES[] = {
    OF_GPU(full_rate_watts, "W"), OF_GPU(light_rate_watts, "W"), OF_GPU(power_exponent, ""),
    OF_STACK(host_layer_s, "s"),  OF_STACK(moe_sync_s, "s"),     OF_STACK(host_expert_s, "s"),
};
const int NUM_STEP_QUANTITIES = sizeof STEP_QUANTITIES / sizeof *STEP_QUANTITIES;

static double *quantity_of(const StepQuantity *quantity, Scenario *scenario) {
    char *owner = quantity->of_stack ? (char *)&scenario->execution.stack
                                     : (char *)&scenario->cluster.pools[0].gpu.efficiency;
    return (double *)(void *)(owner + quantity->offset);
}

// The parameter's index, made where it is new; -1 where it is zero in the files: no factor moves
// it.
static int parameter_of(StepRows *rows, const StepQuantity *quantity, Scenario *scenario,
                        Arena *arena) {
    const char *owner = quantity->of_stack ? scenario->execution.stack.name
                                           : scenario->cluster.pools[0].gpu.architecture;
    double value = *quantity_of(quantity, scenario);
    if (value <= 0) return -1;
    int i = 0;
    for (; i < rows->num_parameters; i++)
        if (rows->parameters[i].quantity == quantity &&
            strcmp(rows->parameters[i].owner, owner) == 0)
            break;
    StepParameter *p = &rows->parameters[i];
    if (i == rows->num_parameters) {
        if (i == STEP_MAX_PARAMETERS) return -1;
        *p = (StepParameter){
            .quantity = quantity, .owner = arena_strdup(arena, owner), .low = value, .high = value};
        rows->num_parameters++;
    }
    p->low = fmin(p->low, value);
    p->high = fmax(p->high, value);
    return i;
}

static Status step_s(const Scenario *scenario, const Plan *plan, Arena *scratch, double *time_s) {
    Estimate estimate;
    TRY(estimate_plan(scenario, plan, scratch, &estimate, NULL));
    *time_s = estimate.step_time_s;
    return status_ok();
}

// How the log of the prediction moves with each parameter, at the factors found so far.
static Status slopes_add(const StepRows *rows, Scenario *scenario, const Plan *plan, Arena *scratch,
                         StepRow *row) {
    for (int i = 0; i < row->num_parameters; i++) {
        double *quantity = quantity_of(rows->parameters[row->parameter[i]].quantity, scenario);
        double value = *quantity, low_s, high_s;
        *quantity = value * exp(-DIFFERENCE);
        TRY(step_s(scenario, plan, scratch, &low_s));
        *quantity = value * exp(DIFFERENCE);
        TRY(step_s(scenario, plan, scratch, &high_s));
        *quantity = value;
        row->slope[i] = log(high_s / low_s) / (2 * DIFFERENCE);
    }
    return status_ok();
}

static Status row_predict(StepRows *rows, Arena *scratch, Arena *arena, StepRow *row) {
    Scenario scenario;
    Plan plan;
    Estimate e;
    TRY(scenario_read(&row->published->scenario, scratch, &scenario));
    TRY(scenario_refuse_unsupported(&scenario));
    TRY(plan_resolve(&scenario, scratch, &plan));
    for (int i = 0; i < NUM_STEP_QUANTITIES && row->num_parameters < STEP_ROW_PARAMETERS; i++) {
        int parameter = parameter_of(rows, &STEP_QUANTITIES[i], &scenario, arena);
        if (parameter < 0) continue;
        *quantity_of(&STEP_QUANTITIES[i], &scenario) *= exp(rows->parameters[parameter].log_factor);
        row->parameter[row->num_parameters++] = parameter;
    }
    TRY(estimate_plan(&scenario, &plan, scratch, &e, NULL));
    const PublishedTruth *truth = &row->published->truth;
    row->measured_s =
        truth->step_time_s > 0 ? truth->step_time_s : e.step_time_s * e.mfu_frac / truth->mfu_frac;
    row->predicted_s = e.step_time_s;
    row->log_ratio = log(row->measured_s / row->predicted_s);
    row->known_variance = e.known_variance;
    row->num_nodes = scenario.cluster.num_nodes;
    memcpy(row->part_s, e.part_s, sizeof row->part_s);
    row->gpu = arena_printf(arena, "%s", scenario.cluster.pools[0].gpu.name);
    row->site = arena_printf(arena, "%s\n%s", row->published->family, row->gpu);
    row->num_experts = model_ffn(&scenario.model)->num_experts;
    row->tp = plan.tp;
    return slopes_add(rows, &scenario, &plan, scratch, row);
}

Status step_rows_predict(const PublishedCase *published, int num_cases, ValidateProgress progress,
                         void *context, Arena *arena, StepRows *rows) {
    if (!rows->rows) rows->rows = ARENA_ARRAY(arena, num_cases, StepRow);
    rows->num_rows = rows->num_refused = 0;
    Arena scratch = {0};
    Status status = status_ok();
    for (int i = 0; i < num_cases && status.code != STATUS_MACHINE; i++) {
        if (progress) progress(context, "steps", i, num_cases);
        arena_reset(&scratch);
        StepRow row = {.published = &published[i]};
        status = published[i].stated ? row_predict(rows, &scratch, arena, &row)
                                     : status_error(STATUS_INVALID, "not stated");
        if (status.code == STATUS_OK)
            rows->rows[rows->num_rows++] = row;
        else
            rows->num_refused++;
    }
    arena_free(&scratch);
    return status.code == STATUS_MACHINE ? status : status_ok();
}
