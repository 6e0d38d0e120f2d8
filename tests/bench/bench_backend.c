// tests/bench/bench_backend.c - how long each operation of a training step takes on a GPU, at the
// shapes of three models in bf16. CSV on standard output; the last row of a model is their sum by
// how often a step has them.
//   MESHWRIGHT_CUDA_BACKEND=build/libmeshwright-cuda.so bench_backend [MODEL|all [attention]]
// With the second word: the attention of these models alone.
#include "backend/cuda_backend.h"
#include "tests/bench/measure.h"

#include <math.h>

typedef struct {
    const char *name;
    int batch, sequence, layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
    bool llama; // RMSNorm, rope, a gated activation and no biases; else as GPT-2
} BenchModel;

static const BenchModel MODELS[] = {
    {"gpt2-124m", 32, 1024, 12, 768, 12, 12, 64, 3072, 50304, false},
    {"gpt2-1.5b", 16, 1024, 48, 1600, 25, 25, 64, 6400, 50304, false},
    {"llama-3.2-1b", 4, 4096, 16, 2048, 32, 8, 64, 8192, 128256, true},
    {"llama-3-8b-layer", 2, 4096, 1, 4096, 32, 8, 128, 14336, 128256, true},
};

enum { NUM_ACTS = 4, NUM_WIDES = 5, NUM_RUNS = 7, CALLS_PER_RUN = 5 };

typedef struct {
    Backend *backend;
    const BackendTable *table;
    BackendStream *stream;
    BackendEvent *from, *to;
    const BenchModel *model;
    bool only_attention;
    size_t act_bytes, wide_bytes;
    void *act[NUM_ACTS];   // each as large as the largest
    void *wide[NUM_WIDES]; // each as large as the largest weight
    int32_t *tokens, *positions;
    int64_t rows;
    double step_s;
} Bench;

static void give_up(const Status *status) {
    fprintf(stderr, "%s\n", status->text);
    exit((int)status->code);
}

// --- Timing

// times: how often a step has it. The statement runs one call.
#define TIME(bench, times, flops, bytes, statement, ...)                                           \
    do {                                                                                           \
        double seconds[NUM_RUNS];                                                                  \
        for (int run = -1; run < NUM_RUNS; run++) {                                                \
            (bench)->table->event_record((bench)->backend, (bench)->from, (bench)->stream);        \
            for (int call_ = 0; call_ < CALLS_PER_RUN; call_++) statement;                         \
            (bench)->table->event_record((bench)->backend, (bench)->to, (bench)->stream);          \
            double interval_s =                                                                    \
                (bench)->table->event_interval_s((bench)->backend, (bench)->from, (bench)->to);    \
            if (run >= 0) seconds[run] = interval_s / CALLS_PER_RUN;                               \
        }                                                                                          \
        char row_name_[96];                                                                        \
        snprintf(row_name_, sizeof row_name_, __VA_ARGS__);                                        \
        print_row(bench, row_name_, times, flops, bytes, measure_spread(seconds, NUM_RUNS));       \
    } while (0)

static void print_row(Bench *bench, const char *name, double times, double flops, double bytes,
                      Spread spread) {
    if (bench->backend->failure.code != STATUS_OK) give_up(&bench->backend->failure);
    bench->step_s += times * spread.median;
    printf("%s,%s,%.0f,%.2f,%.2f,%.2f,%.1f,%.0f,%.3f\n", bench->model->name, name, times,
           1e6 * spread.median, 1e6 * spread.least, 1e6 * spread.most,
           1e-12 * flops / spread.median, 1e-9 * bytes / spread.median,
           1e3 * times * spread.median);
    fflush(stdout);
}

// --- Operations

