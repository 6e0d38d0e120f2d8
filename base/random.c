#include "base/random.h"

#include <math.h>
#include <string.h>

// Multipliers and increments of the paper's section 3.3.
static const uint32_t MULTIPLIER_0 = 0xD2511F53, MULTIPLIER_1 = 0xCD9E8D57;
static const uint32_t INCREMENT_0 = 0x9E3779B9, INCREMENT_1 = 0xBB67AE85;
enum { NUM_ROUNDS = 10 };

void random_words(uint64_t key, const uint32_t counter[RANDOM_WORDS], uint32_t out[RANDOM_WORDS]) {
    uint32_t x[RANDOM_WORDS], key_0 = (uint32_t)key, key_1 = (uint32_t)(key >> 32);
    memcpy(x, counter, sizeof x);
    for (int round = 0; round < NUM_ROUNDS; round++) {
        uint64_t a = (uint64_t)MULTIPLIER_0 * x[0], b = (uint64_t)MULTIPLIER_1 * x[2];
        x[0] = (uint32_t)(b >> 32) ^ x[1] ^ key_0;
        x[1] = (uint32_t)b;
        x[2] = (uint32_t)(a >> 32) ^ x[3] ^ key_1;
        x[3] = (uint32_t)a;
        key_0 += INCREMENT_0;
        key_1 += INCREMENT_1;
    }
    memcpy(out, x, sizeof x);
}

// The middle of one of 2^52 equal parts of 0 to 1.
static double uniform_of(uint32_t high, uint32_t low) {
    uint64_t part = ((uint64_t)high << 32 | low) >> 12;
    return ((double)part + 0.5) * 0x1p-52;
}

double random_uniform(uint64_t key, const uint32_t counter[RANDOM_WORDS]) {
    uint32_t words[RANDOM_WORDS];
    random_words(key, counter, words);
    return uniform_of(words[0], words[1]);
}

double random_normal(uint64_t key, const uint32_t counter[RANDOM_WORDS]) {
    static const double TWO_PI = 6.283185307179586;
    uint32_t words[RANDOM_WORDS];
    random_words(key, counter, words);
    double radius = sqrt(-2 * log(uniform_of(words[0], words[1])));
    return radius * cos(TWO_PI * uniform_of(words[2], words[3]));
}
