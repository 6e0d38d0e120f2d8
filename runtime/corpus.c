#include "runtime/corpus.h"

#include "base/numbers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BYTE_VALUES = 256 };

static Status file_read(FILE *file, const char *path, Corpus *out) {
    struct stat info;
    if (fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode))
        return status_error(STATUS_INVALID, "%s: a folder; expected a text file", path);
    if (fseek(file, 0, SEEK_END) != 0)
        return status_error(STATUS_INVALID, "%s: %s", path, strerror(errno));
    const long size = ftell(file);
    rewind(file);
    if (size <= out->seq_len)
        return status_error(STATUS_INVALID,
                            "%s: %ld bytes, expected more than one sequence of %lld tokens", path,
                            size, (long long)out->seq_len);
    out->text = malloc((size_t)size);
    if (!out->text) return status_error(STATUS_MACHINE, "%s: no memory for %ld bytes", path, size);
    out->num_bytes = fread(out->text, 1, (size_t)size, file);
    if (out->num_bytes != (size_t)size)
        return status_error(STATUS_MACHINE, "%s: it could not be read to its end", path);
    return status_ok();
}

Status corpus_open(const char *path, int vocab_size, int64_t seq_len, uint64_t seed, Corpus *out) {
    *out = (Corpus){.path = path, .vocab_size = vocab_size, .seq_len = seq_len, .seed = seed};
    if (!path) return status_ok();
    if (vocab_size < BYTE_VALUES)
        return status_error(STATUS_INVALID,
                            "%s: its bytes are %d tokens, the model's vocab_size is %d", path,
                            BYTE_VALUES, vocab_size);
    FILE *file = fopen(path, "rb");
    if (!file) return status_error(STATUS_INVALID, "%s: %s", path, strerror(errno));
    const Status status = file_read(file, path, out);
    fclose(file);
    return status;
}

void corpus_free(Corpus *corpus) {
    free(corpus->text);
    *corpus = (Corpus){0};
}

DataMark corpus_mark(const Corpus *corpus) {
    DataMark mark = {.name = corpus->path, .num_bytes = (int64_t)corpus->num_bytes};
    if (corpus->text)
        checksum_print(checksum_add(0, corpus->text, corpus->num_bytes), mark.checksum);
    return mark;
}

void corpus_sequence(const Corpus *c, int64_t step, int64_t sequence, int32_t *tokens,
                     int32_t *targets) {
    const uint64_t key = mix64(mix64(mix64(c->seed) ^ (uint64_t)step) ^ (uint64_t)sequence);
    if (c->text) {
        const unsigned char *first = c->text + key % (c->num_bytes - (size_t)c->seq_len);
        for (int64_t i = 0; i < c->seq_len; i++) {
            tokens[i] = first[i];
            targets[i] = first[i + 1];
        }
        return;
    }
    for (int64_t i = 0; i <= c->seq_len; i++) {
        const int32_t token = (int32_t)(mix64(key + (uint64_t)i) % (uint64_t)c->vocab_size);
        if (i < c->seq_len) tokens[i] = token;
        if (i > 0) targets[i - 1] = token;
    }
}
