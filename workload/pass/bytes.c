#include "workload/pass/bytes.h"

bool precision_is_quantized(int precision) {
    return precision == PRECISION_FP8 || precision == PRECISION_MXFP8 ||
           precision == PRECISION_NVFP4;
}

int unquantized_precision(const Execution *execution) {
    return precision_is_quantized(execution->precision) ? PRECISION_BF16 : execution->precision;
}

double activation_bytes(const Execution *execution) {
    switch (execution->precision) {
    case PRECISION_FP64:
        return 8;
    case PRECISION_FP32:
    case PRECISION_TF32:
        return 4;
    default:
        return 2;
    }
}

double weight_read_bytes(const Execution *execution) {
    switch (execution->precision) {
    case PRECISION_FP8:
    case PRECISION_MXFP8:
        return 1;
    case PRECISION_NVFP4:
        return 0.5;
    default:
        return activation_bytes(execution);
    }
}

// Training in 4 or 8 bytes has nothing smaller to reduce or gather.
static bool is_mixed(const Execution *execution) {
    return activation_bytes(execution) < 4;
}

double reduced_gradient_bytes(const Execution *execution) {
    if (!is_mixed(execution)) return activation_bytes(execution);
    return execution->grad_reduce_precision == PRECISION_BF16 ? 2 : 4;
}

double gathered_weight_bytes(const Execution *execution) {
    const Stack *stack = &execution->stack;
    if (!is_mixed(execution) || stack->training.gathers_in_compute_dtype)
        return activation_bytes(execution);
    return stack->training.weight_bytes_per_param;
}

// Wide weights are cast before they are gathered where trained ones are.
double frozen_gathered_frac(const Execution *execution, const FineTuning *tuning) {
    if (!tuning || !execution->stack.training.gathers_in_compute_dtype) return 1;
    const double act = activation_bytes(execution), stored = base_other_bytes(tuning);
    return stored > act ? act / stored : 1;
}

bool sums_partial_in_blocks(const Execution *execution, int num_scattered) {
    return execution->stack.training.sums_in_backward && num_scattered > 1;
}

double partial_sum_bytes(const Execution *execution, int num_scattered, double partial_parameters) {
    if (sums_partial_in_blocks(execution, num_scattered)) return 0;
    return partial_parameters * reduced_gradient_bytes(execution) / num_scattered;
}

double kept_gradient_bytes(const Execution *execution) {
    if (!is_mixed(execution)) return activation_bytes(execution);
    const double own = execution->stack.training.grad_bytes_per_param;
    return own > 0 ? own : reduced_gradient_bytes(execution);
}

// FSDP1 leaves gradients that it does not reduce to autograd, in the format of the gathered weights
// (pytorch/pytorch, torch/distributed/fsdp/_runtime_utils.py, _post_backward_hook returns before it
// casts); FSDP2 adds them up in the reduction's (_fully_shard/_fsdp_param.py,
// to_accumulated_grad_if_needed). Where products add to a buffer it is that.
static double whole_gradient_bytes(const Execution *execution) {
    switch (execution->stack.training.sharding) {
    case SHARDING_FLAT:
        return activation_bytes(execution);
    case SHARDING_PER_PARAMETER:
        return reduced_gradient_bytes(execution);
    default:
        return kept_gradient_bytes(execution);
    }
}

StateBytes state_bytes(const Execution *execution, int optimizer) {
    const Stack *stack = &execution->stack;
    const double num_moments = optimizer == OPTIMIZER_ADAM ? 2 : 1;
    const double full = activation_bytes(execution);
    const double moment = execution->optimizer_precision == PRECISION_BF16 ? 2
                          : full > 4                                       ? full
                                                                           : 4;
    if (!is_mixed(execution))
        return (StateBytes){.weight = full,
                            .moments = num_moments * moment,
                            .gradient = full,
                            .whole_gradient = full};
    return (StateBytes){
        .weight = stack->training.weight_bytes_per_param,
        .master = stack->training.master_bytes_per_param,
        .moments = num_moments * moment,
        .gradient = kept_gradient_bytes(execution),
        .gradient_copy = stack->training.grad_copy_bytes_per_param,
        .whole_gradient = whole_gradient_bytes(execution),
    };
}
