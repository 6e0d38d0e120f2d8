#include "costmodel/kernel/rising_moe.h"

#include "costmodel/kernel/rising.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { TOKENS, INTER, NUM_AXES };
enum { NUM_BUCKETS = 4096 };
static const double MOST_TOKENS = 1e8, MOST_INTER = 1e6,
                    MOST_ROUTED = 65536; // loads of more grow with the tokens

// Those of the public tables (aiconfigurator), each a knot that counts as measured.
static const double MEASURED_TOKENS[] = {
    1,   2,   4,   8,    16,   32,   48,   64,   80,   96,   128,   160,   192,   256,  320,
    384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 32768, 65536};

// And the inner sizes of one expert, split or not.
static const double MEASURED_INTER[] = {
    16,  32,  64,  80,   96,   128,  160,  176,  192,  256,  320,  352,  384,  464,  512,  640,
    704, 768, 928, 1024, 1280, 1344, 1536, 1856, 2048, 2560, 2688, 3072, 4096, 5120, 8192, 16384};

// The lattice of one layer.
typedef struct Layer Layer;
struct Layer {
    const MoeKernel *kernel;
    MoeShape shape; // whatever its tokens and inner size
    RisingLattice lattice;
    Layer *next;
};

// The loads of one routing at all knots: the dearest part of a layer's price.
typedef struct Loads Loads;
struct Loads {
    MoeRouting routing; // whatever its tokens
    MoeLoad *loads;     // [knots of tokens]
    Loads *next;
};

struct RisingMoe {
    const Gpu *gpu;
    Arena *arena;
    RisingAxis axes[NUM_AXES];
    Loads *first_loads;
    Layer *buckets[NUM_BUCKETS];
};

RisingMoe *rising_moe_new(const Gpu *gpu, Arena *arena) {
    RisingMoe *moe = ARENA_NEW(arena, RisingMoe);
    moe->gpu = gpu;
    moe->arena = arena;
    for (size_t i = 0; i < sizeof MEASURED_TOKENS / sizeof *MEASURED_TOKENS; i++)
        rising_axis_add(&moe->axes[TOKENS], MEASURED_TOKENS[i], true);
    for (size_t i = 0; i < sizeof MEASURED_INTER / sizeof *MEASURED_INTER; i++)
        rising_axis_add(&moe->axes[INTER], MEASURED_INTER[i], true);
    rising_axis_fill(&moe->axes[TOKENS], 1, MOST_TOKENS);
    rising_axis_fill(&moe->axes[INTER], 1, MOST_INTER);
    return moe;
}

static bool routings_equal(const MoeRouting *a, const MoeRouting *b) {
    return a->topk == b->topk && a->num_experts == b->num_experts && a->num_ranks == b->num_ranks &&
           a->skew == b->skew && a->group_limited == b->group_limited;
}

static bool layers_equal(const MoeShape *a, const MoeShape *b) {
    return a->hidden_size == b->hidden_size && routings_equal(&a->routing, &b->routing);
}

static void load_grow(MoeLoad *load, double times) {
    load->num_rows *= times;
    for (int i = 0; i < MOE_NUM_TILES; i++) load->num_tiles[i] *= times;
}

static const MoeLoad *loads_of(RisingMoe *moe, const MoeRouting *routing) {
    for (Loads *loads = moe->first_loads; loads; loads = loads->next)
        if (routings_equal(&loads->routing, routing)) return loads->loads;
    Loads *loads = ARENA_NEW(moe->arena, Loads);
    loads->routing = *routing;
    loads->loads = ARENA_ARRAY(moe->arena, moe->axes[TOKENS].num_knots, MoeLoad);
    for (int i = 0; i < moe->axes[TOKENS].num_knots; i++) {
        MoeRouting at = *routing;
        at.num_tokens = fmin(moe->axes[TOKENS].knots[i], MOST_ROUTED);
        loads->loads[i] = moe_load(&at);
        load_grow(&loads->loads[i], moe->axes[TOKENS].knots[i] / at.num_tokens);
    }
    loads->next = moe->first_loads;
    moe->first_loads = loads;
    return loads->loads;
}

