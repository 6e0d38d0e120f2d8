#include "tests/workload/pipeline_case.h"

#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <stdio.h>

Price price_of_compute(double compute_s) {
    Price price = {.time_s = compute_s};
    price.term_s[TERM_COMPUTE] = compute_s;
    return price;
}

static void chunks_fill(PipelineCase *c) {
    const int num_chunks = c->plan.num_chunks;
    c->chunks = ARENA_ARRAY(&c->arena, num_chunks + NUM_VOCAB_CHUNKS, Chunk);
    PlanChunk *plan_chunks = ARENA_ARRAY(&c->arena, num_chunks, PlanChunk);
    for (int i = 0; i < num_chunks; i++) {
        c->chunks[i] = (Chunk){.num_layers = 1, .dense_parameters = 1000};
        const int stage = i % plan_num_stages(&c->plan), last = plan_num_stages(&c->plan) - 1;
        plan_chunks[i] = (PlanChunk){
            .first_layer = stage, .num_layers = 1, .embedding = stage == 0, .loss = stage == last};
    }
    c->plan.chunks = plan_chunks;
}

static void prices_fill(PipelineCase *c) {
    const int num_chunks = c->plan.num_chunks, pp = c->plan.pp;
    const int all_chunks = num_chunks + NUM_VOCAB_CHUNKS;
    c->forward = ARENA_ARRAY(&c->arena, all_chunks, Price);
    c->backward = ARENA_ARRAY(&c->arena, all_chunks, Price);
    c->backward_input = ARENA_ARRAY(&c->arena, all_chunks, Price);
    c->backward_weight = ARENA_ARRAY(&c->arena, all_chunks, Price);
    for (int i = 0; i < all_chunks; i++) {
        const double unit_s = i < num_chunks ? 1 : 0.25;
        c->forward[i] = price_of_compute(unit_s);
        c->backward[i] = price_of_compute(2 * unit_s);
        c->backward_input[i] = c->backward_weight[i] = price_of_compute(unit_s);
    }
    c->message_s = ARENA_ARRAY(&c->arena, pp, double);
    c->message_alpha_s = ARENA_ARRAY(&c->arena, pp, double);
    c->copies_s = ARENA_ARRAY(&c->arena, pp, double);
    c->copies_alpha_s = ARENA_ARRAY(&c->arena, pp, double);
    c->optimizer_s = ARENA_ARRAY(&c->arena, pp, double);
}

PipelineCase pipeline_new(ScheduleKind kind, int pp, int vpp, int num_microbatches) {
    PipelineCase c = {0};
    c.plan = (Plan){.tp = 1, .pp = pp, .dp = 1, .cp = 1, .ep = 1, .etp = 1, .vpp = vpp};
    c.plan.micro_batch = 1;
    c.plan.zero_stage = 1;
    c.plan.zero_group = 1;
    c.plan.expert_dp = 1;
    c.plan.schedule = kind;
    c.plan.num_chunks = pp * vpp;
    c.plan.num_microbatches = num_microbatches;
    c.scenario.cluster = test_cluster(&(Pool){.num_gpus = pp, .gpus_per_node = pp, .num_nodes = 1});
    c.scenario.execution.precision = PRECISION_BF16;
    c.scenario.execution.precision = PRECISION_BF16;
    c.scenario.execution.grad_reduce_precision = PRECISION_FP32;
    c.scenario.execution.stack.training.weight_bytes_per_param = 2;
    c.scenario.execution.stack.training.weight_bytes_per_param = 2;
    c.scenario.execution.stack.training.bucket_bytes = 1e9;
    c.workload.boundary_bytes = c.workload.message_bytes = 8;
    chunks_fill(&c);
    prices_fill(&c);
    return c;
}

bool schedule_takes(ScheduleKind kind, int pp, int vpp, int num_microbatches) {
    if (!schedule_find(kind)) return false;
    if (plan_is_dual(&(Plan){.schedule = kind, .pp = pp}))
        return vpp == 2 && pp % 2 == 0 && num_microbatches % 2 == 0 && num_microbatches >= 2 * pp;
    if (plan_is_v(&(Plan){.schedule = kind, .pp = pp})) return vpp == 2;
    return pp == 1 || vpp == 1 || kind == SCHEDULE_INTERLEAVED || kind == SCHEDULE_BREADTH_FIRST;
}

