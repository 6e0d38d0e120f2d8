// Times go to the page as whole millionths of the longer step, so that thousands of them stay
// small.
#include "report/plan_sections.h"

#include <math.h>
#include <stdlib.h>

enum { TICKS = 1000000 };

// What a slice shows; the page's names and colours are in report/web/src/charts/timeline.js.
typedef enum {
    SLICE_FORWARD,
    SLICE_BACKWARD,
    SLICE_BACKWARD_INPUT,
    SLICE_BACKWARD_WEIGHT,
    SLICE_OPTIMIZER,
    SLICE_MESSAGE,
    SLICE_COLLECTIVE,
    NUM_SLICE_KINDS
} SliceKind;

static const char *const SLICE_NAMES[NUM_SLICE_KINDS] = {
    "forward",   "backward", "backward input", "backward weight",
    "optimizer", "message",  "collective"};

typedef struct {
    double start_s, end_s;
    SliceKind kind;
    int chunk, microbatch; // -1: none
} Slice;

typedef struct {
    int stage;
    Slice *slices; // [num_slices] computations, then messages, then collectives, each by time
    int num_slices;
    double computing_s, message_s, collective_s;
} Track;

// One run of the Program.
typedef struct {
    const char *name;
    double step_time_s;
    const double *const *start_s, *const *end_s; // [num_ranks][num_instructions]
    Track *tracks;                               // [num_tracks]
    int num_tracks;
    double head_s, tail_s; // slices between them are left out
    int num_left_out;
} Run;

static SliceKind slice_kind(const Instruction *in) {
    static const SliceKind kinds[NUM_INSTRUCTION_KINDS] = {
        [INSTRUCTION_FORWARD] = SLICE_FORWARD,
        [INSTRUCTION_BACKWARD] = SLICE_BACKWARD,
        [INSTRUCTION_BACKWARD_INPUT] = SLICE_BACKWARD_INPUT,
        [INSTRUCTION_BACKWARD_WEIGHT] = SLICE_BACKWARD_WEIGHT,
        [INSTRUCTION_SEND] = SLICE_MESSAGE,
        [INSTRUCTION_RECV] = SLICE_MESSAGE,
        [INSTRUCTION_COLLECTIVE] = SLICE_COLLECTIVE,
        [INSTRUCTION_OPTIMIZER] = SLICE_OPTIMIZER,
    };
    return kinds[in->kind];
}

// Which list a slice stands in: 0 computations, 1 messages, 2 collectives.
static int slice_list(const Slice *slice) {
    return slice->kind == SLICE_MESSAGE ? 1 : slice->kind == SLICE_COLLECTIVE ? 2 : 0;
}

