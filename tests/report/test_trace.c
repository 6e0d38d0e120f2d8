// Traces parse, cover the timeline, and never overlap on a track.
#include "report/trace.h"

#include "costmodel/step/estimate.h"
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

static void case_estimate(TraceCase *c, const char *model, const char *parallel) {
    *c = (TraceCase){0};
    const char *text = scenario_text(
        &c->arena, model, "\"dgx-h100:2\"",
        "{\"seq_len\": 2048, \"global_batch\": 32, \"precision\": \"bf16\"}", parallel);
    Status status = scenario_of(text, &c->arena, &c->scenario);
    if (status.code == STATUS_OK) status = plan_resolve(&c->scenario, &c->arena, &c->plan);
    if (status.code == STATUS_OK)
        status = estimate_plan(&c->scenario, &c->plan, &c->arena, &c->estimate, &c->parts);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
}

// Writes and reads a trace of these timelines.
static void case_write(TraceCase *c, const TraceTimeline *timelines, int num_timelines,
                       bool operators) {
    char path[] = "/tmp/meshwright-trace-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    const TraceContext context = {.scenario = &c->scenario,
                                  .plan = &c->plan,
                                  .program = &c->parts.program,
                                  .workload = &c->parts.workload,
                                  .operators = operators};
    Status status = trace_save(path, &context, timelines, num_timelines);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    status = json_load(path, &c->arena, &c->root);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    unlink(path);
    c->events = cJSON_GetObjectItemCaseSensitive(c->root.item, "traceEvents");
    CU_ASSERT_TRUE_FATAL(cJSON_IsArray(c->events));
}

static TraceTimeline timeline_of(TraceCase *c) {
    return trace_estimate(&c->parts.program, &c->parts.prices, &c->parts.timeline, NULL, &c->arena);
}

