#include "workload/bytes.h"

bool precision_is_quantized(int precision) {
    return precision == PRECISION_FP8 || precision == PRECISION_MXFP8 ||
           precision == PRECISION_NVFP4;
}

int unquantized_precision(const Training *training) {
    return precision_is_quantized(training->precision) ? PRECISION_BF16 : training->precision;
}

double activation_bytes(const Training *training) {
    switch (training->precision) {
    case PRECISION_FP64:
        return 8;
    case PRECISION_FP32:
    case PRECISION_TF32:
        return 4;
    default:
        return 2;
    }
}

double weight_read_bytes(const Training *training) {
    switch (training->precision) {
    case PRECISION_FP8:
    case PRECISION_MXFP8:
        return 1;
    case PRECISION_NVFP4:
        return 0.5;
    default:
        return activation_bytes(training);
    }
}

// Training in 4 or 8 bytes has nothing smaller to reduce or gather.
static bool is_mixed(const Training *training) {
    return activation_bytes(training) < 4;
}

double reduced_gradient_bytes(const Training *training) {
    if (!is_mixed(training)) return activation_bytes(training);
    return training->grad_reduce_precision == PRECISION_BF16 ? 2 : 4;
}

double gathered_weight_bytes(const Training *training) {
    const Stack *stack = &training->stack;
    if (!is_mixed(training) || stack->gathers_in_compute_dtype) return activation_bytes(training);
    return stack->weight_bytes_per_param;
}

static int num_scattered(const Plan *plan) {
    return plan->zero_stage >= 2 ? plan_group(plan, GROUP_ZERO).size : 1;
}

bool sums_partial_in_blocks(const Training *training, const Plan *plan) {
    return training->stack.sums_in_backward && num_scattered(plan) > 1;
}

double partial_sum_bytes(const Training *training, const Plan *plan, double partial_parameters) {
    if (sums_partial_in_blocks(training, plan)) return 0;
    return partial_parameters * reduced_gradient_bytes(training) / num_scattered(plan);
}

StateBytes state_bytes(const Training *training) {
    const Stack *stack = &training->stack;
    const double num_moments = training->optimizer == OPTIMIZER_ADAM ? 2 : 1;
    const double full = activation_bytes(training);
    const double moment = training->optimizer_precision == PRECISION_BF16 ? 2 : full > 4 ? full : 4;
    if (!is_mixed(training))
        return (StateBytes){.weight = full, .moments = num_moments * moment, .gradient = full};
    const double own = stack->grad_bytes_per_param;
    return (StateBytes){
        .weight = stack->weight_bytes_per_param,
        .master = stack->master_bytes_per_param,
        .moments = num_moments * moment,
        .gradient = own > 0 ? own : reduced_gradient_bytes(training),
    };
}
