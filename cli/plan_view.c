#include "cli/plan_view.h"

#include "base/answer_commit.h"
#include "base/output_file.h"
#include "cli/progress.h"

// The simulator is stopped after so many seconds of wall time: a report does without it then.
static const double SIMULATION_TIMEOUT_S = 60;

// Beyond so many instructions their times are not kept: the timeline would show few of them.
enum { MAX_INSTRUCTIONS = 2000000 };

static bool program_is_short(const Program *program) {
    int64_t num_instructions = 0;
    for (int r = 0; r < program->num_ranks; r++)
        num_instructions += program->ranks[r].num_instructions;
    return num_instructions <= MAX_INSTRUCTIONS;
}

static bool same_program(const Program *program, const SimResult *result) {
    bool same = result->num_ranks == program->num_ranks;
    for (int r = 0; same && r < program->num_ranks; r++)
        same = result->num_instructions[r] == program->ranks[r].num_instructions;
    return same;
}

static Status view_simulate(const Scenario *scenario, const Plan *plan, const Program *program,
                            Arena *arena, SimResult *out) {
    const SimOptions options = {
        .timeout_s = SIMULATION_TIMEOUT_S,
        .keep = program_is_short(program) ? SIM_KEEP_LAST : SIM_KEEP_NONE,
    };
    TRY(scenario_refuse_unsimulated(scenario));
    Progress progress = progress_start();
    progress_announce(&progress, "simulating");
    cJSON *document = plan_document(scenario, plan, NULL);
    const Status status = sim_run(document, scenario->file, &options, arena, out);
    cJSON_Delete(document);
    progress_end(&progress);
    TRY(status);
    if (!out->start_s || same_program(program, out)) return status_ok();
    return status_error(STATUS_MACHINE, "the simulator is of another version");
}

Status plan_view_make(const Scenario *scenario, const Plan *plan, bool simulate, Arena *arena,
                      PlanView *out) {
    Estimate *estimate = ARENA_NEW(arena, Estimate);
    EstimateParts *parts = ARENA_NEW(arena, EstimateParts);
    TRY(estimate_plan(scenario, plan, arena, estimate, parts));
    *out = (PlanView){.scenario = scenario, .plan = plan, .estimate = estimate, .parts = parts};
    if (!simulate) return status_ok();
    SimResult *simulation = ARENA_NEW(arena, SimResult);
    const Status status = view_simulate(scenario, plan, &parts->program, arena, simulation);
    if (status.code == STATUS_OK)
        out->simulation = simulation;
    else
        out->not_played = arena_strdup(arena, status.text);
    return status_ok();
}

Status page_report_save(const ReportContents *contents, const char *path, Arena *arena) {
    const Status page = document_check_format(FORMAT_HTML);
    Document document;
    OutputFile file;
    if (page.code != STATUS_OK) {
        char *shown = arena_strdup(arena, path);
        commit_clean_text(shown);
        fprintf(stderr,
                "meshwright: %s is not written: this build has no HTML reports (node and npm make "
                "them)\n",
                shown);
        return status_ok();
    }
    TRY(report_document(contents, arena, &document));
    Status status = output_open(path, &file);
    if (status.code == STATUS_OK)
        status = output_close(&file, document_write(&document, FORMAT_HTML, file.stream));
    cJSON_Delete(document.root);
    return status;
}