static void time_product(Bench *bench, const char *name, double times, int64_t n, int64_t k,
                         bool bias) {
    static const char *const LAYOUTS[] = {"forward", "backward_input", "backward_weight"};
    int64_t rows = bench->rows;
    for (int layout = 0; layout < 3; layout++) {
        Product call = {.layout = (ProductLayout)layout,
                        .m = rows,
                        .n = n,
                        .k = k,
                        .a = bench->act[0],
                        .b = bench->act[1],
                        .out = bench->act[2]};
        if (layout == PRODUCT_FORWARD && bias) call.bias = bench->act[3];
        if (layout == PRODUCT_BACKWARD_INPUT) call.n = k, call.k = n;
        if (layout == PRODUCT_BACKWARD_WEIGHT) {
            call.m = n, call.n = k, call.k = rows;
            call.out = bench->wide[0], call.out_wide = true, call.accumulate = true;
        }
        double m = (double)call.m, out_bytes = call.accumulate ? 8 : 2;
        double bytes = 2 * (m * (double)call.k + (double)call.n * (double)call.k) +
                       out_bytes * m * (double)call.n;
        TIME(bench, times, 2 * (double)rows * (double)n * (double)k, bytes,
             bench->table->product(bench->backend, &call, bench->stream), "product %s %s", name,
             LAYOUTS[layout]);
    }
}

static void time_norms(Bench *bench) {
    const BenchModel *model = bench->model;
    double elements = (double)bench->rows * model->hidden, times = 2 * model->layers;
    NormForward forward = {.op = model->llama ? NORM_RMS : NORM_LAYER,
                           .rows = bench->rows,
                           .columns = model->hidden,
                           .epsilon = 1e-5,
                           .x = bench->act[0],
                           .add = bench->act[1],
                           .sum = bench->act[0],
                           .weight = bench->act[3],
                           .bias = model->llama ? NULL : bench->act[3],
                           .y = bench->act[2],
                           .mean = bench->wide[0],
                           .rstd = bench->wide[1]};
    TIME(bench, times, 0, 8 * elements,
         bench->table->norm_forward(bench->backend, &forward, bench->stream), "norm_forward");
    NormBackward backward = {.op = forward.op,
                             .rows = bench->rows,
                             .columns = model->hidden,
                             .dy = bench->act[0],
                             .x = bench->act[1],
                             .weight = bench->act[3],
                             .mean = bench->wide[0],
                             .rstd = bench->wide[1],
                             .add = bench->act[2],
                             .dx = bench->act[2],
                             .dweight = bench->wide[2],
                             .dbias = model->llama ? NULL : bench->wide[3]};
    TIME(bench, times, 0, 8 * elements,
         bench->table->norm_backward(bench->backend, &backward, bench->stream), "norm_backward");
}

static void time_activation(Bench *bench) {
    const BenchModel *model = bench->model;
    double elements = (double)bench->rows * model->ffn, gate = model->llama ? 2 : 1;
    Activation call = {.op = model->llama ? ACTIVATION_SILU_GATED : ACTIVATION_GELU,
                       .rows = bench->rows,
                       .width = model->ffn,
                       .x = bench->act[0],
                       .y = bench->act[1],
                       .dy = bench->act[1],
                       .dx = bench->act[2]};
    TIME(bench, model->layers, 0, 2 * (gate + 1) * elements,
         bench->table->activation_forward(bench->backend, &call, bench->stream),
         "activation_forward");
    TIME(bench, model->layers, 0, 2 * (2 * gate + 1) * elements,
         bench->table->activation_backward(bench->backend, &call, bench->stream),
         "activation_backward");
}

