#include "costmodel/kernel/rising_attention.h"

#include "costmodel/kernel/kernel_context.h"
#include "costmodel/kernel/kernel_generation.h"
#include "costmodel/kernel/rising.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { HEADS, TOKENS, GROUP, NUM_AXES, NUM_TILE_EDGES = 4 };

// What was measured and is asked: key-value heads of all sequences, query heads for each.
static const double MOST_HEADS = 1e11, MOST_TOKENS = 2e8, MOST_GROUP = 1e5;
static const double LAST_HEADS = 16384, LAST_GROUP = 128;

// The lattice of one kernel and variant.
typedef struct Rising Rising;
struct Rising {
    AttentionVariant variant;
    int sharing; // GenerationSharing; of prompts 0
    RisingAxis axes[NUM_AXES];
    RisingLattice lattice;
    Rising *next;
};

struct RisingAttention {
    const Gpu *gpu;
    const ContextKernels *context;
    const GenerationKernels *generation;
    Arena *arena;
    Rising *first;
};

typedef struct {
    const Gpu *gpu;
    const ContextKernel *context;
    const GenerationKernel *generation;
    AttentionVariant variant;
} Law;

static double law_s(const void *context, const double *place) {
    const Law *law = context;
    const AttentionShape shape = {.variant = law->variant,
                                  .batch = place[HEADS],
                                  .tokens = place[TOKENS],
                                  .heads = place[GROUP],
                                  .kv_heads = 1};
    if (law->context) return context_price_s(law->gpu, law->context, &shape);
    return generation_price_s(law->gpu, law->generation, &shape);
}

// Powers of two are what was measured of heads, and of the keys of a step; the tokens of a prompt
// are those of the grid.
//   tile_tokens  of a prompt's kernel; 0: a step's
static void axes_fill(const Surface *surface, double tile_tokens, RisingAxis axes[NUM_AXES]) {
    for (double x = 1; x <= LAST_HEADS; x *= 2) rising_axis_add(&axes[HEADS], x, true);
    for (double x = 1; x <= LAST_GROUP; x *= 2) rising_axis_add(&axes[GROUP], x, true);
    if (surface->num_axes == NUM_AXES)
        rising_axis_measured(&axes[TOKENS], &surface->axes[1]);
    else
        rising_axis_add(&axes[TOKENS], 4096, true);
    const double last = axes[TOKENS].knots[axes[TOKENS].num_knots - 1];
    for (double x = 2; tile_tokens == 0 && x <= last; x *= 2)
        rising_axis_add(&axes[TOKENS], x, true);
    for (int i = 1; tile_tokens > 0 && i <= NUM_TILE_EDGES; i++) {
        rising_axis_add(&axes[TOKENS], i * tile_tokens, false);
        rising_axis_add(&axes[TOKENS], i * tile_tokens + 1, false);
    }
    rising_axis_fill(&axes[HEADS], 1, MOST_HEADS);
    rising_axis_fill(&axes[TOKENS], 1, MOST_TOKENS);
    rising_axis_fill(&axes[GROUP], 1, MOST_GROUP);
}

static const Rising *rising_of(RisingAttention *attention, const Law *law, int sharing) {
    for (Rising *rising = attention->first; rising; rising = rising->next)
        if (rising->sharing == sharing &&
            memcmp(&rising->variant, &law->variant, sizeof law->variant) == 0)
            return rising;
    Rising *rising = ARENA_NEW(attention->arena, Rising);
    rising->variant = law->variant;
    rising->sharing = sharing;
    axes_fill(law->context ? &law->context->surface : &law->generation->surface,
              law->context ? law->context->tile_tokens : 0, rising->axes);
    rising->lattice = rising_make(NUM_AXES, rising->axes, true, law_s, law, attention->arena);
    rising->next = attention->first;
    attention->first = rising;
    return rising;
}

static GenerationSharing sharing_of(const RisingAttention *attention, const AttentionShape *shape) {
    const double *blocks = attention->generation->shared_min_blocks_per_sm;
    return generation_sharing(attention->gpu, blocks[shape->variant.kv_cache_dtype], shape);
}

RisingAttention *rising_attention_new(const Gpu *gpu, const ContextKernels *context,
                                      const GenerationKernels *generation, Arena *arena) {
    RisingAttention *attention = ARENA_NEW(arena, RisingAttention);
    attention->gpu = gpu;
    attention->context = context;
    attention->generation = generation;
    attention->arena = arena;
    return attention;
}

