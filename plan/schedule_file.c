// Reading and writing; schedule_file_check.c says what may stand there.
#include "plan/schedule_file.h"

#include "base/data_dir.h"
#include "base/text_lines.h"
#include "plan/plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const PLACEMENT_NAMES[] = {"round", "v", "dual", NULL};
static const char *const MESSAGES_NAMES[] = {"blocking", "asynchronous", NULL};
static const char *const SEPARATORS = " \t\r\n";

enum { MAX_NUMBER = 1 << 22, MAX_LINE_BYTES = 1 << 26, MAX_FILE_BYTES = 1 << 28 };

typedef struct {
    ScheduleFile *out;
    Arena *arena;
    int line;                          // from 1
    int placement_line, messages_line; // 0: they have not stood there yet
    RankOrder *orders;
    int *lines;
    int capacity;
} Reader;

#define REFUSE_LINE(r, ...) return refuse_line(r, arena_printf((r)->arena, __VA_ARGS__))

static Status refuse_line(const Reader *r, const char *sentence) {
    char place[32];
    snprintf(place, sizeof place, "line %d", r->line);
    return status_at(STATUS_INVALID, r->out->file, place, "%s", sentence);
}

// A number of at most seven digits; -1 where there is none.
static int number_read(const char **at) {
    long value = 0;
    int num_digits = 0;
    for (; isdigit((unsigned char)**at) && num_digits < 8; num_digits++, (*at)++)
        value = 10 * value + (**at - '0');
    return num_digits == 0 || value > MAX_NUMBER ? -1 : (int)value;
}

// "+B3.1"; false where the word is no item.
static bool item_read(const char *word, WorkItem *out) {
    static const char LETTERS[] = "FBW";
    static const uint8_t KINDS[] = {WORK_FORWARD, WORK_BACKWARD, WORK_BACKWARD_WEIGHT};
    *out = (WorkItem){.chunk = -1};
    if (*word == '+' || *word == '&')
        out->joined = *word++ == '+' ? JOINED_MESSAGES : JOINED_OVERLAP;
    const char *letter = *word ? strchr(LETTERS, *word++) : NULL;
    if (!letter) return false;
    out->kind = KINDS[letter - LETTERS];
    out->microbatch = number_read(&word);
    if (out->microbatch < 0) return false;
    if (*word == '.') {
        word++;
        const int chunk = number_read(&word);
        if (chunk < 0 || chunk > INT16_MAX) return false;
        out->chunk = (int16_t)chunk;
    }
    return *word == '\0';
}

static int count_words(const char *text) {
    int num = 0;
    for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
        text += strcspn(text, SEPARATORS);
        num++;
    }
    return num;
}

// The orders read so far are never more than what there is room for.
static void reader_grow(Reader *r) {
    if (r->out->num_ranks < r->capacity) return;
    const size_t before = (size_t)r->capacity;
    r->capacity = before ? 2 * r->capacity : 16;
    RankOrder *orders = ARENA_ARRAY(r->arena, r->capacity, RankOrder);
    int *lines = ARENA_ARRAY(r->arena, r->capacity, int);
    if (before) {
        memcpy(orders, r->orders, before * sizeof *orders);
        memcpy(lines, r->lines, before * sizeof *lines);
    }
    r->orders = orders;
    r->lines = lines;
}

static Status work_read(Reader *r, char *text) {
    const int rank = r->out->num_ranks, num_words = count_words(text);
    WorkItem *items = ARENA_ARRAY(r->arena, num_words, WorkItem);
    char *rest = NULL, *word = strtok_r(text, SEPARATORS, &rest);
    for (int i = 0; i < num_words; i++, word = strtok_r(NULL, SEPARATORS, &rest)) {
        if (item_read(word, &items[i])) continue;
        REFUSE_LINE(
            r,
            "rank %d, item %d: \"%.40s\" is no work; expected F, B or W, a micro-batch, and "
            "the chunk after a point, as in F3.1",
            rank, i + 1, word);
    }
    reader_grow(r);
    r->orders[rank] = (RankOrder){items, num_words};
    r->lines[rank] = r->line;
    r->out->num_ranks++;
    return status_ok();
}

// "placement v": the value's index in `names`; *first_line is where the key stands.
static Status setting_read(Reader *r, const char *key, const char *value, const char *const *names,
                           int *first_line, int *out) {
    if (*first_line > 0) REFUSE_LINE(r, "%s stands here twice, first in line %d", key, *first_line);
    *first_line = r->line;
    if (r->out->num_ranks > 0) REFUSE_LINE(r, "%s stands after the first line of work", key);
    const char *list = "";
    for (int i = 0; names[i]; i++) {
        list = arena_printf(r->arena, "%s%s%s", list, i ? ", " : "", names[i]);
        if (value && strcmp(value, names[i]) == 0) *out = i;
    }
    if (*out < 0)
        REFUSE_LINE(r, "%s \"%.40s\" is unknown; expected one of %s", key, value ? value : "",
                    list);
    return status_ok();
}

