// profiler/cupti/cupti_find.h - where the library CUPTI lies on this machine.
//
// Needs no CUDA: it only looks at paths. The library comes with the CUDA toolkit and with
// Python's wheels (nvidia-cuda-cupti), which PyTorch loads.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CUPTI_SONAME "libcupti.so.13" // the records of other versions are laid out differently

// The path of the first that is there: the environment's MESHWRIGHT_CUPTI; beside the Python that
// runs program (its wheels); the toolkit of CUDA_HOME; the active virtual environment; the usual
// places of wheels and toolkits.
//   program  as typed, looked up in PATH; NULL: none
//   returns  false where there is none; path is then empty
bool cupti_find(const char *program, char *path, size_t size);
