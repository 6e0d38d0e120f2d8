// launch/job.h - the script that starts a task, one writer for each scheduler.
#pragma once

#include "launch/hosts.h"
#include "launch/task.h"

typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const LaunchTask *task;
    Hosts hosts;
    Arena *arena;
} Job;

// The whole text of a script.
const char *job_torchrun(const Job *job); // once on each node
const char *job_slurm(const Job *job);    // submitted once
const char *job_mpirun(const Job *job);   // once

// A ConfigMap with the script of torchrun and the task's files, and a PyTorchJob.
const char *job_kubernetes(const Job *job);

// What all scripts have: what they are, settings, environment, arguments.
void job_add_head(Script *script, const Job *job);
void job_add_body(Script *script, const Job *job, const char *folder);
void job_add_start(Script *script); // the line that begins the last part
void job_add_places(Script *script, const Job *job);
