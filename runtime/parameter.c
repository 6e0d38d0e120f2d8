// All parameters of the model are walked in its order, so that each gets its global offset; those
// of the chunk are kept.
#include "runtime/parameter.h"

#include "base/numbers.h"

#include <math.h>
#include <stdio.h>

typedef enum { SPLIT_NOT, SPLIT_ROWS, SPLIT_COLUMNS } ParameterSplit;

typedef struct {
    Arena *arena;
    const Model *model;
    int parts, part; // of what is split: tp's, of experts etp's
    int etp, etp_index;
    int num_experts, first_expert; // of this rank
    int64_t vocab_rows;
    int64_t global_offset;
    bool keep; // what is walked lies in the chunk
    int block; // and in this block of it
    int expert_block;
    Parameter *parameters;
    int num, capacity;
} Walk;

// Adds one parameter; NULL where it is not kept. rows: of the whole, local_rows: of a rank where
// they are split.
static const Parameter *walk_add(Walk *w, const char *name, int64_t rows, int64_t columns,
                                 ParameterSplit split) {
    const int64_t offset = w->global_offset;
    w->global_offset += rows * columns;
    if (!w->keep) return NULL;
    Parameter *p = &w->parameters[w->num++];
    *p = (Parameter){.name = arena_strdup(w->arena, name),
                     .rows = rows,
                     .columns = columns,
                     .num_rows = split == SPLIT_ROWS ? rows / w->parts : rows,
                     .num_columns = split == SPLIT_COLUMNS ? columns / w->parts : columns,
                     .global_offset = offset,
                     .block = w->block};
    if (split == SPLIT_ROWS) p->first_row = w->part * p->num_rows;
    if (split == SPLIT_COLUMNS) p->first_column = w->part * p->num_columns;
    const bool whole = split == SPLIT_NOT;
    if (columns == 1)
        p->region = whole ? REGION_WHOLE_VECTORS : REGION_SPLIT_VECTORS;
    else
        p->region = whole ? REGION_WHOLE_MATRICES : REGION_SPLIT_MATRICES;
    return p;
}

static const Parameter *walk_vector(Walk *w, const char *name, int64_t rows, ParameterSplit split) {
    return walk_add(w, name, rows, 1, split);
}

enum { NORMAL_FRACTION = 50 }; // first values are normal with deviation 1 / 50 (GPT-2's 0.02)

// A matrix; those that write to the residual stream begin smaller the more of them there are
// (Radford et al. 2019, "Language models are unsupervised multitask learners", section 2.3).
static const Parameter *walk_matrix(Walk *w, const char *name, int64_t rows, int64_t columns,
                                    ParameterSplit split, bool residual) {
    const Parameter *p = walk_add(w, name, rows, columns, split);
    if (!p) return NULL;
    const double layers = residual ? sqrt(2.0 * w->model->num_layers) : 1;
    w->parameters[w->num - 1].deviation = 1.0 / NORMAL_FRACTION / layers;
    return p;
}

static const Parameter *walk_norm(Walk *w, const char *name, const Parameter **bias) {
    char text[96];
    snprintf(text, sizeof text, "%s.weight", name);
    const Parameter *weight = walk_vector(w, text, w->model->hidden_size, SPLIT_NOT);
    if (weight) w->parameters[w->num - 1].constant = 1;
    if (!w->model->norm_bias) return weight;
    snprintf(text, sizeof text, "%s.bias", name);
    *bias = walk_vector(w, text, w->model->hidden_size, SPLIT_NOT);
    return weight;
}

// Several matrices of one product, one behind the other. Returns the first; biases likewise.
typedef struct {
    const char *names[3];
    int64_t rows[3];
    int num;
    bool bias;
} Joint;

static const Parameter *walk_joint(Walk *w, int layer, const Joint *joint, const Parameter **bias) {
    const Parameter *first = NULL;
    char text[96];
    for (int i = 0; i < joint->num; i++) {
        snprintf(text, sizeof text, "layers.%d.%s.weight", layer, joint->names[i]);
        const Parameter *p =
            walk_matrix(w, text, joint->rows[i], w->model->hidden_size, SPLIT_ROWS, false);
        if (i == 0) first = p;
    }
    for (int i = 0; i < joint->num && joint->bias; i++) {
        snprintf(text, sizeof text, "layers.%d.%s.bias", layer, joint->names[i]);
        const Parameter *p = walk_vector(w, text, joint->rows[i], SPLIT_ROWS);
        if (i == 0) *bias = p;
    }
    return first;
}