static void time_attention(Bench *bench) {
    const BenchModel *model = bench->model;
    int64_t q = (int64_t)model->heads * model_mixer(model)->head_dim;
    int64_t kv = (int64_t)model->kv_heads * model_mixer(model)->head_dim, token = q + 2 * kv;
    uint16_t *qkv = bench->act[0], *dqkv = bench->act[2];
    Attention call = {.batch = model->batch,
                      .heads = model->heads,
                      .kv_heads = model->kv_heads,
                      .head_dim = model_mixer(model)->head_dim,
                      .num_queries = model->sequence,
                      .num_keys = model->sequence,
                      .causal = true,
                      .scale = 1 / sqrt(model_mixer(model)->head_dim),
                      .q = qkv,
                      .k = qkv + q,
                      .v = qkv + q + kv,
                      .q_stride = token,
                      .kv_stride = token,
                      .q_batch_stride = token * model->sequence,
                      .kv_batch_stride = token * model->sequence,
                      .o = bench->act[1],
                      .o_stride = q,
                      .o_batch_stride = q * model->sequence,
                      .lse = bench->wide[0],
                      .lse_stride = model->sequence,
                      .dout = bench->act[3],
                      .dq = dqkv,
                      .dk = dqkv + q,
                      .dv = dqkv + q + kv};
    // Half of the products of all pairs, as FlashAttention's papers count it.
    double flops = 2 * (double)model->batch * (double)q * model->sequence * model->sequence;
    double bytes = 2 * (double)bench->rows * (double)(token + q);
    TIME(bench, model->layers, flops, bytes,
         bench->table->attention_forward(bench->backend, &call, bench->stream),
         "attention_forward");
    TIME(bench, model->layers, 2.5 * flops, 2 * (double)bench->rows * (double)(2 * token + 2 * q),
         bench->table->attention_backward(bench->backend, &call, bench->stream),
         "attention_backward");
    if (!model->llama) return;
    Rope rope = {.tokens = bench->rows,
                 .heads = model->heads + model->kv_heads,
                 .head_dim = model_mixer(model)->head_dim,
                 .x = qkv,
                 .stride = token,
                 .positions = bench->positions,
                 .theta = 500000};
    TIME(bench, 2 * model->layers, 0, 4 * (double)bench->rows * (double)(q + kv),
         bench->table->rope(bench->backend, &rope, bench->stream), "rope");
}

static void time_vocabulary(Bench *bench) {
    const BenchModel *model = bench->model;
    double elements = (double)bench->rows * model->hidden;
    Embedding embedding = {.rows = bench->rows,
                           .columns = model->hidden,
                           .tokens = bench->tokens,
                           .table = bench->act[1],
                           .num_rows = model->vocabulary,
                           .positions_table = model->llama ? NULL : bench->act[3],
                           .positions = bench->positions,
                           .y = bench->act[0],
                           .dy = bench->act[0],
                           .dtable = bench->wide[0],
                           .dpositions_table = model->llama ? NULL : bench->wide[1]};
    TIME(bench, 1, 0, 4 * elements,
         bench->table->embedding_forward(bench->backend, &embedding, bench->stream),
         "embedding_forward");
    TIME(bench, 1, 0, 10 * elements,
         bench->table->embedding_backward(bench->backend, &embedding, bench->stream),
         "embedding_backward");
    CrossEntropy entropy = {.rows = bench->rows,
                            .num_columns = model->vocabulary,
                            .stride = model->vocabulary,
                            .logits = bench->act[0],
                            .targets = bench->tokens,
                            .scale = 1,
                            .loss = bench->wide[0]};
    TIME(bench, 1, 0, 4 * (double)bench->rows * model->vocabulary,
         bench->table->cross_entropy(bench->backend, &entropy, bench->stream), "cross_entropy");
}