static int slice_compare(const void *a, const void *b) {
    const Slice *x = a, *y = b;
    if (slice_list(x) != slice_list(y)) return slice_list(x) - slice_list(y);
    if (x->start_s != y->start_s) return x->start_s < y->start_s ? -1 : 1;
    if (x->end_s != y->end_s) return x->end_s < y->end_s ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

// Messages (collectives) that are under way at the same time are one slice: that links are busy.
static void track_merge(Track *track) {
    int n = 0;
    for (int i = 0; i < track->num_slices; i++) {
        const Slice *next = &track->slices[i];
        Slice *last = n > 0 ? &track->slices[n - 1] : NULL;
        const int list = slice_list(next);
        if (last && list > 0 && slice_list(last) == list && next->start_s <= last->end_s) {
            last->end_s = fmax(last->end_s, next->end_s);
            last->chunk = last->microbatch = -1;
        } else {
            track->slices[n++] = *next;
        }
    }
    track->num_slices = n;
}

static Track track_read(const Program *program, const Run *run, int stage, Arena *arena) {
    const RankProgram *rank = &program->ranks[stage];
    Track track = {.stage = stage, .slices = ARENA_ARRAY(arena, rank->num_instructions, Slice)};
    for (int i = 0; i < rank->num_instructions; i++) {
        const Instruction *in = &rank->instructions[i];
        const Slice slice = {
            .start_s = run->start_s[stage][i],
            .end_s = run->end_s[stage][i],
            .kind = slice_kind(in),
            .chunk = in->chunk,
            .microbatch = in->microbatch,
        };
        if (slice.end_s > slice.start_s) track.slices[track.num_slices++] = slice;
    }
    qsort(track.slices, (size_t)track.num_slices, sizeof *track.slices, slice_compare);
    track_merge(&track);
    for (int i = 0; i < track.num_slices; i++) {
        const Slice *s = &track.slices[i];
        double *const sums[] = {&track.computing_s, &track.message_s, &track.collective_s};
        *sums[slice_list(s)] += s->end_s - s->start_s;
    }
    return track;
}

// Slices that begin before head_s or end after tail_s.
static int num_kept(const Run *run, double head_s, double tail_s) {
    int num = 0;
    for (int t = 0; t < run->num_tracks; t++)
        for (int i = 0; i < run->tracks[t].num_slices; i++) {
            const Slice *slice = &run->tracks[t].slices[i];
            num += slice->start_s < head_s || slice->end_s > tail_s;
        }
    return num;
}

// Leaves out the middle of the step, as little of it as it has to.
static void run_bound(Run *run) {
    const double step_s = run->step_time_s;
    const int num = num_kept(run, INFINITY, 0);
    run->head_s = INFINITY;
    if (num <= TIMELINE_MAX_SLICES) return;
    double low = 0, high = 0.5; // of the step, at each end
    for (int i = 0; i < 40; i++) {
        const double middle = (low + high) / 2;
        const bool fits =
            num_kept(run, middle * step_s, (1 - middle) * step_s) <= TIMELINE_MAX_SLICES;
        *(fits ? &low : &high) = middle;
    }
    run->head_s = low * step_s;
    run->tail_s = (1 - low) * step_s;
    run->num_left_out = num - num_kept(run, run->head_s, run->tail_s);
}

// The n-th of the stages that are shown: all, or some with the first and the last.
static int shown_stage(const Program *program, int n, int num_tracks) {
    if (num_tracks == program->num_ranks) return n;
    return (int)((int64_t)n * (program->num_ranks - 1) / (num_tracks - 1));
}

static void run_read(Run *run, const Program *program, Arena *arena) {
    run->num_tracks =
        program->num_ranks < TIMELINE_MAX_STAGES ? program->num_ranks : TIMELINE_MAX_STAGES;
    run->tracks = ARENA_ARRAY(arena, run->num_tracks, Track);
    for (int t = 0; t < run->num_tracks; t++)
        run->tracks[t] = track_read(program, run, shown_stage(program, t, run->num_tracks), arena);
    run_bound(run);
}

// Five whole numbers a slice, one after the other: start, duration, kind, chunk, micro-batch.
static cJSON *slices_to_json(const Run *run, const Track *track, double tick_s, Arena *arena) {
    int *numbers = ARENA_ARRAY(arena, 5 * track->num_slices, int), n = 0;
    for (int i = 0; i < track->num_slices; i++) {
        const Slice *s = &track->slices[i];
        if (!(s->start_s < run->head_s || s->end_s > run->tail_s)) continue;
        const int start = (int)lround(s->start_s / tick_s), end = (int)lround(s->end_s / tick_s);
        const int cells[] = {start, end - start, (int)s->kind, s->chunk, s->microbatch};
        for (int k = 0; k < 5; k++) numbers[n++] = cells[k];
    }
    return cJSON_CreateIntArray(numbers, n);
}

static void run_add(cJSON *section, const Run *run, double tick_s, Arena *arena) {
    cJSON *data = section_data(section);
    cJSON *runs = cJSON_GetObjectItemCaseSensitive(data, "runs");
    if (!runs) runs = cJSON_AddArrayToObject(data, "runs");
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToArray(runs, json);
    cJSON_AddStringToObject(json, "name", run->name);
    cJSON_AddNumberToObject(json, "end", round(run->step_time_s / tick_s));
    if (run->num_left_out > 0) {
        const int gap[] = {(int)lround(run->head_s / tick_s), (int)lround(run->tail_s / tick_s)};
        cJSON_AddItemToObject(json, "left_out", cJSON_CreateIntArray(gap, 2));
    }
    cJSON *tracks = cJSON_AddArrayToObject(json, "tracks");
    for (int t = 0; t < run->num_tracks; t++) {
        const Track *track = &run->tracks[t];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddItemToArray(tracks, item);
        cJSON_AddNumberToObject(item, "stage", track->stage);
        cJSON_AddItemToObject(item, "slices", slices_to_json(run, track, tick_s, arena));
        cJSON *row = section_row(section);
        row_number(row, track->stage);
        row_text(row, run->name);
        row_number(row, track->computing_s);
        row_number(row, run->step_time_s - track->computing_s);
        row_number(row, 1 - track->computing_s / run->step_time_s);
        row_number(row, track->message_s);
        row_number(row, track->collective_s);
    }
}

static void say_left_out(cJSON *section, const Run *run, const Program *program, Arena *arena) {
    if (run->num_tracks < program->num_ranks)
        section_add_text(section, arena_printf(arena, "Shown are %d of the %d stages.",
                                               run->num_tracks, program->num_ranks));
    if (run->num_left_out > 0)
        section_add_text(
            section,
            arena_printf(arena,
                         "%d pieces of work in the middle of the step are not drawn (%s); the "
                         "table counts them.",
                         run->num_left_out, run->name));
}

void timeline_section(Document *document, const PlanView *view, Arena *arena) {
    static const DocumentColumn columns[] = {
        {"stage", "stage"},
        {"run", "run"},
        {"computing_s", "computing"},
        {"idle_s", "not computing"},
        {"idle_frac", "of the step"},
        {"messages_s", "messages under way"},
        {"collectives_s", "collectives under way"},
    };
    const SectionSpec spec = {
        .id = "timeline",
        .title = "Timeline of the pipeline",
        .text = "One GPU of each stage over a step; gaps between computations are the bubble. "
                "Below the computations: messages between stages and collectives beside them.",
        .chart = "timeline",
        SECTION_COLUMNS(columns),
    };
    const EstimateParts *parts = view->parts;
    const SimResult *simulation = view->simulation;
    cJSON *section = document_section(document, &spec);
    Run runs[2] = {{
        .name = "estimate",
        .step_time_s = parts->timeline.begin_s + parts->timeline.step_time_s,
        .start_s = parts->timeline.start_s,
        .end_s = parts->timeline.end_s,
    }};
    int num_runs = 1;
    if (simulation && simulation->start_s)
        runs[num_runs++] = (Run){
            .name = "simulation",
            .step_time_s = simulation->disturbed.num_repetitions > 0
                               ? simulation->disturbed.step_times_s[0]
                               : simulation->step_time_s,
            .start_s = simulation->start_s,
            .end_s = simulation->end_s,
        };
    const double longest_s = fmax(runs[0].step_time_s, runs[num_runs - 1].step_time_s);
    cJSON *data = section_data(section);
    cJSON_AddNumberToObject(data, "tick_s", longest_s / TICKS);
    cJSON_AddItemToObject(data, "kinds", cJSON_CreateStringArray(SLICE_NAMES, NUM_SLICE_KINDS));
    for (int i = 0; i < num_runs; i++) {
        run_read(&runs[i], &parts->program, arena);
        run_add(section, &runs[i], longest_s / TICKS, arena);
        say_left_out(section, &runs[i], &parts->program, arena);
    }
    if (view->not_played)
        section_add_text(section, arena_printf(arena, "Not simulated: %s", view->not_played));
}