// A product that writes to the residual stream: its inputs are split, its bias is not.
static const Parameter *walk_row(Walk *w, int layer, const char *name, int64_t inputs, bool biased,
                                 const Parameter **bias) {
    char text[96];
    snprintf(text, sizeof text, "layers.%d.%s.weight", layer, name);
    const Parameter *weight =
        walk_matrix(w, text, w->model->hidden_size, inputs, SPLIT_COLUMNS, true);
    if (!biased) return weight;
    snprintf(text, sizeof text, "layers.%d.%s.bias", layer, name);
    *bias = walk_vector(w, text, w->model->hidden_size, SPLIT_NOT);
    return weight;
}

// The two matrices (three where they are gated) of an MLP that is called `name`.
typedef struct {
    const char *name;
    int64_t inner;
    bool gated, bias;
    const Parameter **up, **up_bias, **down, **down_bias;
} Mlp;

static void walk_mlp(Walk *w, int layer, const Mlp *mlp) {
    char gate[64], up[64], down[64];
    snprintf(gate, sizeof gate, "%s.gate", mlp->name);
    snprintf(up, sizeof up, "%s.up", mlp->name);
    snprintf(down, sizeof down, "%s.down", mlp->name);
    const Joint joint = {
        {mlp->gated ? gate : up, up}, {mlp->inner, mlp->inner}, 1 + mlp->gated, mlp->bias};
    *mlp->up = walk_joint(w, layer, &joint, mlp->up_bias);
    *mlp->down = walk_row(w, layer, down, mlp->inner, mlp->bias, mlp->down_bias);
}

// Router and experts: those of this rank are kept.
static void walk_experts(Walk *w, int layer, const FeedForward *ffn, LayerParameters *l) {
    const Walk outside = *w;
    char name[64];
    snprintf(name, sizeof name, "layers.%d.router.weight", layer);
    l->router = walk_matrix(w, name, ffn->num_experts, w->model->hidden_size, SPLIT_NOT, false);
    l->expert_up = ARENA_ARRAY(w->arena, w->keep ? w->num_experts : 0, const Parameter *);
    l->expert_down = ARENA_ARRAY(w->arena, w->keep ? w->num_experts : 0, const Parameter *);
    w->parts = w->etp;
    w->part = w->etp_index;
    w->block = w->expert_block;
    for (int i = 0; i < ffn->num_experts; i++) {
        const int own = i - w->first_expert;
        const Parameter *up = NULL, *down = NULL, *bias = NULL;
        w->keep = outside.keep && own >= 0 && own < w->num_experts;
        snprintf(name, sizeof name, "experts.%d", i);
        walk_mlp(
            w, layer,
            &(Mlp){name, ffn->moe_intermediate_size, ffn->gated, false, &up, &bias, &down, &bias});
        if (w->keep) l->expert_up[own] = up, l->expert_down[own] = down;
    }
    w->parts = outside.parts;
    w->part = outside.part;
    w->block = outside.block;
    w->keep = outside.keep;
}

static LayerParameters walk_layer(Walk *w, int layer) {
    const LayerKind *kind = &w->model->kinds[w->model->layer_kind[layer]];
    const Mixer *mixer = &kind->mixer;
    const FeedForward *ffn = &kind->ffn;
    const int64_t q = (int64_t)mixer->num_heads * mixer->head_dim,
                  kv = (int64_t)mixer->num_kv_heads * mixer->head_dim;
    const bool moe = kind_is_moe(kind);
    const Joint qkv = {
        {"attention.query", "attention.key", "attention.value"}, {q, kv, kv}, 3, mixer->qkv_bias};
    LayerParameters l = {0};
    const Mlp mlp = {moe ? "shared" : "mlp",
                     moe ? ffn->shared_intermediate_size : ffn->intermediate_size,
                     ffn->gated,
                     ffn->bias,
                     &l.up,
                     &l.up_bias,
                     &l.down,
                     &l.down_bias};
    char text[96];
    snprintf(text, sizeof text, "layers.%d.attention_norm", layer);
    l.norm[0] = walk_norm(w, text, &l.norm_bias[0]);
    l.qkv = walk_joint(w, layer, &qkv, &l.qkv_bias);
    for (int i = 0; i < 2 && mixer->qk_norm; i++) {
        snprintf(text, sizeof text, "layers.%d.attention.%s_norm.weight", layer,
                 i == 0 ? "query" : "key");
        l.heads_norm[i] = walk_vector(w, text, mixer->head_dim, SPLIT_NOT);
        if (l.heads_norm[i]) w->parameters[w->num - 1].constant = 1;
    }
    l.out = walk_row(w, layer, "attention.out", q, mixer->out_bias, &l.out_bias);
    snprintf(text, sizeof text, "layers.%d.mlp_norm", layer);
    l.norm[1] = walk_norm(w, text, &l.norm_bias[1]);
    if (moe) walk_experts(w, layer, ffn, &l);
    if (mlp.inner > 0) walk_mlp(w, layer, &mlp);
    return l;
}

