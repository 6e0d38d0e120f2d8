// The file holds, stage by stage and in it lane by lane, begin and end of each instruction.
#include "sim/client_times.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

// Where the times of a lane begin, in pairs.
static int64_t first_pair(const SimResult *result, int stage, int lane) {
    const bool all = result->kept == SIM_KEEP_ALL;
    int64_t first = 0;
    for (int s = 0; s < stage; s++)
        first += (int64_t)result->num_instructions[s] * (all ? result->num_lanes : 1);
    return all ? first + (int64_t)result->num_instructions[stage] * lane : first;
}

int sim_lane_of(const SimResult *result, int replica) {
    const int block = replica / result->num_folded;
    return result->lane_of ? result->lane_of[block] : block % result->num_lanes;
}

Status sim_times_read(const SimResult *result, int stage, int lane, double *start_s,
                      double *end_s) {
    double pair[2];
    off_t offset = (off_t)(first_pair(result, stage, lane) * (int64_t)sizeof pair);
    if (fseeko(result->times, offset, SEEK_SET) != 0) {
        return status_error(STATUS_MACHINE, "a temporary file cannot be read: %s", strerror(errno));
    }
    for (int i = 0; i < result->num_instructions[stage]; i++) {
        if (fread(pair, sizeof pair, 1, result->times) != 1)
            return status_error(STATUS_MACHINE, "meshwright-sim: times are missing");
        start_s[i] = pair[0];
        end_s[i] = pair[1];
    }
    return status_ok();
}

static Status counts_read(const JsonNode *root, Arena *arena, SimResult *out) {
    JsonNode counts = json_get(root, "num_instructions");
    TRY(json_expect_array(&counts));
    out->num_ranks = json_size(&counts);
    int *num_instructions = ARENA_ARRAY(arena, out->num_ranks, int);
    for (int rank = 0; rank < out->num_ranks; rank++) {
        JsonNode count = json_at(&counts, rank);
        TRY(json_read_int(&count, 0, INT_MAX, &num_instructions[rank]));
    }
    out->num_instructions = num_instructions;
    return status_ok();
}

Status sim_times_open(const JsonNode *root, FILE *file, SimKeep keep, Arena *arena,
                      SimResult *out) {
    TRY(counts_read(root, arena, out));
    out->kept = keep;
    out->times = file;
    double **start_s = ARENA_ARRAY(arena, out->num_ranks, double *);
    double **end_s = ARENA_ARRAY(arena, out->num_ranks, double *);
    for (int rank = 0; rank < out->num_ranks; rank++) {
        start_s[rank] = ARENA_ARRAY(arena, out->num_instructions[rank], double);
        end_s[rank] = ARENA_ARRAY(arena, out->num_instructions[rank], double);
        TRY(sim_times_read(out, rank, out->last_lane, start_s[rank], end_s[rank]));
    }
    out->start_s = (const double *const *)start_s;
    out->end_s = (const double *const *)end_s;
    return status_ok();
}
