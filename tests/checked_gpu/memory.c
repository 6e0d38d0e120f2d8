// tests/checked_gpu/memory.c - the memory of the device: what is allocated, by whom it was used
// last, and which of its words were written.
//
// Checks are made where a call is queued: the order in which the host queues is one of those that
// streams and events allow, and clocks say which calls are ordered in all of them.
#include "tests/checked_gpu/checked_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES ((size_t)1 << 34) // of addresses; what is used is limited by `memory`
#define HUGE_BYTES ((size_t)1 << 21)
enum { WORD_BYTES = 4, GAP_BYTES = 256, MOST_USES = 32, MOST_NAME = 40 };

// Calls of one stream to a range of a block; the last of them.
typedef struct {
    size_t begin, end; // of the block
    int stream;
    uint64_t call;
    bool write;
    char what[MOST_NAME];
} Use;

typedef struct {
    char *array;
    size_t bytes, room;  // asked for; kept
    bool live, in_order; // of cudaMallocAsync
    int freed_stream;
    uint64_t freed_call;
    Use uses[MOST_USES];
    int num_uses;
} Block;

typedef struct {
    char *array;
    size_t bytes;
} Pinned;

static char *arena;
static unsigned char *written; // [ARENA_BYTES / WORD_BYTES]
static size_t arena_used, live_bytes;
static Block **blocks; // by address
static int num_blocks, max_blocks;
static Pinned pinned[64];
static int num_pinned;

static size_t memory_bytes(void) {
    const int64_t mib = checked_option("memory");
    return (size_t)(mib > 0 ? mib : 1024) << 20;
}

// --- The arena

static void *reserve(size_t bytes, int protection) {
    void *place = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) abort();
    return place;
}

// In huge pages, of which whole ones are opened and closed: that is done twice a call, and takes
// the longer the more pages there are.
static void arena_make(void) {
    if (arena) return;
    arena = reserve(ARENA_BYTES + HUGE_BYTES, PROT_NONE);
    arena += HUGE_BYTES - (uintptr_t)arena % HUGE_BYTES;
    (void)madvise(arena, ARENA_BYTES, MADV_HUGEPAGE); // a wish
    written = reserve(ARENA_BYTES / WORD_BYTES, PROT_READ | PROT_WRITE);
}