// A matrix with a row for each word, which lies last in the buffers, or in a block of its own.
static const Parameter *walk_words(Walk *w, const char *name, int block) {
    const Parameter *p =
        walk_matrix(w, name, w->model->vocab_size, w->model->hidden_size, SPLIT_ROWS, false);
    if (!p) return NULL;
    Parameter *last = &w->parameters[w->num - 1];
    last->num_rows = w->vocab_rows;
    last->first_row = w->part * w->vocab_rows;
    last->region = REGION_TABLES;
    last->block = block;
    return p;
}

// The whole model; what is of the chunk goes to `out`.
static void walk_model(Walk *w, bool shares_table, ChunkParameters *out) {
    const Model *m = w->model;
    const PlanChunk none = {0}, *place = out->place ? out->place : &none;
    w->keep = place->embedding;
    w->block = BLOCK_POSITIONS;
    out->table = walk_words(w, "embedding.weight", place->num_layers + BLOCK_TABLE);
    if (m->position == POSITION_LEARNED)
        out->positions = walk_matrix(w, "positions.weight", m->max_position_embeddings,
                                     m->hidden_size, SPLIT_NOT, false);
    LayerParameters *layers = ARENA_ARRAY(w->arena, place->num_layers, LayerParameters);
    for (int i = 0; i < m->num_layers; i++) {
        const int k = i - place->first_layer;
        w->keep = k >= 0 && k < place->num_layers;
        w->block = BLOCK_LAYERS + k;
        w->expert_block = place->num_layers + BLOCK_EXPERTS + k;
        const LayerParameters layer = walk_layer(w, i);
        if (w->keep) layers[k] = layer;
    }
    out->layers = layers;
    w->keep = place->loss;
    w->block = place->num_layers + BLOCK_FINAL_NORM;
    out->norm = walk_norm(w, "final_norm", &out->norm_bias);
    if (!m->tie_word_embeddings) {
        out->head = walk_words(w, "head.weight", place->num_layers + BLOCK_HEAD_MATRIX);
    } else if (!shares_table) {
        w->global_offset = 0; // the table's own
        out->head = walk_words(w, "embedding.weight", place->num_layers + BLOCK_HEAD_MATRIX);
        out->head_is_copy = out->head != NULL;
    }
}

int64_t parameter_count(const Parameter *p) {
    return p->num_rows * p->num_columns;
}

int64_t parameter_real_count(const Parameter *p) {
    int64_t rows = p->rows - p->first_row;
    if (rows > p->num_rows) rows = p->num_rows;
    return rows < 0 ? 0 : rows * p->num_columns;
}

// Places the parameters of one block.
static FlatLayout place_parameters(ChunkParameters *out, int block, const ParameterShare *share,
                                   const RankShape *shape) {
    enum { SHARD_MULTIPLE = 8 }; // elements: what kernels read at once
    FlatLayout flat = {.experts = block >= experts_block(out, 0)};
    int64_t offset = 0;
    for (int region = 0; region < NUM_REGIONS; region++) {
        flat.region_begin[region] = offset;
        for (int i = 0; i < out->num_parameters; i++) {
            Parameter *p = &out->parameters[i];
            if ((int)p->region != region || p->block != block) continue;
            p->offset = offset;
            offset += parameter_count(p);
        }
    }
    flat.region_begin[NUM_REGIONS] = flat.count = offset;
    int64_t least = offset;
    if (flat.region_begin[REGION_TABLES] < offset)
        least += (shape->logits - shape->vocab_rows) * shape->hidden;
    const int64_t multiple =
        (int64_t)(flat.experts ? share->num_expert_shards : share->num_shards) * SHARD_MULTIPLE;
    flat.capacity = (least + multiple - 1) / multiple * multiple;
    return flat;
}

