#include "tests/laws/draw.h"

#include "base/random.h"

#include <stddef.h>

Draw draw_start(uint64_t seed, uint32_t number, uint32_t attempt) {
    return (Draw){.seed = seed, .number = number, .attempt = attempt};
}

double draw_number(Draw *draw, double least, double most) {
    const uint32_t place[RANDOM_WORDS] = {draw->number, draw->attempt, draw->next++, 0};
    return least + random_uniform(draw->seed, place) * (most - least);
}

int draw_int(Draw *draw, int least, int most) {
    const int value = least + (int)draw_number(draw, 0, (double)most - least + 1);
    return value > most ? most : value;
}

bool draw_chance(Draw *draw, double frac) {
    return draw_number(draw, 0, 1) < frac;
}

int draw_divisor(Draw *draw, int of) {
    int num = 0;
    for (int d = 1; d <= of; d++) num += of % d == 0;
    for (int d = 1, left = draw_int(draw, 1, num);; d++)
        if (of % d == 0 && --left == 0) return d;
}

int draw_power(Draw *draw, int most) {
    int log = 0;
    while (log < 30 && 2 << log <= most) log++;
    return 1 << draw_int(draw, 0, log);
}

int draw_of(Draw *draw, const int *values) {
    int num = 0;
    while (values[num]) num++;
    return values[draw_int(draw, 0, num - 1)];
}

const char *draw_text(Draw *draw, const char *const *texts) {
    int num = 0;
    while (texts[num]) num++;
    return texts[draw_int(draw, 0, num - 1)];
}
