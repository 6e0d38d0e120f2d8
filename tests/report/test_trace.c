// Traces parse, cover the timeline, and never overlap on a track.
#include "report/trace.h"

#include "costmodel/estimate.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    Arena arena;
    Scenario scenario;
    Plan plan;
    Estimate estimate;
    EstimateParts parts;
    JsonNode root; // of the trace
    const cJSON *events;
} TraceCase;

static void case_build(TraceCase *c, const char *model, const char *parallel, bool operators) {
    *c = (TraceCase){0};
    const char *text = scenario_text(
        &c->arena, model, "\"dgx-h100:2\"",
        "{\"seq_len\": 2048, \"global_batch\": 32, \"precision\": \"bf16\"}", parallel);
    Status status = scenario_of(text, &c->arena, &c->scenario);
    if (status.code == STATUS_OK) status = plan_resolve(&c->scenario, &c->arena, &c->plan);
    if (status.code == STATUS_OK)
        status = estimate_plan(&c->scenario, &c->plan, &c->arena, &c->estimate, &c->parts);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    char path[] = "/tmp/meshwright-trace-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    const TraceTimeline timeline = {"estimate", (const double *const *)c->parts.timeline.start_s,
                                    (const double *const *)c->parts.timeline.end_s,
                                    c->parts.timeline.step_time_s};
    const TraceTimeline timelines[] = {
        timeline, {"simulation", timeline.start_s, timeline.end_s, timeline.step_time_s}};
    const TraceContext context = {.scenario = &c->scenario,
                                  .plan = &c->plan,
                                  .program = &c->parts.program,
                                  .workload = &c->parts.workload,
                                  .operators = operators};
    status = trace_save(path, &context, timelines, 2);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    status = json_load(path, &c->arena, &c->root);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    unlink(path);
    c->events = cJSON_GetObjectItemCaseSensitive(c->root.item, "traceEvents");
    CU_ASSERT_TRUE_FATAL(cJSON_IsArray(c->events));
}

static double number(const cJSON *event, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static const char *string(const cJSON *event, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

typedef struct {
    int pid, tid;
    int64_t start_ns, end_ns;
} Slice;

// By track, then start, the enclosing slice first.
static int slice_compare(const void *a, const void *b) {
    const Slice *x = a, *y = b;
    if (x->pid != y->pid) return x->pid - y->pid;
    if (x->tid != y->tid) return x->tid - y->tid;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static Slice *slices_of(TraceCase *c, int *num_slices) {
    Slice *slices = ARENA_ARRAY(&c->arena, cJSON_GetArraySize(c->events), Slice);
    const cJSON *event;
    int n = 0;
    cJSON_ArrayForEach(event, c->events) {
        if (strcmp(string(event, "ph"), "X") != 0) continue;
        int64_t start_ns = llround(number(event, "ts") * 1e3);
        slices[n++] = (Slice){(int)number(event, "pid"), (int)number(event, "tid"), start_ns,
                              start_ns + llround(number(event, "dur") * 1e3)};
    }
    qsort(slices, (size_t)n, sizeof *slices, slice_compare);
    *num_slices = n;
    return slices;
}

// Slices of one track follow each other or lie one in the other.
static void expect_no_overlap(TraceCase *c) {
    int n, depth = 0, num_overlaps = 0;
    Slice *slices = slices_of(c, &n), open[8];
    for (int i = 0; i < n; i++) {
        if (i > 0 && (slices[i].pid != slices[i - 1].pid || slices[i].tid != slices[i - 1].tid))
            depth = 0;
        while (depth > 0 && open[depth - 1].end_ns <= slices[i].start_ns) depth--;
        if (depth > 0 && slices[i].end_ns > open[depth - 1].end_ns) num_overlaps++;
        if (depth < 8) open[depth++] = slices[i];
    }
    CU_ASSERT(n > 0);
    CU_ASSERT_EQUAL(num_overlaps, 0);
}

static int instructions_of(const Program *program) {
    int n = 0;
    for (int r = 0; r < program->num_ranks; r++) n += program->ranks[r].num_instructions;
    return n;
}

// And the host's, at the end of each timeline.
static void every_instruction_is_one_slice(void) {
    TraceCase c;
    case_build(&c, "\"llama-3.1-8b\"", "{\"tp\": 2, \"pp\": 4, \"vpp\": 2}", false);
    int n;
    slices_of(&c, &n);
    CU_ASSERT_EQUAL(n, 2 * (instructions_of(&c.parts.program) + 1));
    expect_no_overlap(&c);
    arena_free(&c.arena);
}

static void slices_end_with_the_step(void) {
    TraceCase c;
    case_build(&c, "\"llama-3.1-8b\"", "{\"tp\": 2, \"pp\": 4}", false);
    int n;
    Slice *slices = slices_of(&c, &n);
    int64_t end_ns = 0;
    for (int i = 0; i < n; i++)
        if (slices[i].end_ns > end_ns) end_ns = slices[i].end_ns;
    double step_ns = c.parts.timeline.step_time_s * 1e9;
    CU_ASSERT_DOUBLE_EQUAL((double)end_ns, step_ns, 1);
    arena_free(&c.arena);
}

// The tracks that slices lie on have names; the processes are the two timelines.
static void tracks_are_named(void) {
    TraceCase c;
    case_build(&c, "\"llama-3.1-8b\"", "{\"tp\": 2, \"pp\": 2}", false);
    const cJSON *event;
    int num_processes = 0, num_computes = 0;
    bool forward = false, send = false;
    cJSON_ArrayForEach(event, c.events) {
        const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
        if (strcmp(string(event, "name"), "process_name") == 0) num_processes++;
        if (strcmp(string(args, "name"), "stage 1 compute") == 0) num_computes++;
        forward |= strcmp(string(event, "name"), "F mb3 c1") == 0;
        send |= strcmp(string(event, "name"), "send B mb0 c1") == 0;
    }
    CU_ASSERT_EQUAL(num_processes, 2);
    CU_ASSERT_EQUAL(num_computes, 2);
    CU_ASSERT(forward);
    CU_ASSERT(send);
    arena_free(&c.arena);
}

static void operators_nest_in_computations(void) {
    static const char *const plans[] = {"{\"tp\": 2, \"pp\": 2, \"recompute\": \"full\"}",
                                        "{\"ep\": 8, \"pp\": 2}"};
    static const char *const models[] = {"\"llama-3.1-8b\"", "\"mixtral-8x7b\""};
    for (int i = 0; i < 2; i++) {
        TraceCase c;
        case_build(&c, models[i], plans[i], true);
        int n;
        slices_of(&c, &n);
        CU_ASSERT(n > 10 * instructions_of(&c.parts.program));
        expect_no_overlap(&c);
        arena_free(&c.arena);
    }
}

static void an_unwritable_trace_is_reported(void) {
    TraceContext none = {0};
    Status status = trace_save("/nonexistent/trace.json", &none, NULL, 0);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text,
                           "/nonexistent/trace.json: cannot be written: No such file or directory");
}

CU_TestInfo trace_tests[] = {
    {"every_instruction_is_one_slice", every_instruction_is_one_slice},
    {"slices_end_with_the_step", slices_end_with_the_step},
    {"tracks_are_named", tracks_are_named},
    {"operators_nest_in_computations", operators_nest_in_computations},
    {"an_unwritable_trace_is_reported", an_unwritable_trace_is_reported},
    CU_TEST_INFO_NULL,
};
