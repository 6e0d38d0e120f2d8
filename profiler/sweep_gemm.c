// Products: (n, k) from the layers of models, m from micro-batches.
#include "profiler/sweep.h"

typedef struct {
    int hidden, num_heads, num_key_value_heads, head_dim, intermediate, num_up; // num_up: 2 gated
    int vocab;
    int tp[5]; // that split it, ends with 0
} LayerModel;

static const LayerModel MODELS[] = {
    {1600, 25, 25, 64, 6400, 1, 50304, {1}},            // GPT-2 1.5B
    {4096, 32, 8, 128, 14336, 2, 128256, {1, 2, 4}},    // Llama 3.1 8B
    {8192, 64, 8, 128, 28672, 2, 128256, {1, 2, 4, 8}}, // Llama 3.1 70B
    {4096, 32, 8, 128, 14336, 2, 32000, {1}},           // Mixtral 8x7B: another vocabulary
    {6144, 48, 8, 128, 16384, 2, 32768, {1, 2, 4, 8}},  // Mixtral 8x22B
};
static const LayerModel QUICK_MODELS[] = {
    {1600, 25, 25, 64, 6400, 1, 50304, {1}},
    {4096, 32, 8, 128, 14336, 2, 128256, {1}},
    {8192, 64, 8, 128, 28672, 2, 128256, {8}},
};

enum { MOST_WEIGHTS = 128 };

typedef struct {
    int n[MOST_WEIGHTS], k[MOST_WEIGHTS];
    int num_weights;
} Weights;

static void weights_add(Weights *weights, int n, int k) {
    for (int i = 0; i < weights->num_weights; i++)
        if (weights->n[i] == n && weights->k[i] == k) return;
    if (weights->num_weights == MOST_WEIGHTS) return;
    weights->n[weights->num_weights] = n;
    weights->k[weights->num_weights++] = k;
}

// y [m][n] = x [m][k] W [n][k]: attention in and out, the MLP's, the head's; with or without it.
static Weights weights_of(const LayerModel *models, size_t num_models, bool head) {
    Weights weights = {.num_weights = 0};
    for (size_t i = 0; i < num_models; i++) {
        const LayerModel *model = &models[i];
        int heads = model->num_heads + 2 * model->num_key_value_heads;
        for (const int *tp = model->tp; *tp; tp++) {
            weights_add(&weights, heads * model->head_dim / *tp, model->hidden);
            weights_add(&weights, model->hidden, model->num_heads * model->head_dim / *tp);
            weights_add(&weights, model->num_up * model->intermediate / *tp, model->hidden);
            weights_add(&weights, model->hidden, model->intermediate / *tp);
            if (head) weights_add(&weights, model->vocab / *tp, model->hidden);
        }
    }
    return weights;
}

static Weights weights_for(bool quick, bool head) {
    return quick ? weights_of(QUICK_MODELS, sizeof QUICK_MODELS / sizeof *QUICK_MODELS, head)
                 : weights_of(MODELS, sizeof MODELS / sizeof *MODELS, head);
}

static void add(Sweep *sweep, Arena *arena, GemmRequest gemm) {
    sweep_add(sweep, (GpuRequest){.kind = GPU_WORK_GEMM, .gemm = gemm}, arena);
}

// fp8 needs rows of 16 bytes everywhere, and gives bfloat16.
static Number out_of(Number dtype) {
    return dtype == NUMBER_FP8 ? NUMBER_BFLOAT16 : dtype == NUMBER_TF32 ? NUMBER_FLOAT32 : dtype;
}

// Every m (ends with 0) of every weight.
static void add_forward(Sweep *sweep, Arena *arena, Number dtype, const Weights *weights,
                        const int *rows) {
    for (int i = 0; i < weights->num_weights; i++)
        for (const int *m = rows; *m; m++)
            add(sweep, arena,
                (GemmRequest){.dtype = dtype,
                              .out_dtype = out_of(dtype),
                              .layout = GEMM_FORWARD,
                              .m = *m,
                              .n = weights->n[i],
                              .k = weights->k[i]});
}