// The estimate, and the same once more as if it had been simulated.
static void case_build(TraceCase *c, const char *model, const char *parallel, bool operators) {
    case_estimate(c, model, parallel);
    TraceTimeline timelines[] = {timeline_of(c), timeline_of(c)};
    timelines[1].name = "simulation";
    case_write(c, timelines, 2, operators);
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

// --- Arrows

typedef struct {
    int64_t id, at_ns;
    int pid, tid;
    bool arrives;
} ArrowEnd;

static int arrow_compare(const void *a, const void *b) {
    const ArrowEnd *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return x->arrives - y->arrives;
}

static ArrowEnd *arrow_ends(TraceCase *c, int *num_ends) {
    ArrowEnd *ends = ARENA_ARRAY(&c->arena, cJSON_GetArraySize(c->events), ArrowEnd);
    const cJSON *event;
    *num_ends = 0;
    cJSON_ArrayForEach(event, c->events) {
        const char *ph = string(event, "ph");
        if (strcmp(ph, "s") != 0 && strcmp(ph, "f") != 0) continue;
        ends[(*num_ends)++] =
            (ArrowEnd){(int64_t)number(event, "id"), llround(number(event, "ts") * 1e3),
                       (int)number(event, "pid"), (int)number(event, "tid"), ph[0] == 'f'};
    }
    qsort(ends, (size_t)*num_ends, sizeof *ends, arrow_compare);
    return ends;
}

static bool is_in_a_slice(const ArrowEnd *end, const Slice *slices, int num_slices) {
    for (int i = 0; i < num_slices; i++)
        if (slices[i].pid == end->pid && slices[i].tid == end->tid &&
            slices[i].start_ns <= end->at_ns && end->at_ns <= slices[i].end_ns)
            return true;
    return false;
}

// Each arrow has a begin and one end, later and in the same process, both on slices.
//   returns how many there are
static int expect_whole_arrows(TraceCase *c) {
    int num_ends, num_slices, num_torn = 0, num_loose = 0;
    ArrowEnd *ends = arrow_ends(c, &num_ends);
    Slice *slices = slices_of(c, &num_slices);
    CU_ASSERT_EQUAL(num_ends % 2, 0);
    for (int i = 0; i + 1 < num_ends; i += 2) {
        const ArrowEnd *from = &ends[i], *to = &ends[i + 1];
        num_torn += from->id != to->id || from->arrives || !to->arrives || from->pid != to->pid ||
                    from->at_ns > to->at_ns || (i > 0 && ends[i - 1].id == from->id);
        num_loose += !is_in_a_slice(from, slices, num_slices);
        num_loose += !is_in_a_slice(to, slices, num_slices);
    }
    CU_ASSERT_EQUAL(num_torn, 0);
    CU_ASSERT_EQUAL(num_loose, 0);
    return num_ends / 2;
}

static int sends_of(const Program *program) {
    int n = 0;
    for (int r = 0; r < program->num_ranks; r++)
        for (int i = 0; i < program->ranks[r].num_instructions; i++)
            n += program->ranks[r].instructions[i].kind == INSTRUCTION_SEND;
    return n;
}

static void every_message_is_one_arrow(void) {
    static const char *const plans[] = {"{\"tp\": 2, \"pp\": 4, \"schedule\": \"gpipe\"}",
                                        "{\"tp\": 2, \"pp\": 4, \"vpp\": 2}",
                                        "{\"tp\": 2, \"pp\": 2, \"schedule\": \"zb-v\"}"};
    for (int i = 0; i < 3; i++) {
        TraceCase c;
        case_build(&c, "\"llama-3.1-8b\"", plans[i], false);
        CU_ASSERT(sends_of(&c.parts.program) > 0);
        CU_ASSERT_EQUAL(expect_whole_arrows(&c), 2 * sends_of(&c.parts.program));
        arena_free(&c.arena);
    }
}

// --- Rows

// GPUs run as the estimate says; replica r begins r ms later.
static Status late_read(const void *context, const TraceRow *row, double *start_s, double *end_s) {
    const EstimateParts *parts = context;
    for (int i = 0; i < parts->program.ranks[row->stage].num_instructions; i++) {
        start_s[i] = parts->timeline.start_s[row->stage][i] + 1e-3 * row->replica;
        end_s[i] = parts->timeline.end_s[row->stage][i] + 1e-3 * row->replica;
    }
    return status_ok();
}

static bool has_track(const TraceCase *c, const char *name) {
    const cJSON *event;
    cJSON_ArrayForEach(event, c->events) {
        const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
        if (strcmp(string(args, "name"), name) == 0) return true;
    }
    return false;
}

// 16 GPUs, tp 2, pp 4, so 4 replicas a stage. Of stage 0 replicas 0 and 3, of stage 1 replica 3, of
// stage 3 replica 3: arrows lead from GPU 3 to GPU 7 and back, no others have both ends.
static void rows_are_the_gpus_asked_for(void) {
    TraceCase c;
    case_estimate(&c, "\"llama-3.1-8b\"", "{\"tp\": 2, \"pp\": 4}");
    const TraceRow rows[] = {{0, 0, false}, {0, 3, false}, {1, 3, false}, {3, 3, false}};
    TraceTimeline timeline = timeline_of(&c);
    timeline.rows = rows;
    timeline.num_rows = 4;
    timeline.read = late_read;
    timeline.context = &c.parts;
    case_write(&c, &timeline, 1, false);
    CU_ASSERT(has_track(&c, "rank 0 stage 0 compute"));
    CU_ASSERT(has_track(&c, "rank 3 stage 0 pp"));
    CU_ASSERT(has_track(&c, "rank 7 stage 1 compute"));
    CU_ASSERT(has_track(&c, "rank 15 stage 3 compute"));
    CU_ASSERT_FALSE(has_track(&c, "rank 1 stage 0 compute"));
    int n;
    slices_of(&c, &n);
    const RankProgram *ranks = c.parts.program.ranks;
    CU_ASSERT_EQUAL(n, 2 * ranks[0].num_instructions + ranks[1].num_instructions +
                           ranks[3].num_instructions + 1);
    expect_no_overlap(&c);
    CU_ASSERT_EQUAL(expect_whole_arrows(&c), 2 * c.plan.num_microbatches);
    arena_free(&c.arena);
}

static Status failing_read(const void *context, const TraceRow *row, double *start_s,
                           double *end_s) {
    (void)context, (void)row, (void)start_s, (void)end_s;
    return status_error(STATUS_MACHINE, "times are missing");
}

static void a_trace_without_times_is_not_there(void) {
    TraceCase c;
    case_estimate(&c, "\"llama-3.1-8b\"", "{\"tp\": 2, \"pp\": 4}");
    TraceTimeline timelines[] = {timeline_of(&c), timeline_of(&c)};
    timelines[1].read = failing_read;
    char folder[] = "/tmp/meshwright-trace-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    TraceContext context = {.plan = &c.plan, .program = &c.parts.program};
    Status status =
        trace_save(arena_printf(&c.arena, "%s/trace.json", folder), &context, timelines, 2);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text, "times are missing");
    CU_ASSERT_EQUAL(rmdir(folder), 0); // it is empty
    arena_free(&c.arena);
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

// Of the first timeline: the product of the logits on two ranks, in S forward and for the gradient
// of its input, in T for that of its weights.
static void passes_over_the_vocabulary_have_operators(void) {
    TraceCase c;
    case_build(&c, "\"llama-3.1-8b\"", "{\"tp\": 2, \"pp\": 2, \"vocab_parallel\": true}", true);
    const cJSON *event;
    int num_products = 0;
    cJSON_ArrayForEach(event, c.events) {
        const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
        num_products += strcmp(string(event, "name"), "lm_head") == 0 &&
                        strcmp(string(args, "block"), "vocab_output") == 0;
    }
    CU_ASSERT_EQUAL(num_products, 2 * 3 * (int)c.plan.num_microbatches);
    expect_no_overlap(&c);
    arena_free(&c.arena);
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
    {"every_message_is_one_arrow", every_message_is_one_arrow},
    {"rows_are_the_gpus_asked_for", rows_are_the_gpus_asked_for},
    {"a_trace_without_times_is_not_there", a_trace_without_times_is_not_there},
    {"tracks_are_named", tracks_are_named},
    {"operators_nest_in_computations", operators_nest_in_computations},
    {"passes_over_the_vocabulary_have_operators", passes_over_the_vocabulary_have_operators},
    {"an_unwritable_trace_is_reported", an_unwritable_trace_is_reported},
    CU_TEST_INFO_NULL,
};
