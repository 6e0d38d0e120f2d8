#include "runtime/train.h"

#include "base/output_file.h"
#include "runtime/checkpoint.h"
#include "runtime/checkpoint_folder.h"
#include "runtime/dump.h"
#include "runtime/run_setup.h"
#include "runtime/step_log.h"
#include "runtime/traffic.h"

#include <math.h>
#include <time.h>

UpdateSettings update_defaults(void) {
    return (UpdateSettings){.learning_rate = 6e-4,
                            .weight_decay = 0.1,
                            .beta1 = 0.9,
                            .beta2 = 0.95,
                            .epsilon = 1e-8,
                            .momentum_frac = 0.9,
                            .max_norm = 1};
}

// A run under way.
typedef struct {
    Run run;
    StepLog log;
    TrainedOn on;            // where a checkpoint is read or written
    int64_t step, last_step; // from 1
} Trainer;

// --- Steps

static Status gradients_dump(void *context, const StepValues *values) {
    const Trainer *t = context;
    (void)values;
    return dump_write(&t->run.rank, t->run.options->dump, GLOBAL_GRADIENTS, t->step);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Of all processes; so far.
static Status memory_measure(const Run *run, StepLine *line) {
    const double held = (double)run->backend->peak_bytes, program = run->account.peak_bytes;
    const double off_frac = program > 0 ? fabs(held / program - 1) : 0; // of nothing there is none
    double most[3] = {held, program, off_frac};
    TRY(rank_reduce(&run->rank, most, 3, REDUCE_MAX));
    line->memory_peak_bytes = most[0];
    line->program_peak_bytes = most[1];
    line->memory_off_frac = most[2];
    return status_ok();
}

static Status step_run(Trainer *t) {
    Run *run = &t->run;
    const TrainOptions *o = run->options;
    const EngineHook hook = {o->dump ? gradients_dump : NULL, t};
    const TrainingJob *training = &run->scenario.training;
    StepLine line = {.step = t->step};
    const double start_s = now_s();
    run_upload(run, t->step);
    TRY(engine_step(&run->engine, &o->update, t->step, hook, &line.values));
    TRY(backend_sync(run->backend));
    line.step_time_s = now_s() - start_s;
    line.tokens_per_s =
        (double)training->global_batch * (double)training->seq_len / line.step_time_s;
    TRY(memory_measure(run, &line));
    TRY(expert_load_of_step(&run->rank, &line.imbalance));
    if (o->times) TRY(instruction_times_write(&run->times, run->world));
    if (o->dump) TRY(dump_write(&run->rank, o->dump, GLOBAL_WEIGHTS, t->step));
    TRY(step_log_write(&t->log, &line));
    if (!o->save) return status_ok();
    const bool due = o->save_every > 0 && t->step % o->save_every == 0;
    if (!due && t->step != t->last_step) return status_ok();
    return checkpoint_save(&run->rank, o->save, &t->on, t->step);
}

// What is written does not take the place of what is read, or of what else is written.
static Status outputs_check(const TrainOptions *o) {
    const char *const written[] = {o->log, o->times};
    const char *const others[][2] = {
        {"the plan", o->plan}, {"the text", o->data}, {"the log", o->log}};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < (i == 0 ? 2 : 3) && written[i]; k++)
            if (others[k][1] && output_is(written[i], others[k][1]))
                return status_error(STATUS_INVALID, "%s: is %s; expected another file to write",
                                    written[i], others[k][0]);
    return status_ok();
}

static Status trainer_begin(Trainer *t, const TrainOptions *options, World *world) {
    if (world->rank == 0) TRY(outputs_check(options));
    if (options->save && world->rank == 0) TRY(checkpoint_folder_check(options->save));
    TRY(run_prepare(options, world, &t->run));
    if (options->save && world->rank == 0)
        TRY(checkpoint_check_model(&t->run.scenario, options->save, &t->run.arena));
    int64_t before = 0;
    if (options->save || options->resume)
        t->on = (TrainedOn){.seed = options->seed,
                            .data = corpus_mark(&t->run.corpus),
                            .seq_len = t->run.scenario.training.seq_len,
                            .global_batch = t->run.scenario.training.global_batch};
    if (options->resume)
        TRY(checkpoint_load(&t->run.rank, options->resume, &t->on, &t->run.arena, &before));
    t->step = before + 1;
    t->last_step = before + options->num_steps;
    if (options->dump) TRY(dump_list(&t->run.rank, options->dump));
    TRY(step_log_open(options->log, options->resume != NULL, world->rank == 0, &t->log));
    if (world->rank == 0)
        step_log_head(&t->run.scenario, plan_describe(&t->run.plan, &t->run.arena), t->run.backend);
    return status_ok();
}

// Of this process's groups, and how far any process is off.
static Status traffic_say(const Run *run, int64_t num_steps) {
    Traffic program =
        traffic_of_program(&run->plan, &run->workload, &run->program, run->world->index[GROUP_PP]);
    traffic_feed(&program, &run->rank);
    const Traffic counted = traffic_of_comms(&run->rank, num_steps);
    double off = traffic_difference(&program, &counted);
    TRY(rank_reduce(&run->rank, &off, 1, REDUCE_MAX));
    if (run->world->rank == 0) traffic_print(&program, &counted, off);
    return status_ok();
}

// Where a device has no more memory, what the plan was to need stands beside what it says.
static Status memory_say(const Run *run, Status status) {
    const double gib = 1.0 / (1 << 30);
    if (status.code != STATUS_MACHINE || !run->backend || run->account.peak_bytes <= 0 ||
        run->backend->failure.code == STATUS_OK)
        return status;
    return status_error(STATUS_MACHINE,
                        "%.400s (process %d of %d; it had %.2f GiB, and was to need %.2f GiB)",
                        status.text, run->world->rank + 1, run->world->size,
                        (double)run->backend->allocated_bytes * gib, run->account.peak_bytes * gib);
}

Status train(const TrainOptions *options, World *world) {
    Trainer t = {0};
    Status status = trainer_begin(&t, options, world);
    const int64_t first = t.step;
    for (; t.step <= t.last_step && status.code == STATUS_OK; t.step++) status = step_run(&t);
    if (status.code == STATUS_OK && t.step > first) status = traffic_say(&t.run, t.step - first);
    status = memory_say(&t.run, status);
    // Others may never come to their part of what is queued, so that nothing waits for it to end.
    if (status.code != STATUS_OK && world->mpi) return status;
    const Status logged = step_log_close(&t.log), timed = instruction_times_free(&t.run.times);
    run_free(&t.run);
    TRY(status);
    TRY(logged);
    return timed;
}
