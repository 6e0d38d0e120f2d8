// Which layers stages have room for: group_costs.h.
#include "planner/stages/group_costs.h"

#include "costmodel/memory/memory.h"
#include "planner/stages/last_fit.h"

#include <string.h>

typedef struct {
    GroupPricing *pricing;
    const Plan *plan;
    Workload like;
    PlanChunk *chunks; // [pp]
    int num_items;
    Arena scratch;
} Room;

// Whether the GPUs of a stage have room for items [from, to).
static bool has_room(Room *room, int stage, int from, int to) {
    const Scenario *scenario = room->pricing->scenario;
    Plan probe = *room->plan;
    probe.chunks = room->chunks; // of the others nothing matters
    room->chunks[stage] = chain_chunk(room->pricing, room->plan, stage, from, to);
    arena_reset(&room->scratch);
    const Workload workload =
        workload_rank_like(scenario, &probe, &room->like, stage, &room->scratch);
    return memory_closed_form(scenario, &probe, &workload, stage).counted_bytes <=
           rank_memory_available_bytes(scenario, &probe, stage);
}

typedef struct {
    Room *room;
    int stage, from;
} Stage;

static bool stage_fits(void *context, int end) {
    const Stage *asked = context;
    return has_room(asked->room, asked->stage, asked->from, end);
}

// The last end up to which items from `from` on fit.
//   guess  of how many do, >= 0
static int most_from(Room *room, int stage, int from, int guess) {
    Stage asked = {room, stage, from};
    return last_fit(from, room->num_items, from + guess, stage_fits, &asked);
}

//   first, last  where the stage may begin
//   guess        of how many layers fit, >= 0
static const int *stage_room(Room *room, int stage, int first, int last, int guess, Arena *arena) {
    const Model *model = &room->pricing->scenario->model;
    const int num_items = room->num_items;
    int *most = ARENA_ARRAY(arena, num_items + 1, int), count = 0;
    for (int from = first; from <= last; from++) {
        if (from == first) {
            most[from] = most_from(room, stage, from, guess);
            count = most[from] - from;
        } else if (count < 0) {
            most[from] = from - 1;
        } else if (model->num_kinds == 1 && from + count < num_items) {
            most[from] = from + count;
        } else {
            int end = most[from - 1] < from ? from : most[from - 1];
            while (end < num_items && has_room(room, stage, from, end + 1)) end++;
            most[from] = end;
        }
    }
    return most;
}

static Room room_start(GroupPricing *pricing, const Plan *plan, Arena *arena) {
    Room room = {
        .pricing = pricing, .plan = plan, .num_items = model_own_layers(&pricing->scenario->model)};
    room.like = pieces_workload(&pricing->pieces, plan, arena);
    room.chunks = ARENA_ARRAY(arena, plan->pp, PlanChunk);
    memcpy(room.chunks, plan->chunks, (size_t)plan->pp * sizeof *room.chunks);
    return room;
}

const int *const *group_stage_room(GroupPricing *pricing, const Plan *plan, const StageBounds *free,
                                   Arena *arena) {
    const int **most = ARENA_ARRAY(arena, plan->pp, const int *);
    Room room = room_start(pricing, plan, arena);
    int guess = room.num_items / plan->pp;
    for (int r = 0; r < plan->pp; r++) {
        most[r] = stage_room(&room, r, free->first[r], free->last[r], guess, arena);
        const int count = most[r][free->first[r]] - free->first[r];
        if (free->first[r] <= free->last[r] && count > 0) guess = count;
    }
    arena_free(&room.scratch);
    return most;
}

bool group_stages_fit(GroupPricing *pricing, const Plan *plan) {
    Arena own = {0};
    Room room = room_start(pricing, plan, &own);
    int from = 0, guess = room.num_items / plan->pp;
    bool fits = true;
    for (int r = 0; r < plan->pp && fits; r++) {
        const int end = most_from(&room, r, from, guess);
        fits = end >= from;
        if (end > from && end < room.num_items) guess = end - from;
        from = end;
    }
    fits = fits && from == room.num_items;
    arena_free(&room.scratch);
    arena_free(&own);
    return fits;
}
