#include "base/data_dir.h"
#include "config/job/scenario.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <unistd.h>

#define MODEL "\"llama-3.1-8b\""
#define CLUSTER "\"dgx-h100:4\"" // 4 nodes of 8 GPUs and 8 NICs
#define TRAINING "{\"seq_len\": 8192, \"global_batch\": 128}"

static void absent_parallel_leaves_all_free(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *text = scenario_text(&arena, MODEL, CLUSTER, TRAINING, NULL);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(scenario.file, "job.json");
    CU_ASSERT_EQUAL(scenario.model.num_layers, 32);
    CU_ASSERT_EQUAL(scenario.cluster.num_gpus, 32);
    CU_ASSERT_EQUAL(scenario.parallel.tp, ABSENT);
    CU_ASSERT_EQUAL(scenario.parallel.sequence_parallel, ABSENT);
    CU_ASSERT_EQUAL(scenario.parallel.recompute, ABSENT);
    CU_ASSERT_EQUAL(scenario.parallel.schedule, ABSENT);
    CU_ASSERT_PTR_NULL(scenario.parallel.stages);
    CU_ASSERT_EQUAL(scenario.num_disturb, 0);
    CU_ASSERT_EQUAL(scenario_refuse_unsupported(&scenario).code, STATUS_OK);
    arena_free(&arena);
}

static void null_means_absent_everywhere(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *text = scenario_text(
        &arena, MODEL, CLUSTER,
        "{\"seq_len\": 8192, \"global_batch\": 128, \"precision\": null, \"stack\": null, "
        "\"cuda_graphs\": null, \"moe_routing\": null, \"sequence_lengths\": null}",
        "{\"tp\": null, \"stages\": null, \"recompute_modules\": null, \"schedule\": null, "
        "\"order\": null, \"placement\": null, \"layers\": null, \"sequence_parallel\": null}");
    CU_ASSERT_EQUAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL(scenario.parallel.tp, ABSENT);
    CU_ASSERT_EQUAL(scenario.parallel.sequence_parallel, ABSENT);
    arena_free(&arena);
}

static void parallel_is_read_in_full(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *text = scenario_text(
        &arena, MODEL, CLUSTER, TRAINING,
        "{\"tp\": 2, \"pp\": 2, \"dp\": 4, \"cp\": 2, \"ep\": 1, \"etp\": 1, \"vpp\": 1, "
        "\"micro_batch\": 2, \"sequence_parallel\": false, \"zero_stage\": 2, \"zero_group\": 4, "
        "\"reshard_after_forward\": false, \"recompute\": \"selective\", \"recompute_modules\": "
        "[\"core_attn\", \"mlp\"], \"recompute_layers\": 3, \"schedule\": \"file:order.txt\", "
        "\"cp_method\": \"ulysses\", \"order\": \"tp-cp-ep-pp-dp\", \"stages\": [{\"layers\": 15, "
        "\"embedding\": true}, {\"layers\": 17, \"loss\": true}], \"vocab_parallel\": true, "
        "\"placement\": [3, 1, 0, 2], \"layers\": [{\"from\": 0, \"to\": 3, \"tp\": 4, "
        "\"recompute\": \"full\"}, {\"from\": 4, \"to\": 4, \"zero_stage\": 3}]}");
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    const ParallelSpec *spec = &scenario.parallel;
    CU_ASSERT(spec->tp == 2 && spec->pp == 2 && spec->dp == 4 && spec->cp == 2);
    CU_ASSERT(spec->micro_batch == 2 && spec->zero_stage == 2 && spec->zero_group == 4);
    CU_ASSERT(spec->sequence_parallel == 0 && spec->reshard_after_forward == 0);
    CU_ASSERT_EQUAL(spec->recompute_modules, MODULE_CORE_ATTN | MODULE_MLP);
    CU_ASSERT_EQUAL(spec->recompute_layers, 3);
    CU_ASSERT_EQUAL(spec->schedule, SCHEDULE_FILE);
    CU_ASSERT_STRING_EQUAL(spec->schedule_file, "order.txt");
    CU_ASSERT_EQUAL(spec->cp_method, CP_ULYSSES);
    CU_ASSERT_STRING_EQUAL(spec->order, "tp-cp-ep-pp-dp");
    CU_ASSERT_EQUAL(spec->num_stages, 2);
    CU_ASSERT(spec->stages[1].layers == 17 && spec->stages[1].loss);
    CU_ASSERT_EQUAL(spec->vocab_parallel, 1);
    CU_ASSERT(spec->num_placement == 4 && spec->placement[0] == 3);
    CU_ASSERT_EQUAL(spec->num_layer_overrides, 2);
    arena_free(&arena);
}

