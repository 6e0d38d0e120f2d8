// What-if: grids of changes as curves.
#include "plan/plan.h"
#include "report/answer_sections.h"
#include "report/grid_figures.h"

#include <math.h>
#include <string.h>

enum { MAX_AXES = 16 };

typedef struct {
    const char *paths[MAX_AXES];
    int num_axes;
} Axes;

static Status axes_read(const JsonNode *root, Arena *arena, Axes *out) {
    const JsonNode vary = json_get(root, "vary");
    TRY(json_expect_items(&vary, "axes", MAX_AXES, &out->num_axes));
    for (int i = 0; i < out->num_axes; i++) {
        const JsonNode axis = json_at(&vary, i), path = json_get(&axis, "path");
        TRY(json_read_string(&path, arena, &out->paths[i]));
    }
    return status_ok();
}

static const char *point_text(const JsonNode *point, const JsonNode *answer) {
    const JsonNode simulated = json_get(answer, "simulated");
    const JsonNode not_played = json_get(&simulated, "not_played");
    const cJSON *first = cJSON_GetArrayItem(not_played.item, 0);
    if (cJSON_IsString(first)) return first->valuestring;
    const JsonNode error = json_get(point, "error"), fits = json_get(answer, "fits");
    if (cJSON_IsString(error.item)) return error.item->valuestring;
    return cJSON_IsFalse(fits.item) ? "does not fit" : "";
}

// A figure of a point: of what was played, where it was; the estimate's interval is not of that.
static Status point_figure(const JsonNode *answer, GridFigure figure, double *value) {
    const JsonNode simulated = json_get(answer, "simulated");
    const char *key = GRID_FIGURES[figure].key;
    *value = NAN;
    if (!json_is_present(answer)) return status_ok();
    if (!json_is_present(&simulated))
        return number_at(answer, key, figure == GRID_STEP_TIME, value);
    if (figure == GRID_STEP_TIME_LOW || figure == GRID_STEP_TIME_HIGH) return status_ok();
    const JsonNode played = json_get(&simulated, key);
    return number_at(json_is_present(&played) ? &simulated : answer, key, figure == GRID_STEP_TIME,
                     value);
}

static Status point_row(cJSON *section, const JsonNode *point, const Axes *axes, Arena *arena) {
    const JsonNode values = json_get(point, "values"), answer = json_get(point, "answer");
    const JsonNode parallel = json_get(&answer, "parallel");
    TRY(json_expect_object(&values));
    cJSON *row = section_row(section);
    for (int i = 0; i < axes->num_axes; i++)
        row_value(row, cJSON_GetObjectItemCaseSensitive(values.item, axes->paths[i]));
    for (int k = 0; k < NUM_GRID_FIGURES; k++) {
        double value;
        TRY(point_figure(&answer, (GridFigure)k, &value));
        row_number(row, value);
    }
    row_text(row, json_is_present(&parallel) ? parallel_describe(parallel.item, arena) : NULL);
    row_text(row, point_text(point, &answer));
    return status_ok();
}

// Whether points differ in their cost alone: where only a price is varied.
static bool only_cost_changes(const JsonNode *points) {
    double step_s = 0, usd = 0;
    bool first = true, differs = false;
    for (JsonNode point = json_at(points, 0); point.item; point = json_next(&point)) {
        const JsonNode answer = json_get(&point, "answer");
        double one_s, one_usd;
        if (!json_is_present(&answer)) continue;
        if (point_figure(&answer, GRID_STEP_TIME, &one_s).code != STATUS_OK ||
            point_figure(&answer, GRID_COST, &one_usd).code != STATUS_OK || isnan(one_usd))
            return false;
        if (!first && one_s != step_s) return false;
        differs |= !first && one_usd != usd;
        step_s = one_s;
        usd = one_usd;
        first = false;
    }
    return differs;
}

// "num_gpus and seq_len": the last keys of what varies.
static const char *varied_text(const Axes *axes, Arena *arena) {
    const char *text = "";
    for (int i = 0; i < axes->num_axes; i++) {
        const char *dot = strrchr(axes->paths[i], '.');
        const char *join = i == 0 ? "" : i + 1 < axes->num_axes ? ", " : " and ";
        text = arena_printf(arena, "%s%s%s", text, join, dot ? dot + 1 : axes->paths[i]);
    }
    return text;
}

Status grid_sections(Document *document, const Answer *answer, Arena *arena) {
    const JsonNode points = json_get(&answer->root, "points");
    const JsonNode replan = json_get(&answer->root, "replan");
    DocumentColumn columns[MAX_AXES + NUM_GRID_FIGURES + 2];
    Axes axes;
    TRY(axes_read(&answer->root, arena, &axes));
    TRY(json_expect_array(&points));
    for (int i = 0; i < axes.num_axes; i++)
        columns[i] = (DocumentColumn){axes.paths[i], axes.paths[i]};
    memcpy(columns + axes.num_axes, GRID_FIGURES, NUM_GRID_FIGURES * sizeof *GRID_FIGURES);
    columns[axes.num_axes + NUM_GRID_FIGURES] = (DocumentColumn){"plan", "plan"};
    columns[axes.num_axes + NUM_GRID_FIGURES + 1] = (DocumentColumn){"note", "note"};
    const int num_points = json_size(&points);
    const int num_rows = num_points < SECTION_MAX_ROWS ? num_points : SECTION_MAX_ROWS;
    const bool cost = only_cost_changes(&points);
    const char *varied = varied_text(&axes, arena);
    const SectionSpec spec = {
        .id = "whatif",
        .title = arena_printf(arena, "%s over %s", cost ? "Cost" : "Step time", varied),
        .text = cost ? "The step is the same at every point; points that do not fit or are not "
                       "legal are in the table alone."
                     : "Lines are estimates, bands their 80 % intervals; points that do not fit "
                       "or are not legal are in the table alone.",
        .chart = "curve",
        .columns = columns,
        .num_columns = axes.num_axes + NUM_GRID_FIGURES + 2,
    };
    const JsonNode played = json_get(&answer->root, "played");
    document_part(document,
                  answer_title(answer, arena_printf(arena, "What if %s changes", varied), arena),
                  arena_printf(arena, "%s%s",
                               cJSON_IsTrue(replan.item) ? "Planned anew at each point."
                                                         : "The same plan at each point.",
                               cJSON_IsTrue(played.item)
                                   ? " Disturbed as the scenario says, and played in the simulator."
                                   : ""));
    cJSON *section = document_section(document, &spec);
    cJSON_AddNumberToObject(section_data(section), "num_axes", axes.num_axes);
    cJSON_AddStringToObject(section_data(section), "figure",
                            cost ? "usd_per_1e9_tokens" : "step_time_s");
    for (int i = 0; i < num_rows; i++) {
        const JsonNode point = json_at(&points, i);
        TRY(point_row(section, &point, &axes, arena));
    }
    if (num_rows < num_points)
        section_add_text(section, arena_printf(arena, "The first %d of %d points are shown.",
                                               num_rows, num_points));
    return status_ok();
}