static void time_weights(Bench *bench) {
    const BenchModel *model = bench->model;
    int64_t count = (int64_t)model->hidden * model->vocabulary;
    double hidden = model->hidden, gate = model->llama ? 3 : 2;
    double kv = (double)model->kv_heads / model->heads;
    double weights = (double)count +
                     model->layers * hidden * (hidden * (2 + 2 * kv) + gate * (double)model->ffn);
    double times = weights / (double)count;
    AdamW adamw = {.count = count,
                   .gradient = bench->wide[0],
                   .gradient_scale = 1,
                   .master = bench->wide[1],
                   .weight = bench->act[0],
                   .moment = bench->wide[2],
                   .variance = bench->wide[3],
                   .learning_rate = 1e-4,
                   .beta1 = 0.9,
                   .beta2 = 0.95,
                   .epsilon = 1e-8,
                   .weight_decay = 0.1,
                   .step = 10};
    TIME(bench, times, 0, 30 * (double)count,
         bench->table->adamw(bench->backend, &adamw, bench->stream), "adamw");
    TIME(bench, times, 0, 4 * (double)count,
         bench->table->sum_squares(bench->backend, bench->wide[1], bench->wide[0], count,
                                   bench->stream),
         "sum_squares");
    TIME(bench, times, 0, 4 * (double)count,
         bench->table->zero(bench->backend, bench->wide[0], (size_t)count * 4, bench->stream),
         "zero");
}

static void time_sums(Bench *bench) {
    const BenchModel *model = bench->model;
    double elements = (double)bench->rows * model->hidden;
    TIME(bench, 0, 0, 6 * elements,
         bench->table->add(bench->backend, bench->act[2], bench->act[0], bench->act[1],
                           bench->rows * model->hidden, bench->stream),
         "add");
    TIME(bench, model->llama ? 0 : 2 * model->layers, 0, 2 * elements,
         bench->table->sum_rows(bench->backend, bench->wide[0], bench->act[0], bench->rows,
                                model->hidden, bench->stream),
         "sum_rows of hidden");
    TIME(bench, model->llama ? 0 : model->layers, 0, 2 * (double)bench->rows * model->ffn,
         bench->table->sum_rows(bench->backend, bench->wide[0], bench->act[0], bench->rows,
                                model->ffn, bench->stream),
         "sum_rows of ffn");
    TIME(bench, model->llama ? 0 : model->layers, 0, 6 * elements,
         bench->table->sum_rows(bench->backend, bench->wide[0], bench->act[0], bench->rows,
                                3 * (int64_t)model->hidden, bench->stream),
         "sum_rows of qkv");
}

// --- Arrays

// Random numbers of about the size of weights, which are such in bf16 and in fp32.
static void fill(Bench *bench, char *array, size_t bytes) {
    enum { COUNT = 1 << 20 };
    static uint16_t numbers[COUNT];
    uint64_t state = 1;
    for (int i = 0; i < COUNT; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        float value = (float)((double)(state >> 40) / 0x1p24 - 0.5);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        numbers[i] = (uint16_t)(bits >> 16);
    }
    for (size_t at = 0; at < bytes; at += sizeof numbers) {
        size_t part = bytes - at < sizeof numbers ? bytes - at : sizeof numbers;
        if (at == 0)
            bench->table->upload(bench->backend, array, numbers, part, bench->stream);
        else
            bench->table->copy(bench->backend, array + at, array, part, bench->stream);
    }
}

static void *make_array(Bench *bench, size_t bytes) {
    void *array = bench->table->alloc(bench->backend, bytes);
    if (!array) give_up(&bench->backend->failure);
    fill(bench, array, bytes);
    return array;
}

static int32_t *make_ints(Bench *bench, int64_t most, bool in_order) {
    size_t bytes = (size_t)bench->rows * sizeof(int32_t);
    int32_t *host = malloc(bytes), *array = bench->table->alloc(bench->backend, bytes);
    if (!host || !array) exit(STATUS_MACHINE);
    uint64_t state = 2;
    for (int64_t i = 0; i < bench->rows; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        host[i] = (int32_t)(in_order ? i % most : (int64_t)(state >> 33) % most);
    }
    bench->table->upload(bench->backend, array, host, bytes, bench->stream);
    free(host);
    return array;
}

