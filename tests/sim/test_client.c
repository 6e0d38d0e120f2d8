// The client against programs that only play the simulator: shell scripts.
#include "sim/sim.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANSWER "{\"schema\": 1, " ANSWER_REST
#define ANSWER_REST                                                                                \
    "\"version\": \"" MESHWRIGHT_VERSION "\", \"step_time_s\": 2.5, "                              \
    "\"estimate_step_time_s\": 2, \"activities\": 7, \"folding\": \"tp\", "                        \
    "\"folding_reason\": \"because\", \"not_played\": [\"one\", \"two\"], \"contended\": true, "   \
    "\"flow_lost_frac\": 0.25, "                                                                   \
    "\"flow_gained_frac\": 0, \"links\": [{\"name\": \"nic:0.0 out\", \"utilization_frac\": "      \
    "0.5}],"                                                                                       \
    " \"difference_s\": {\"model\": 0, \"spare_bandwidth\": -0.25, \"contention\": 0.5, "          \
    "\"stragglers\": 0, \"jitter\": 0.25, \"network\": 0}, "                                       \
    "\"critical_path\": {\"totals\": [{\"kind\": \"forward\", \"count\": 3, "                      \
    "\"simulated_s\": 2.5, \"estimated_s\": 1}], \"slack_s\": 1.5, \"num_instructions\": 3, "      \
    "\"instructions\": [{\"rank\": 9, \"stage\": 1, \"instruction\": \"forward\", "                \
    "\"chunk\": 2, \"micro_batch\": -1, \"start_s\": 0, \"end_s\": 2.5}]}, "                       \
    " \"num_folded\": 2, \"num_lanes\": 2, \"last_lane\": 1, "                                     \
    "\"num_instructions\": [1, 2]}"

#define REFUSED "echo '{\"version\": \"" MESHWRIGHT_VERSION "\", \"refused\": true}'; "

