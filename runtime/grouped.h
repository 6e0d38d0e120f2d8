// runtime/grouped.h - products of rows with the matrices of several experts: those of an expert lie
// together, and each expert's are a product of their own.
#pragma once

#include "runtime/linear.h"

// x [rows of all][inputs]; returns [rows of all][outputs].
Tensor *grouped_forward(Rank *rank, const Grouped *grouped, const Tensor *x);

// Returns the gradient of x; that of the matrices is made now or later (runtime/linear.h).
Tensor *grouped_backward(Rank *rank, const Grouped *grouped, Tensor *x, Tensor *dy,
                         WeightQueue *queue);
