#include "base/answer_commit.h"

#include "base/folder.h"
#include "base/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_MOVES = 20000 };

#define STAGING ".meshwright.next"
static const char MANIFEST[] = ".meshwright.json";

typedef struct {
    const char *folder;
    const AnswerMove *moves;
    int num_moves;
    Arena *arena;
} Commit;

static const char *aside(const char *folder, const char *name, Arena *arena) {
    return arena_printf(arena, "%s/" STAGING "/%s", folder, name);
}

static const char *place(const Commit *commit, const char *name) {
    return arena_printf(commit->arena, "%s/%s", commit->folder, name);
}

static const char *in_new(const Commit *commit, const char *name) {
    return arena_printf(commit->arena, "%s/" STAGING "/new/%s", commit->folder, name);
}

static const char *in_old(const Commit *commit, const char *name) {
    return arena_printf(commit->arena, "%s/" STAGING "/old/%s", commit->folder, name);
}

// What cannot be found out must not be taken for an absence: files would stay out of their places.
static Status look(const char *path, bool *there) {
    struct stat info;
    *there = lstat(path, &info) == 0;
    if (*there || errno == ENOENT) return status_ok();
    return status_at(STATUS_MACHINE, path, "", "cannot be read: %s", strerror(errno));
}

const char *commit_path(const char *folder, const char *name, Arena *arena) {
    return arena_printf(arena, "%s/" STAGING "/new/%s", folder, name);
}

void commit_clean_text(char *text) {
    static const char PART[] = STAGING "/new/";
    for (char *at; (at = strstr(text, PART)) != NULL;)
        memmove(at, at + sizeof PART - 1, strlen(at + sizeof PART - 1) + 1);
}

static Status write_error(const char *path) {
    return status_at(folder_write_failure(errno), path, "", "cannot be written: %s",
                     strerror(errno));
}

// --- What is written aside

static void files_remove(const char *folder, Arena *arena) {
    DIR *stream = opendir(folder);
    for (const struct dirent *entry; stream && (entry = readdir(stream)) != NULL;)
        unlink(arena_printf(arena, "%s/%s", folder, entry->d_name)); // but for folders
    if (stream) closedir(stream);
}

void commit_discard(const char *folder, Arena *arena) {
    static const char *const PARTS[] = {"new", "old", "."};
    bool decided = false; // and not done yet: it is for the next to finish
    if (look(aside(folder, "manifest.json", arena), &decided).code != STATUS_OK || decided) return;
    for (int i = 0; i < 3; i++) {
        const char *part = aside(folder, PARTS[i], arena);
        files_remove(part, arena);
        if (i < 2) rmdir(part);
    }
    rmdir(arena_printf(arena, "%s/" STAGING, folder));
}

Status commit_begin(const char *folder, Arena *arena) {
    const char *const paths[] = {arena_printf(arena, "%s/" STAGING, folder),
                                 aside(folder, "new", arena), aside(folder, "old", arena)};
    for (int i = 0; i < 3; i++)
        if (mkdir(paths[i], 0777) != 0) return write_error(paths[i]);
    return status_ok();
}

// Some file systems have no fsync of folders; there the order of calls is all there is.
static Status path_sync(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return write_error(path);
    const bool good = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
    const int error = errno;
    close(fd);
    errno = error;
    return good ? status_ok() : write_error(path);
}

// --- The list of moves

static const JsonField ROW[] = {
    {.key = "name",
     .kind = JSON_FIELD_STRING,
     .offset = offsetof(AnswerMove, name),
     .required = true},
    {.key = "comes", .kind = JSON_FIELD_BOOL, .offset = offsetof(AnswerMove, comes)},
    {.key = "there", .kind = JSON_FIELD_BOOL, .offset = offsetof(AnswerMove, before.there)},
    {.key = "regular", .kind = JSON_FIELD_BOOL, .offset = offsetof(AnswerMove, before.regular)},
    {.key = "file_bytes",
     .kind = JSON_FIELD_DOUBLE,
     .offset = offsetof(AnswerMove, before.file_bytes),
     .max = 1e18},
    {.key = "fnv1a64", .kind = JSON_FIELD_STRING, .offset = offsetof(AnswerMove, before.hash)},
};