static Walk walk_start(const Scenario *scenario, const Plan *plan, const ParameterShare *share,
                       Arena *arena) {
    enum { MOST_OF_A_LAYER = 21, OF_AN_EXPERT = 3, OTHERS = 8 };
    const RankShape shape = rank_shape(scenario, plan);
    Walk w = {.arena = arena,
              .model = &scenario->model,
              .parts = plan->tp,
              .part = share->tp_index,
              .etp = plan->etp,
              .etp_index = share->etp_index,
              .num_experts = shape.experts,
              .first_expert = share->ep_index * shape.experts,
              .vocab_rows = shape.vocab_rows,
              .capacity =
                  (MOST_OF_A_LAYER + OF_AN_EXPERT * shape.experts) * scenario->model.num_layers +
                  OTHERS};
    return w;
}

ChunkParameters chunk_parameters(const Scenario *scenario, const Plan *plan, int chunk,
                                 const ParameterShare *share, Arena *arena) {
    const RankShape shape = rank_shape(scenario, plan);
    const int rank = plan_chunk_rank(plan, chunk);
    Walk w = walk_start(scenario, plan, share, arena);
    ChunkParameters out = {
        .chunk = chunk, .place = &plan->chunks[chunk], .by_block = share->by_block};
    w.parameters = ARENA_ARRAY(arena, w.capacity, Parameter);
    walk_model(&w, rank_shares_table(scenario, plan, rank), &out);
    out.parameters = w.parameters;
    out.num_parameters = w.num;
    const int layers = out.place->num_layers, last = experts_block(&out, layers - 1);
    out.num_blocks = shape.experts > 0 && layers > 0 ? last + 1 : experts_block(&out, 0);
    for (int i = 0; i < w.num && !out.by_block; i++)
        w.parameters[i].block = w.parameters[i].block >= layers + BLOCK_EXPERTS;
    FlatLayout *blocks = ARENA_ARRAY(arena, out.num_blocks, FlatLayout);
    for (int i = 0; i < out.num_blocks; i++) blocks[i] = place_parameters(&out, i, share, &shape);
    out.blocks = blocks;
    return out;
}

int64_t model_parameter_elements(const Scenario *scenario, const Plan *plan) {
    Arena scratch = {0};
    Walk w = walk_start(scenario, plan, &(ParameterShare){0}, &scratch);
    ChunkParameters none = {0};
    walk_model(&w, true, &none);
    arena_free(&scratch);
    return w.global_offset;
}

// --- First values

static uint64_t name_key(const char *name, uint64_t seed) {
    uint64_t key = mix64(seed);
    for (; *name; name++) key = mix64(key ^ (uint64_t)(unsigned char)*name);
    return key;
}

// Nearly normal: the sum of eight uniform numbers of 16 bits, whose variance is 8 / 12 of 2^32.
static double normal_value(uint64_t key, uint64_t index) {
    const double deviation = 53510.0; // 65536 sqrt(8 / 12)
    const uint64_t a = mix64(key + 2 * index), b = mix64(key + 2 * index + 1);
    double sum = 0;
    for (int shift = 0; shift < 64; shift += 16)
        sum += (double)(a >> shift & 0xffff) + (double)(b >> shift & 0xffff);
    return (sum - 8 * 32767.5) / deviation;
}

void parameter_values(const Parameter *p, uint64_t seed, int64_t first, int64_t count,
                      double *values) {
    const uint64_t key = name_key(p->name, seed);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = p->first_row + (first + i) / p->num_columns;
        const int64_t column = p->first_column + (first + i) % p->num_columns;
        values[i] = p->constant;
        if (row >= p->rows)
            values[i] = 0;
        else if (p->deviation > 0)
            values[i] = p->deviation * normal_value(key, (uint64_t)(row * p->columns + column));
    }
}
