#include "runtime/checkpoint.h"

#include "base/json.h"
#include "runtime/checkpoint_folder.h"
#include "runtime/checksum.h"
#include "runtime/global_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const GlobalKind KINDS[CHECKPOINT_NUM_FILES] = {GLOBAL_MASTERS, GLOBAL_MOMENT,
                                                       GLOBAL_VARIANCE};
static const char HEAD[] = "checkpoint.json";

static int num_files(const Rank *rank) {
    const bool adam = rank->scenario->training.optimizer == OPTIMIZER_ADAM;
    return adam ? CHECKPOINT_NUM_FILES : CHECKPOINT_NUM_FILES - 1;
}

// Of all numbers and their order.
static Status file_checksum(const char *path, int64_t elements, char text[CHECKSUM_SIZE]) {
    char piece[1 << 16]; // whole words
    uint64_t sum = 0;
    struct stat is;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &is) != 0) {
        const int error = errno;
        if (file) fclose(file);
        return status_error(STATUS_INVALID, "%s: %s", path, strerror(error));
    }
    for (size_t num; (num = fread(piece, 1, sizeof piece, file)) > 0;)
        sum = checksum_add(sum, piece, num);
    const bool good = !ferror(file);
    const int error = errno;
    fclose(file);
    if (!good) return status_error(STATUS_MACHINE, "%s: cannot be read: %s", path, strerror(error));
    if (is.st_size != elements * (int64_t)sizeof(double))
        return status_error(STATUS_INVALID,
                            "%s: %lld bytes, expected %lld: the checkpoint is truncated or of "
                            "another model",
                            path, (long long)is.st_size,
                            (long long)(elements * (int64_t)sizeof(double)));
    checksum_print(sum, text);
    return status_ok();
}

// --- Saving

// Whether all processes are well; waits for all. Of the failure of another it has no sentence.
static Status agree(const Rank *rank, Status own) {
    double failures = own.code != STATUS_OK;
    const Status status = rank_reduce(rank, &failures, 1, REDUCE_SUM);
    TRY(own);
    TRY(status);
    return failures == 0 ? status_ok() : (Status){.code = STATUS_MACHINE};
}

static Status head_write(const Rank *rank, const char *folder, const CheckpointHead *head) {
    char path[CHECKPOINT_PATH_SIZE], checksum[CHECKSUM_SIZE];
    cJSON *tree = checkpoint_head_tree(rank->scenario, head);
    cJSON *checksums = cJSON_AddArrayToObject(tree, "checksums");
    Status status = status_ok();
    for (int i = 0; i < num_files(rank) && status.code == STATUS_OK; i++) {
        checkpoint_path(path, folder, ".new", CHECKPOINT_FILES[i]);
        status = file_checksum(path, head->elements, checksum);
        cJSON_AddItemToArray(checksums, cJSON_CreateString(checksum));
    }
    checkpoint_path(path, folder, ".new", HEAD);
    if (status.code == STATUS_OK) status = checkpoint_head_write(tree, path);
    cJSON_Delete(tree);
    return status;
}

Status checkpoint_check_model(const Scenario *scenario, const char *folder, Arena *arena) {
    char path[CHECKPOINT_PATH_SIZE];
    JsonNode root;
    checkpoint_path(path, checkpoint_folder_find(folder, arena), "", HEAD);
    if (access(path, F_OK) != 0) return status_ok();
    TRY(checkpoint_head_open(arena_strdup(arena, path), arena, &root));
    return checkpoint_head_check_model(scenario, &root, arena);
}

static Status files_write(const Rank *rank, const char *folder) {
    for (int i = 0; i < num_files(rank); i++) {
        char path[CHECKPOINT_PATH_SIZE];
        checkpoint_path(path, folder, ".new", CHECKPOINT_FILES[i]);
        TRY(global_file_write(rank, path, KINDS[i]));
    }
    return status_ok();
}

// Who failed says why, and all wait for that: a process that ends takes the others with it. The
// answer has no sentence left to say.
static Status failed_speaks(const Rank *rank, Status own) {
    double met = 0;
    if (own.code != STATUS_OK) fprintf(stderr, "%s\n", own.text);
    fflush(stderr);
    TRY(rank_reduce(rank, &met, 1, REDUCE_SUM));
    return (Status){.code = own.code == STATUS_OK ? STATUS_MACHINE : own.code};
}