static Status line_read(Reader *r, char *text) {
    text[strcspn(text, "#")] = '\0';
    text += strspn(text, SEPARATORS);
    if (*text == '\0') return status_ok();
    const bool is_word = islower((unsigned char)text[0]) && !isdigit((unsigned char)text[1]);
    if (!is_word) return work_read(r, text);
    char *rest = NULL, *key = strtok_r(text, SEPARATORS, &rest);
    const char *value = strtok_r(NULL, SEPARATORS, &rest),
               *more = strtok_r(NULL, SEPARATORS, &rest);
    int index = -1;
    if (more) REFUSE_LINE(r, "\"%.40s\" is too much after %.40s %.40s", more, key, value);
    if (strcmp(key, "placement") == 0) {
        TRY(setting_read(r, key, value, PLACEMENT_NAMES, &r->placement_line, &index));
        r->out->placement = (Placement)index;
        return status_ok();
    }
    if (strcmp(key, "messages") != 0)
        REFUSE_LINE(r, "\"%.40s\" is unknown; expected work, placement or messages", key);
    TRY(setting_read(r, key, value, MESSAGES_NAMES, &r->messages_line, &index));
    r->out->receives_ahead = index == 1;
    return status_ok();
}

Status schedule_file_read(const char *base_file, const char *path, Arena *arena,
                          ScheduleFile *out) {
    *out = (ScheduleFile){.name = arena_printf(arena, "file:%s", path),
                          .file = path_beside(arena, base_file, path)};
    FILE *stream = fopen(out->file, "r");
    if (!stream)
        return status_at(STATUS_INVALID, out->file, "", "cannot be read: %s", strerror(errno));
    Reader r = {.out = out, .arena = arena};
    TextLines lines = {.stream = stream,
                       .file = out->file,
                       .max_line_bytes = MAX_LINE_BYTES,
                       .max_bytes = MAX_FILE_BYTES};
    Arena scratch = {0}; // of the lines
    bool more = true;
    Status status = status_ok();
    while (status.code == STATUS_OK && more) {
        status = text_lines_next(&lines, &scratch, &more);
        r.line = lines.number;
        if (status.code == STATUS_OK && more) status = line_read(&r, lines.line);
    }
    arena_free(&scratch);
    fclose(stream);
    out->orders = r.orders;
    out->lines = r.lines;
    return status;
}

// --- Writing

static char *item_write(const Plan *plan, const WorkItem *item, char *at) {
    static const char *const JOINS[] = {"", "+", "&"};
    at += sprintf(at, "%s%c%d", JOINS[item->joined], "FBBW"[item->kind], item -> microbatch);
    return plan->vpp > 1 ? at + sprintf(at, ".%d", item->chunk / plan->pp) : at;
}

enum { MAX_ITEM_TEXT = 32 };

const char *work_item_text(const Plan *plan, const WorkItem *item, Arena *arena) {
    const WorkItem alone = {
        .kind = item->kind, .chunk = item->chunk, .microbatch = item->microbatch};
    char *text = arena_alloc(arena, MAX_ITEM_TEXT);
    item_write(plan, &alone, text);
    return text;
}

const char *schedule_file_text(const Plan *plan, const RankOrder *orders, bool receives_ahead,
                               Arena *arena) {
    size_t size = 1;
    for (int rank = 0; rank < plan->pp; rank++)
        size += (size_t)orders[rank].num_items * MAX_ITEM_TEXT + 1;
    const Placement placement = plan_is_dual(plan) ? PLACEMENT_DUAL
                                : plan_is_v(plan)  ? PLACEMENT_V
                                                   : PLACEMENT_ROUND;
    const char *head = "";
    if (placement != PLACEMENT_ROUND)
        head = arena_printf(arena, "placement %s\n", PLACEMENT_NAMES[placement]);
    if (receives_ahead) head = arena_printf(arena, "%smessages asynchronous\n", head);
    char *text = arena_alloc(arena, strlen(head) + size), *at = text;
    at += sprintf(at, "%s", head);
    for (int rank = 0; rank < plan->pp; rank++)
        for (int i = 0; i < orders[rank].num_items; i++) {
            at = item_write(plan, &orders[rank].items[i], at);
            *at++ = i + 1 < orders[rank].num_items ? ' ' : '\n';
        }
    *at = '\0';
    return text;
}

const ScheduleFile *schedule_file_copy(const ScheduleFile *schedule, Arena *arena) {
    const size_t num_ranks = (size_t)schedule->num_ranks;
    ScheduleFile *copy = ARENA_NEW(arena, ScheduleFile);
    RankOrder *orders = ARENA_ARRAY(arena, num_ranks, RankOrder);
    *copy = *schedule;
    for (size_t r = 0; r < num_ranks; r++) {
        const size_t size = (size_t)schedule->orders[r].num_items * sizeof(WorkItem);
        orders[r] = schedule->orders[r];
        orders[r].items = memcpy(arena_alloc(arena, size), schedule->orders[r].items, size);
    }
    copy->orders = orders;
    copy->name = arena_strdup(arena, schedule->name);
    copy->file = arena_strdup(arena, schedule->file);
    copy->lines = memcpy(arena_alloc(arena, num_ranks * sizeof(int)), schedule->lines,
                         num_ranks * sizeof(int));
    return copy;
}
