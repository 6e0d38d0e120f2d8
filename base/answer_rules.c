#include "base/answer_rules.h"

#include "base/output_file.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const AnswerSpec *spec;
    const AnswerManifest *earlier;
    FileState *now;   // [earlier->num_entries] of each in the folder
    const char *root; // what the new answer is of; NULL: not known yet
    Arena *arena;
} Rules;

static bool same(const char *a, const char *b) {
    return a && b && strcmp(a, b) == 0;
}

static const char *place(const Rules *rules, const char *name) {
    return arena_printf(rules->arena, "%s/%s", rules->spec->folder, name);
}

static const AnswerPart *part_find(const AnswerSpec *spec, const char *name) {
    for (int i = 0; i < spec->num_parts; i++)
        if (strcmp(spec->parts[i].name, name) == 0) return &spec->parts[i];
    return NULL;
}

static bool is_input(const Rules *rules, const char *name) {
    for (int i = 0; i < rules->spec->num_inputs; i++)
        if (output_is(place(rules, name), rules->spec->inputs[i])) return true;
    return false;
}

static bool is_changed(const Rules *rules, const AnswerEntry *entry) {
    return !file_state_same(&entry->state, &rules->now[entry - rules->earlier->entries]);
}

// What the new answer is of: of the answer whose file was read.
static const char *root_find(const Rules *rules) {
    for (int i = 0; i < rules->earlier->num_entries; i++) {
        const AnswerEntry *entry = &rules->earlier->entries[i];
        if (!is_changed(rules, entry) && is_input(rules, entry->name)) return entry->root;
    }
    return rules->spec->of;
}

// --- What stays

// Other parts of what the new answer is of, and what was added to the same part.
static bool stays(const Rules *rules, const AnswerEntry *entry) {
    const AnswerPart *part = part_find(rules->spec, entry->part);
    if (!same(entry->root, rules->root)) return false;
    return !part || (part->adds && same(entry->answer, part->id));
}

// Whether an entry goes without a word: of the parts that are written, and, where an earlier answer
// of the first part stood for itself, of all that is of that answer.
static bool may_go(const Rules *rules, const AnswerEntry *entry) {
    const char *first = rules->spec->parts[0].name;
    if (part_find(rules->spec, entry->part)) return true;
    for (int i = 0; i < rules->earlier->num_entries; i++) {
        const AnswerEntry *other = &rules->earlier->entries[i];
        if (same(other->part, first) && same(other->answer, other->root) &&
            same(other->root, entry->root))
            return true;
    }
    return false;
}

// Why a file of an earlier answer must stay; NULL: it need not.
static const char *hindrance(const Rules *rules, const AnswerEntry *entry) {
    if (rules->spec->force) return NULL;
    if (is_changed(rules, entry)) return "was changed since it was written";
    if (rules->spec->keeps || !may_go(rules, entry))
        return arena_printf(rules->arena, "is of another answer (%s)", entry->part);
    return NULL;
}

// --- What comes

static Status clash_check(const Rules *rules, const char *name) {
    const AnswerEntry *entry = manifest_find(rules->earlier, name);
    const char *path = place(rules, name);
    if (rules->spec->force) return status_ok();
    if (rules->spec->keeps)
        return status_at(STATUS_INVALID, path, "", "is there already; --force overwrites it");
    const char *why = entry ? hindrance(rules, entry)
                            : "is there already, and is of no answer that is listed here";
    if (!why) return status_ok();
    return status_at(STATUS_INVALID, path, "",
                     "%s; expected another folder, or --force, which overwrites it", why);
}

static Status file_check(const Rules *rules, AnswerFile *file, bool written, FileState *now) {
    char target[OUTPUT_PATH_SIZE];
    const char *path = place(rules, file->name);
    TRY(file_state(path, rules->arena, now));
    if (!now->there) return status_ok();
    TRY(output_target(path, target)); // no folder, device or pipe
    file->unchanged =
        written && file_state_same(now, &file->next) && (now->program || !file->next.program);
    return file->unchanged ? status_ok() : clash_check(rules, file->name);
}

// --- Both

static void entry_add(AnswerChange *change, AnswerEntry entry) {
    change->manifest.entries[change->manifest.num_entries++] = entry;
}

static Status files_decide(const Rules *rules, AnswerFile *files, int num_files, bool written,
                           AnswerMove *moves, AnswerChange *out) {
    for (int i = 0; i < num_files; i++) {
        FileState now;
        AnswerFile *file = &files[i];
        const AnswerPart *part = part_find(rules->spec, file->part);
        if (written && !file->next.there) continue;
        TRY(file_check(rules, file, written, &now));
        if (!file->unchanged) moves[out->num_moves++] = (AnswerMove){file->name, true, now};
        entry_add(out, (AnswerEntry){file->name, file->part, part->id, rules->root, file->next});
    }
    return status_ok();
}

static bool is_written(const AnswerChange *change, const char *name) {
    return manifest_find(&change->manifest, name) != NULL;
}

static Status entries_decide(const Rules *rules, AnswerMove *moves, AnswerChange *out) {
    const AnswerChange written = *out;
    for (int i = 0; i < rules->earlier->num_entries; i++) {
        const AnswerEntry *entry = &rules->earlier->entries[i];
        const FileState *now = &rules->now[i];
        if (is_written(&written, entry->name) || !now->there) continue;
        if (stays(rules, entry)) {
            entry_add(out, *entry);
            continue;
        }
        const char *why = hindrance(rules, entry);
        if (why)
            return status_at(STATUS_INVALID, place(rules, entry->name), "",
                             "%s; expected another folder, or --force, which removes it", why);
        if (!is_input(rules, entry->name))
            moves[out->num_moves++] = (AnswerMove){entry->name, false, *now};
    }
    return status_ok();
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const AnswerEntry *)a)->name, ((const AnswerEntry *)b)->name);
}

Status answer_rules(const AnswerSpec *spec, const AnswerManifest *earlier, AnswerFile *files,
                    int num_files, bool written, Arena *arena, AnswerChange *out) {
    const int num = earlier->num_entries + num_files;
    AnswerMove *moves = ARENA_ARRAY(arena, num, AnswerMove);
    Rules rules = {.spec = spec,
                   .earlier = earlier,
                   .now = ARENA_ARRAY(arena, earlier->num_entries, FileState),
                   .arena = arena};
    *out = (AnswerChange){.manifest.entries = ARENA_ARRAY(arena, num, AnswerEntry), .moves = moves};
    for (int i = 0; i < earlier->num_entries; i++)
        TRY(file_state(place(&rules, earlier->entries[i].name), arena, &rules.now[i]));
    rules.root = root_find(&rules);
    TRY(files_decide(&rules, files, num_files, written, moves, out));
    TRY(entries_decide(&rules, moves, out));
    qsort(out->manifest.entries, (size_t)out->manifest.num_entries, sizeof *out->manifest.entries,
          by_name);
    return status_ok();
}
