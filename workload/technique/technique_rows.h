// workload/technique/technique_rows.h - the rows of workload/technique/technique.c, and what their
// files use of the builders. Included by technique*.c only.
#pragma once

#include "workload/pass/builder.h"
#include "workload/pass/expert_load.h"
#include "workload/technique/technique.h"

#define TECHNIQUE(kind, key) extern const Technique TECHNIQUE_ROW_##kind;
#include "config/software/techniques.def"

// Whether blocks scatter gradients or gather weights: from ZeRO-2 on.
bool blocks_have_shards(const Builder *b);

// Lets a list's data-parallel collectives of a kind run beside other blocks.
void shards_beside_blocks(OperatorList *list, CollectiveKind kind);
