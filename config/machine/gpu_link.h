// config/machine/gpu_link.h - the link between the GPUs of one node, as the bundled clusters have
// it.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/machine/link.h"

#include <stdbool.h>

// The fastest scale-up link of hw-profiles/clusters with this GPU; *found says whether there is
// one.
Status gpu_link_find(const char *gpu_name, Arena *arena, Link *out, bool *found);