void memory_open(bool open) {
    if (arena_used == 0) return;
    const size_t bytes = (arena_used + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    if (mprotect(arena, bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) abort();
}

// Sizes are kept in classes an eighth apart, so that what is given back fits again.
static size_t room_of(size_t bytes) {
    size_t step = GAP_BYTES;
    while (step * 16 < bytes) step *= 2;
    return (bytes + step - 1) / step * step;
}

// --- Blocks

// The last block that begins at or below array; NULL: there is none.
static Block *block_below(const char *array) {
    int low = 0, high = num_blocks;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (blocks[middle]->array <= array)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? blocks[low - 1] : NULL;
}

static bool comes_before(int stream, uint64_t call, const Clock *clock) {
    return call <= clock->of[stream];
}

// The block given back last that a stream may have at once.
static Block *block_again(size_t room, const Clock *clock) {
    Block *best = NULL;
    for (int i = 0; i < num_blocks; i++) {
        Block *block = blocks[i];
        if (block->live || block->room != room) continue;
        if (!comes_before(block->freed_stream, block->freed_call, clock)) continue;
        if (!best || block->freed_call > best->freed_call) best = block;
    }
    return best;
}

static Block *block_new(size_t room) {
    arena_make();
    if (arena_used + room + GAP_BYTES > ARENA_BYTES) return NULL;
    if (num_blocks == max_blocks) {
        max_blocks = max_blocks ? 2 * max_blocks : 256;
        blocks = realloc(blocks, (size_t)max_blocks * sizeof *blocks);
        if (!blocks) abort();
    }
    Block *block = calloc(1, sizeof *block);
    if (!block) abort();
    block->array = arena + arena_used;
    block->room = room;
    arena_used += room + GAP_BYTES;
    return blocks[num_blocks++] = block;
}

static Block *block_take(size_t bytes, const Clock *clock) {
    if (live_bytes + bytes > memory_bytes()) return NULL;
    const size_t room = room_of(bytes > 0 ? bytes : 1);
    Block *block = block_again(room, clock);
    if (!block) block = block_new(room);
    if (!block) return NULL;
    block->bytes = bytes;
    block->live = true;
    block->num_uses = 0;
    live_bytes += bytes;
    memset(written + (block->array - arena) / WORD_BYTES, 0, room / WORD_BYTES);
    return block;
}

// --- Uses

static bool overlap(const Use *a, const Use *b) {
    return a->begin < b->end && b->begin < a->end;
}

static void check_order(const Block *block, const Use *use, const Clock *clock) {
    for (int i = 0; i < block->num_uses; i++) {
        const Use *before = &block->uses[i];
        if (before->stream == use->stream || !(before->write || use->write)) continue;
        if (!overlap(before, use) || comes_before(before->stream, before->call, clock)) continue;
        checked_find("%s on stream %d %s what %s on stream %d %s, and nothing orders them",
                     use->what, use->stream, use->write ? "writes" : "reads", before->what,
                     before->stream, before->write ? "writes" : "reads");
        return;
    }
}

// The later of two uses of one stream stands for both.
static bool uses_join(Block *block) {
    for (int i = 0; i < block->num_uses; i++)
        for (int k = i + 1; k < block->num_uses; k++) {
            Use *first = &block->uses[i], *second = &block->uses[k];
            if (first->stream != second->stream || first->write != second->write) continue;
            if (first->begin < second->begin) second->begin = first->begin;
            if (first->end > second->end) second->end = first->end;
            block->num_uses--;
            memmove(first, first + 1, (size_t)(block->num_uses - i) * sizeof *first);
            return true;
        }
    return false;
}

// The later of two uses of one stream stands for the earlier where it covers it; and where there is
// no room for more, for both.
static void note_use(Block *block, const Use *use) {
    Use whole = *use;
    int num = 0;
    for (int i = 0; i < block->num_uses; i++) {
        const Use *known = &block->uses[i];
        const bool alike = known->stream == use->stream && known->write == use->write;
        const bool covered = known->begin >= whole.begin && known->end <= whole.end;
        if (alike && !covered && block->num_uses == MOST_USES) {
            if (known->begin < whole.begin) whole.begin = known->begin;
            if (known->end > whole.end) whole.end = known->end;
        } else if (!alike || !covered) {
            block->uses[num++] = *known;
        }
    }
    block->num_uses = num;
    if (num == MOST_USES && !uses_join(block)) abort();
    block->uses[block->num_uses++] = whole;
}

static void use_block(Block *block, cudaStream_t stream, const char *what, size_t begin, size_t end,
                      bool write) {
    Use use = {.begin = begin,
               .end = end,
               .stream = stream->index,
               .call = stream->clock.of[stream->index],
               .write = write};
    snprintf(use.what, sizeof use.what, "%s", what);
    check_order(block, &use, &stream->clock);
    note_use(block, &use);
}

// --- Accesses

static size_t span_of(const Access *a) {
    return (size_t)((a->rows - 1) * a->stride_bytes + (a->planes - 1) * a->plane_stride_bytes) +
           a->bytes;
}

// The words of each piece: whether all were written, or from now on they are.
static bool words(const Access *a, size_t bytes, bool write) {
    for (int64_t p = 0; p < a->planes; p++) {
        for (int64_t r = 0; r < a->rows; r++) {
            const char *piece = a->begin + p * a->plane_stride_bytes + r * a->stride_bytes;
            unsigned char *of = written + (piece - arena) / WORD_BYTES;
            const size_t num = (bytes + WORD_BYTES - 1) / WORD_BYTES;
            if (write)
                memset(of, 1, num);
            else if (memchr(of, 0, num))
                return false;
        }
    }
    return true;
}

static Block *access_block(const char *what, const Access *a, size_t *end) {
    Block *block = block_below(a->begin);
    const size_t offset = block ? (size_t)(a->begin - block->array) : 0;
    *end = block && a->rest ? block->bytes : offset + span_of(a);
    if (!block || *end > block->bytes || offset > block->bytes) {
        const bool inside = block && offset < block->bytes;
        checked_find("%s %s %zu bytes that are not of one allocation%s", what,
                     a->write ? "writes" : "reads", span_of(a),
                     inside ? ": it ends before they do" : "");
        return NULL;
    }
    if (block->live) return block;
    checked_find("%s %s memory that was given back before", what, a->write ? "writes" : "reads");
    return NULL;
}

void memory_check(cudaStream_t stream, const Call *call) {
    for (int pass = 0; pass < 2; pass++) { // what is read, then what is written
        for (int i = 0; i < call->accesses.num; i++) {
            const Access *a = &call->accesses.list[i];
            if (pass == 0 ? !a->read : !a->write) continue;
            size_t end;
            Block *block = access_block(call->what, a, &end);
            if (!block) continue;
            const size_t begin = (size_t)(a->begin - block->array);
            use_block(block, stream, call->what, begin, end, pass == 1);
            if (pass == 0 && !a->rest && !words(a, a->bytes, false))
                checked_find("%s reads what nobody has written", call->what);
            if (pass == 1) words(a, a->rest ? block->bytes - begin : a->bytes, true);
        }
    }
}

void accesses_add(Accesses *accesses, Access access) {
    if (!access.begin || access.bytes == 0 || access.rows <= 0 || access.planes <= 0) return;
    if (accesses->num == MOST_ACCESSES) abort();
    accesses->list[accesses->num++] = access;
}

static void add(Accesses *accesses, const void *array, int64_t bytes, bool read, bool write) {
    accesses_add(accesses, (Access){.begin = array,
                                    .bytes = bytes > 0 ? (size_t)bytes : 0,
                                    .rows = 1,
                                    .planes = 1,
                                    .read = read,
                                    .write = write});
}

void reads(Accesses *accesses, const void *array, int64_t bytes) {
    add(accesses, array, bytes, true, false);
}

void writes(Accesses *accesses, const void *array, int64_t bytes) {
    add(accesses, array, bytes, false, true);
}

void updates(Accesses *accesses, const void *array, int64_t bytes) {
    add(accesses, array, bytes, true, true);
}

// --- Allocation in the order of a stream

static void run_poison(void *arguments) {
    const Block *block = *(Block **)arguments;
    memset(block->array, 0xff, block->room); // NaN in every format
}

static cudaError_t poison(cudaStream_t stream, Block *block, const char *what) {
    const Call call = {.what = what, .run = run_poison, .arguments = &block, .bytes = sizeof block};
    return checked_queue(stream, &call);
}

cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream) {
    if (checked_failure() != cudaSuccess) return checked_failure();
    Block *block = block_take(bytes, checked_tick(stream));
    if (!block) return cudaErrorMemoryAllocation;
    block->in_order = true;
    use_block(block, stream, "the allocation", 0, block->room, true);
    *out = block->array;
    return poison(stream, block, "the allocation");
}

cudaError_t cudaFreeAsync(void *array, cudaStream_t stream) {
    Block *block = block_below(array);
    if (!block || block->array != array || !block->live || !block->in_order) {
        checked_find("cudaFreeAsync of what is not allocated");
        return cudaErrorInvalidValue;
    }
    checked_tick(stream);
    use_block(block, stream, "the release", 0, block->room, true);
    block->live = false;
    block->freed_stream = stream->index;
    block->freed_call = stream->clock.of[stream->index] + 1; // what poisons it
    live_bytes -= block->bytes;
    return poison(stream, block, "the release");
}

// --- Allocation in the order of the host

// These wait for all that is queued, so that what others wait for may never be queued.
static void wait_for_all(const char *what) {
    if (checked_waits()) checked_find("%s while messages are under way", what);
    cudaDeviceSynchronize();
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
    wait_for_all("cudaMalloc");
    static const Clock NEVER;
    Block *block = block_take(bytes, &NEVER);
    if (!block) return cudaErrorMemoryAllocation;
    block->in_order = false;
    *out = block->array;
    return checked_failure();
}

cudaError_t cudaFree(void *array) {
    if (!array) return cudaSuccess;
    wait_for_all("cudaFree");
    Block *block = block_below(array);
    if (!block || block->array != array || !block->live || block->in_order) {
        checked_find("cudaFree of what is not allocated");
        return cudaErrorInvalidValue;
    }
    block->live = false;
    block->freed_call = UINT64_MAX; // never used again
    live_bytes -= block->bytes;
    return checked_failure();
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    *total_bytes = memory_bytes();
    *free_bytes = memory_bytes() - live_bytes;
    return cudaSuccess;
}

int memory_num_left(void) {
    int num = num_pinned;
    for (int i = 0; i < num_blocks; i++) num += blocks[i]->live;
    return num;
}

// --- Memory of the host that the device can reach

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
    (void)flags;
    if (num_pinned == (int)(sizeof pinned / sizeof *pinned)) return cudaErrorMemoryAllocation;
    *out = malloc(bytes);
    pinned[num_pinned++] = (Pinned){*out, bytes};
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *array) {
    for (int i = 0; i < num_pinned; i++) {
        if (pinned[i].array != array) continue;
        checked_drain();
        free(array);
        pinned[i] = pinned[--num_pinned];
        return cudaSuccess;
    }
    checked_find("cudaFreeHost of what is not pinned");
    return cudaErrorInvalidValue;
}

bool memory_is_pinned(const void *array, size_t bytes) {
    for (int i = 0; i < num_pinned; i++) {
        const char *begin = pinned[i].array;
        if ((const char *)array >= begin && (const char *)array + bytes <= begin + pinned[i].bytes)
            return true;
    }
    return false;
}
