#include "cli/kind_option.h"

error_t parse_kind(struct argp_state *state, const char *text, const Kind **out) {
    Arena arena = {0};
    int index = 0;
    error_t error = parse_name(state, "kind", text, kind_names(&arena), &index);
    if (!error) *out = &KINDS[index];
    arena_free(&arena);
    return error;
}
