// `calibrate --steps`: whole-step parameters and spreads from published steps.
#include "base/data_dir.h"
#include "calibrate/step_groups.h"
#include "calibrate/step_spread.h"
#include "cli/calibrate/calibrate.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "report/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The value of a parameter: of an architecture whose GPUs differ, the range of it.
static const char *value_text(const StepParameter *p, double log_factor, Arena *arena) {
    double low = p->low * exp(log_factor), high = p->high * exp(log_factor);
    if (low == high) return arena_printf(arena, "%.4g", low);
    return arena_printf(arena, "%.4g-%.4g", low, high);
}

static int compare_parameters(const void *a, const void *b) {
    const StepParameter *x = *(const StepParameter *const *)a,
                        *y = *(const StepParameter *const *)b;
    if (x->quantity != y->quantity) return x->quantity < y->quantity ? -1 : 1;
    return strcmp(x->owner, y->owner);
}

// The parameters that any step tells of, by name and owner; returns how many.
static int parameters_sort(const StepFit *fit, const StepParameter **sorted) {
    int n = 0;
    for (int k = 0; k < fit->rows.num_parameters; k++)
        if (fit->parameters[k].num_rows > 0) sorted[n++] = &fit->rows.parameters[k];
    qsort(sorted, (size_t)n, sizeof *sorted, compare_parameters);
    return n;
}

static void parameters_print(const StepFit *fit, const Paper *paper, Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"parameter", false, 0}, {"of", false, 0},    {"unit", false, 0},    {"in files", true, 0},
        {"fitted", true, 0},     {"spread", true, 0}, {"families", true, 0}, {"rows", true, 0},
    };
    Table table = table_new(arena, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    const StepParameter *sorted[STEP_MAX_PARAMETERS];
    int num_parameters = parameters_sort(fit, sorted);
    for (int k = 0; k < num_parameters; k++) {
        const StepParameter *p = sorted[k];
        const StepParameterFit *f = &fit->parameters[p - fit->rows.parameters];
        const char *cells[] = {
            p->quantity->name,
            p->owner,
            p->quantity->unit,
            value_text(p, 0, arena),
            value_text(p, p->log_factor, arena),
            isnan(f->spread) ? "-" : arena_printf(arena, "%.1f %%", 100 * f->spread),
            arena_printf(arena, "%d", f->num_families),
            arena_printf(arena, "%d", f->num_rows),
        };
        table_add(&table, STYLE_PLAIN, cells, NULL);
    }
    paper_heading(paper, "Parameters");
    table_print(&table, paper);
}

static void families_print(const StepFit *fit, const Paper *paper, Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"family", false, 0},  {"rows", true, 0},     {"in files", true, 0},
        {"included", true, 0}, {"left out", true, 0},
    };
    Table table = table_new(arena, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    double sum[3] = {0};
    for (int f = 0; f < fit->num_families; f++) {
        const StepFamily *family = &fit->families[f];
        const double fracs[] = {family->before_frac, family->included_frac, family->left_out_frac};
        const char *cells[5] = {family->name, arena_printf(arena, "%d", family->num_rows)};
        for (int i = 0; i < 3; i++) {
            cells[2 + i] = arena_printf(arena, "%.1f %%", 100 * fracs[i]);
            sum[i] += fracs[i] / fit->num_families;
        }
        table_add(&table, STYLE_PLAIN, cells, NULL);
    }
    const char *cells[5] = {"mean of families", ""};
    for (int i = 0; i < 3; i++) cells[2 + i] = arena_printf(arena, "%.1f %%", 100 * sum[i]);
    table_add(&table, STYLE_BOLD, cells, NULL);
    putchar('\n');
    paper_heading(paper, "Mean error of each family");
    table_print(&table, paper);
}

static void groups_print(const StepFit *fit, unsigned by, const Paper *paper, Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"", false, 0},        {"rows", true, 0},
        {"families", true, 0}, {"bias in files", true, 0},
        {"error", true, 0},    {"bias included", true, 0},
        {"error", true, 0},    {"bias left out", true, 0},
        {"error", true, 0},
    };
    Table table = table_new(arena, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (StepBy k = 0; k < NUM_STEP_BY; k++) {
        const StepGroup *groups;
        const int num = by & 1u << k ? step_groups(fit, k, arena, &groups) : 0;
        for (int i = 0; i < num; i++) {
            const StepGroup *g = &groups[i];
            const StepErrors errors[] = {g->in_files, g->included, g->left_out};
            const char *cells[9] = {g->name, arena_printf(arena, "%d", g->num_rows),
                                    arena_printf(arena, "%d", g->num_families)};
            for (int e = 0; e < 3; e++) {
                cells[3 + 2 * e] = arena_printf(arena, "%.1f %%", 100 * errors[e].bias_frac);
                cells[4 + 2 * e] = arena_printf(arena, "%.1f %%", 100 * errors[e].mean_frac);
            }
            table_add(&table, STYLE_PLAIN, cells, NULL);
        }
    }
    putchar('\n');
    paper_heading(paper, "Bias and mean error of groups of 15 steps and more");
    table_print(&table, paper);
}

