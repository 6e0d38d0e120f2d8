// Receives the NVTX calls of the process: push and pop per thread, start and end across threads.
// Only the default domain, as of torch.cuda.nvtx, and only texts that begin in WRAP_RANGE_PREFIX.
// Source: nvtx3/nvtxDetail/nvtxTypes.h, nvtxInit.h (load sequence, tables of functions).
#include "profiler/inject/wrap_inject.h"

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NESTED = 64, MOST_OPEN = 256 };

typedef struct {
    char *text; // NULL: not ours
    uint64_t start_ns;
    uint64_t id;
} OpenRange;

static __thread OpenRange stack[MOST_NESTED];
static __thread int depth; // may exceed MOST_NESTED: deeper ranges are not recorded

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static OpenRange started[MOST_OPEN]; // across threads
static uint64_t num_started;

static OpenRange range_open(const char *message) {
    OpenRange range = {0};
    if (!message || strncmp(message, WRAP_RANGE_PREFIX, strlen(WRAP_RANGE_PREFIX)) != 0)
        return range;
    wrap_calls_begin();
    range.text = strdup(message);
    range.start_ns = wrap_now_ns();
    return range;
}

static void range_close(OpenRange *range, bool all_threads) {
    if (!range->text) return;
    WrapRange record = {.start_ns = range->start_ns,
                        .end_ns = wrap_now_ns(),
                        .thread = wrap_thread_id(),
                        .all_threads = all_threads,
                        .text = range->text};
    if (record.start_ns > 0 && record.end_ns >= record.start_ns) wrap_range_add(&record);
    free(range->text);
    *range = (OpenRange){0};
}

static const char *message_of(const nvtxEventAttributes_t *attributes) {
    bool ascii = attributes && attributes->messageType == NVTX_MESSAGE_TYPE_ASCII;
    return ascii ? attributes->message.ascii : NULL;
}

// --- The calls

static int NVTX_API on_push(const char *message) {
    if (depth < MOST_NESTED) stack[depth] = range_open(message);
    return depth++;
}

static int NVTX_API on_push_attributes(const nvtxEventAttributes_t *attributes) {
    return on_push(message_of(attributes));
}

static int NVTX_API on_push_wide(const wchar_t *message) {
    (void)message;
    return on_push(NULL);
}

static int NVTX_API on_pop(void) {
    if (depth == 0) return -1;
    depth--;
    if (depth < MOST_NESTED) range_close(&stack[depth], false);
    return depth;
}

static nvtxRangeId_t NVTX_API on_start(const char *message) {
    OpenRange range = range_open(message);
    pthread_mutex_lock(&lock);
    range.id = ++num_started;
    uint64_t id = range.id;
    int at = 0;
    while (range.text && at < MOST_OPEN && started[at].text) at++;
    if (range.text && at < MOST_OPEN) {
        started[at] = range;
        range.text = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(range.text); // one too many
    return id;
}

static nvtxRangeId_t NVTX_API on_start_attributes(const nvtxEventAttributes_t *attributes) {
    return on_start(message_of(attributes));
}

static void NVTX_API on_end(nvtxRangeId_t id) {
    OpenRange ended = {0};
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_OPEN; i++) {
        if (!started[i].text || started[i].id != id) continue;
        ended = started[i];
        started[i] = (OpenRange){0};
        break;
    }
    pthread_mutex_unlock(&lock);
    range_close(&ended, true);
}

// --- Entry

static void function_set(NvtxFunctionTable table, unsigned size, unsigned id,
                         NvtxFunctionPointer function) {
    if (id < size && table[id]) *table[id] = function;
}

// Called by the first NVTX call of each library in the process that has NVTX built in.
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
        return 0;
    if (!wrap_begin()) return 0; // NVTX then does nothing
    function_set(table, size, NVTX_CBID_CORE_RangePushA, (NvtxFunctionPointer)on_push);
    function_set(table, size, NVTX_CBID_CORE_RangePushEx, (NvtxFunctionPointer)on_push_attributes);
    function_set(table, size, NVTX_CBID_CORE_RangePushW, (NvtxFunctionPointer)on_push_wide);
    function_set(table, size, NVTX_CBID_CORE_RangePop, (NvtxFunctionPointer)on_pop);
    function_set(table, size, NVTX_CBID_CORE_RangeStartA, (NvtxFunctionPointer)on_start);
    function_set(table, size, NVTX_CBID_CORE_RangeStartEx,
                 (NvtxFunctionPointer)on_start_attributes);
    function_set(table, size, NVTX_CBID_CORE_RangeEnd, (NvtxFunctionPointer)on_end);
    return 1;
}