static size_t bucket_of(const MoeShape *shape) {
    const MoeRouting *r = &shape->routing;
    double mixed = shape->hidden_size * 31 + r->topk * 104729.0 + r->num_experts * 1299709.0 +
                   r->num_ranks * 15485863.0 + r->skew * 1e6;
    return (size_t)fmod(mixed, NUM_BUCKETS);
}

typedef struct {
    const RisingMoe *moe;
    const Layer *layer;
    const MoeLoad *loads;
} Law;

static double law_s(const void *context, const double *place) {
    const Law *law = context;
    MoeShape shape = law->layer->shape;
    double frac;
    int knot = rising_axis_locate(&law->moe->axes[TOKENS], place[TOKENS], &frac);
    shape.routing.num_tokens = place[TOKENS];
    shape.inter_size = place[INTER];
    return kernel_moe_load_s(law->moe->gpu, law->layer->kernel, &shape, &law->loads[knot]);
}

static const Layer *layer_of(RisingMoe *moe, const MoeKernel *kernel, const MoeShape *shape) {
    Layer **bucket = &moe->buckets[bucket_of(shape)];
    for (Layer *layer = *bucket; layer; layer = layer->next)
        if (layer->kernel == kernel && layers_equal(&layer->shape, shape)) return layer;
    Layer *layer = ARENA_NEW(moe->arena, Layer);
    layer->kernel = kernel;
    layer->shape = *shape;
    layer->next = *bucket;
    *bucket = layer;
    const Law law = {moe, layer, loads_of(moe, &shape->routing)};
    layer->lattice = rising_make(NUM_AXES, moe->axes, false, law_s, &law, moe->arena);
    return layer;
}

double rising_moe_s(RisingMoe *moe, const MoeKernel *kernel, const MoeShape *shape) {
    if (moe_peak_flops_per_s(moe->gpu, (MoeDtype)kernel->moe_dtype) <= 0) return NAN;
    const double place[NUM_AXES] = {shape->routing.num_tokens, shape->inter_size};
    return rising_s(&layer_of(moe, kernel, shape)->lattice, place);
}

typedef enum { OF_TOKENS, OF_HIDDEN, OF_INTER, NUM_DIMENSIONS } Dimension;

typedef struct {
    RisingMoe *moe;
    const MoeKernel *kernel;
    const MoeShape *shape;
    Dimension dimension;
    double num_splits;
} Along;

static double along_s(const void *context, double size) {
    const Along *along = context;
    MoeShape other = *along->shape;
    if (along->dimension == OF_TOKENS) other.routing.num_tokens = size;
    if (along->dimension == OF_HIDDEN) other.hidden_size = size;
    if (along->dimension == OF_INTER) other.inter_size = size / along->num_splits;
    return rising_moe_s(along->moe, along->kernel, &other);
}

void rising_moe_edges(RisingMoe *moe, const MoeKernel *kernel, const MoeShape *shape,
                      double num_splits, KernelEdges *edges) {
    enum { FEW_TILES = 4 }; // of columns: from here on one more is no edge
    static const char *const NAMES[] = {"num_tokens", "hidden_size", "inter_size"};
    const double sizes[] = {shape->routing.num_tokens, shape->hidden_size,
                            shape->inter_size * num_splits};
    Along along[NUM_DIMENSIONS];
    KernelDimension dimensions[NUM_DIMENSIONS];
    for (int d = 0; d < NUM_DIMENSIONS; d++) {
        along[d] = (Along){moe, kernel, shape, (Dimension)d, num_splits};
        dimensions[d] = (KernelDimension){NAMES[d], sizes[d], along_s, &along[d]};
    }
    kernel_edges_along(&dimensions[OF_TOKENS], &moe->axes[TOKENS], 1, edges);
    for (int i = 1; i <= FEW_TILES; i++)
        kernel_edge_try(&dimensions[OF_HIDDEN], i * MOE_TILE_COLUMNS + 1, edges);
    kernel_edges_along(&dimensions[OF_INTER], &moe->axes[INTER], 1 / num_splits, edges);
}