void pipeline_build(PipelineCase *c, double collective_s) {
    c->workload.num_chunks = plan_all_chunks(&c->plan);
    c->workload.chunks = c->chunks;
    c->program = program_build(&c->scenario, &c->plan, &c->workload, &c->arena);
    c->collective_s = ARENA_ARRAY(&c->arena, c->program.num_collectives, double);
    for (int i = 0; i < c->program.num_collectives; i++) c->collective_s[i] = collective_s;
    c->prices.forward = c->forward;
    c->prices.backward = c->backward;
    const Schedule *schedule = schedule_find(c->plan.schedule);
    if (schedule->splits_backward || schedule->mixes_backwards || c->plan.vocab_barriers == 1) {
        c->prices.backward_input = c->backward_input;
        c->prices.backward_weight = c->backward_weight;
    }
    c->prices.message_s = c->message_s;
    c->prices.message_alpha_s = c->message_alpha_s;
    c->prices.copies_s = c->copies_s;
    c->prices.copies_alpha_s = c->copies_alpha_s;
    c->prices.collective_s = c->collective_s;
    c->prices.optimizer_s = c->optimizer_s;
}

Timeline pipeline_run(PipelineCase *c) {
    Timeline timeline = {0};
    Status status = timeline_run(&c->program, &c->prices, true, &c->arena, &timeline);
    if (status.code != STATUS_OK) fprintf(stderr, "\n%s\n", status.text);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    return timeline;
}

void pipeline_free(PipelineCase *c) {
    arena_free(&c->arena);
}

int instruction_find(const Program *program, int rank, InstructionKind kind, int chunk,
                     int microbatch) {
    const RankProgram *r = &program->ranks[rank];
    for (int i = 0; i < r->num_instructions; i++) {
        const Instruction *instruction = &r->instructions[i];
        if (instruction->kind == kind && instruction->chunk == chunk &&
            instruction->microbatch == microbatch)
            return i;
    }
    return -1;
}

static const char *instruction_text(const Program *program, const Instruction *i, Arena *arena) {
    const bool message = i->kind == INSTRUCTION_SEND || i->kind == INSTRUCTION_RECV;
    const char *text;
    if (i->kind == INSTRUCTION_COLLECTIVE)
        text = arena_printf(arena, "c%s", program->collectives[i->collective].name);
    else if (i->kind == INSTRUCTION_OPTIMIZER)
        text = "O";
    else if (i->copies)
        text = arena_printf(arena, "%cG%d", i->kind == INSTRUCTION_SEND ? 's' : 'r', i->chunk);
    else if (i->embedding)
        text = i->kind == INSTRUCTION_SEND ? "sE" : "rE";
    else if (message)
        text = arena_printf(arena, "%c%c%d.%d", i->kind == INSTRUCTION_SEND ? 's' : 'r',
                            i->phase == PHASE_FORWARD ? 'F' : 'B', i->chunk, i->microbatch);
    else
        text = arena_printf(arena, "%c%d.%d", "FBIW"[i->kind], i -> chunk, i -> microbatch);
    if (i->num_parts > 1) text = arena_printf(arena, "%s/%dof%d", text, i->part + 1, i->num_parts);
    if (i->p2p_group >= 0) text = arena_printf(arena, "%sg%d", text, i->p2p_group);
    for (int w = 0; w < 2; w++)
        if (i->waits[w] >= 0) text = arena_printf(arena, "%s<%d", text, i->waits[w]);
    return text;
}

const char *program_text(const Program *program, int rank, Arena *arena) {
    const RankProgram *r = &program->ranks[rank];
    const char *text = "";
    for (int i = 0; i < r->num_instructions; i++)
        text = arena_printf(arena, "%s%s%s", text, i ? " " : "",
                            instruction_text(program, &r->instructions[i], arena));
    return text;
}