// The first has tidied up before anyone fails.
Status checkpoint_save(const Rank *rank, const char *folder, const TrainedOn *on, int64_t step) {
    const bool first = rank->world->rank == 0;
    const CheckpointHead head = {
        .elements = model_parameter_elements(rank->scenario, rank->plan), .step = step, .on = *on};
    Status own = first ? checkpoint_folder_make(folder) : status_ok();
    Status all = agree(rank, own);
    if (all.code == STATUS_OK) {
        own = files_write(rank, folder);
        all = agree(rank, own);
    }
    const bool whole = all.code == STATUS_OK;
    if (first && whole) own = head_write(rank, folder, &head);
    if (first && whole && own.code == STATUS_OK)
        own = checkpoint_folder_replace(folder);
    else if (first)
        checkpoint_folder_drop(folder);
    all = agree(rank, whole ? own : all);
    return all.code == STATUS_OK ? all : failed_speaks(rank, own);
}

// --- Loading

static Status checksums_check(const Rank *rank, const char *folder, const JsonNode *root,
                              int64_t elements, Arena *arena) {
    const JsonNode list = json_get(root, "checksums");
    TRY(json_expect_array(&list));
    if (json_size(&list) != num_files(rank))
        return json_error(&list, "%d files, expected %d: it is of another optimizer",
                          json_size(&list), num_files(rank));
    for (int i = 0; i < num_files(rank); i++) {
        char path[CHECKPOINT_PATH_SIZE], found[CHECKSUM_SIZE];
        const char *expected;
        const JsonNode node = json_at(&list, i);
        TRY(json_read_string(&node, arena, &expected));
        checkpoint_path(path, folder, "", CHECKPOINT_FILES[i]);
        TRY(file_checksum(path, elements, found));
        if (strcmp(expected, found) != 0)
            return status_error(STATUS_INVALID,
                                "%s: its checksum is %s, expected %s: the checkpoint is damaged",
                                path, found, expected);
    }
    return status_ok();
}

static void data_print(const DataMark *data) {
    if (!data->name)
        fprintf(stderr, "made-up tokens");
    else
        fprintf(stderr, "%s (%lld bytes, checksum %s)", data->name, (long long)data->num_bytes,
                data->checksum);
}

// The name of a text may be another; what it says decides.
static void data_compare(const char *folder, const DataMark *saved, const DataMark *now) {
    if (saved->num_bytes == now->num_bytes && strcmp(saved->checksum, now->checksum) == 0) return;
    fprintf(stderr, "%s: was trained on ", folder);
    data_print(saved);
    fprintf(stderr, "; goes on with ");
    data_print(now);
    fprintf(stderr, "\n");
}

// A step's number says which sequences come next: with others of them some come again or never.
static void steps_compare(const char *folder, const TrainedOn *saved, const TrainedOn *now) {
    if (saved->seq_len == now->seq_len && saved->global_batch == now->global_batch) return;
    fprintf(stderr,
            "%s: was trained with %lld sequences of %lld a step; goes on with %lld of %lld\n",
            folder, (long long)saved->global_batch, (long long)saved->seq_len,
            (long long)now->global_batch, (long long)now->seq_len);
}

Status checkpoint_load(const Rank *rank, const char *folder, const TrainedOn *on, Arena *arena,
                       int64_t *step) {
    char path[CHECKPOINT_PATH_SIZE];
    JsonNode root;
    CheckpointHead head = {.elements = model_parameter_elements(rank->scenario, rank->plan),
                           .on = *on};
    const bool first = rank->world->rank == 0;
    const char *found = checkpoint_folder_find(folder, arena);
    if (first && found != folder)
        fprintf(stderr, "%s: is not there; goes on with %s, which was about to be replaced\n",
                folder, found);
    checkpoint_path(path, found, "", HEAD);
    TRY(checkpoint_head_open(arena_strdup(arena, path), arena, &root));
    TRY(checkpoint_head_read(rank->scenario, &root, arena, &head));
    TRY(checksums_check(rank, found, &root, head.elements, arena));
    if (first) data_compare(folder, &head.on.data, &on->data);
    if (first) steps_compare(folder, &head.on, on);
    for (int i = 0; i < num_files(rank); i++) {
        checkpoint_path(path, found, "", CHECKPOINT_FILES[i]);
        TRY(global_file_read(rank, path, KINDS[i]));
    }
    checkpoint_path(path, found, "", CHECKPOINT_FILES[0]);
    *step = head.step;
    return global_file_read(rank, path, GLOBAL_WEIGHTS);
}
