// profiler/wrap_name.h - names of kernels, for people.
#pragma once

#include "base/arena.h"

#include <stdbool.h>

// The mangled name of a kernel as C++ source has it, without arguments, template arguments and
// return type: "at::native::vectorized_elementwise_kernel". The name itself where it is not
// mangled, or where the C++ library that can take it apart is not on this machine.
const char *kernel_name_readable(const char *mangled, Arena *arena);

// A kernel of NCCL: a collective, or a copy that replaces one.
bool kernel_is_nccl(const char *mangled);
