#include "whatif/journal.h"

#include "base/clock.h"
#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct Journal {
    const char *path; // of whatif.journal
    const char *job;  // NULL: none
    char first[64];   // the first line of a slot's file of this grid
    bool force;
    int fd;           // of path, opened once: to close another one would give the locks back
    int slot, own_fd; // of this process's lines
    int num_slots;    // seen so far
    off_t read_to[JOURNAL_MAX_SLOTS]; // what was visited
    double synced_s;                  // when own_fd last was
    Arena *arena;
};

enum { HEADER_BYTES = 512, MAX_TRIES = 100, PIECE_BYTES = 8 << 20 };
static const double SYNC_EVERY_S = 1;

static Status file_error(const char *path, const char *what) {
    return status_at(folder_write_failure(errno), path, "", "cannot be %s: %s", what,
                     strerror(errno));
}

// --- Locks

static int bytes_lock(int fd, off_t first, off_t num, short type, bool waits) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = num};
    int result;
    do result = fcntl(fd, waits ? F_SETLKW : F_SETLK, &lock);
    while (result != 0 && errno == EINTR);
    return result;
}

static int byte_lock(int fd, off_t byte, short type, bool waits) {
    return bytes_lock(fd, byte, 1, type, waits);
}

bool journal_claim(Journal *journal, int64_t block) {
    return byte_lock(journal->fd, JOURNAL_BLOCKS + (off_t)block, F_WRLCK, false) == 0;
}

void journal_release(Journal *journal, int64_t block) {
    byte_lock(journal->fd, JOURNAL_BLOCKS + (off_t)block, F_UNLCK, false);
}

// --- Files of slots

static const char *slot_path(const Journal *journal, int slot, char *path, size_t size) {
    snprintf(path, size, "%s.%d", journal->path, slot);
    return path;
}

typedef enum {
    SLOT_NONE,   // there is no such file
    SLOT_BEGUN,  // it was cut off within its first line
    SLOT_OWN,    // of this grid
    SLOT_OTHER,  // of another grid
    SLOT_FOREIGN // no slot's file
} SlotKind;

static const char FIRST_FORMAT[] = "meshwright whatif 2 points of %016" PRIx64 "\n";
static const char FIRST_WORDS[] = "meshwright whatif 2 points of ";

static SlotKind slot_kind(const Journal *journal, int fd) {
    char text[sizeof journal->first] = "";
    const size_t words = sizeof FIRST_WORDS - 1, whole = strlen(journal->first);
    const ssize_t size = pread(fd, text, whole, 0);
    if (size < 0) return SLOT_FOREIGN;
    if ((size_t)size == whole && strcmp(text, journal->first) == 0) return SLOT_OWN;
    if (strncmp(text, FIRST_WORDS, words < (size_t)size ? words : (size_t)size) != 0)
        return SLOT_FOREIGN;
    return (size_t)size < whole ? SLOT_BEGUN : SLOT_OTHER;
}

