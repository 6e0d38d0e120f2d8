// backend/cuda/cuda_plugin.h - what libmeshwright-cuda.so shows to the program that loads it.
#pragma once

#include "backend/cuda_backend.h"

// The symbol of a CudaPluginGet.
#define CUDA_PLUGIN_SYMBOL "meshwright_cuda_plugin"

// table is first, so that the plugin of a backend is found from the backend's table.
typedef struct {
    BackendTable table;
    Status (*open)(int device, Dtype act, Backend **out);
    void (*versions)(CudaVersions *out);
    void *(*stream_handle)(const BackendStream *stream);
    Status (*comm_id)(unsigned char id[CUDA_COMM_ID_BYTES]);
    Status (*comm_create)(Backend *backend, const unsigned char id[CUDA_COMM_ID_BYTES], int rank,
                          int size, Comm **out);
} CudaPlugin;

typedef const CudaPlugin *(*CudaPluginGet)(void);
