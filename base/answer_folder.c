#include "base/answer_folder.h"

#include "base/answer_rules.h"
#include "base/output_file.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

static const char *manifest_path(const char *folder, Arena *arena) {
    return arena_printf(arena, "%s/.meshwright.json", folder);
}

static Status names_check(const AnswerSpec *spec, const char *const *names, Arena *arena) {
    AnswerManifest earlier;
    AnswerChange change;
    int num = 0;
    while (names[num]) num++;
    AnswerFile *files = ARENA_ARRAY(arena, num, AnswerFile);
    TRY(commit_settle(spec->folder, spec->force, arena));
    TRY(manifest_read(manifest_path(spec->folder, arena), arena, &earlier));
    for (int i = 0; i < num; i++)
        files[i] = (AnswerFile){.name = names[i], .part = spec->parts[0].name};
    return answer_rules(spec, &earlier, files, num, false, arena, &change);
}

Status answer_folder_check(const AnswerSpec *spec, const char *const *names, Arena *arena) {
    FolderLock lock;
    TRY(folder_check(spec->folder));
    if (access(spec->folder, F_OK) != 0) return status_ok();
    TRY(folder_lock(spec->folder, arena, &lock)); // or files might be on their way to their places
    const Status status = names_check(spec, names, arena);
    folder_unlock(&lock);
    return status;
}

// --- Opening

static void folder_leave(AnswerFolder *folder) {
    if (folder->lock.path) commit_discard(folder->spec.folder, folder->arena);
    folder_unlock(&folder->lock);
}

static Status folder_enter(AnswerFolder *folder) {
    const char *path = folder->spec.folder;
    TRY(folder_make(path, folder->arena, &folder->made));
    TRY(folder_lock(path, folder->arena, &folder->lock));
    TRY(commit_settle(path, folder->spec.force, folder->arena));
    return commit_begin(path, folder->arena);
}

// Back to what was before it was opened.
static void folder_abandon(AnswerFolder *folder) {
    folder_leave(folder);
    folder_unmake(&folder->made);
    output_release_signals(&folder->before);
}

Status answer_folder_open(const AnswerSpec *spec, Arena *arena, AnswerFolder *out) {
    *out = (AnswerFolder){.spec = *spec, .arena = arena};
    output_hold_signals(&out->before); // before there is anything that they would leave
    const Status status = folder_enter(out);
    if (status.code != STATUS_OK) folder_abandon(out);
    return status;
}

const char *answer_folder_path(AnswerFolder *folder, const char *name, const char *part) {
    const char *path = commit_path(folder->spec.folder, name, folder->arena);
    for (int i = 0; i < folder->num_files; i++)
        if (strcmp(folder->files[i].name, name) == 0) return path;
    assert(manifest_name_is_legal(name));
    if (folder->num_files == folder->capacity) {
        folder->capacity = folder->capacity ? 2 * folder->capacity : 16;
        folder->files = arena_grow(folder->arena, folder->files,
                                   (size_t)folder->capacity * sizeof *folder->files);
    }
    folder->files[folder->num_files++] =
        (AnswerFile){.name = arena_strdup(folder->arena, name), .part = part};
    return path;
}

// --- Closing

// The manifest says the same of the same files already.
static bool nothing_changes(const AnswerManifest *earlier, const AnswerChange *change) {
    if (change->num_moves > 0 || earlier->num_entries != change->manifest.num_entries) return false;
    for (int i = 0; i < earlier->num_entries; i++) {
        const AnswerEntry *a = &earlier->entries[i], *b = &change->manifest.entries[i];
        if (strcmp(a->name, b->name) != 0 || strcmp(a->part, b->part) != 0 ||
            strcmp(a->answer, b->answer) != 0 || strcmp(a->root, b->root) != 0 ||
            !file_state_same(&a->state, &b->state))
            return false;
    }
    return true;
}

static void removed_note(AnswerFolder *folder, const AnswerChange *change) {
    const char **names = ARENA_ARRAY(folder->arena, change->num_moves, const char *);
    for (int i = 0; i < change->num_moves; i++)
        if (!change->moves[i].comes) names[folder->num_removed++] = change->moves[i].name;
    folder->removed = names;
}

static Status folder_commit(AnswerFolder *folder) {
    Arena *arena = folder->arena;
    const char *path = folder->spec.folder;
    AnswerManifest earlier;
    AnswerChange change;
    TRY(manifest_read(manifest_path(path, arena), arena, &earlier));
    for (int i = 0; i < folder->num_files; i++) {
        AnswerFile *file = &folder->files[i];
        TRY(file_state(commit_path(path, file->name, arena), arena, &file->next));
    }
    TRY(answer_rules(&folder->spec, &earlier, folder->files, folder->num_files, true, arena,
                     &change));
    if (nothing_changes(&earlier, &change)) return status_ok();
    if (output_interrupted()) return status_error(STATUS_MACHINE, "interrupted: no answer");
    TRY(commit_run(path, change.moves, change.num_moves, &change.manifest, arena));
    removed_note(folder, &change);
    return status_ok();
}

Status answer_folder_close(AnswerFolder *folder, Status status) {
    if (status.code == STATUS_OK) status = folder_commit(folder);
    commit_clean_text(status.text);
    if (status.code != STATUS_OK) {
        folder_abandon(folder);
        return status;
    }
    folder_leave(folder);
    output_release_signals(&folder->before);
    return status;
}

bool answer_folder_unchanged(const AnswerFolder *folder, const char *name) {
    for (int i = 0; i < folder->num_files; i++)
        if (strcmp(folder->files[i].name, name) == 0) return folder->files[i].unchanged;
    return false;
}

// --- Files that are written by themselves

static Status entry_renew(const char *folder, const char *name, const char *path, Arena *arena) {
    AnswerManifest manifest;
    const char *list = manifest_path(folder, arena);
    TRY(manifest_read(list, arena, &manifest));
    for (int i = 0; i < manifest.num_entries; i++) {
        AnswerEntry *entry = &manifest.entries[i];
        if (strcmp(entry->name, name) != 0) continue;
        TRY(file_state(path, arena, &entry->state));
        return entry->state.regular ? manifest_save(&manifest, list) : status_ok();
    }
    return status_ok();
}

void answer_folder_rewrote(const char *path) {
    Arena arena = {0};
    FolderLock lock = {0};
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *folder = slash ? arena_printf(&arena, "%.*s", (int)(slash - path) + 1, path) : ".";
    // Where this fails the file counts as changed by its user, which is safe.
    if (access(manifest_path(folder, &arena), F_OK) == 0 &&
        folder_lock(folder, &arena, &lock).code == STATUS_OK)
        (void)entry_renew(folder, name, path, &arena);
    folder_unlock(&lock);
    arena_free(&arena);
}