static SlotKind slot_look(const Journal *journal, int slot) {
    char path[4200];
    const int fd = open(slot_path(journal, slot, path, sizeof path),
                        O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT ? SLOT_NONE : SLOT_FOREIGN;
    const SlotKind kind = slot_kind(journal, fd);
    close(fd);
    return kind;
}

// Those of slots, of any grid: at least so many of them, and those that follow without a gap.
static void slots_remove(const Journal *journal, int at_least) {
    char path[4200];
    for (int slot = 0; slot < JOURNAL_MAX_SLOTS; slot++) {
        const SlotKind kind = slot_look(journal, slot);
        if (kind == SLOT_NONE && slot >= at_least) return;
        if (kind != SLOT_NONE && kind != SLOT_FOREIGN)
            unlink(slot_path(journal, slot, path, sizeof path));
    }
}

// --- The first line

typedef enum { HEADER_NONE, HEADER_OPEN, HEADER_FINISHED } HeaderKind;

typedef struct {
    HeaderKind kind;
    uint64_t question;
    char job[HEADER_BYTES];
} Header;

static const char OPEN_FORMAT[] = "meshwright whatif 2 question %" SCNx64;
static const char FINISHED_FORMAT[] = "meshwright whatif 2 finished %511s";

static Status header_read(const Journal *journal, Header *out) {
    char text[HEADER_BYTES] = "";
    const ssize_t size = pread(journal->fd, text, sizeof text - 1, 0);
    if (size < 0) return file_error(journal->path, "read");
    *out = (Header){.kind = HEADER_NONE};
    if (sscanf(text, OPEN_FORMAT, &out->question) == 1)
        out->kind = HEADER_OPEN;
    else if (sscanf(text, FINISHED_FORMAT, out->job) == 1)
        out->kind = HEADER_FINISHED;
    else if (size > 0 && !journal->force)
        return status_at(STATUS_INVALID, journal->path, "",
                         "is no journal of a grid; expected another folder, or --force, which "
                         "overwrites it");
    return status_ok();
}

static Status header_write(const Journal *journal, const char *text) {
    const size_t size = strlen(text);
    if (ftruncate(journal->fd, 0) != 0 || pwrite(journal->fd, text, size, 0) != (ssize_t)size ||
        fsync(journal->fd) != 0)
        return file_error(journal->path, "written");
    return status_ok();
}

// Whether the points of another grid may be given up: that is wanted, and nobody adds to them.
static bool may_give_up(const Journal *journal) {
    if (!journal->force || bytes_lock(journal->fd, 1, JOURNAL_MAX_SLOTS, F_WRLCK, false) != 0)
        return false;
    bytes_lock(journal->fd, 1, JOURNAL_MAX_SLOTS, F_UNLCK, false);
    return true;
}

static Status header_start(Journal *journal, uint64_t question, bool *finished) {
    char text[HEADER_BYTES];
    Header header;
    TRY(header_read(journal, &header));
    *finished =
        header.kind == HEADER_FINISHED && journal->job && strcmp(header.job, journal->job) == 0;
    if (*finished) return status_ok();
    if (header.kind == HEADER_OPEN && header.question == question) return status_ok();
    if (header.kind == HEADER_OPEN && !may_give_up(journal))
        return status_at(STATUS_INVALID, journal->path, "",
                         "keeps the points of another grid, which was interrupted or is at work; "
                         "expected the same scenario and options to go on with it, another "
                         "folder, or --force, which gives up points that nobody adds to");
    slots_remove(journal, 0); // of a grid whose first line is gone
    snprintf(text, sizeof text, "meshwright whatif 2 question %016" PRIx64 "\n", question);
    return header_write(journal, text);
}

// --- Slots

// What follows the last newline was torn by the death of who wrote it.
static Status torn_cut(int fd, const char *path) {
    struct stat info;
    if (fstat(fd, &info) != 0) return file_error(path, "read");
    char last[4096];
    off_t end = info.st_size;
    while (end > 0) {
        const off_t size = end < (off_t)sizeof last ? end : (off_t)sizeof last;
        if (pread(fd, last, (size_t)size, end - size) != size) return file_error(path, "read");
        const char *newline = memrchr(last, '\n', (size_t)size);
        if (newline) {
            end += newline + 1 - (last + size);
            break;
        }
        end -= size;
    }
    if (end < info.st_size && ftruncate(fd, end) != 0) return file_error(path, "written");
    return status_ok();
}

// Makes the slot's file one of this grid, whose last line is whole.
static Status slot_begin(Journal *journal, const char *path) {
    const SlotKind kind = slot_kind(journal, journal->own_fd);
    const size_t size = strlen(journal->first);
    if (kind == SLOT_OWN) return torn_cut(journal->own_fd, path);
    if (kind == SLOT_FOREIGN && !journal->force)
        return status_at(STATUS_INVALID, path, "",
                         "holds no points of a grid; expected another folder, or --force, which "
                         "overwrites it");
    if (ftruncate(journal->own_fd, 0) != 0 ||
        write(journal->own_fd, journal->first, size) != (ssize_t)size)
        return file_error(path, "written");
    return status_ok();
}

static Status slot_take(Journal *journal) {
    char path[4200];
    for (int slot = 0; slot < JOURNAL_MAX_SLOTS; slot++) {
        if (byte_lock(journal->fd, 1 + slot, F_WRLCK, false) != 0) {
            if (errno == EACCES || errno == EAGAIN) continue;
            return file_error(journal->path, "locked");
        }
        journal->slot = slot;
        slot_path(journal, slot, path, sizeof path);
        journal->own_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (journal->own_fd < 0) return file_error(path, "written");
        return slot_begin(journal, path);
    }
    return status_at(STATUS_MACHINE, journal->path, "", "more than %d processes work on it",
                     JOURNAL_MAX_SLOTS);
}

// --- Opening

static void journal_close(void *thing) {
    Journal *journal = thing;
    if (journal->own_fd >= 0) close(journal->own_fd);
    if (journal->fd >= 0) close(journal->fd); // gives all locks back
}

// Opens the file with byte 0 locked. Between both another process may have removed it.
static Status file_open(Journal *journal) {
    for (int i = 0; i < MAX_TRIES; i++) {
        journal->fd = open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (journal->fd < 0) return file_error(journal->path, "written");
        if (byte_lock(journal->fd, 0, F_WRLCK, true) != 0)
            return file_error(journal->path, "locked");
        struct stat info;
        const bool known = fstat(journal->fd, &info) == 0;
        if (known && !S_ISREG(info.st_mode))
            return status_at(STATUS_INVALID, journal->path, "",
                             "cannot be written: it is not a regular file");
        if (known && info.st_nlink > 0) return status_ok();
        close(journal->fd);
    }
    return status_at(STATUS_MACHINE, journal->path, "",
                     "cannot be kept: it is removed all the time");
}

Status journal_open(const JournalSpec *spec, Arena *arena, Journal **out, bool *finished) {
    Journal *journal = ARENA_NEW(arena, Journal);
    *journal = (Journal){.path = arena_printf(arena, "%s/whatif.journal", spec->folder),
                         .job = spec->job ? arena_strdup(arena, spec->job) : NULL,
                         .force = spec->force,
                         .fd = -1,
                         .own_fd = -1,
                         .synced_s = clock_now_s(),
                         .arena = arena};
    snprintf(journal->first, sizeof journal->first, FIRST_FORMAT, spec->question);
    arena_own(arena, journal_close, journal);
    TRY(file_open(journal));
    TRY(header_start(journal, spec->question, finished));
    if (*finished) return status_ok();
    TRY(slot_take(journal));
    byte_lock(journal->fd, 0, F_UNLCK, false);
    *out = journal;
    return status_ok();
}

// --- Lines

// Whole lines of a piece of the file.
//   returns  the bytes visited; 0: there is none
static size_t piece_visit(char *text, void (*visit)(void *context, const char *line),
                          void *context) {
    char *line = text;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        visit(context, line);
    }
    return (size_t)(line - text);
}

