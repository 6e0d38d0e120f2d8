#include "report/plan_sections.h"

#include "report/report.h"

static const char *const TERM_TITLES[NUM_TERMS] = {
    [TERM_COMPUTE] = "computing",
    [TERM_TP] = "waiting for tensor-parallel communication",
    [TERM_CP] = "waiting for context-parallel communication",
    [TERM_EP] = "waiting for expert-parallel communication",
    [TERM_DP] = "waiting for data-parallel communication",
    [TERM_PP] = "waiting for messages between pipeline stages",
    [TERM_BUBBLE] = "waiting for work (pipeline bubble)",
    [TERM_OPTIMIZER] = "optimizer",
    [TERM_OTHER] = "host and the rest",
};

static void figures_section(Document *document, const Estimate *e) {
    static const DocumentColumn columns[] = {
        {"step_time_s", "step time"},
        {"step_time_low_s", "80 % interval from"},
        {"step_time_high_s", "to"},
        {"tokens_per_s", "tokens/s"},
        {"tokens_per_s_per_gpu", "tokens/s per GPU"},
        {"model_flops_per_s_per_gpu", "model FLOP/s per GPU"},
        {"mfu_frac", "of the peak (MFU)"},
        {"usd_per_1e9_tokens", "USD per 1e9 tokens"},
        {"joules_per_token", "joules per token"},
        {"memory_device_bytes", "memory of the fullest GPU"},
        {"memory_low_bytes", "its 80 % interval from"},
        {"memory_high_bytes", "to"},
        {"memory_available_bytes", "memory there is"},
        {"fits_probability_frac", "fits with"},
        {"idle_gpus", "GPUs left idle"},
    };
    const SectionSpec spec = {.id = "figures", .title = "The figures", SECTION_COLUMNS(columns)};
    cJSON *row = section_row(document_section(document, &spec));
    const double values[] = {
        e->step_time_s,
        e->step_time_low_s,
        e->step_time_high_s,
        e->tokens_per_s,
        e->tokens_per_s_per_gpu,
        e->model_flops_per_s_per_gpu,
        e->mfu_frac,
        e->usd_per_1e9_tokens,
        e->joules_per_token,
        e->memory.device_bytes,
        e->memory_low_bytes,
        e->memory_high_bytes,
        e->memory_available_bytes,
        e->fits_probability_frac,
        e->idle_gpus,
    };
    _Static_assert(sizeof values / sizeof *values == sizeof columns / sizeof *columns,
                   "a cell each");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) row_number(row, values[i]);
}

static void waterfall_section(Document *document, const Estimate *e) {
    static const DocumentColumn columns[] = {
        {"term", "what the GPU does"}, {"time_s", "time"}, {"share_frac", "of the step"}};
    const SectionSpec spec = {
        .id = "waterfall",
        .title = "Where the time of a step goes",
        .text = "Of the pipeline stage with the least idle time, which the others wait for. Only "
                "communication that does not hide behind computing counts.",
        .chart = "waterfall",
        SECTION_COLUMNS(columns),
    };
    cJSON *section = document_section(document, &spec);
    for (int t = 0; t < NUM_TERMS; t++) {
        if (e->term_s[t] == 0) continue;
        cJSON *row = section_row(section);
        row_text(row, TERM_TITLES[t]);
        row_number(row, e->term_s[t]);
        row_number(row, e->term_s[t] / e->step_time_s);
    }
    cJSON *row = section_row(section);
    row_text(row, "step");
    row_number(row, e->step_time_s);
    row_number(row, 1);
}

static void parts_section(Document *document, const Estimate *e) {
    static const char *const titles[NUM_PARTS] = {
        [PART_PRODUCTS] = "matrix products",
        [PART_ATTENTION] = "fused attention",
        [PART_MEMORY] = "operators bound by memory",
        [PART_HOST] = "host: launches that the GPU waits for",
        [PART_INSIDE] = "communication inside scale-up domains",
        [PART_ACROSS] = "communication across them",
        [PART_OPTIMIZER] = "optimizer",
    };
    static const DocumentColumn columns[] = {
        {"part", "part"}, {"time_s", "time"}, {"share_frac", "of the step"}};
    const SectionSpec spec = {
        .id = "parts",
        .title = "The same seconds by what predicts them",
        .text = "Each part has one model with one error; the interval is made of them.",
        SECTION_COLUMNS(columns),
    };
    cJSON *section = document_section(document, &spec);
    for (int k = 0; k < NUM_PARTS; k++) {
        cJSON *row = section_row(section);
        row_text(row, titles[k]);
        row_number(row, e->part_s[k]);
        row_number(row, e->part_s[k] / e->step_time_s);
    }
}

static void memory_row(cJSON *section, const PlanView *view, int stage) {
    const RankMemory m =
        memory_closed_form(view->scenario, view->plan, &view->parts->workload, stage);
    const double cells[] = {
        stage,
        m.weights_bytes,
        m.gradients_bytes,
        m.optimizer_bytes,
        m.activations_bytes,
        m.buffers_bytes,
        m.reserved_bytes - m.peak_bytes,
        m.device_bytes - m.reserved_bytes,
        m.device_bytes,
        rank_memory_available_bytes(view->scenario, view->plan, stage),
    };
    cJSON *row = section_row(section);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) row_number(row, cells[i]);
}

static void memory_section(Document *document, const PlanView *view) {
    static const DocumentColumn columns[] = {
        {"stage", "stage"},
        {"weights_bytes", "weights"},
        {"gradients_bytes", "gradients"},
        {"optimizer_bytes", "optimizer"},
        {"activations_bytes", "activations"},
        {"buffers_bytes", "buffers"},
        {"slack_bytes", "allocator's slack"},
        {"libraries_bytes", "context and libraries"},
        {"device_bytes", "in all"},
        {"available_bytes", "there is"},
    };
    const SectionSpec spec = {
        .id = "memory",
        .title = "Memory of each pipeline stage",
        .text = "What one GPU of the stage holds at its peak, against what it has for the job.",
        .chart = "memory",
        SECTION_COLUMNS(columns),
    };
    cJSON *section = document_section(document, &spec);
    for (int stage = 0; stage < view->plan->pp; stage++) memory_row(section, view, stage);
}

void plan_sections(Document *document, const PlanView *view, Arena *arena) {
    document_part(document, arena_printf(arena, "The plan: %s", plan_describe(view->plan, arena)),
                  report_question(view->scenario, arena));
    figures_section(document, view->estimate);
    layout_section(document, view, arena);
    waterfall_section(document, view->estimate);
    parts_section(document, view->estimate);
    memory_section(document, view);
    timeline_section(document, view, arena);
}
