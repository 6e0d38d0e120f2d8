#include "runtime/train.h"

#include "runtime/dump.h"
#include "runtime/run_setup.h"
#include "runtime/step_log.h"

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
    int64_t step; // from 1
} Trainer;

// --- Steps

static Status gradients_dump(void *context, const StepValues *values) {
    const Trainer *t = context;
    (void)values;
    return dump_write(&t->run.rank, t->run.options->dump, DUMP_GRADIENTS, t->step);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static Status step_run(Trainer *t) {
    Run *run = &t->run;
    const TrainOptions *o = run->options;
    const EngineHook hook = {o->dump ? gradients_dump : NULL, t};
    const Training *training = &run->scenario.training;
    StepLine line = {.step = t->step};
    const double start_s = now_s();
    run_upload(run, t->step);
    TRY(engine_step(&run->engine, &o->update, t->step, hook, &line.values));
    TRY(backend_sync(run->backend));
    line.time_s = now_s() - start_s;
    line.tokens_per_s = (double)training->global_batch * (double)training->seq_len / line.time_s;
    line.peak_bytes = (double)run->backend->peak_bytes;
    line.program_bytes = run->account.peak_bytes;
    if (o->dump) TRY(dump_write(&run->rank, o->dump, DUMP_WEIGHTS, t->step));
    return step_log_write(&t->log, &line);
}

static Status trainer_begin(Trainer *t, const TrainOptions *options, World *world) {
    TRY(run_prepare(options, world, &t->run));
    if (options->dump) TRY(dump_list(&t->run.rank, options->dump));
    TRY(step_log_open(options->log, world->rank == 0, &t->log));
    if (world->rank == 0)
        step_log_head(&t->run.scenario, plan_describe(&t->run.plan, &t->run.arena), t->run.backend);
    return status_ok();
}

Status train(const TrainOptions *options, World *world) {
    Trainer t = {0};
    Status status = trainer_begin(&t, options, world);
    for (t.step = 1; t.step <= options->num_steps && status.code == STATUS_OK; t.step++)
        status = step_run(&t);
    const Status closed = step_log_close(&t.log);
    run_free(&t.run);
    return status.code == STATUS_OK ? closed : status;
}
