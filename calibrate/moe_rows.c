#include "calibrate/moe_rows.h"

#include "base/quantity.h"
#include "calibrate/fit.h"

#include <math.h>
#include <string.h>

enum { CACHE_SIZE = 1 << 14 };

struct MoeLoadCache {
    bool used[CACHE_SIZE];
    MoeRouting keys[CACHE_SIZE];
    MoeLoad loads[CACHE_SIZE];
};

MoeLoadCache *moe_load_cache_new(Arena *arena) {
    return ARENA_ARRAY(arena, 1, MoeLoadCache);
}

static bool routing_equal(const MoeRouting *a, const MoeRouting *b) {
    return a->num_tokens == b->num_tokens && a->topk == b->topk &&
           a->num_experts == b->num_experts && a->num_ranks == b->num_ranks && a->skew == b->skew &&
           a->group_limited == b->group_limited;
}

MoeLoad moe_load_cached(MoeLoadCache *cache, const MoeRouting *routing) {
    double numbers[] = {routing->num_tokens, routing->topk, routing->num_experts,
                        routing->num_ranks,  routing->skew, routing->group_limited};
    size_t at = (size_t)(fit_key(numbers, 6) % CACHE_SIZE);
    if (!cache->used[at] || !routing_equal(&cache->keys[at], routing)) {
        cache->used[at] = true;
        cache->keys[at] = *routing;
        cache->loads[at] = moe_load(routing);
    }
    return cache->loads[at];
}

// "balanced" is 0, "power_law_A" is A; negative for anything else.
static double distribution_skew(const char *text) {
    static const char PREFIX[] = "power_law_";
    if (strcmp(text, "balanced") == 0) return 0;
    if (strncmp(text, PREFIX, sizeof PREFIX - 1) != 0) return -1;
    char *end;
    double skew = decimal_read(text + sizeof PREFIX - 1, &end);
    return *end == '\0' && skew > 0 && skew <= 10 ? skew : -1;
}

static const char *row_problem(const MoeRow *row, const char *dtype, const char *distribution,
                               Arena *arena) {
    const MoeRouting *r = &row->shape.routing;
    if (row->moe_dtype < 0)
        return arena_printf(
            arena, "moe_dtype: \"%.30s\"; expected one of bfloat16, fp8, fp8_block, nvfp4", dtype);
    if (r->skew < 0)
        return arena_printf(arena,
                            "distribution: \"%.30s\"; expected balanced or power_law_A with an "
                            "exponent A above 0, at most 10",
                            distribution);
    if (*row->kernel_source == '\0') return "kernel_source: \"\"; expected a name";
    if (r->topk > r->num_experts)
        return arena_printf(arena, "topk: %d; expected at most num_experts %d", r->topk,
                            r->num_experts);
    if (r->num_experts % r->num_ranks != 0)
        return arena_printf(arena, "moe_ep_size: %d does not divide num_experts %d", r->num_ranks,
                            r->num_experts);
    if (row->shape.inter_size < 1)
        return "moe_tp_size: larger than inter_size; expected a divisor of it";
    return NULL;
}

enum { TOKENS, HIDDEN, INTER, TOPK, EXPERTS, TP, EP, NUM_COLUMNS };

static MoeRow row_make(double *const *columns, int row, const char *dtype, const char *source,
                       const char *distribution, Arena *arena) {
    MoeRow out = {.moe_dtype = moe_dtype_find(dtype), .kernel_source = source};
    double group[] = {columns[HIDDEN][row], columns[INTER][row], columns[TOPK][row],
                      columns[EXPERTS][row]};
    out.shape.hidden_size = columns[HIDDEN][row];
    out.shape.inter_size = columns[INTER][row] / columns[TP][row];
    out.num_splits = columns[TP][row];
    out.shape.routing = (MoeRouting){.num_tokens = columns[TOKENS][row],
                                     .topk = (int)columns[TOPK][row],
                                     .num_experts = (int)columns[EXPERTS][row],
                                     .num_ranks = (int)columns[EP][row],
                                     .skew = distribution_skew(distribution)};
    out.group = fit_key(group, 4);
    out.problem = row_problem(&out, dtype, distribution, arena);
    return out;
}

Status moe_rows_read(const KernelTable *table, Arena *arena, MoeRow **out) {
    static const struct {
        const char *name;
        double max;
    } COLUMNS[NUM_COLUMNS] = {
        {"num_tokens", 1e8},
        {"hidden_size", 1e6},
        {"inter_size", 1e6},
        {"topk", MOE_MAX_TOPK},
        {"num_experts", MOE_MAX_EXPERTS},
        {"moe_tp_size", 1e5},
        {"moe_ep_size", MOE_MAX_EXPERTS},
    };
    double *columns[NUM_COLUMNS];
    for (int i = 0; i < NUM_COLUMNS; i++)
        TRY(kernel_table_counts(table, COLUMNS[i].name, 1, COLUMNS[i].max, arena, &columns[i]));
    const char **dtypes = kernel_table_texts(table, "moe_dtype", arena);
    const char **sources = kernel_table_texts(table, "kernel_source", arena);
    const char **distributions = kernel_table_texts(table, "distribution", arena);
    MoeRow *rows = ARENA_ARRAY(arena, table->num_rows, MoeRow);
    for (int i = 0; i < table->num_rows; i++)
        rows[i] = row_make(columns, i, dtypes[i], sources[i], distributions[i], arena);
    *out = rows;
    return status_ok();
}