// Powers of two, and between them what fills no whole tiles (1008 is 7.9 tiles of 128).
static const int ROWS[] = {128,  192,  256,  384,  512,  768,   1008,  1024, 1536,
                           2048, 3008, 4096, 6144, 8192, 12288, 16384, 0};
static const int QUICK_ROWS[] = {128, 256, 512, 1008, 1024, 2048, 4096, 8192, 0};
static const int FP8_ROWS[] = {128, 512, 1024, 2048, 4096, 8192, 16384, 0};
static const int BACKWARD_ROWS[] = {1024, 2048, 4096, 8192, 16384, 0};
static const int QUICK_BACKWARD_ROWS[] = {1024, 4096, 0};
static const int FEW_ROWS[] = {512, 2048, 8192, 0};
static const int FEW_BACKWARD_ROWS[] = {1024, 4096, 16384, 0};
static const int ONE_ROW[] = {4096, 0};

void sweep_gemm(Sweep *sweep, bool quick, Arena *arena) {
    Weights weights = weights_for(quick, true), layers = weights_for(quick, false);
    add_forward(sweep, arena, NUMBER_BFLOAT16, &weights, quick ? QUICK_ROWS : ROWS);
    add_forward(sweep, arena, NUMBER_FP8, &layers, FP8_ROWS);
}

void sweep_gemm_other(Sweep *sweep, bool quick, Arena *arena) {
    Weights layers = weights_for(true, false);
    add_forward(sweep, arena, NUMBER_FLOAT16, &layers, quick ? ONE_ROW : FEW_ROWS);
    add_forward(sweep, arena, NUMBER_TF32, &layers, quick ? ONE_ROW : FEW_ROWS);
}

// Of y [t][out] = x [t][in] W [out][in]: dx [t][in] sums over out, dW [out][in] over t. dW is added
// up in float32, as Megatron-LM fuses it, or written by itself.
static void add_backward(Sweep *sweep, Arena *arena, Number dtype, const Weights *weights,
                         const int *rows) {
    for (int i = 0; i < weights->num_weights; i++) {
        for (const int *tokens = rows; *tokens; tokens++) {
            GemmRequest input = {.dtype = dtype,
                                 .out_dtype = out_of(dtype),
                                 .layout = GEMM_BACKWARD_INPUT,
                                 .m = *tokens,
                                 .n = weights->k[i],
                                 .k = weights->n[i]};
            GemmRequest weight = {.dtype = dtype,
                                  .out_dtype = NUMBER_FLOAT32,
                                  .layout = GEMM_BACKWARD_WEIGHT,
                                  .m = weights->n[i],
                                  .n = weights->k[i],
                                  .k = *tokens,
                                  .accumulate = true};
            add(sweep, arena, input);
            add(sweep, arena, weight);
            weight.out_dtype = out_of(dtype);
            weight.accumulate = false;
            add(sweep, arena, weight);
        }
    }
}

void sweep_gemm_backward(Sweep *sweep, bool quick, Arena *arena) {
    static const Number OTHERS[] = {NUMBER_FLOAT16, NUMBER_TF32, NUMBER_FP8};
    Weights weights = weights_for(quick, !quick), layers = weights_for(true, false);
    add_backward(sweep, arena, NUMBER_BFLOAT16, &weights,
                 quick ? QUICK_BACKWARD_ROWS : BACKWARD_ROWS);
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        add_backward(sweep, arena, OTHERS[i], &layers, quick ? ONE_ROW : FEW_BACKWARD_ROWS);
}

void sweep_sustained(Sweep *sweep, bool quick, Arena *arena) {
    static const int SHAPES[][3] = {
        {8192, 8192, 8192}, {8192, 1024, 8192}, {8192, 8192, 1024}, {1024, 8192, 8192}};
    size_t num_shapes = quick ? 1 : sizeof SHAPES / sizeof *SHAPES;
    for (size_t i = 0; i < 2 * num_shapes; i++)
        add(sweep, arena,
            (GemmRequest){.dtype = NUMBER_BFLOAT16,
                          .out_dtype = NUMBER_BFLOAT16,
                          .layout = GEMM_FORWARD,
                          .m = SHAPES[i / 2][0],
                          .n = SHAPES[i / 2][1],
                          .k = SHAPES[i / 2][2],
                          .zeros = i % 2 == 1});
}
