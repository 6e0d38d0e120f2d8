#include "report/trace_event.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int64_t trace_ns(double time_s) {
    return (int64_t)llround(time_s * 1e9);
}

static void event_begin(TraceWriter *writer) {
    fputs(writer->has_events ? ",\n" : "\n", writer->stream);
    writer->has_events = true;
}

// Names are ours: letters, digits, spaces, '_' and '-'.
static void metadata(TraceWriter *writer, const char *what, int tid, const char *name) {
    event_begin(writer);
    fprintf(writer->stream,
            "{\"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"name\": \"%s\", \"args\": {\"name\": "
            "\"%s\"}}",
            writer->pid, tid, what, name);
}

static void metadata_sort(TraceWriter *writer, const char *what, int tid, int index) {
    event_begin(writer);
    fprintf(writer->stream,
            "{\"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"name\": \"%s\", \"args\": "
            "{\"sort_index\": %d}}",
            writer->pid, tid, what, index);
}

void trace_process(TraceWriter *writer, const char *name) {
    metadata(writer, "process_name", 0, name);
    metadata_sort(writer, "process_sort_index", 0, writer->pid);
}

// Of a track's lane 0.
static int track_id(const TraceWriter *writer, Stream stream) {
    return (writer->row_index * NUM_STREAMS + (int)stream) * TRACE_MAX_LANES + 1;
}

void trace_track(TraceWriter *writer, Stream stream, int lane) {
    char name[80], rank[24] = "", more[16] = "";
    const TraceRow *row = writer->row;
    writer->tid = track_id(writer, stream);
    if (!row->whole_stage)
        snprintf(rank, sizeof rank, "rank %d ",
                 program_gpu(writer->context->program, row->stage, row->replica));
    if (lane > 0) snprintf(more, sizeof more, " %d", lane + 1);
    snprintf(name, sizeof name, "%sstage %d %s%s", rank, row->stage, STREAM_NAMES[stream], more);
    metadata(writer, "thread_name", writer->tid + lane, name);
    metadata_sort(writer, "thread_sort_index", writer->tid + lane, writer->tid + lane);
}

void trace_slice(TraceWriter *writer, int tid, const char *name, const char *category,
                 int64_t start_ns, int64_t end_ns) {
    int64_t dur_ns = end_ns - start_ns;
    event_begin(writer);
    fprintf(writer->stream,
            "{\"ph\": \"X\", \"pid\": %d, \"tid\": %d, \"name\": \"%s\", \"cat\": \"%s\", \"ts\": "
            "%" PRId64 ".%03d, \"dur\": %" PRId64 ".%03d, \"args\": {",
            writer->pid, tid, name, category, start_ns / 1000, (int)(start_ns % 1000),
            dur_ns / 1000, (int)(dur_ns % 1000));
}

// "grad_reduce_scatter" as "grad reduce-scatter".
static void collective_name(const char *name, char *text, size_t size) {
    static const char *const joined[] = {"reduce scatter", "all gather", "all reduce",
                                         "all to all"};
    snprintf(text, size, "%s", name);
    for (char *c = text; *c; c++)
        if (*c == '_') *c = ' ';
    for (size_t i = 0; i < sizeof joined / sizeof *joined; i++) {
        char *at = strstr(text, joined[i]);
        if (!at) continue;
        for (char *c = at; c < at + strlen(joined[i]); c++)
            if (*c == ' ') *c = '-';
    }
}

static void computation(TraceWriter *writer, int tid, const Instruction *in, int64_t start_ns,
                        int64_t end_ns) {
    static const char *const letters[] = {
        [INSTRUCTION_FORWARD] = "F",
        [INSTRUCTION_BACKWARD] = "B",
        [INSTRUCTION_BACKWARD_INPUT] = "Bi",
        [INSTRUCTION_BACKWARD_WEIGHT] = "Bw",
    };
    char name[80], part[32] = "";
    if (in->num_parts > 1) snprintf(part, sizeof part, " %d/%d", in->part + 1, in->num_parts);
    snprintf(name, sizeof name, "%s mb%d c%d%s", letters[in->kind], in->microbatch, in->chunk,
             part);
    trace_slice(writer, tid, name, INSTRUCTION_NAMES[in->kind], start_ns, end_ns);
    fprintf(writer->stream, "\"chunk\": %d, \"micro_batch\": %d}}", in->chunk, in->microbatch);
    if (writer->operators) trace_operators(writer, tid, in, start_ns, end_ns);
}

