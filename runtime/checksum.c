#include "runtime/checksum.h"

#include <stdio.h>
#include <string.h>

uint64_t checksum_add(uint64_t sum, const void *bytes, size_t num_bytes) {
    const unsigned char *next = bytes;
    for (size_t left = num_bytes; left > 0;) {
        uint64_t word = 0;
        const size_t num = left < sizeof word ? left : sizeof word;
        memcpy(&word, next, num);
        next += num;
        left -= num;
        sum = (sum ^ word) + 0x9e3779b97f4a7c15u;
        sum = (sum ^ (sum >> 30)) * 0xbf58476d1ce4e5b9u;
        sum = (sum ^ (sum >> 27)) * 0x94d049bb133111ebu;
        sum ^= sum >> 31;
    }
    return sum;
}

void checksum_print(uint64_t sum, char text[CHECKSUM_SIZE]) {
    snprintf(text, CHECKSUM_SIZE, "%016llx", (unsigned long long)sum);
}