static void spreads_print(const StepFit *fit, const StepSpread *spread, const Paper *paper,
                          Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"part", false, 0}, {"prior", true, 0}, {"of a site", true, 0}, {"of a run", true, 0}};
    Table table = table_new(arena, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (int k = 0; k <= NUM_PARTS; k++) {
        double value = k < NUM_PARTS ? spread->run_spread[k] : spread->step_spread;
        const char *cells[] = {k < NUM_PARTS ? PART_NAMES[k] : "step",
                               arena_printf(arena, "%.3f", STEP_SPREAD_PRIORS[k]),
                               k < NUM_PARTS ? arena_printf(arena, "%.3f", spread->spread[k]) : "",
                               arena_printf(arena, "%.3f", value)};
        table_add(&table, STYLE_PLAIN, cells, NULL);
    }
    putchar('\n');
    paper_heading(paper, "Spreads (standard deviations of the log)");
    table_print(&table, paper);
    printf("\n%d steps of %d families on %d sites; %d left out. %.1f %% of them lie in the 80 %% "
           "interval of spreads\nthat were scaled by %.3f so that 80 %% do when families count "
           "alike.\n",
           fit->rows.num_rows, fit->num_families, spread->num_sites, fit->rows.num_refused,
           100 * spread->inside_frac, spread->scale);
}

// --- JSON

