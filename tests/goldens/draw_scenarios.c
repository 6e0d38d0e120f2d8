// tests/goldens/draw_scenarios.c - prints sound random scenarios, one JSON object a line.
//
// Usage: draw-scenarios KIND SEED NUMBER     KIND: whole, small, search
//        whole: any size, all that matters is stated; small: at most 64 GPUs, to be played;
//        search: `parallel` states a few keys or is missing
// Exit:  0 done, 2 bad usage, 3 too few sound ones were drawn
#include "base/arena.h"
#include "tests/laws/scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const MEGATRON[] = {"megatron-core", NULL};
static const char *const STACKS[] = {"megatron-core", "megatron-core", "torchtitan",
                                     "pytorch-fsdp",  "internevo",     "megatron-2021",
                                     "megatron-2022", "llm.c",         NULL};

typedef struct {
    const char *name;
    ScenarioSpace space;
} Kind;

static const Kind KINDS[] = {
    {"whole", {.stacks = STACKS, .max_gpus = 4096, .split = SPLIT_WHOLE}},
    {"small", {.stacks = MEGATRON, .max_gpus = 64, .split = SPLIT_WHOLE}},
    {"search", {.stacks = STACKS, .max_gpus = 128, .split = SPLIT_SOME}},
    {"search", {.stacks = STACKS, .max_gpus = 128, .split = SPLIT_NONE}},
};

// Cases of a kind's rows in turn.
static const ScenarioSpace *space_of(const char *kind, uint32_t number) {
    const ScenarioSpace *found[2];
    uint32_t num = 0;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        if (strcmp(KINDS[i].name, kind) == 0) found[num++] = &KINDS[i].space;
    }
    return num > 0 ? found[number % num] : NULL;
}

int main(int argc, char **argv) {
    if (argc != 4 || !space_of(argv[1], 0)) {
        fprintf(stderr, "Usage: draw-scenarios whole|small|search SEED NUMBER\n");
        return 2;
    }
    const uint64_t seed = strtoull(argv[2], NULL, 10);
    const uint32_t num = (uint32_t)strtoul(argv[3], NULL, 10);
    uint32_t num_drawn = 0;
    for (uint32_t number = 0; num_drawn < num && number < 10 * num; number++) {
        Arena arena = {0};
        DrawnScenario drawn;
        if (scenario_draw(space_of(argv[1], number), seed, number, NULL, &arena, &drawn)) {
            char *text = cJSON_PrintUnformatted(drawn.document);
            printf("{\"name\":\"%s-%03u\",\"scenario\":%s}\n", argv[1], num_drawn++, text);
            cJSON_free(text);
        }
        arena_free(&arena);
    }
    return num_drawn == num ? 0 : 3;
}
