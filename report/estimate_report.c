#include "config/model/model_front.h"
#include "report/fit_text.h"
#include "report/report.h"

#include "base/shown_text.h"
#include "report/table.h"
#include "report/units.h"

#include <stdlib.h>
#include <string.h>

enum { LABEL = 16 };

// What stands before the layers of the text, and what of it the job has.
static const char *front_text(const Scenario *scenario, Arena *arena) {
    const Model *model = &scenario->model;
    const TrainingJob *training = &scenario->training;
    const ModelFront *front = model->front;
    if (!front) return "";
    if (front->kind == FRONT_ENCODER)
        return arena_printf(arena, "; an encoder of %d layers reads %lld tokens",
                            model->num_front_layers, (long long)training->encoder_seq_len);
    if (model->num_front_layers == 0) return "; without its tower: no images_per_sequence";
    return arena_printf(arena, "; a tower of %d layers for %d image%s of %lld tokens",
                        model->num_front_layers, training->images_per_sequence,
                        training->images_per_sequence == 1 ? "" : "s",
                        (long long)front_image_tokens(front, training->image_size));
}

// What one token passes: what it multiplies, and its row's table.
static double passed_parameters(const Model *model) {
    const double head = model->tie_word_embeddings ? (double)model->vocab_size * model->hidden_size
                                                   : 0; // the table, once
    return model_active_parameters(model) - head + model_embedding_parameters(model);
}

// What is trained, where that is not all.
static const char *tuning_text(const Scenario *scenario, Arena *arena) {
    const FineTuning *tuning = &scenario->training.tuning;
    const Adapters *adapters = &tuning->adapters;
    char trained[UNITS_SIZE];
    if (!fine_tuning_freezes(tuning)) return "";
    units_count(fine_tuning_trained_parameters(&scenario->model, tuning), trained);
    if (tuning->frozen) return arena_printf(arena, ", %s trained", trained);
    return arena_printf(arena, ", %s trained: %s of rank %d beside a base in %s", trained,
                        ADAPTER_NAMES[adapters->kind - ADAPTER_LORA], adapters->rank,
                        BASE_DTYPE_NAMES[adapters->base_dtype]);
}

const char *report_question(const Scenario *scenario, Arena *arena) {
    const Model *model = &scenario->model;
    const Cluster *cluster = &scenario->cluster;
    char parameters[UNITS_SIZE], active[UNITS_SIZE];
    units_count(model_num_parameters(model), parameters);
    const char *moe = "";
    if (model_is_moe(model))
        moe = arena_printf(arena, ", %s active", units_count(passed_parameters(model), active));
    const char *front = front_text(scenario, arena), *gpus = "";
    const char *tuning = tuning_text(scenario, arena);
    for (int i = 0; i < cluster->num_pools; i++) {
        const Pool *pool = &cluster->pools[i];
        const char *all =
            pool->idle_gpus ? arena_printf(arena, " of %d", pool->num_gpus + pool->idle_gpus) : "";
        gpus = arena_printf(arena, "%s%s%d%s x %s", gpus, i ? " + " : "", pool->num_gpus, all,
                            pool->gpu.name);
    }
    const bool named = strcmp(scenario->name, model->name) != 0;
    const char *text = arena_printf(
        arena, "%s%s%s (%s parameters%s%s%s) on %s; seq_len %lld, global_batch %lld, %s, %s",
        named ? scenario->name : "", named ? ": " : "", model->name, parameters, moe, tuning, front,
        gpus, (long long)scenario->training.seq_len, (long long)scenario->training.global_batch,
        PRECISION_NAMES[scenario->execution.precision], scenario->execution.stack.name);
    return shown_text(text, arena);
}

const char *report_calibration(const Scenario *scenario, Arena *arena) {
    const Calibration *c = scenario->calibration;
    return c && c->path ? arena_printf(arena, "%s (%s)", c->title, c->path) : NULL;
}

typedef struct {
    Term term;
    double frac;
} Share;

// Largest first; equal ones in the order of the terms.
static int share_compare(const void *a, const void *b) {
    const Share *x = a, *y = b;
    if (x->frac != y->frac) return x->frac < y->frac ? 1 : -1;
    return (int)x->term - (int)y->term;
}

// "tp_exposed" as "tp".
static int term_short(Term term) {
    return (int)strcspn(TERM_NAMES[term], "_");
}

const char *report_exposed(const double *term_s, double step_time_s, Arena *arena) {
    Share shares[NUM_TERMS];
    for (int t = 0; t < NUM_TERMS; t++)
        shares[t] = (Share){.term = (Term)t, .frac = term_s[t] / step_time_s};
    shares[TERM_COMPUTE].frac = 0;
    qsort(shares, NUM_TERMS, sizeof *shares, share_compare);
    const char *text = "";
    for (int i = 0; i < NUM_TERMS && shares[i].frac >= 0.001; i++) {
        char percent[UNITS_SIZE];
        text = arena_printf(arena, "%s%s%.*s %s", text, i ? ", " : "", term_short(shares[i].term),
                            TERM_NAMES[shares[i].term], units_percent(shares[i].frac, percent));
    }
    return text[0] ? text : "nothing";
}