static const char *with_disturb(Arena *arena, const char *entry) {
    return arena_printf(arena,
                        "{\"schema\": 1, \"model\": " MODEL ", \"cluster\": " CLUSTER
                        ", \"training\": " TRAINING ", \"disturb\": [%s]}",
                        entry);
}

static void all_kinds_of_disturb_are_read(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *text = with_disturb(
        &arena, "{\"slow_gpu\": 17, \"factor\": 1.3}, {\"jitter_frac\": 0.02, \"seed\": 1}, "
                "{\"link\": \"nic:3.2\", \"bandwidth_factor\": 0.5}, {\"fail_nic\": \"nic:0.1\"}, "
                "{\"flap\": \"nic:3.2\", \"period_s\": 1.0, \"down_frac\": 0.1}, "
                "{\"background\": \"leaf:0-leaf:3\", \"bytes_per_s\": 1e10}, "
                "{\"link\": \"nvlink:31\", \"bandwidth_factor\": 0.9}, "
                "{\"link\": \"spine:0\", \"bandwidth_factor\": 0.9}");
    CU_ASSERT_EQUAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL(scenario.num_disturb, 8);
    const Disturb *disturb = scenario.disturb;
    CU_ASSERT(disturb[0].kind == DISTURB_SLOW_GPU && disturb[0].gpu == 17);
    CU_ASSERT_EQUAL(disturb[0].factor, 1.3);
    CU_ASSERT(disturb[1].jitter_frac == 0.02 && disturb[1].seed == 1);
    CU_ASSERT(disturb[2].link.kind == LINK_NIC && disturb[2].link.index == 3);
    CU_ASSERT(disturb[2].link.nic == 2 && disturb[2].bandwidth_factor == 0.5);
    CU_ASSERT(disturb[3].kind == DISTURB_FAIL_NIC && disturb[3].link.nic == 1);
    CU_ASSERT(disturb[4].period_s == 1 && disturb[4].down_frac == 0.1);
    CU_ASSERT(disturb[5].link.index == 0 && disturb[5].to.index == 3);
    CU_ASSERT(disturb[5].to.kind == LINK_LEAF && disturb[5].bytes_per_s == 1e10);
    CU_ASSERT(disturb[6].link.kind == LINK_NVLINK && disturb[6].link.index == 31);
    CU_ASSERT(disturb[7].link.kind == LINK_SPINE && disturb[7].link.index == 0);
    // Each by its number among those of its kind.
    static const int ORDINALS[] = {0, 0, 0, 0, 0, 0, 1, 2};
    for (int i = 0; i < 8; i++) CU_ASSERT_EQUAL(disturb[i].ordinal, ORDINALS[i]);
    arena_free(&arena);
}

static void disturb_is_only_simulated(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *text = with_disturb(&arena, "{\"slow_gpu\": 17, \"factor\": 1.3}, "
                                            "{\"jitter_frac\": 0.02}");
    CU_ASSERT_EQUAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    ASSERT_REFUSED(
        scenario_refuse_unsupported(&scenario),
        "job.json: disturb: legal, but only simulate and grids of whatif play disturbances yet");
    CU_ASSERT_EQUAL(scenario_refuse_unsimulated(&scenario).code, STATUS_OK);
    arena_free(&arena);
}

static void steps_apart_are_not_simulated(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *text = scenario_text(&arena, MODEL, CLUSTER,
                                     "{\"seq_len\": 8192, \"global_batch\": 128, "
                                     "\"optimizer_post_validation\": true}",
                                     NULL);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    CU_ASSERT(scenario.execution.optimizer_post_validation);
    CU_ASSERT_EQUAL(scenario_refuse_unsupported(&scenario).code, STATUS_OK);
    ASSERT_REFUSED(scenario_refuse_unsimulated(&scenario),
                   "job.json: training.optimizer_post_validation: true is legal, but not supported "
                   "by simulate yet");
    arena_free(&arena);
}

