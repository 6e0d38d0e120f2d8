#include "calibrate/published.h"

#include "base/data_dir.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TEXT(key, field, required)                                                                 \
    { key, JSON_FIELD_STRING, offsetof(PublishedCase, field), 0, 0, NULL, required }
#define OBJECT(key)                                                                                \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, true }
#define NUMBER(field, min, max)                                                                    \
    { #field, JSON_FIELD_DOUBLE, offsetof(PublishedTruth, field), min, max, NULL, false }

static const JsonField CASE_FIELDS[] = {
    TEXT("id", id, true),
    TEXT("family", family, true),
    TEXT("source", source, false),
    {"gate", JSON_FIELD_BOOL, offsetof(PublishedCase, stated), 0, 0, NULL, false},
    OBJECT("scenario"),
    OBJECT("truth"),
    {"measured", JSON_FIELD_OTHER, 0, 0, 0, NULL, false}, // what else is known of the run; not read
};

// Bounds are far beyond any run: they catch milliseconds, gigabytes and per cent.
static const JsonField TRUTH_FIELDS[] = {
    NUMBER(step_time_s, 1e-6, 1e5),
    NUMBER(mfu_frac, 1e-6, 1),
    NUMBER(memory_peak_bytes, 1e6, 1e13),
    NUMBER(memory_reserved_bytes, 1e6, 1e13),
};

static Status case_read(const JsonNode *row, Arena *arena, PublishedCase *out) {
    *out = (PublishedCase){.stated = true};
    TRY(json_read_object(row, CASE_FIELDS, COUNT(CASE_FIELDS), arena, out));
    JsonNode truth = json_get(row, "truth");
    TRY(json_read_object(&truth, TRUTH_FIELDS, COUNT(TRUTH_FIELDS), arena, &out->truth));
    if (out->truth.step_time_s == 0 && out->truth.mfu_frac == 0)
        return json_error(&truth, "has neither step_time_s nor mfu_frac");
    JsonNode scenario = json_get(row, "scenario");
    TRY(json_expect_object(&scenario));
    out->scenario =
        (JsonNode){.file = arena_printf(arena, "%s: scenario", row->file), .item = scenario.item};
    return status_ok();
}

Status published_load(const char *path, Arena *arena, PublishedCase **out, int *num_cases) {
    JsonNode *rows;
    TRY(json_load_lines(path, arena, &rows, num_cases));
    *out = ARENA_ARRAY(arena, *num_cases, PublishedCase);
    for (int i = 0; i < *num_cases; i++) TRY(case_read(&rows[i], arena, &(*out)[i]));
    return status_ok();
}

Status published_load_bundled(Arena *arena, PublishedCase **out, int *num_cases) {
    const char *path = arena_printf(arena, "%s/published/training.jsonl", data_dir(arena));
    if (access(path, R_OK) != 0)
        return status_at(STATUS_MACHINE, path, "", "cannot be read: %s", strerror(errno));
    return published_load(path, arena, out, num_cases);
}
