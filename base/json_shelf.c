#include "base/json_shelf.h"

#include "base/data_dir.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

// Beyond so many files they are read as often as they are asked for.
enum { MAX_FILES = 256 };

typedef struct {
    const char *path;
    JsonNode root;
} ShelvedFile;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // of all below
static atomic_int num_open;
static Arena arena;
static const char *folder; // with a slash at its end
static size_t folder_length;
static ShelvedFile files[MAX_FILES];
static int num_files;

void json_shelf_open(void) {
    pthread_mutex_lock(&mutex);
    if (atomic_load(&num_open) == 0) {
        folder = arena_printf(&arena, "%s/", data_dir(&arena));
        folder_length = strlen(folder);
    }
    atomic_fetch_add(&num_open, 1);
    pthread_mutex_unlock(&mutex);
}

void json_shelf_close(void) {
    pthread_mutex_lock(&mutex);
    if (atomic_fetch_sub(&num_open, 1) == 1) {
        arena_free(&arena);
        num_files = 0;
        folder = NULL;
    }
    pthread_mutex_unlock(&mutex);
}

static const ShelvedFile *file_find(const char *path) {
    for (int i = 0; i < num_files; i++)
        if (strcmp(files[i].path, path) == 0) return &files[i];
    return NULL;
}

bool json_shelf_take(const char *path, Status *status, JsonNode *root) {
    if (atomic_load(&num_open) == 0) return false;
    pthread_mutex_lock(&mutex);
    const ShelvedFile *file = NULL;
    *status = status_ok();
    if (folder && strncmp(path, folder, folder_length) == 0) {
        file = file_find(path);
        if (!file && num_files < MAX_FILES) {
            const char *own = arena_strdup(&arena, path);
            *status = json_read_file(own, &arena, &files[num_files].root);
            files[num_files].path = own;
            file = &files[num_files];
            if (status->code == STATUS_OK) num_files++;
        }
        if (file) *root = file->root;
    }
    pthread_mutex_unlock(&mutex);
    return file != NULL;
}
