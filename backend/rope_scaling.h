// backend/rope_scaling.h - a scaled rotary frequency, for C and CUDA.
//
// Source: Hugging Face transformers, modeling_rope_utils.py, _compute_llama3_parameters
// (Llama 3.1):
//         where a wave fits between low and high, the frequency is (1 - s) f / factor + s f with
//         s = (1 / wavelength - 1 / low) / (1 / high - 1 / low).
#pragma once

#include "backend/backend.h"

#ifdef __CUDACC__
#define ROPE_SCALING_INLINE static __host__ __device__ inline
#else
#define ROPE_SCALING_INLINE static inline
#endif

//   frequency  radians a token, > 0
ROPE_SCALING_INLINE double rope_scaled(const RopeScaling *scaling, double frequency) {
    const double wavelength = 6.283185307179586 / frequency, low = scaling->low_wavelength;
    if (scaling->factor <= 0) return frequency;
    if (low <= 0 || wavelength > low) return frequency / scaling->factor;
    if (wavelength < scaling->high_wavelength) return frequency;
    const double kept = (1 / wavelength - 1 / low) / (1 / scaling->high_wavelength - 1 / low);
    return (1 - kept) * frequency / scaling->factor + kept * frequency;
}