static Status lines_visit(Journal *journal, int slot, int fd, const char *path,
                          void (*visit)(void *context, const char *line), void *context) {
    off_t *read_to = &journal->read_to[slot];
    struct stat info;
    if (fstat(fd, &info) != 0) return file_error(path, "read");
    if (info.st_size <= *read_to) return status_ok();
    if (*read_to == 0) {
        if (slot_kind(journal, fd) != SLOT_OWN) return status_ok();
        *read_to = (off_t)strlen(journal->first);
    }
    const off_t size = info.st_size - *read_to;
    const size_t room = size < PIECE_BYTES ? (size_t)size : PIECE_BYTES;
    Arena scratch = {0};
    char *text = arena_alloc(&scratch, room + 1);
    ssize_t got = 0;
    size_t visited = 1;
    while (visited > 0 && (got = pread(fd, text, room, *read_to)) > 0) {
        text[got] = '\0';
        visited = piece_visit(text, visit, context);
        *read_to += (off_t)visited;
    }
    Status status = got < 0 ? file_error(path, "read") : status_ok();
    arena_free(&scratch);
    return status;
}

Status journal_read(Journal *journal, void (*visit)(void *context, const char *line),
                    void *context) {
    char path[4200];
    // Lines may have been left by more processes than there are now; slots are taken in order.
    for (int slot = 0; slot < JOURNAL_MAX_SLOTS; slot++) {
        slot_path(journal, slot, path, sizeof path);
        // Opened anew each time: that makes network file systems look at the server.
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 && errno == ENOENT && slot >= journal->num_slots) break;
        if (fd < 0 && errno == ENOENT) continue;
        if (fd < 0) return file_error(path, "read");
        if (slot >= journal->num_slots) journal->num_slots = slot + 1;
        Status status = lines_visit(journal, slot, fd, path, visit, context);
        close(fd);
        TRY(status);
    }
    return status_ok();
}

Status journal_add(Journal *journal, const char *lines) {
    char path[4200];
    const size_t size = strlen(lines);
    size_t done = 0;
    while (done < size) {
        const ssize_t written = write(journal->own_fd, lines + done, size - done);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            return file_error(slot_path(journal, journal->slot, path, sizeof path), "written");
        done += (size_t)written;
    }
    struct stat info;
    if (fstat(journal->own_fd, &info) == 0) journal->read_to[journal->slot] = info.st_size;
    // Another process sees them at once; alone, an interruption may cost a second of work.
    const double time_s = clock_now_s();
    if (journal->num_slots < 2 && time_s - journal->synced_s < SYNC_EVERY_S) return status_ok();
    journal->synced_s = time_s;
    if (fdatasync(journal->own_fd) != 0)
        return file_error(slot_path(journal, journal->slot, path, sizeof path), "written");
    return status_ok();
}

int journal_num_slots(const Journal *journal) {
    return journal->num_slots;
}

// --- The end

Status journal_answer(Journal *journal, bool *is_mine) {
    byte_lock(journal->fd, 1 + journal->slot, F_UNLCK, false); // this process has read all there is
    if (byte_lock(journal->fd, 0, F_WRLCK, true) != 0) return file_error(journal->path, "locked");
    struct stat info;
    if (fstat(journal->fd, &info) != 0) return file_error(journal->path, "read");
    Header header;
    TRY(header_read(journal, &header));
    *is_mine = info.st_nlink > 0 && header.kind == HEADER_OPEN;
    return status_ok();
}

Status journal_finish(Journal *journal, bool answered) {
    const bool stays = answered && journal->job;
    // Others may still have to read what is removed below.
    if (bytes_lock(journal->fd, 1, JOURNAL_MAX_SLOTS, F_WRLCK, true) != 0)
        return file_error(journal->path, "locked");
    if (stays) {
        const char *text =
            arena_printf(journal->arena, "meshwright whatif 2 finished %s\n", journal->job);
        TRY(header_write(journal, text));
    }
    slots_remove(journal, journal->num_slots);
    if (!stays && unlink(journal->path) != 0) return file_error(journal->path, "removed");
    return status_ok();
}
