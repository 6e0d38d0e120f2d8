// tests/launch/launch_case.h - what a launch target writes for a job: its files line by line, its
// refusals, and its documented keys.
#pragma once

#include "config/job/scenario.h"
#include "launch/keys.h"
#include "launch/launch.h"
#include "plan/plan.h"

// A job in parts of a scenario; NULL takes the default: llama-3.1-8b on dgx-h100:2, no constraint.
typedef struct {
    const char *model, *cluster, *training, *parallel;
} LaunchJob;

typedef struct {
    Arena arena;
    Scenario scenario;
    Plan plan;
    LaunchFiles files;
    Status status;
} LaunchCase;

// Writes the job's files under torchrun; the caller frees the arena.
//   training  where the job has none
LaunchCase launch_case(LaunchJob job, LaunchTarget target, const char *training);

// Claims that a file holds each of the lines, or no such key ("!key").
//   lines   separated by '&'
//   indent  in front of each
//   behind  a key
void expect_lines(const LaunchFile *file, const char *lines, const char *indent,
                  const char *behind);

// Claims that the lines of a page's table of keys are those that the key table makes.
void expect_key_table(const char *page, const KeyRow *rows);
