// Orders of work (plan/schedule_file.h) and tables of bandwidth between nodes.
#include "config/cluster/cluster_matrix.h"
#include "plan/schedule_file.h"
#include "tests/fuzz/fuzz.h"

void fuzz_read(char *text, size_t size, Arena *arena) {
    JsonNode value = fuzz_path_node(arena);
    ScheduleFile schedule;
    const ClusterSites *sites;
    (void)text;
    (void)size;
    schedule_file_read("input", fuzz_path(), arena, &schedule);
    bandwidth_matrix_read(&value, 3, arena, &sites);
}