static void print_figures(const Paper *paper, const Estimate *e, int precision) {
    char a[UNITS_SIZE], b[UNITS_SIZE], c[UNITS_SIZE];
    fprintf(paper->stream, "%-*s%s   (80 %% interval %s to %s)\n", LABEL, "step time",
            units_seconds(e->step_time_s, a), units_seconds(e->step_time_low_s, b),
            units_seconds(e->step_time_high_s, c));
    fprintf(paper->stream, "%-*s%s tokens/s, %s tokens/s per GPU\n", LABEL, "throughput",
            units_count(e->tokens_per_s, a), units_count(e->tokens_per_s_per_gpu, b));
    fprintf(paper->stream, "%-*s%s of model FLOPs per GPU, MFU %s of the dense %s peak\n", LABEL,
            "compute", units_flops(e->model_flops_per_s_per_gpu, a), units_percent(e->mfu_frac, b),
            PRECISION_NAMES[precision]);
    fprintf(paper->stream, "%-*s%s per 1e9 tokens, %s J per token\n", LABEL, "cost",
            units_usd(e->usd_per_1e9_tokens, a), units_plain(e->joules_per_token, b));
}

const char *report_price(const Estimate *e, Arena *arena) {
    if (e->price_usd_per_gpu_hour <= 0) return NULL;
    return arena_printf(arena, "%.4g USD a GPU hour (%s)", e->price_usd_per_gpu_hour,
                        e->price_source ? e->price_source : "of unknown source");
}

static void print_fit(const Paper *paper, const Estimate *e, Arena *arena) {
    char a[UNITS_SIZE], b[UNITS_SIZE], c[UNITS_SIZE];
    const double spare = e->memory_available_bytes - e->memory.device_bytes;
    const bool sure = e->memory_high_bytes <= e->memory_available_bytes;
    char low[UNITS_SIZE], high[UNITS_SIZE];
    fprintf(paper->stream, "%-*s%s of %s on the worst GPU   (80 %% interval %s to %s)\n", LABEL,
            "memory", units_bytes(e->memory.device_bytes, a),
            units_bytes(e->memory_available_bytes, b), units_bytes(e->memory_low_bytes, low),
            units_bytes(e->memory_high_bytes, high));
    const Style style = sure ? STYLE_GOOD : STYLE_BAD;
    const char *fits = fit_text(e->fits_probability_frac, arena), *room = "";
    if (!e->fits) room = arena_printf(arena, ", %s too much", units_bytes(-spare, c));
    if (sure) room = arena_printf(arena, ", %s to spare", units_bytes(spare, c));
    fprintf(paper->stream, "%-*s%s%s%s%s\n", LABEL, "", paper_style(paper, style), fits,
            paper_plain(paper), room);
}

static void print_breakdown(const Paper *paper, const Estimate *e) {
    paper_heading(paper, "Where the step of the slowest rank goes");
    for (int t = 0; t < NUM_TERMS; t++) {
        if (e->term_s[t] == 0) continue;
        char text[UNITS_SIZE];
        paper_bar(paper, TERM_NAMES[t], units_seconds(e->term_s[t], text),
                  e->term_s[t] / e->step_time_s, t == TERM_COMPUTE ? STYLE_GOOD : STYLE_BAD);
    }
}

static void print_memory(const Paper *paper, const Estimate *e) {
    const RankMemory *m = &e->memory;
    const struct {
        const char *label;
        double bytes;
    } parts[] = {
        {"weights", m->weights_bytes},
        {"gradients", m->gradients_bytes},
        {"optimizer", m->optimizer_bytes},
        {"activations", m->activations_bytes},
        {"buffers", m->buffers_bytes},
        {"allocator slack", m->reserved_bytes - m->peak_bytes},
        {"libraries", m->device_bytes - m->reserved_bytes},
    };
    char title[100], text[UNITS_SIZE];
    snprintf(title, sizeof title,
             "What the GPUs of pipeline rank %d hold at the peak, as a share of what there is",
             e->memory_rank);
    paper_heading(paper, title);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].bytes == 0) continue;
        paper_bar(paper, parts[i].label, units_bytes(parts[i].bytes, text),
                  parts[i].bytes / e->memory_available_bytes, STYLE_PLAIN);
    }
}

void report_estimate(const Scenario *scenario, const Plan *plan, const Estimate *estimate,
                     FILE *stream) {
    Arena arena = {0};
    Paper paper = paper_of(stream);
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    fprintf(stream, "%-*s%s\n", LABEL, "plan", shown_text(plan_describe(plan, &arena), &arena));
    const char *calibration = report_calibration(scenario, &arena);
    if (calibration)
        fprintf(stream, "%-*s%s\n", LABEL, "calibration", shown_text(calibration, &arena));
    print_figures(&paper, estimate, scenario->execution.precision);
    const char *price = report_price(estimate, &arena);
    if (price) fprintf(stream, "%-*s%s\n", LABEL, "price", shown_text(price, &arena));
    print_fit(&paper, estimate, &arena);
    const char *extrapolated = extrapolated_text(estimate, &arena);
    if (extrapolated)
        paper_wrap(
            &paper, 0, STYLE_PLAIN,
            arena_printf(&arena, "Extrapolated, so with wider intervals: %s.", extrapolated));
    fputc('\n', stream);
    print_breakdown(&paper, estimate);
    fputc('\n', stream);
    print_memory(&paper, estimate);
    arena_free(&arena);
}
