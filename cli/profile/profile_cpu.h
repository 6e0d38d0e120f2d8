// cli/profile/profile_cpu.h - `profile --device cpu`: measures this computer's CPUs, fits, and
// writes the files that a scenario names.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

typedef struct {
    const char *output; // folder; NULL: none was given
    const char *kinds;  // as given; NULL: all
    const char *command;
    bool quick, json;
    bool force; // cpu.json, link.json and cluster.json take the place of files of others
    void (*progress)(const char *kind, int num_done, int num_shapes);
} ProfileCpu;

Status profile_cpu_answer(const ProfileCpu *options, Arena *arena);
