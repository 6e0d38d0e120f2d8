#include "config/kernels/kernel_nccl.h"

#include "config/machine/profile.h"

#include <math.h>

const char *const NCCL_OP_NAMES[NUM_NCCL_OPS + 1] = {"all_gather", "all_reduce", "alltoall",
                                                     "reduce_scatter", NULL};
const char *const NCCL_DTYPE_NAMES[NUM_NCCL_DTYPES + 1] = {"any", "half", "int8", NULL};

enum { MAX_CURVES = 256, MAX_POINTS = 64 };

double nccl_wire_frac(NcclOp op, double num_gpus) {
    double share = (num_gpus - 1) / num_gpus;
    return op == NCCL_ALL_REDUCE ? 2 * share : share;
}

double nccl_least_s(const Link *link, NcclOp op, double num_gpus, double bytes) {
    double wire = nccl_wire_frac(op, num_gpus);
    if (op == NCCL_ALL_REDUCE && link->in_switch_reduction) wire = 1;
    return wire * bytes / link->bandwidth_bytes_per_s;
}

static const JsonField FIELDS[] = {
    {"op", JSON_FIELD_NAME, offsetof(NcclCurve, op), 0, 0, NCCL_OP_NAMES, true},
    {"dtype", JSON_FIELD_NAME, offsetof(NcclCurve, dtype), 0, 0, NCCL_DTYPE_NAMES, true},
    {"num_gpus", JSON_FIELD_INT, offsetof(NcclCurve, num_gpus), 2, 1 << 20, NULL, true},
    {"residual_median_frac", JSON_FIELD_DOUBLE, offsetof(NcclCurve, residual_median_frac), 0, 10,
     NULL, true},
    {"residual_p90_frac", JSON_FIELD_DOUBLE, offsetof(NcclCurve, residual_p90_frac), 0, 10, NULL,
     true},
    {"time_s", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
};

static Status points_read(const JsonNode *node, Arena *arena, NcclCurve *out) {
    int num_points;
    TRY(json_expect_items(node, "points", MAX_POINTS, &num_points));
    double *bytes = ARENA_ARRAY(arena, num_points, double);
    double *seconds = ARENA_ARRAY(arena, num_points, double);
    for (int i = 0; i < num_points; i++) {
        JsonNode point = json_at(node, i);
        TRY(json_expect_array(&point));
        if (json_size(&point) != 2)
            return json_error(&point, "%d numbers; expected [bytes, seconds]", json_size(&point));
        JsonNode at = json_at(&point, 0), time = json_at(&point, 1);
        TRY(json_read_double(&at, 1, 1e15, &bytes[i]));
        TRY(json_read_double(&time, 1e-9, 1e5, &seconds[i]));
        if (i > 0 && bytes[i] <= bytes[i - 1])
            return json_error(&at, "%.6g does not lie above the bytes before it", bytes[i]);
    }
    out->num_points = num_points;
    out->bytes = bytes;
    out->seconds = seconds;
    return status_ok();
}

// Rounding of four digits aside.
static Status curve_check(const JsonNode *node, const NcclCurve *curve, const Link *link) {
    JsonNode points = json_get(node, "time_s");
    TRY(residuals_check(node, curve->residual_median_frac, curve->residual_p90_frac));
    for (int i = 0; i < curve->num_points && link; i++) {
        double least_s = nccl_least_s(link, (NcclOp)curve->op, curve->num_gpus, curve->bytes[i]);
        JsonNode point = json_at(&points, i);
        if (curve->seconds[i] * 1.0005 < least_s)
            return json_error(&point,
                              "%.4g s for %.0f bytes is beyond the %.4g bytes/s of %s; expected at "
                              "least %.4g s",
                              curve->seconds[i], curve->bytes[i], link->bandwidth_bytes_per_s,
                              link->name, least_s);
    }
    return status_ok();
}

Status nccl_kernels_read(const JsonNode *node, Arena *arena, NcclKernels *out) {
    static const JsonField SECTION[] = {
        {"link", JSON_FIELD_STRING, offsetof(NcclKernels, link), 0, 0, NULL, false},
        {"curves", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
    };
    NcclKernels read = {0};
    TRY(json_read_object(node, SECTION, sizeof SECTION / sizeof *SECTION, arena, &read));
    JsonNode list = json_get(node, "curves"), link_name = json_get(node, "link");
    Link link;
    if (read.link) TRY(link_load(&link_name, arena, &link));
    TRY(json_expect_array(&list));
    int num_curves = json_size(&list);
    if (num_curves > MAX_CURVES)
        return json_error(&list, "%d curves; expected at most %d", num_curves, MAX_CURVES);
    NcclCurve *curves = ARENA_ARRAY(arena, num_curves, NcclCurve);
    for (int i = 0; i < num_curves; i++) {
        JsonNode item = json_at(&list, i);
        TRY(json_read_object(&item, FIELDS, sizeof FIELDS / sizeof *FIELDS, arena, &curves[i]));
        JsonNode points = json_get(&item, "time_s"), gpus = json_get(&item, "num_gpus");
        TRY(points_read(&points, arena, &curves[i]));
        const NcclCurve *before = i > 0 ? &curves[i - 1] : NULL;
        if (before && before->op == curves[i].op && before->dtype == curves[i].dtype &&
            before->num_gpus >= curves[i].num_gpus)
            return json_error(&gpus, "%d does not lie above the curve before it",
                              curves[i].num_gpus);
        TRY(curve_check(&item, &curves[i], read.link ? &link : NULL));
    }
    read.switched = read.link && link.switched;
    read.num_curves = num_curves;
    read.curves = curves;
    *out = read;
    return status_ok();
}

// Raises seconds[i] to the time of the smaller group, where both were measured with as many bytes.
static void curve_raise(const NcclCurve *smaller, const NcclCurve *curve, double *seconds) {
    for (int i = 0, j = 0; i < curve->num_points; i++) {
        while (j < smaller->num_points && smaller->bytes[j] < curve->bytes[i]) j++;
        if (j < smaller->num_points && smaller->bytes[j] == curve->bytes[i])
            seconds[i] = fmax(seconds[i], smaller->seconds[j]);
    }
}

static const double *seconds_rising(const NcclCurve *curve, const NcclCurve *smaller,
                                    Arena *arena) {
    double *seconds = ARENA_ARRAY(arena, curve->num_points, double);
    double least_s = INFINITY;
    for (int i = curve->num_points - 1; i >= 0; i--)
        seconds[i] = least_s = fmin(least_s, curve->seconds[i]);
    if (smaller) curve_raise(smaller, curve, seconds);
    return seconds;
}

NcclKernels nccl_kernels_rising(const NcclKernels *kernels, Arena *arena) {
    NcclCurve *curves = ARENA_ARRAY(arena, kernels->num_curves, NcclCurve);
    for (int i = 0; i < kernels->num_curves; i++) {
        curves[i] = kernels->curves[i];
        bool same =
            i > 0 && curves[i - 1].op == curves[i].op && curves[i - 1].dtype == curves[i].dtype;
        curves[i].seconds =
            seconds_rising(&kernels->curves[i], same ? &curves[i - 1] : NULL, arena);
    }
    return (NcclKernels){kernels->num_curves, curves, kernels->link, kernels->switched};
}

static cJSON *curve_to_json(const NcclCurve *curve) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "op", NCCL_OP_NAMES[curve->op]);
    cJSON_AddStringToObject(object, "dtype", NCCL_DTYPE_NAMES[curve->dtype]);
    json_add_number(object, "num_gpus", curve->num_gpus);
    json_add_number(object, "residual_median_frac", curve->residual_median_frac);
    json_add_number(object, "residual_p90_frac", curve->residual_p90_frac);
    char text[MAX_POINTS * 32 + 3] = "[";
    size_t used = 1;
    for (int i = 0; i < curve->num_points; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s[%.0f,%.4g]", i ? "," : "",
                                 curve->bytes[i], curve->seconds[i]);
    snprintf(text + used, sizeof text - used, "]");
    cJSON_AddRawToObject(object, "time_s", text);
    return object;
}

cJSON *nccl_kernels_to_json(const NcclKernels *kernels) {
    cJSON *section = cJSON_CreateObject();
    if (kernels->link) cJSON_AddStringToObject(section, "link", kernels->link);
    cJSON *list = cJSON_AddArrayToObject(section, "curves");
    for (int i = 0; i < kernels->num_curves; i++)
        cJSON_AddItemToArray(list, curve_to_json(&kernels->curves[i]));
    return section;
}