static void bad_disturb_is_refused(void) {
    static const struct {
        const char *entry, *sentence;
    } CASES[] = {
        {"{\"slow_gpu\": 32, \"factor\": 2}", "slow_gpu: 32 is out of range; expected 0 to 31"},
        {"{\"slow_gpu\": -1, \"factor\": 2}", "slow_gpu: -1 is out of range; expected 0 to 31"},
        {"{\"slow_gpuu\": 3}", "slow_gpuu: unknown key; the nearest known one is \"slow_gpu\""},
        {"{\"slow_gpu\": 1}", "factor: missing"},
        {"{\"slow_gpu\": 1, \"factor\": 0.5}", "factor: 0.5 is out of range; expected 1 to 1000"},
        {"{\"slow_gpu\": 1, \"facter\": 2}",
         "facter: unknown key; the nearest known one is \"factor\""},
        {"{\"jitter_frac\": 1.5}", "jitter_frac: 1.5 is out of range; expected 0 to 1"},
        {"{\"link\": \"nic:4.0\", \"bandwidth_factor\": 1}",
         "link: node 4 is out of range; expected 0 to 3"},
        {"{\"link\": \"nic:3.8\", \"bandwidth_factor\": 1}",
         "link: NIC 8 is out of range; expected 0 to 7"},
        {"{\"link\": \"nvlink:32\", \"bandwidth_factor\": 1}",
         "link: GPU 32 is out of range; expected 0 to 31"},
        {"{\"link\": \"leaf:32\", \"bandwidth_factor\": 1}",
         "link: leaf 32 is out of range; there is at most one for each of the 32 NICs"},
        {"{\"link\": \"nic:3\", \"bandwidth_factor\": 1}",
         "link: \"nic:3\" names no link here; expected nic:NODE.INDEX, nvlink:GPU, leaf:INDEX, "
         "spine:INDEX"},
        {"{\"link\": \"leaf:1x\", \"bandwidth_factor\": 1}",
         "link: \"leaf:1x\" names no link here; expected nic:NODE.INDEX, nvlink:GPU, leaf:INDEX, "
         "spine:INDEX"},
        {"{\"link\": \"leaf:999999999999\", \"bandwidth_factor\": 1}",
         "link: \"leaf:999999999999\" names no link here; expected nic:NODE.INDEX, nvlink:GPU, "
         "leaf:INDEX, spine:INDEX"},
        {"{\"link\": \"leaf:0\", \"bandwidth_factor\": 0}",
         "bandwidth_factor: 0 is out of range; expected 1e-06 to 1"},
        {"{\"fail_nic\": \"leaf:0\"}",
         "fail_nic: \"leaf:0\" names no link here; expected nic:NODE.INDEX"},
        {"{\"flap\": \"nic:0.0\", \"period_s\": 1}", "down_frac: missing"},
        {"{\"background\": \"leaf:0\", \"bytes_per_s\": 1}",
         "background: \"leaf:0\" names no two ends; expected leaf:INDEX-leaf:INDEX"},
        {"{\"background\": \"leaf:2-leaf:2\", \"bytes_per_s\": 1}",
         "background: both ends are leaf:2"},
        {"{\"background\": \"group:0-group:1\", \"bytes_per_s\": 1}",
         "background: the cluster has no links between groups"},
        {"{\"background\": \"node:0-node:1\", \"bytes_per_s\": 1}",
         "background: the cluster has no links between nodes; a bandwidth_matrix has"},
        {"{\"link\": \"group:0\", \"bandwidth_factor\": 0.5}",
         "link: \"group:0\" names no link here; expected nic:NODE.INDEX, nvlink:GPU, leaf:INDEX, "
         "spine:INDEX"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Scenario scenario;
        const char *sentence = arena_printf(&arena, "job.json: disturb[0].%s", CASES[i].sentence);
        ASSERT_REFUSED(scenario_of(with_disturb(&arena, CASES[i].entry), &arena, &scenario),
                       sentence);
        arena_free(&arena);
    }
}

// A port of PCIe is reported as pcie:GPU: it goes by that name, and by that of any cluster.
static void a_port_goes_by_what_it_is(void) {
    static const struct {
        const char *link, *name, *sentence;
    } CASES[] = {
        {"pcie4", "pcie:3", NULL},
        {"pcie4", "nvlink:3", NULL},
        {"xgmi", "xgmi:3", NULL},
        {"xgmi-mi355x", "xgmi:3", NULL},
        {"shm", "shm:3", NULL},
        {"xgmi", "pcie:3", "\"pcie:3\": that GPU's port is xgmi; expected xgmi:3"},
        {"nvlink4", "pcie:3", "\"pcie:3\": that GPU's port is nvlink; expected nvlink:3"},
        {"pcie4", "pcie:8", "GPU 8 is out of range; expected 0 to 7"},
        {"pcie4", "pcie4:3",
         "\"pcie4:3\" names no link here; expected nic:NODE.INDEX, pcie:GPU, leaf:INDEX, "
         "spine:INDEX"},
        {"pcie4", "socket:0.0-socket:0.1",
         "\"socket:0.0-socket:0.1\" is played, but cannot be disturbed; expected nic:NODE.INDEX, "
         "pcie:GPU, leaf:INDEX, spine:INDEX"},
        {"pcie4", "switch:0.1 up",
         "\"switch:0.1 up\" is played, but cannot be disturbed; expected nic:NODE.INDEX, pcie:GPU, "
         "leaf:INDEX, spine:INDEX"},
        {"nvlink2", "nvlink:0-nvlink:3",
         "\"nvlink:0-nvlink:3\" is played, but cannot be disturbed; expected nic:NODE.INDEX, "
         "nvlink:GPU, leaf:INDEX, spine:INDEX"},
        {"nvlink4", "group:0-group:1",
         "\"group:0-group:1\" is played, but cannot be disturbed; expected nic:NODE.INDEX, "
         "nvlink:GPU, leaf:INDEX, spine:INDEX"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Scenario scenario;
        const char *text = arena_printf(
            &arena,
            "{\"schema\": 1, \"model\": " MODEL ", \"cluster\": {\"gpu\": \"h100-sxm-80g\", "
            "\"num_gpus\": 8, \"gpus_per_node\": 8, \"scale_up\": {\"link\": \"%s\", "
            "\"domain_gpus\": 8}, \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": "
            "50e9}}, \"training\": " TRAINING
            ", \"disturb\": [{\"link\": \"%s\", \"bandwidth_factor\": 0.5}]}",
            CASES[i].link, CASES[i].name);
        Status status = scenario_of(text, &arena, &scenario);
        if (CASES[i].sentence) {
            ASSERT_REFUSED(
                status, arena_printf(&arena, "job.json: disturb[0].link: %s", CASES[i].sentence));
        } else {
            CU_ASSERT_EQUAL(status.code, STATUS_OK);
            CU_ASSERT(scenario.disturb[0].link.kind == LINK_NVLINK);
            CU_ASSERT_EQUAL(scenario.disturb[0].link.index, 3);
        }
        arena_free(&arena);
    }
}

// Of each pool's ports, once.
static void ports_of_all_groups_are_named(void) {
    static const char *const GPUS[4][2] = {{"h100-sxm-80g", "nvlink4"},
                                           {"l40s-48g", "pcie4"},
                                           {"a100-sxm-80g", "nvlink3"},
                                           {"l40s-48g", "pcie4"}};
    Arena arena = {0};
    Scenario scenario;
    const char *groups = "";
    for (int i = 0; i < 4; i++)
        groups = arena_printf(
            &arena,
            "%s%s{\"gpu\": \"%s\", \"num_gpus\": 8, \"gpus_per_node\": 8, \"scale_up\": "
            "{\"link\": \"%s\"}, \"scale_out\": {\"nics_per_node\": 2, "
            "\"nic_bytes_per_s\": 1e10}}",
            groups, i ? ", " : "", GPUS[i][0], GPUS[i][1]);
    const char *text =
        arena_printf(&arena,
                     "{\"schema\": 1, \"model\": " MODEL ", \"training\": " TRAINING
                     ", \"cluster\": {\"groups\": [%s], \"between\": {\"bytes_per_s\": 1e9, "
                     "\"latency_s\": 1e-5}}, "
                     "\"disturb\": [{\"link\": \"port:3\", \"bandwidth_factor\": 0.5}]}",
                     groups);
    ASSERT_REFUSED(scenario_of(text, &arena, &scenario),
                   "job.json: disturb[0].link: \"port:3\" names no link here; expected "
                   "nic:NODE.INDEX, nvlink:GPU, pcie:GPU, leaf:INDEX, spine:INDEX");
    arena_free(&arena);
}

static void unknown_disturb_lists_the_kinds(void) {
    Arena arena = {0};
    Scenario scenario;
    ASSERT_REFUSED(scenario_of(with_disturb(&arena, "{\"sabotage\": 1}"), &arena, &scenario),
                   "job.json: disturb[0].sabotage: unknown key; known are slow_gpu, jitter_frac, "
                   "link, fail_nic, flap, background, factor, seed, bandwidth_factor, period_s, "
                   "down_frac, bytes_per_s");
    ASSERT_REFUSED(scenario_of(with_disturb(&arena, "{\"factor\": 2}"), &arena, &scenario),
                   "job.json: disturb[0]: disturbs nothing known; expected one of slow_gpu, "
                   "jitter_frac, link, fail_nic, flap, background");
    arena_free(&arena);
}

static void bad_parallel_is_refused(void) {
    static const struct {
        const char *parallel, *sentence;
    } CASES[] = {
        {"{\"tp\": 0}", "tp: 0 is out of range; expected 1 to 1048576"},
        {"{\"tp\": 2.5}", "tp: 2.5 is not a whole number"},
        {"{\"microbatch\": 1}",
         "microbatch: unknown key; the nearest known one is \"micro_batch\""},
        {"{\"zero_stage\": 4}", "zero_stage: 4 is out of range; expected 0 to 3"},
        {"{\"recompute\": \"block\"}",
         "recompute: \"block\" is unknown; expected one of none, selective, full"},
        {"{\"recompute\": \"full\", \"recompute_modules\": [\"mlp\"]}",
         "recompute_modules: goes with recompute selective only; here it is full"},
        {"{\"recompute_modules\": [\"mlp\"]}",
         "recompute_modules: goes with recompute selective only; here it is absent"},
        {"{\"recompute\": \"selective\", \"recompute_modules\": []}",
         "recompute_modules: names no module; expected at least one"},
        {"{\"recompute\": \"selective\", \"recompute_modules\": [\"mlp\", \"mlp\"]}",
         "recompute_modules[1]: mlp stands here twice"},
        {"{\"recompute\": \"selective\", \"recompute_modules\": [\"attn\"]}",
         "recompute_modules[0]: \"attn\" is unknown; expected one of core_attn, mla_up_proj, "
         "layernorm, mlp, moe, moe_act, shared_experts"},
        {"{\"schedule\": \"2F2B\"}",
         "schedule: \"2F2B\" is unknown; expected one of gpipe, 1f1b, interleaved, zb-h1, zb-h2, "
         "zb-v, v-half, v-min, dualpipe, breadth-first"},
        {"{\"schedule\": \"file:\"}", "schedule: expected a path after file:"},
        {"{\"order\": \"tp-cp-ep-dp\"}",
         "order: \"tp-cp-ep-dp\" is no order; expected tp, cp, ep, dp and pp, each once, joined "
         "by -"},
        {"{\"order\": \"tp-tp-ep-dp-pp\"}",
         "order: \"tp-tp-ep-dp-pp\" is no order; expected tp, cp, ep, dp and pp, each once, "
         "joined by -"},
        {"{\"stages\": []}", "stages: is empty; expected pp x vpp entries"},
        {"{\"stages\": [{\"embedding\": true}]}", "stages[0].layers: missing"},
        {"{\"stages\": [{\"layers\": 1, \"loss\": true}, {\"layers\": 1, \"loss\": true}]}",
         "stages: 2 chunks hold the loss; expected 1"},
        {"{\"stages\": [{\"layers\": 1}, {\"layers\": 1, \"embedding\": true}]}",
         "stages[0]: comes before the chunk that holds the embedding"},
        {"{\"stages\": [{\"layers\": 1, \"loss\": true}, {\"layers\": 1}]}",
         "stages[1]: comes after the chunk that holds the loss"},
        {"{\"stages\": [{\"layers\": 1, \"mtp\": 1}, {\"layers\": 1}]}",
         "stages[1]: holds layers after a chunk that holds MTP layers"},
        {"{\"placement\": [0, 1, 1, 2]}", "placement: node 1 stands here twice"},
        {"{\"placement\": [0, 1]}", "placement: 2 nodes; expected each of the cluster's 4"},
        {"{\"placement\": [0, 1, 2, 4]}", "placement[3]: 4 is out of range; expected 0 to 3"},
        {"{\"layers\": [{\"from\": 3, \"to\": 1, \"tp\": 2}]}", "layers[0]: from 3 is after to 1"},
        {"{\"layers\": [{\"from\": 0, \"to\": 1}]}",
         "layers[0]: says nothing that these layers do"},
        {"{\"layers\": [{\"from\": 0, \"to\": 2, \"tp\": 2}, {\"from\": 2, \"to\": 3, \"tp\": 4}]}",
         "layers[1]: from 2 is not after the previous to 2"},
        {"{\"layers\": [{\"from\": 0, \"to\": 32, \"tp\": 2}]}",
         "layers[0].to: 32 is out of range; expected 0 to 31"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Scenario scenario;
        const char *text = scenario_text(&arena, MODEL, CLUSTER, TRAINING, CASES[i].parallel);
        const char *sentence = arena_printf(&arena, "job.json: parallel.%s", CASES[i].sentence);
        ASSERT_REFUSED(scenario_of(text, &arena, &scenario), sentence);
        arena_free(&arena);
    }
}

static void lengths_are_refused_by_all_but_plan(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *training = "{\"seq_len\": 8, \"global_batch\": 32, \"sequence_lengths\": "
                           "[{\"length\": 8, \"frac\": 1}]}";
    const char *text = scenario_text(&arena, MODEL, CLUSTER, training, NULL);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    const char *sentence =
        "job.json: training.sequence_lengths: legal, but only plan supports it yet";
    ASSERT_REFUSED(scenario_refuse_unsupported(&scenario), sentence);
    ASSERT_REFUSED(scenario_refuse_unsimulated(&scenario), sentence);
    arena_free(&arena);
}

static void file_write(const char *path, const char *text) {
    FILE *stream = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    fputs(text, stream);
    fclose(stream);
}

// The model's path is relative to the scenario; what is written in its place is self-contained.
static void model_file_is_taken_into_the_document(void) {
    char folder[] = "/tmp/meshwright-scenario-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    Arena arena = {0};
    Scenario scenario;
    const char *job = arena_printf(&arena, "%s/job.json", folder);
    const char *config = arena_printf(&arena, "%s/tiny.json", folder);
    file_write(job, scenario_text(&arena, "\"./tiny.json\"", CLUSTER, TRAINING, NULL));
    file_write(config, "{\"model_type\": \"generic\", \"hidden_size\": 64, \"num_hidden_layers\": "
                       "4, \"num_attention_heads\": 4, \"intermediate_size\": 256, "
                       "\"vocab_size\": 1000, \"name\": null}");
    Status status = scenario_load(job, &arena, &scenario);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    unlink(config);
    unlink(job);
    rmdir(folder);
    if (status.code == STATUS_OK) {
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(scenario.model_document, "name");
        CU_ASSERT_STRING_EQUAL(cJSON_GetStringValue(name), "tiny");
        const char *text = arena_printf(&arena, "%s", scenario.model.name);
        char *document = cJSON_PrintUnformatted(scenario.model_document);
        Scenario again;
        status =
            scenario_of(scenario_text(&arena, document, CLUSTER, TRAINING, NULL), &arena, &again);
        CU_ASSERT_EQUAL(status.code, STATUS_OK);
        CU_ASSERT_STRING_EQUAL(again.model.name, text);
        CU_ASSERT_EQUAL(again.model.num_layers, 4);
        cJSON_free(document);
    }
    arena_free(&arena);
}

static void a_plan_with_provenance_is_a_scenario(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *text = "{\"schema\": 1, \"name\": \"n\", \"description\": \"d\", \"model\": " MODEL
                       ", \"cluster\": " CLUSTER ", \"training\": " TRAINING
                       ", \"provenance\": {\"version\": \"0.1\", \"anything\": [1]}}";
    CU_ASSERT_EQUAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    arena_free(&arena);
}

#define GROUP(gpu)                                                                                 \
    "{\"gpu\": \"" gpu "\", \"num_gpus\": 8, \"gpus_per_node\": 8, \"scale_up\": {\"link\": "      \
    "\"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10}}"

// Two groups of one GPU name are machines of their own where a file says other things of the GPU.
static void groups_keep_the_kernels_of_their_file(void) {
    Arena arena = {0};
    Scenario scenario;
    JsonNode root;
    char path[] = "/tmp/meshwright-gpu-XXXXXX";
    close(mkstemp(path));
    const char *bundled = data_path(&arena, "hw-profiles/gpus", "h100-sxm-80g");
    CU_ASSERT_EQUAL_FATAL(json_load(bundled, &arena, &root).code, STATUS_OK);
    cJSON *copy = cJSON_Duplicate(root.item, true);
    cJSON_ReplaceItemInObjectCaseSensitive(copy, "memory_bandwidth_bytes_per_s",
                                           cJSON_CreateNumber(2e12));
    CU_ASSERT_EQUAL(json_save(copy, path).code, STATUS_OK);
    cJSON_Delete(copy);
    const char *text =
        arena_printf(&arena,
                     "{\"schema\": 1, \"model\": " MODEL ", \"training\": " TRAINING
                     ", \"cluster\": {\"groups\": "
                     "[" GROUP("h100-sxm-80g") ", " GROUP("h200-sxm-141g") ", " GROUP(
                         "%s") "], \"between\": {\"bytes_per_s\": 1e9, \"latency_s\": 1e-5}}}",
                     path);
    Status status = scenario_of(text, &arena, &scenario);
    unlink(path);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(scenario_gpus(&scenario, &arena), "h100-sxm-80g + h200-sxm-141g");
    const Pool *pools = scenario.cluster.pools;
    CU_ASSERT_EQUAL_FATAL(scenario.cluster.num_pools, 3);
    CU_ASSERT_EQUAL(pools[0].kernels->gpu.memory_bandwidth_bytes_per_s, 3.35e12);
    CU_ASSERT_EQUAL(pools[2].kernels->gpu.memory_bandwidth_bytes_per_s, 2e12);
    arena_free(&arena);
}

CU_TestInfo scenario_tests[] = {
    {"absent_parallel_leaves_all_free", absent_parallel_leaves_all_free},
    {"null_means_absent_everywhere", null_means_absent_everywhere},
    {"parallel_is_read_in_full", parallel_is_read_in_full},
    {"all_kinds_of_disturb_are_read", all_kinds_of_disturb_are_read},
    {"disturb_is_only_simulated", disturb_is_only_simulated},
    {"steps_apart_are_not_simulated", steps_apart_are_not_simulated},
    {"bad_disturb_is_refused", bad_disturb_is_refused},
    {"a_port_goes_by_what_it_is", a_port_goes_by_what_it_is},
    {"ports_of_all_groups_are_named", ports_of_all_groups_are_named},
    {"unknown_disturb_lists_the_kinds", unknown_disturb_lists_the_kinds},
    {"bad_parallel_is_refused", bad_parallel_is_refused},
    {"lengths_are_refused_by_all_but_plan", lengths_are_refused_by_all_but_plan},
    {"model_file_is_taken_into_the_document", model_file_is_taken_into_the_document},
    {"groups_keep_the_kernels_of_their_file", groups_keep_the_kernels_of_their_file},
    {"a_plan_with_provenance_is_a_scenario", a_plan_with_provenance_is_a_scenario},
    CU_TEST_INFO_NULL,
};