static void message(TraceWriter *writer, int tid, const Instruction *in, int64_t start_ns,
                    int64_t end_ns) {
    const Program *program = writer->context->program;
    bool send = in->kind == INSTRUCTION_SEND;
    char name[80];
    if (in->embedding)
        snprintf(name, sizeof name, "%s embedding gradients", send ? "send" : "recv");
    else if (in->copies)
        snprintf(name, sizeof name, "%s gradients c%d", send ? "send" : "recv", in->chunk);
    else
        snprintf(name, sizeof name, "%s %s mb%d c%d", send ? "send" : "recv",
                 in->phase == PHASE_FORWARD ? "F" : "B", in->microbatch, in->chunk);
    trace_slice(writer, tid, name, INSTRUCTION_NAMES[in->kind], start_ns, end_ns);
    fprintf(writer->stream,
            "\"chunk\": %d, \"micro_batch\": %d, \"peer_stage\": %d, \"bytes\": %.15g}}", in->chunk,
            in->microbatch, in->peer, program_message_bytes(program, in));
}

// --- Arrows

void trace_writer_start(TraceWriter *writer, Arena *arena) {
    const Program *program = writer->context->program;
    if (!program) return;
    int64_t *first_arrow = ARENA_ARRAY(arena, program->num_ranks, int64_t);
    for (int r = 0; r < program->num_ranks; r++) {
        first_arrow[r] = writer->num_arrows;
        writer->num_arrows += program->ranks[r].num_instructions;
    }
    writer->first_arrow = first_arrow;
}

// An arrow has the number of its SEND. It leaves as the message begins to move and arrives within
// the last nanosecond of its slice, so that viewers find the slice around it.
void trace_arrow(TraceWriter *writer, int lane, int instruction, int64_t start_ns, int64_t end_ns) {
    const Program *program = writer->context->program;
    const int stage = writer->row->stage, replica = writer->row->replica;
    const Instruction *in = &program->ranks[stage].instructions[instruction];
    if (!writer->shown[in->peer * program->multiplicity + replica]) return;
    bool send = in->kind == INSTRUCTION_SEND;
    int64_t number =
        send ? writer->first_arrow[stage] + instruction : writer->first_arrow[in->peer] + in->match;
    number += writer->num_arrows * (replica + (int64_t)program->multiplicity * (writer->pid - 1));
    int64_t at_ns = send || end_ns == start_ns ? start_ns : end_ns - 1;
    event_begin(writer);
    fprintf(writer->stream,
            "{\"ph\": \"%s, \"pid\": %d, \"tid\": %d, \"name\": \"message\", \"cat\": \"message\", "
            "\"id\": %" PRId64 ", \"ts\": %" PRId64 ".%03d}",
            send ? "s\"" : "f\", \"bp\": \"e\"", writer->pid, writer->tid + lane, number,
            at_ns / 1000, (int)(at_ns % 1000));
}

// --- Whole instructions

void trace_instruction(TraceWriter *writer, int lane, int instruction, int64_t start_ns,
                       int64_t end_ns) {
    const RankProgram *rank = &writer->context->program->ranks[writer->row->stage];
    const Instruction *in = &rank->instructions[instruction];
    int tid = writer->tid + lane;
    if (in->kind == INSTRUCTION_SEND || in->kind == INSTRUCTION_RECV) {
        message(writer, tid, in, start_ns, end_ns);
        trace_arrow(writer, lane, instruction, start_ns, end_ns);
    } else if (in->kind == INSTRUCTION_OPTIMIZER) {
        trace_slice(writer, tid, "optimizer", INSTRUCTION_NAMES[in->kind], start_ns, end_ns);
        fprintf(writer->stream, "}}");
    } else if (in->kind == INSTRUCTION_COLLECTIVE) {
        const ProgramCollective *c = &writer->context->program->collectives[in->collective];
        char name[80];
        collective_name(c->name, name, sizeof name);
        trace_slice(writer, tid, name, INSTRUCTION_NAMES[in->kind], start_ns, end_ns);
        fprintf(writer->stream, "\"bytes\": %.15g, \"group\": \"%s\", \"collective\": \"%s\"}}",
                c->num_calls * c->message_bytes, group_name(c->group), COLLECTIVE_NAMES[c->kind]);
    } else {
        computation(writer, tid, in, start_ns, end_ns);
    }
}

void trace_host(TraceWriter *writer, int64_t start_ns, int64_t end_ns) {
    trace_slice(writer, track_id(writer, STREAM_COMPUTE), "host", "host", start_ns, end_ns);
    fprintf(writer->stream, "}}");
}