static Status moves_save(const Commit *commit, const char *path) {
    cJSON *tree = cJSON_CreateObject();
    cJSON *rows = cJSON_AddArrayToObject(tree, "moves");
    for (int i = 0; i < commit->num_moves; i++) {
        const AnswerMove *move = &commit->moves[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", move->name);
        cJSON_AddBoolToObject(row, "comes", move->comes);
        cJSON_AddBoolToObject(row, "there", move->before.there);
        cJSON_AddBoolToObject(row, "regular", move->before.regular);
        cJSON_AddNumberToObject(row, "file_bytes", move->before.file_bytes);
        if (move->before.hash) cJSON_AddStringToObject(row, "fnv1a64", move->before.hash);
        cJSON_AddItemToArray(rows, row);
    }
    const Status status = json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}

static Status move_read(const JsonNode *node, Arena *arena, AnswerMove *out) {
    *out = (AnswerMove){0};
    TRY(json_read_object(node, ROW, sizeof ROW / sizeof *ROW, arena, out));
    const bool hashed = out->before.hash != NULL || !out->before.regular;
    if (manifest_name_is_legal(out->name) && hashed) return status_ok();
    return json_error(node, "is no move of an answer's file");
}

static Status moves_read(const char *path, Arena *arena, const AnswerMove **out, int *num_moves) {
    JsonNode root;
    TRY(json_load(path, arena, &root));
    TRY(json_expect_object(&root));
    const JsonNode rows = json_get(&root, "moves");
    TRY(json_expect_array(&rows));
    *num_moves = json_size(&rows);
    if (*num_moves > MAX_MOVES) return json_error(&rows, "more than %d moves", MAX_MOVES);
    AnswerMove *moves = ARENA_ARRAY(arena, *num_moves, AnswerMove);
    for (int i = 0; i < *num_moves; i++) {
        const JsonNode row = json_at(&rows, i);
        TRY(move_read(&row, arena, &moves[i]));
    }
    *out = moves;
    return status_ok();
}

// --- The moves

// Never over a file that has appeared meanwhile, where the file system can see to that.
static bool move_to(const char *from, const char *to) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return false;
    return rename(from, to) == 0;
}

// Whether what is in a file's place is what the list of moves knows of.
static Status place_check(const Commit *commit, const AnswerMove *move, const char *path) {
    FileState now;
    TRY(file_state(path, commit->arena, &now));
    if (move->before.there && !move->before.regular && !now.regular) return status_ok();
    if (file_state_same(&now, &move->before)) return status_ok();
    return status_at(STATUS_INVALID, path, "",
                     "was changed while an answer was written here; expected another place for it, "
                     "or --force, which overwrites it");
}

// Moves the earlier file aside.
//   checks  some time has passed since the list was made
static Status earlier_move(const Commit *commit, const AnswerMove *move, bool checks) {
    const char *path = place(commit, move->name), *old = in_old(commit, move->name);
    bool is_gone, to_come, is_there;
    TRY(look(old, &is_gone));
    TRY(look(in_new(commit, move->name), &to_come));
    TRY(look(path, &is_there));
    if (!is_there || (move->comes ? !to_come : is_gone)) return status_ok();
    if (checks) TRY(place_check(commit, move, path));
    return rename(path, old) == 0 ? status_ok() : write_error(path);
}

static Status new_move(const Commit *commit, const AnswerMove *move) {
    const char *from = in_new(commit, move->name), *to = place(commit, move->name);
    bool to_come;
    TRY(look(from, &to_come));
    if (!move->comes || !to_come || move_to(from, to)) return status_ok();
    return write_error(to);
}