// Without kernels where the profile or the GPU lacks the number formats.
static Law law_of(const RisingAttention *attention, const AttentionShape *shape, int *sharing) {
    Law law = {.gpu = attention->gpu, .variant = shape->variant};
    if (attention_peak_flops_per_s(attention->gpu, shape->variant.attn_dtype) <= 0) return law;
    if (attention->context) {
        law.context = context_kernel_find(attention->context, &shape->variant);
        return law;
    }
    law.generation = generation_kernel_find(attention->generation, &shape->variant,
                                            sharing_of(attention, shape));
    if (law.generation) *sharing = law.generation->sharing;
    return law;
}

double rising_attention_s(RisingAttention *attention, const AttentionShape *shape) {
    int sharing = 0;
    const Law law = law_of(attention, shape, &sharing);
    if (!law.context && !law.generation) return NAN;
    const double place[NUM_AXES] = {shape->batch * shape->kv_heads, shape->tokens,
                                    shape->heads / shape->kv_heads};
    return rising_s(&rising_of(attention, &law, sharing)->lattice, place);
}

// A shape and the dimension of it that is another.
typedef struct {
    RisingAttention *attention;
    const AttentionShape *shape;
    int axis;
    bool heads_alone;
} Along;

static AttentionShape with_size(const Along *along, double size) {
    AttentionShape other = *along->shape;
    if (along->axis == HEADS) other.batch = size;
    if (along->axis == TOKENS) other.tokens = size;
    if (along->axis == GROUP) other.heads = size;
    if (along->axis == GROUP && along->heads_alone) other.kv_heads = size;
    return other;
}

static double along_s(const void *context, double size) {
    const Along *along = context;
    const AttentionShape other = with_size(along, size);
    return rising_attention_s(along->attention, &other);
}

// The first size up to `most` that another kernel runs than runs `from`; 0 where none is. As sizes
// grow the rule changes its mind once up to a doubling.
static double switch_find(const Along *along, double from, double most) {
    const AttentionShape first = with_size(along, from), last = with_size(along, most);
    const GenerationSharing sharing = sharing_of(along->attention, &first);
    if (sharing_of(along->attention, &last) == sharing) return 0;
    while (most - from > 1) {
        double middle = floor((from + most) / 2);
        const AttentionShape between = with_size(along, middle);
        if (sharing_of(along->attention, &between) == sharing)
            from = middle;
        else
            most = middle;
    }
    return most;
}

// The knots of the kernel that runs a shape.
static const RisingAxis *axes_of(RisingAttention *attention, const AttentionShape *shape) {
    int sharing = 0;
    const Law law = law_of(attention, shape, &sharing);
    return law.context || law.generation ? rising_of(attention, &law, sharing)->axes : NULL;
}

static void dimension_edges(const Along *along, double size, KernelEdges *edges) {
    static const char *const NAMES[NUM_AXES] = {"batch", "tokens", "heads"};
    const AttentionShape *shape = along->shape, last = with_size(along, 2 * size);
    const KernelDimension dimension = {NAMES[along->axis], size, along_s, along};
    const double per_size[NUM_AXES] = {shape->kv_heads, 1, 1 / shape->kv_heads};
    const bool alone = along->axis == GROUP && along->heads_alone;
    if (along->attention->generation)
        kernel_edge_try(&dimension, switch_find(along, size, 2 * size), edges);
    for (int i = 0; i < 2; i++) { // at both ends the kernel may be another
        const RisingAxis *axes = axes_of(along->attention, i == 0 ? shape : &last);
        if (!axes) continue;
        if (alone)
            kernel_edges_along(&dimension, &axes[HEADS], shape->batch, edges);
        else
            kernel_edges_along(&dimension, &axes[along->axis], per_size[along->axis], edges);
    }
}

void rising_attention_edges(RisingAttention *attention, const AttentionShape *shape,
                            bool heads_alone, KernelEdges *edges) {
    const double sizes[NUM_AXES] = {shape->batch, shape->tokens, shape->heads};
    for (int axis = 0; axis < NUM_AXES; axis++) {
        const Along along = {attention, shape, axis, heads_alone};
        dimension_edges(&along, sizes[axis], edges);
    }
}
