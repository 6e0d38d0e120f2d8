// tests/laws/round_trip.h - a plan is launched, and what was written is imported again: it has to
// be the scenario that was priced, key by key, and its price and memory to the last bit.
//
// Keys for which the software has no flag (stacks/no_flag/TARGET.json) may differ; put back into
// what was imported they have to give all the rest.
#pragma once

#include "import/import.h"
#include "launch/launch.h"
#include "tests/laws/scenarios.h"

// A target whose files can be imported.
typedef struct {
    LaunchTarget target;
    ImportSource source;
    const char *stack; // that it starts
    const char *file;  // that is imported; NULL: the script itself
} TripWay;

enum { NUM_TRIP_WAYS = 4 };
extern const TripWay TRIP_WAYS[NUM_TRIP_WAYS];

// Where trips are made: a folder of their own, and what they share.
typedef struct {
    char folder[64];
    struct KernelShelf *shelf;
    const char *const *no_flag[NUM_TRIP_WAYS]; // keys, each list ends with NULL
    Arena arena;
} TripPlace;

Status trip_place_init(TripPlace *place);
void trip_place_free(TripPlace *place); // removes the folder

typedef enum { TRIP_EQUAL, TRIP_REFUSED, TRIP_BROKEN } TripOutcome;

typedef struct {
    TripOutcome outcome;
    const char *says; // why it was refused, or what differs; lives as long as the arena
} Trip;

// Launches the case and imports it. TRIP_REFUSED: launch or the scheduler refuses it, in words.
Trip trip_make(TripPlace *place, const TripWay *way, LaunchScheduler scheduler,
               const DrawnScenario *drawn, Arena *arena);
