// backend/cuda/cudnn_attention.h - attention by cuDNN.
#pragma once

#include "backend/cuda/cuda_device.h"

#ifdef __cplusplus
extern "C" {
#endif

// Queues the forward or backward of bf16; false where nothing was queued: cuDNN is missing, or has
// nothing for this call. Between cuda_begin and cuda_end.
bool cudnn_attention(Backend *backend, const Attention *call, bool backward, BackendStream *stream);

// As cuDNN counts; 0: it is missing, or not to be used.
int64_t cudnn_attention_version(void);

void cudnn_attention_close(CudaBackend *cuda);

#ifdef __cplusplus
}
#endif
