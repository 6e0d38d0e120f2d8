// config/machine/profile.h - what GPU, link and cluster files share: found by name or path, with
// sources. Used by config/{gpu,link,cluster,kernel*}.c only.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

// Refuses errors of a fit (members of node) whose 90th percentile lies below their median.
Status residuals_check(const JsonNode *node, double residual_median_frac, double residual_p90_frac);

// Loads data_dir()/folder/NAME.json; an unknown name is answered with the nearest ones.
// value is where the name stands, for the message; NULL where no document names it.
Status profile_load_named(const JsonNode *value, const char *what, const char *folder,
                          const char *name, Arena *arena, JsonNode *root);

// Loads what a string value names: a bundled profile, or a file where it is a path.
Status profile_load(const JsonNode *value, const char *what, const char *folder, Arena *arena,
                    JsonNode *root);