static cJSON *parameters_to_json(const StepFit *fit) {
    cJSON *list = cJSON_CreateArray();
    const StepParameter *sorted[STEP_MAX_PARAMETERS];
    int num_parameters = parameters_sort(fit, sorted);
    for (int k = 0; k < num_parameters; k++) {
        const StepParameter *p = sorted[k];
        const StepParameterFit *f = &fit->parameters[p - fit->rows.parameters];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "parameter", p->quantity->name);
        cJSON_AddStringToObject(object, p->quantity->of_stack ? "stack" : "architecture", p->owner);
        cJSON_AddStringToObject(object, "unit", p->quantity->unit);
        json_add_number(object, "low_in_files", p->low);
        json_add_number(object, "high_in_files", p->high);
        json_add_number(object, "factor", exp(p->log_factor));
        json_add_number(object, "spread", f->spread);
        json_add_number(object, "num_families", f->num_families);
        json_add_number(object, "num_rows", f->num_rows);
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

static cJSON *families_to_json(const StepFit *fit) {
    cJSON *list = cJSON_CreateArray();
    for (int f = 0; f < fit->num_families; f++) {
        const StepFamily *family = &fit->families[f];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "family", family->name);
        json_add_number(object, "num_rows", family->num_rows);
        json_add_number(object, "in_files_frac", family->before_frac);
        json_add_number(object, "included_frac", family->included_frac);
        json_add_number(object, "left_out_frac", family->left_out_frac);
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

static void errors_to_json(cJSON *object, const char *key, StepErrors errors) {
    cJSON *pair = cJSON_AddObjectToObject(object, key);
    json_add_number(pair, "bias_frac", errors.bias_frac);
    json_add_number(pair, "mean_frac", errors.mean_frac);
}

static cJSON *groups_to_json(const StepFit *fit, unsigned by, Arena *arena) {
    cJSON *list = cJSON_CreateArray();
    for (StepBy k = 0; k < NUM_STEP_BY; k++) {
        const StepGroup *groups;
        const int num = by & 1u << k ? step_groups(fit, k, arena, &groups) : 0;
        for (int i = 0; i < num; i++) {
            cJSON *object = cJSON_CreateObject();
            cJSON_AddStringToObject(object, "by", STEP_BY_NAMES[k]);
            cJSON_AddStringToObject(object, "group", groups[i].name);
            json_add_number(object, "num_rows", groups[i].num_rows);
            json_add_number(object, "num_families", groups[i].num_families);
            errors_to_json(object, "in_files", groups[i].in_files);
            errors_to_json(object, "included", groups[i].included);
            errors_to_json(object, "left_out", groups[i].left_out);
            cJSON_AddItemToArray(list, object);
        }
    }
    return list;
}

static Status fit_print_json(const StepFit *fit, const StepSpread *spread, unsigned by,
                             Arena *arena) {
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    json_add_number(tree, "num_steps", fit->rows.num_rows);
    json_add_number(tree, "num_left_out", fit->rows.num_refused);
    cJSON_AddItemToObject(tree, "parameters", parameters_to_json(fit));
    cJSON_AddItemToObject(tree, "families", families_to_json(fit));
    if (by) cJSON_AddItemToObject(tree, "groups", groups_to_json(fit, by, arena));
    cJSON *spreads = cJSON_AddObjectToObject(tree, "spread");
    for (int k = 0; k < NUM_PARTS; k++) json_add_number(spreads, PART_NAMES[k], spread->spread[k]);
    cJSON *runs = cJSON_AddObjectToObject(tree, "run_spread");
    for (int k = 0; k < NUM_PARTS; k++) json_add_number(runs, PART_NAMES[k], spread->run_spread[k]);
    json_add_number(tree, "step_spread", spread->step_spread);
    json_add_number(tree, "inside_interval_frac", spread->inside_frac);
    return answer_json(tree);
}

// --- The document

static void provenance_add(const StepFit *fit, const cJSON *bundled_sources, cJSON *tree) {
    static const char *const KEPT[] = {"inherited_spread", "foreign_spread", "octave_spread"};
    cJSON *measured = cJSON_AddObjectToObject(tree, "measured");
    cJSON_AddStringToObject(measured, "command", "meshwright calibrate --steps FILE -o FILE");
    cJSON_AddStringToObject(measured, "version", MESHWRIGHT_VERSION);
    json_add_number(measured, "num_steps", fit->rows.num_rows);
    json_add_number(measured, "num_families", fit->num_families);
    cJSON *sources = cJSON_AddObjectToObject(tree, "sources");
    cJSON_AddStringToObject(sources, "spread",
                            "variance components of the errors of published steps, each family "
                            "predicted by a fit without it; calibrate/step_spread.h");
    cJSON_AddStringToObject(sources, "run_spread", "the same fit");
    cJSON_AddStringToObject(sources, "step_spread", "the same fit");
    cJSON_AddStringToObject(sources, "num_nodes", "the largest of those steps");
    for (int i = 0; i < 3; i++) {
        const cJSON *text = cJSON_GetObjectItemCaseSensitive(bundled_sources, KEPT[i]);
        if (cJSON_IsString(text)) cJSON_AddStringToObject(sources, KEPT[i], text->valuestring);
    }
}

// What the fit does not tell stays as in the bundled document.
static Status document_save(const StepFit *fit, const StepSpread *spread, const char *path,
                            Arena *arena) {
    const Calibration *bundled;
    JsonNode root;
    TRY(calibration_load_default(arena, &bundled));
    TRY(json_load(data_path(arena, "hw-profiles", "steps"), arena, &root));
    Calibration c = *bundled;
    memset(c.covariance, 0, sizeof c.covariance);
    for (int k = 0; k < NUM_PARTS; k++) {
        c.factor[k] = 1;
        c.covariance[k][k] = spread->spread[k] * spread->spread[k];
        c.run_spread[k] = spread->run_spread[k];
    }
    c.step_spread = spread->step_spread;
    c.num_nodes = spread->num_nodes;
    cJSON *tree = calibration_to_json(&c);
    cJSON_DeleteItemFromObject(tree, "correlation");
    provenance_add(fit, json_get(&root, "sources").item, tree);
    Status status = json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}

Status calibrate_steps(const char *steps, const char *output, unsigned by, bool json,
                       Arena *arena) {
    PublishedCase *published;
    int num_cases;
    TRY(published_load(steps, arena, &published, &num_cases));
    Progress progress = progress_start();
    StepFit fit;
    Status status = step_fit(published, num_cases, progress_show, &progress, arena, &fit);
    progress_end(&progress);
    if (status.code == STATUS_INVALID)
        return status_at(STATUS_INVALID, steps, "", "%s", status.text);
    TRY(status);
    if (fit.num_families == 1)
        fprintf(stderr,
                "%s: one family (%s): none could be left out, so that the errors are those of "
                "the fit and no value has a spread\n",
                steps, fit.families[0].name);
    StepSpread spread = step_spread_fit(&fit.rows, fit.left_out);
    if (output) TRY(document_save(&fit, &spread, output, arena));
    if (json) return fit_print_json(&fit, &spread, by, arena);
    Paper paper = paper_of(stdout);
    parameters_print(&fit, &paper, arena);
    families_print(&fit, &paper, arena);
    if (by) groups_print(&fit, by, &paper, arena);
    spreads_print(&fit, &spread, &paper, arena);
    return status_ok();
}
