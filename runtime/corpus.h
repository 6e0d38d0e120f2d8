// runtime/corpus.h - what is trained on: a text as tokens of one byte each, or made-up tokens.
//
// Which tokens a sequence has depends on the seed, the step and its number in the global batch
// alone, so that every split of a plan trains on the same.
#pragma once

#include "base/status.h"
#include "runtime/checksum.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *path;    // NULL: tokens are made up
    unsigned char *text; // [num_bytes]; NULL: tokens are made up
    size_t num_bytes;
    int vocab_size;
    int64_t seq_len;
    uint64_t seed;
} Corpus;

// Reads a text; path NULL: tokens are made up. Refuses one that is shorter than a sequence, and a
// vocabulary of less than the 256 values of a byte.
Status corpus_open(const char *path, int vocab_size, int64_t seq_len, uint64_t seed, Corpus *out);

void corpus_free(Corpus *corpus); // accepts a zeroed one

// By which a text is recognised again.
typedef struct {
    const char *name;  // as it was given; NULL: tokens are made up
    int64_t num_bytes; // with the checksum 0 and "" of what is made up
    char checksum[CHECKSUM_SIZE];
} DataMark;

// Reads all of the text.
DataMark corpus_mark(const Corpus *corpus);

// Of one sequence: tokens [seq_len], and what follows each: targets [seq_len].
void corpus_sequence(const Corpus *corpus, int64_t step, int64_t sequence, int32_t *tokens,
                     int32_t *targets);