// Only the first array of activations holds logits; the first two hold a vocabulary's table.
static size_t act_bytes(const Bench *bench, int i) {
    const BenchModel *model = bench->model;
    size_t rows = (size_t)bench->rows, vocabulary = (size_t)model->vocabulary;
    size_t widest = (size_t)model->ffn * (model->llama ? 2 : 1);
    size_t bytes =
        2 * rows * (widest > 3 * (size_t)model->hidden ? widest : 3 * (size_t)model->hidden);
    size_t logits = 2 * rows * vocabulary, table = 2 * vocabulary * (size_t)model->hidden;
    if (i != 3 && bytes < logits && i != 1)
        bytes = logits; // the head's products read and write them
    return bytes < table ? table : bytes;
}

static void time_step(Bench *bench) {
    const BenchModel *model = bench->model;
    int64_t kv = (int64_t)model->kv_heads * model_mixer(model)->head_dim;
    int64_t q = (int64_t)model->heads * model_mixer(model)->head_dim;
    bool bias = !model->llama;
    time_product(bench, "qkv", model->layers, q + 2 * kv, model->hidden, bias);
    time_product(bench, "attention_out", model->layers, model->hidden, q, bias);
    time_product(bench, "ffn_in", model->layers, (model->llama ? 2 : 1) * (int64_t)model->ffn,
                 model->hidden, bias);
    time_product(bench, "ffn_out", model->layers, model->hidden, model->ffn, bias);
    time_product(bench, "head", 1, model->vocabulary, model->hidden, false);
    time_attention(bench);
    time_norms(bench);
    time_activation(bench);
    time_sums(bench);
    time_vocabulary(bench);
    time_weights(bench);
    printf("%s,step,1,%.2f,,,,,%.3f\n", model->name, 1e6 * bench->step_s, 1e3 * bench->step_s);
    printf("%s,tokens_per_s,1,%.0f,,,,,\n", model->name, (double)bench->rows / bench->step_s);
}

static void run_model(Bench *bench, const BenchModel *model) {
    bench->model = model;
    bench->rows = (int64_t)model->batch * model->sequence;
    bench->step_s = 0;
    for (int i = 0; i < NUM_ACTS; i++) bench->act[i] = make_array(bench, act_bytes(bench, i));
    bench->wide_bytes = (size_t)model->vocabulary * (size_t)model->hidden * 4;
    for (int i = 0; i < NUM_WIDES; i++) bench->wide[i] = make_array(bench, bench->wide_bytes);
    bench->tokens = make_ints(bench, model->vocabulary, false);
    bench->positions = make_ints(bench, model->sequence, true);

    if (bench->only_attention)
        time_attention(bench);
    else
        time_step(bench);

    size_t ints = (size_t)bench->rows * sizeof(int32_t);
    bench->table->release(bench->backend, bench->positions, ints);
    bench->table->release(bench->backend, bench->tokens, ints);
    for (int i = 0; i < NUM_WIDES; i++)
        bench->table->release(bench->backend, bench->wide[i], bench->wide_bytes);
    for (int i = 0; i < NUM_ACTS; i++)
        bench->table->release(bench->backend, bench->act[i], act_bytes(bench, i));
}

int main(int argc, char **argv) {
    Bench bench = {0};
    Status status = cuda_backend_open(0, DTYPE_BF16, &bench.backend);
    if (status.code != STATUS_OK) give_up(&status);
    bench.only_attention = argc > 2 && strcmp(argv[2], "attention") == 0;
    bench.table = bench.backend->table;
    bench.stream = bench.backend->stream;
    bench.from = bench.table->event_create(bench.backend, true);
    bench.to = bench.table->event_create(bench.backend, true);
    if (!bench.from || !bench.to) give_up(&bench.backend->failure);
    printf("# %s\n", bench.backend->name);
    printf("model,op,times_per_step,median_us,least_us,most_us,tflop_per_s,gb_per_s,ms_per_step\n");
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++)
        if (argc < 2 || strcmp(argv[1], "all") == 0 || strcmp(argv[1], MODELS[i].name) == 0)
            run_model(&bench, &MODELS[i]);
    bench.table->event_free(bench.backend, bench.to);
    bench.table->event_free(bench.backend, bench.from);
    bench.table->close(bench.backend);
    return 0;
}
