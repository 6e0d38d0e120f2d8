#include "base/random.h"

#include <CUnit/CUnit.h>

#include <math.h>

// The known answers that the authors publish with Random123 1.14 (tests/kat_vectors).
static void words_are_those_of_the_authors(void) {
    static const struct {
        uint64_t key;
        uint32_t counter[RANDOM_WORDS], words[RANDOM_WORDS];
    } CASES[] = {
        {0, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {0xffffffffffffffff,
         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint32_t words[RANDOM_WORDS];
        random_words(CASES[i].key, CASES[i].counter, words);
        for (int w = 0; w < RANDOM_WORDS; w++) CU_ASSERT_EQUAL(words[w], CASES[i].words[w]);
    }
}

// 100,000 draws: the mean of the normal ones is within 4 standard errors (1 / sqrt(n)), their
// variance too (sqrt(2 / n)), and the uniform ones average a half (sqrt(1 / 12 n)).
static void draws_have_their_moments(void) {
    enum { NUM_DRAWS = 100000 };
    double sum = 0, square_sum = 0, uniform_sum = 0;
    for (uint32_t i = 0; i < NUM_DRAWS; i++) {
        const uint32_t counter[RANDOM_WORDS] = {1, 2, i, 3};
        double z = random_normal(7, counter), u = random_uniform(7, counter);
        CU_ASSERT(u > 0 && u < 1);
        sum += z;
        square_sum += z * z;
        uniform_sum += u;
    }
    CU_ASSERT_DOUBLE_EQUAL(sum / NUM_DRAWS, 0, 4 / sqrt(NUM_DRAWS));
    CU_ASSERT_DOUBLE_EQUAL(square_sum / NUM_DRAWS, 1, 4 * sqrt(2.0 / NUM_DRAWS));
    CU_ASSERT_DOUBLE_EQUAL(uniform_sum / NUM_DRAWS, 0.5, 4 * sqrt(1 / 12.0 / NUM_DRAWS));
}

CU_TestInfo random_tests[] = {
    {"words_are_those_of_the_authors", words_are_those_of_the_authors},
    {"draws_have_their_moments", draws_have_their_moments},
    CU_TEST_INFO_NULL,
};
