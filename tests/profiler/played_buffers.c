#include "tests/profiler/played_buffers.h"

#include "profiler/cupti/buffer_file.h"

#include <stdlib.h>
#include <string.h>

static void *must_have(void *memory) {
    if (!memory) abort();
    return memory;
}

static bool name_read(FILE *file, CuptiFileName *name, char **text) {
    if (fread(name, sizeof *name, 1, file) != 1) return false;
    *text = must_have(calloc(1, name->num_bytes + 1));
    return fread(*text, 1, name->num_bytes, file) == name->num_bytes;
}

static bool buffer_read(FILE *file, const CuptiFileBuffer *head, PlayedBuffer *out) {
    CuptiFileName *names = must_have(calloc(head->num_names + 1, sizeof *names));
    char **texts = must_have(calloc(head->num_names + 1, sizeof *texts));
    bool good = true;
    for (uint64_t i = 0; i < head->num_names && good; i++)
        good = name_read(file, &names[i], &texts[i]);
    out->valid_bytes = head->valid_bytes;
    out->bytes =
        must_have(aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, (head->valid_bytes + 7) / 8 * 8));
    good = good && fread(out->bytes, 1, out->valid_bytes, file) == out->valid_bytes;
    for (uint64_t i = 0; i < head->num_names && good; i++) {
        good = names[i].record_at + sizeof(CUpti_ActivityKernel10) <= out->valid_bytes;
        if (good)
            ((CUpti_ActivityKernel10 *)(void *)(out->bytes + names[i].record_at))->name = texts[i];
    }
    free(texts);
    free(names);
    return good;
}

static bool buffers_read(FILE *file, PlayedBuffers *out) {
    CuptiFileHead head;
    CuptiFileBuffer buffer;
    if (fread(&head, sizeof head, 1, file) != 1) return false;
    if (memcmp(head.magic, CUPTI_FILE_MAGIC, sizeof head.magic) != 0) return false;
    while (fread(&buffer, sizeof buffer, 1, file) == 1) {
        size_t bytes = (out->num_buffers + 1) * sizeof *out->buffers;
        out->buffers = must_have(realloc(out->buffers, bytes));
        if (!buffer_read(file, &buffer, &out->buffers[out->num_buffers++])) return false;
    }
    return feof(file) != 0;
}

bool played_buffers_read(const char *path, PlayedBuffers *out) {
    FILE *file = fopen(path, "rbe");
    if (!file) return false;
    bool good = buffers_read(file, out);
    fclose(file);
    return good;
}