// Runs sim_run with a simulator that consists of these shell commands.
static Status run_script(const char *commands, const SimOptions *options, Arena *arena,
                         SimResult *out) {
    char path[] = "/tmp/meshwright-test-XXXXXX";
    int fd = mkstemp(path);
    FILE *script = fd < 0 ? NULL : fdopen(fd, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(script);
    fprintf(script, "#!/bin/sh\n%s\n", commands);
    fclose(script);
    chmod(path, 0700);
    char *before = getenv("MESHWRIGHT_SIM");
    before = before ? arena_strdup(arena, before) : NULL;
    setenv("MESHWRIGHT_SIM", path, 1);
    cJSON *document = cJSON_Parse("{\"schema\": 1}");
    Status status = sim_run(document, "job.json", options, arena, out);
    cJSON_Delete(document);
    unlink(path);
    if (before) {
        setenv("MESHWRIGHT_SIM", before, 1);
    } else {
        unsetenv("MESHWRIGHT_SIM");
    }
    return status;
}

static void assert_fails(const char *commands, const SimOptions *options, StatusCode code,
                         const char *sentence) {
    Arena arena = {0};
    SimResult result;
    Status status = run_script(commands, options, &arena, &result);
    CU_ASSERT_EQUAL(status.code, code);
    CU_ASSERT_STRING_EQUAL(status.text, sentence);
    if (strcmp(status.text, sentence) != 0) fprintf(stderr, "\n%s\n", status.text);
    arena_free(&arena);
}

static void an_answer_is_read(void) {
    Arena arena = {0};
    SimResult result;
    SimOptions options = {.timeout_s = 60};
    Status status = run_script("cat >/dev/null; echo '" ANSWER "'", &options, &arena, &result);
    CU_ASSERT_STRING_EQUAL(status.text, "");
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(result.step_time_s, 2.5);
    CU_ASSERT_EQUAL(result.estimate_step_time_s, 2);
    CU_ASSERT_EQUAL(result.num_activities, 7);
    CU_ASSERT_STRING_EQUAL(result.folding, "tp");
    CU_ASSERT_EQUAL(result.contended, true);
    CU_ASSERT_EQUAL_FATAL(result.num_not_played, 2);
    CU_ASSERT_STRING_EQUAL(result.not_played[1], "two");
    CU_ASSERT_EQUAL_FATAL(result.num_links, 1);
    CU_ASSERT_STRING_EQUAL(result.links[0].name, "nic:0.0 out");
    CU_ASSERT_PTR_NULL(result.start_s);
    arena_free(&arena);
}

static void difference_and_critical_path_are_read(void) {
    Arena arena = {0};
    SimResult result;
    SimOptions options = {.timeout_s = 60};
    Status status = run_script("echo '" ANSWER "'", &options, &arena, &result);
    CU_ASSERT_STRING_EQUAL(status.text, "");
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(result.difference.spare_bandwidth_s, -0.25);
    CU_ASSERT_EQUAL(result.difference.contention_s, 0.5);
    CU_ASSERT_EQUAL(result.difference.jitter_s, 0.25);
    CU_ASSERT_EQUAL_FATAL(result.path.num_totals, 1);
    CU_ASSERT_STRING_EQUAL(result.path.totals[0].kind, "forward");
    CU_ASSERT_EQUAL(result.path.totals[0].count, 3);
    CU_ASSERT_EQUAL(result.path.totals[0].simulated_s, 2.5);
    CU_ASSERT_EQUAL(result.path.slack_s, 1.5);
    CU_ASSERT_EQUAL(result.path.num_instructions, 3);
    CU_ASSERT_EQUAL_FATAL(result.path.num_items, 1);
    CU_ASSERT_EQUAL(result.path.items[0].rank, 9);
    CU_ASSERT_EQUAL(result.path.items[0].chunk, 2);
    CU_ASSERT_EQUAL(result.path.items[0].microbatch, -1);
    CU_ASSERT_EQUAL(result.path.items[0].end_s, 2.5);
    arena_free(&arena);
}

static void what_disturbances_cost_is_read(void) {
    Arena arena = {0};
    SimResult result;
    SimOptions options = {.timeout_s = 60};
    Status status = run_script(
        "echo '{\"disturbed\": {\"repetitions\": 2, \"undisturbed_step_time_s\": 1, "
        "\"mean_step_time_s\": 2.5, \"p95_step_time_s\": 2.9, \"difference_s\": {\"stragglers\": "
        "1.75, \"jitter\": -0.25, \"network\": 0}, \"step_times_s\": [2, 3]}, " ANSWER_REST "'",
        &options, &arena, &result);
    CU_ASSERT_STRING_EQUAL(status.text, "");
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(result.disturbed.num_repetitions, 2);
    CU_ASSERT_EQUAL(result.disturbed.undisturbed_step_time_s, 1);
    CU_ASSERT_EQUAL(result.disturbed.p95_step_time_s, 2.9);
    CU_ASSERT_EQUAL(result.disturbed.stragglers_s, 1.75);
    CU_ASSERT_EQUAL(result.disturbed.jitter_s, -0.25);
    CU_ASSERT_EQUAL(result.disturbed.step_times_s[1], 3);
    arena_free(&arena);
}

// Blocks of two replicas each, of which the first and the last are alike.
static void lanes_of_replicas_are_read(void) {
    Arena arena = {0};
    SimResult result;
    SimOptions options = {.timeout_s = 60};
    Status status =
        run_script("echo '{\"lane_of\": [0, 1, 0], " ANSWER_REST "'", &options, &arena, &result);
    CU_ASSERT_STRING_EQUAL(status.text, "");
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(result.num_blocks, 3);
    CU_ASSERT_EQUAL(sim_lane_of(&result, 1), 0);
    CU_ASSERT_EQUAL(sim_lane_of(&result, 3), 1);
    CU_ASSERT_EQUAL(sim_lane_of(&result, 4), 0);
    // Without the list they are in lanes 0, 1, 0, 1, ...
    status = run_script("echo '" ANSWER "'", &options, &arena, &result);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(sim_lane_of(&result, 6), 1);
    static const char *const wrong[] = {"[0, 2, 1]", "[0, 0]", "[]", "[0, -1, 1]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        status =
            run_script(arena_printf(&arena, "echo '{\"lane_of\": %s, %s'", wrong[i], ANSWER_REST),
                       &options, &arena, &result);
        CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    }
    arena_free(&arena);
}

static void document_and_options_arrive(void) {
    SimOptions options = {.fold = "none", .stepwise = true, .num_repetitions = 7};
    assert_fails(REFUSED "read -r a; read -r b c; echo \"meshwright-sim: $* $a $b $c\" >&2; exit 2",
                 &options, STATUS_INVALID,
                 "--file job.json --fold none --stepwise --repetitions 7 { \"schema\": 1");
}

// Three pairs of doubles of zeros where the answer says that there are three instructions.
static void times_come_beside_the_answer(void) {
    Arena arena = {0};
    SimResult result;
    SimOptions options = {.keep = SIM_KEEP_LAST};
    Status status =
        run_script("head -c 48 /dev/zero >&3; echo '" ANSWER "'", &options, &arena, &result);
    CU_ASSERT_STRING_EQUAL(status.text, "");
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(result.num_ranks, 2);
    CU_ASSERT_EQUAL(result.num_instructions[1], 2);
    CU_ASSERT_EQUAL(result.end_s[1][1], 0);
    arena_free(&arena);
    assert_fails("head -c 40 /dev/zero >&3; echo '" ANSWER "'", &options, STATUS_MACHINE,
                 "meshwright-sim: times are missing");
}

static void its_refusals_are_passed_on(void) {
    SimOptions options = {0};
    assert_fails(REFUSED
                 "echo noise >&2; echo 'meshwright-sim: job.json: model: no such' >&2; exit 2",
                 &options, STATUS_INVALID, "job.json: model: no such");
}

// Whatever its exit code is and whatever it prints, it was no refusal of ours.
static void another_programs_line_is_no_refusal(void) {
    SimOptions options = {0};
    static const struct {
        const char *commands, *sentence;
    } CASES[] = {
        {"echo boom >&2; exit 1", "the simulator failed with exit code 1; it said: boom"},
        {"echo boom >&2; exit 2", "the simulator failed with exit code 2; it said: boom"},
        {"echo boom >&2; exit 3", "the simulator failed with exit code 3; it said: boom"},
        {"echo 'meshwright-sim: boom' >&2; exit 1",
         "the simulator failed with exit code 1; it said: boom"},
        {"echo 'meshwright-sim: boom' >&2; exit 2", // another version's
         "the simulator failed with exit code 2; it said: boom"},
        {"echo '{\"version\": \"0.0\", \"refused\": true}'; echo 'meshwright-sim: boom' >&2; exit "
         "2",
         "the simulator failed with exit code 2; it said: boom"},
        {REFUSED "exit 2", "the simulator failed with exit code 2"},
        {REFUSED "exit 0", "answer of meshwright-sim: step_time_s: missing; expected a number"},
        {"echo '" ANSWER "'; exit 1", "the simulator failed with exit code 1"},
        {"echo 'meshwright-sim: a child process was lost' >&2; exit 3", "a child process was lost"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_fails(CASES[i].commands, &options, STATUS_MACHINE, CASES[i].sentence);
}

static void a_crash_is_a_sentence(void) {
    SimOptions options = {0};
    assert_fails("kill -KILL $$", &options, STATUS_MACHINE, "the simulator crashed: Killed");
    assert_fails("echo 'no memory' >&2; kill -TERM $$", &options, STATUS_MACHINE,
                 "the simulator crashed: Terminated; it said: no memory");
    assert_fails("echo 'meshwright-sim: out of memory (8 bytes asked for)' >&2; exit 3", &options,
                 STATUS_MACHINE, "the simulator ran out of memory (8 bytes asked for)");
    assert_fails("exit 42", &options, STATUS_MACHINE, "the simulator failed with exit code 42");
    assert_fails("exit 1", &options, STATUS_MACHINE, "the simulator failed with exit code 1");
}

static void it_is_stopped_in_time(void) {
    SimOptions options = {.timeout_s = 0.05};
    assert_fails("exec sleep 60", &options, STATUS_MACHINE,
                 "the simulator was stopped after 0.05 s (--timeout)");
}

static void nonsense_is_no_answer(void) {
    SimOptions options = {0};
    assert_fails("exit 0", &options, STATUS_MACHINE,
                 "answer of meshwright-sim: empty; expected one JSON document");
    assert_fails("echo '{\"version\": \"0.0\"}'", &options, STATUS_MACHINE,
                 "answer of meshwright-sim: version: it is of version 0.0, this program "
                 "of " MESHWRIGHT_VERSION);
    assert_fails("echo '{\"version\": \"" MESHWRIGHT_VERSION "\"}'", &options, STATUS_MACHINE,
                 "answer of meshwright-sim: step_time_s: missing; expected a number");
}

static void a_missing_simulator_is_named(void) {
    Arena arena = {0};
    SimResult result;
    SimOptions options = {0};
    char *before = getenv("MESHWRIGHT_SIM");
    before = before ? arena_strdup(&arena, before) : NULL;
    setenv("MESHWRIGHT_SIM", "/nowhere/meshwright-sim", 1);
    cJSON *document = cJSON_Parse("{}");
    Status status = sim_run(document, "job.json", &options, &arena, &result);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text, "MESHWRIGHT_SIM: /nowhere/meshwright-sim is not a program");
    cJSON_Delete(document);
    if (before) setenv("MESHWRIGHT_SIM", before, 1);
    arena_free(&arena);
}

CU_TestInfo client_tests[] = {
    {"an_answer_is_read", an_answer_is_read},
    {"difference_and_critical_path_are_read", difference_and_critical_path_are_read},
    {"what_disturbances_cost_is_read", what_disturbances_cost_is_read},
    {"lanes_of_replicas_are_read", lanes_of_replicas_are_read},
    {"document_and_options_arrive", document_and_options_arrive},
    {"times_come_beside_the_answer", times_come_beside_the_answer},
    {"its_refusals_are_passed_on", its_refusals_are_passed_on},
    {"another_programs_line_is_no_refusal", another_programs_line_is_no_refusal},
    {"a_crash_is_a_sentence", a_crash_is_a_sentence},
    {"it_is_stopped_in_time", it_is_stopped_in_time},
    {"nonsense_is_no_answer", nonsense_is_no_answer},
    {"a_missing_simulator_is_named", a_missing_simulator_is_named},
    CU_TEST_INFO_NULL,
};
