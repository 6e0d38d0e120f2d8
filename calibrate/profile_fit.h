// calibrate/profile_fit.h - fits every kind of a folder of tables into one kernel profile.
#pragma once

#include "calibrate/kinds.h"

typedef struct {
    const Kind *kind;
    const char *path, *backward; // of its table and of its backward products; NULL: none
    int num_rows;
    KindFit fit; // fit.section is owned by the profile's tree
} ProfileKind;

typedef struct {
    cJSON *tree; // the document of config/kernels/kernels.h; owned by the caller
    int num_kinds;
    ProfileKind *kinds; // [num_kinds], in the order of KINDS
    int num_few;
    const char **few; // [num_few], what is said of tables that were left out: too few shapes
    const char *kept; // kinds whose sections are those of base: "moe, nccl"; NULL for none
} ProfileFit;

// folder holds KIND.csv or KIND.csv.gz, and products' backward ones where they were measured; only
// is one kind, or NULL for all that are there. Sections of base (a profile's file; NULL for none)
// of kinds that are not fitted are kept; it is not read where all are fitted. With only NULL,
// tables of too few shapes (of `profile --quick`) are left out as long as another is fitted.
Status profile_fit(const char *folder, const Gpu *gpu, const Kind *only, const char *base,
                   Arena *arena, ProfileFit *out);