// All of them; what was done before is left out.
//   done  everything is in its place
static Status moves_run(const Commit *commit, bool checks, bool *done) {
    for (int i = 0; i < commit->num_moves; i++)
        TRY(earlier_move(commit, &commit->moves[i], checks));
    for (int i = 0; i < commit->num_moves; i++) TRY(new_move(commit, &commit->moves[i]));
    TRY(path_sync(place(commit, "."))); // the folder itself may be named by a link
    const char *to = place(commit, MANIFEST);
    if (rename(aside(commit->folder, "manifest.json", commit->arena), to) != 0)
        return write_error(to);
    *done = true;
    return path_sync(place(commit, "."));
}

// Takes a new file back, out of its place.
static Status new_undo(const Commit *commit, const AnswerMove *move) {
    const char *own = in_new(commit, move->name), *to = place(commit, move->name);
    bool is_aside, is_there;
    TRY(look(own, &is_aside));
    TRY(look(to, &is_there));
    if (!move->comes || is_aside || !is_there || move_to(to, own)) return status_ok();
    return write_error(own);
}

static Status earlier_undo(const Commit *commit, const AnswerMove *move) {
    const char *old = in_old(commit, move->name), *to = place(commit, move->name);
    bool is_aside;
    TRY(look(old, &is_aside));
    return !is_aside || move_to(old, to) ? status_ok() : write_error(to);
}

// Takes the moves back.
static Status moves_undo(const Commit *commit) {
    for (int i = 0; i < commit->num_moves; i++) TRY(new_undo(commit, &commit->moves[i]));
    for (int i = 0; i < commit->num_moves; i++) TRY(earlier_undo(commit, &commit->moves[i]));
    const char *manifest = aside(commit->folder, "manifest.json", commit->arena);
    return unlink(manifest) == 0 || errno == ENOENT ? status_ok() : write_error(manifest);
}

// --- All

static Status files_sync(const Commit *commit) {
    for (int i = 0; i < commit->num_moves; i++)
        if (commit->moves[i].comes) TRY(path_sync(in_new(commit, commit->moves[i].name)));
    return path_sync(aside(commit->folder, "new", commit->arena));
}

Status commit_run(const char *folder, const AnswerMove *moves, int num_moves,
                  const AnswerManifest *manifest, Arena *arena) {
    const Commit commit = {folder, moves, num_moves, arena};
    const char *list = aside(folder, "moves.json", arena);
    const char *draft = aside(folder, "manifest.new", arena);
    const char *decided = aside(folder, "manifest.json", arena);
    TRY(files_sync(&commit));
    TRY(moves_save(&commit, list));
    TRY(path_sync(list));
    TRY(manifest_save(manifest, draft));
    TRY(path_sync(draft));
    TRY(path_sync(aside(folder, ".", arena)));
    if (rename(draft, decided) != 0) return write_error(decided);
    Status status = path_sync(aside(folder, ".", arena));
    bool done = false;
    if (status.code == STATUS_OK) status = moves_run(&commit, false, &done);
    if (done) return status_ok(); // that is known, if perhaps not that it outlives a power cut
    if (moves_undo(&commit).code == STATUS_OK) return status;
    return status_error(STATUS_MACHINE,
                        "%.400s; the answer is half in its place: the next that is written there "
                        "finishes it",
                        status.text);
}

Status commit_settle(const char *folder, bool force, Arena *arena) {
    struct stat info;
    bool is_there, decided, done = false;
    const char *staging = arena_printf(arena, "%s/" STAGING, folder);
    TRY(look(staging, &is_there));
    if (!is_there || lstat(staging, &info) != 0) return status_ok();
    if (!S_ISDIR(info.st_mode))
        return status_at(STATUS_INVALID, staging, "",
                         "is not a folder; expected none of that name");
    TRY(look(aside(folder, "manifest.json", arena), &decided));
    if (decided) {
        Commit commit = {.folder = folder, .arena = arena};
        TRY(moves_read(aside(folder, "moves.json", arena), arena, &commit.moves,
                       &commit.num_moves));
        TRY(moves_run(&commit, !force, &done));
    }
    commit_discard(folder, arena);
    return status_ok();
}
