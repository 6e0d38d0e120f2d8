#include "profiler/result_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

// What an open file or folder is held by goes with it.
static Status hold(int fd, const char *path) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return status_ok();
    if (errno != EWOULDBLOCK) return status_ok(); // a file system without
    return status_at(
        STATUS_MACHINE, path, "",
        "another program measures into it; wait for its end, or choose another folder");
}

Status result_folder_hold(const char *folder, int *held) {
    *held = open(folder, O_RDONLY | O_CLOEXEC);
    if (*held < 0)
        return status_at(STATUS_MACHINE, folder, "", "cannot be read: %s", strerror(errno));
    return hold(*held, folder);
}

void result_folder_release(int held) {
    if (held >= 0) close(held);
}

static int num_cells(const char *line) {
    int n = 1;
    for (; *line; line++) n += *line == ',';
    return n;
}

// The first num_keys cells of a line, or all where it has no more.
static const char *key_of(const char *line, int num_keys, Arena *arena) {
    const char *end = line;
    for (int i = 0; *end; end++)
        if (*end == ',' && ++i == num_keys) break;
    return arena_printf(arena, "%.*s", (int)(end - line), line);
}

static void add_key(ResultFile *file, const char *key) {
    if (file->num_rows == file->capacity) {
        file->capacity = file->capacity ? 2 * file->capacity : 64;
        file->keys =
            arena_grow(file->arena, file->keys, (size_t)file->capacity * sizeof *file->keys);
    }
    file->keys[file->num_rows++] = key;
}

// What the file holds, with a NUL behind it.
static Status read_all(ResultFile *file, char **text, size_t *size) {
    if (fseek(file->stream, 0, SEEK_END) != 0)
        return status_at(STATUS_MACHINE, file->path, "", "cannot be read: %s", strerror(errno));
    long length = ftell(file->stream);
    rewind(file->stream);
    *size = length > 0 ? (size_t)length : 0;
    *text = arena_alloc(file->arena, *size + 1);
    if (fread(*text, 1, *size, file->stream) != *size)
        return status_at(STATUS_MACHINE, file->path, "", "cannot be read");
    if (memchr(*text, '\0', *size))
        return status_at(STATUS_INVALID, file->path, "", "holds a NUL byte; expected a CSV text");
    return status_ok();
}

// The rows behind the header.
static Status read_rows(ResultFile *file, char *text) {
    int row = 1;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), row++) {
        if (row == 1) continue;
        if (num_cells(line) != file->num_columns)
            return status_at(STATUS_INVALID, file->path, "",
                             "row %d: %d cells; the header names %d columns", row, num_cells(line),
                             file->num_columns);
        add_key(file, key_of(line, file->num_keys, file->arena));
    }
    return status_ok();
}

static Status write_line(ResultFile *file, const char *a, const char *join, const char *b) {
    if (fprintf(file->stream, "%s%s%s\n", a, join, b) < 0 || fflush(file->stream) != 0)
        return status_at(STATUS_MACHINE, file->path, "", "cannot be written: %s", strerror(errno));
    return status_ok();
}

// Whose file it is, and its rows; changes nothing. *size is where its last whole line ends.
static Status content_read(ResultFile *file, const char *header, size_t *size) {
    char *text = NULL;
    TRY(read_all(file, &text, size));
    size_t first = strcspn(text, "\n"), whole = *size;
    // A header that was cut off is the beginning of ours; anything else is somebody's file.
    bool cut_off = first == *size;
    if (strncmp(text, header, first) != 0 || (!cut_off && first != strlen(header)))
        return status_at(STATUS_INVALID, file->path, "",
                         "row 1: the header is \"%.*s\"; expected \"%.200s\": choose another "
                         "folder",
                         first < 200 ? (int)first : 200, text, header);
    while (whole > 0 && text[whole - 1] != '\n') whole--;
    file->torn = whole < *size;
    text[whole] = '\0';
    *size = whole;
    return read_rows(file, text);
}

// Removes what follows the last line end: a row that was not written to its end.
static Status continue_file(ResultFile *file, const char *header) {
    size_t size = 0;
    TRY(content_read(file, header, &size));
    if (file->torn && ftruncate(fileno(file->stream), (off_t)size) != 0)
        return status_at(STATUS_MACHINE, file->path, "", "cannot be cut to its last whole row: %s",
                         strerror(errno));
    if (fseek(file->stream, 0, SEEK_END) != 0)
        return status_at(STATUS_MACHINE, file->path, "", "cannot be written: %s", strerror(errno));
    return size == 0 ? write_line(file, header, "", "") : status_ok();
}

Status result_file_check(const char *path, const char *header, int num_keys, Arena *arena) {
    ResultFile file = {
        .path = path, .num_columns = num_cells(header), .num_keys = num_keys, .arena = arena};
    if (access(path, F_OK) != 0) return status_ok();
    file.stream = fopen(path, "r+"); // refuses what cannot be written, as a folder
    if (!file.stream)
        return status_at(STATUS_MACHINE, path, "", "cannot be written: %s", strerror(errno));
    size_t size = 0;
    Status status = content_read(&file, header, &size);
    fclose(file.stream);
    return status;
}

Status result_file_open(const char *path, const char *header, int num_keys, Arena *arena,
                        ResultFile *out) {
    *out = (ResultFile){
        .path = path, .num_columns = num_cells(header), .num_keys = num_keys, .arena = arena};
    out->stream = fopen(path, access(path, F_OK) == 0 ? "r+" : "w+");
    if (!out->stream)
        return status_at(STATUS_MACHINE, path, "", "cannot be written: %s", strerror(errno));
    Status status = hold(fileno(out->stream), path);
    if (status.code == STATUS_OK) status = continue_file(out, header);
    if (status.code == STATUS_OK) return status;
    fclose(out->stream);
    out->stream = NULL;
    return status;
}

bool result_file_has(const ResultFile *file, const char *key) {
    for (int i = 0; i < file->num_rows; i++)
        if (strcmp(file->keys[i], key) == 0) return true;
    return false;
}

Status result_file_add(ResultFile *file, const char *key, const char *rest) {
    TRY(write_line(file, key, ",", rest));
    add_key(file, arena_strdup(file->arena, key));
    return status_ok();
}

Status result_file_close(ResultFile *file) {
    if (!file->stream) return status_ok();
    int failed = fclose(file->stream);
    file->stream = NULL;
    if (!failed) return status_ok();
    return status_at(STATUS_MACHINE, file->path, "", "cannot be written: %s", strerror(errno));
}
