// runtime/checksum.h - whether bytes are those that were written: 64 bits, no secret.
//
// Source: each word of 8 bytes is mixed into the sum before it by the mixer of Steele, Lea, Flood,
//         "Fast splittable pseudorandom number generators", OOPSLA 2014. A mixer is a bijection:
//         two texts that differ in one word have different sums.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { CHECKSUM_SIZE = 17 }; // of its text: 16 hexadecimal digits and NUL

// Goes on with a sum, 0 at first. Only the last piece may be no multiple of 8 bytes long; it is
// filled up with zeros.
uint64_t checksum_add(uint64_t sum, const void *bytes, size_t num_bytes);

void checksum_print(uint64_t sum, char text[CHECKSUM_SIZE]);
