// runtime/parameter.h - the parameters of one chunk as a rank holds them: names, shapes, and where
// each lies in the flat buffers of the chunk or of its blocks.
//
// Where tp splits a matrix, a rank has some rows of it (outputs of a column-parallel product) or
// some columns (inputs of a row-parallel one). A flat buffer has those that are alike side by side,
// so that norms and updates are a call for each region and not for each parameter. The matrix that
// makes the logits comes last: rows that only pad it lie behind all that is reduced and updated.
// Experts have buffers of their own: the ranks that hold the same are others. A rank has those of
// its place in ep, of each its part by etp.
#pragma once

#include "base/arena.h"
#include "plan/plan.h"
#include "runtime/rank_shape.h"

typedef enum {
    REGION_SPLIT_VECTORS, // by tp; not decayed, like the next
    REGION_WHOLE_VECTORS, // every tp rank has all of it, and of the next
    REGION_WHOLE_MATRICES,
    REGION_SPLIT_MATRICES,
    REGION_TABLES, // word table and head: split
    NUM_REGIONS
} Region;

static inline bool region_is_split(Region region) {
    return region != REGION_WHOLE_VECTORS && region != REGION_WHOLE_MATRICES;
}

static inline bool region_decays(Region region) {
    return region >= REGION_WHOLE_MATRICES;
}

typedef struct {
    const char *name;                  // "layers.3.attention.query.weight"
    int64_t rows, columns;             // of the whole; a vector has one column
    int64_t first_row, num_rows;       // of this rank; rows beyond the whole are padding
    int64_t first_column, num_columns; // of this rank
    int64_t global_offset;             // elements before it in the whole model
    int block;                         // of the chunk, whose buffers it lies in
    int64_t offset;                    // of its first element in the block's buffers
    Region region;
    double deviation; // of its first values, which are normal; 0: they are `constant`
    double constant;
} Parameter;

// Of one layer. Matrices that one product reads follow each other: keys and values the queries,
// the MLP's second input matrix the first. Biases: NULL where there is none. Of a layer with
// experts the MLP is that of the shared ones, NULL where there are none.
typedef struct {
    const Parameter *norm[2], *norm_bias[2]; // before attention and MLP
    const Parameter *qkv, *qkv_bias, *out, *out_bias;
    const Parameter *heads_norm[2]; // of queries and keys; NULL: none
    const Parameter *up, *up_bias, *down, *down_bias;
    const Parameter *router;                    // NULL: a layer without experts
    const Parameter **expert_up, **expert_down; // [experts of this rank]
} LayerParameters;

// A flat buffer.
typedef struct {
    bool experts; // it has them and nothing else
    int64_t region_begin[NUM_REGIONS + 1];
    int64_t count;    // elements that are reduced and updated
    int64_t capacity; // with padding: of the logits, and to equal shards
} FlatLayout;

typedef struct {
    int chunk;
    const PlanChunk *place;
    Parameter *parameters; // [num_parameters] in the order of the model
    int num_parameters;
    const FlatLayout *blocks; // [num_blocks] all but experts, and these; or (by_block) what ZeRO-2
    int num_blocks;           // and -3 gather and scatter at once, in the order below; empty where
    bool by_block;            // there is none
    const LayerParameters *layers;      // [place->num_layers]
    const Parameter *table, *positions; // NULL but where the embedding is
    const Parameter *norm, *norm_bias;  // before the head
    const Parameter *head;              // NULL but where the loss is and the table elsewhere
    bool head_is_copy;                  // of a table that another rank holds too
} ChunkParameters;

// Whose part is listed.
typedef struct {
    int tp_index, ep_index, etp_index; // of this rank in its groups
    int num_shards, num_expert_shards; // equal parts that the buffers are cut into
    bool by_block;                     // whether each block has buffers of its own
} ParameterShare;

// The parameters of a chunk.
ChunkParameters chunk_parameters(const Scenario *scenario, const Plan *plan, int chunk,
                                 const ParameterShare *share, Arena *arena);

// The blocks of a chunk that is cut into them: what the embedding has beside the word table, each
// layer, then, counted from the number of layers, these, the experts of each layer last. A matrix
// of words is a block of its own: of a tied one both holders then have the same shards.
enum {
    BLOCK_POSITIONS,
    BLOCK_LAYERS,
    BLOCK_FINAL_NORM = BLOCK_LAYERS, // + layers, and so on
    BLOCK_TABLE,
    BLOCK_HEAD_MATRIX,
    BLOCK_EXPERTS,
};

static inline int block_behind_layers(const ChunkParameters *list, int block) {
    return list->place->num_layers + block;
}

// Where the experts of layer `index` of a chunk lie.
static inline int experts_block(const ChunkParameters *list, int index) {
    return list->by_block ? block_behind_layers(list, BLOCK_EXPERTS) + index : 1;
}

// Elements of the whole model: what global offsets count.
int64_t model_parameter_elements(const Scenario *scenario, const Plan *plan);

// Elements of a parameter on this rank, and those of them that are not padding.
int64_t parameter_count(const Parameter *parameter);
int64_t parameter_real_count(const Parameter *parameter);

// First values of elements [first, first + count) of this rank's part: a function of seed, name and
// place in the whole, so that every split of a model begins with the same numbers.
void parameter_values(const Parameter *parameter, uint64_t seed, int64_t first, int64_t count,
                      double *values);
