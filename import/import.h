// import/import.h - a user's existing command line or configuration as a scenario.
//
// What is read is what the planner prices; what is the user's own (data, learning rate, logging)
// is left out. Nothing is guessed: what the planner cannot model is refused by name, and what
// differs from what will be priced is a note.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "import/shell_words.h"

#include <cjson/cJSON.h>

typedef enum {
    IMPORT_MEGATRON,
    IMPORT_NEMO,
    IMPORT_DEEPSPEED,
    IMPORT_TORCHTITAN,
    NUM_IMPORT_SOURCES
} ImportSource;

extern const char *const IMPORT_SOURCE_NAMES[NUM_IMPORT_SOURCES + 1]; // ends with NULL

enum { IMPORT_MAX_SETTINGS = 32 };

// What a file does not say.
typedef struct {
    const char *cluster; // "NAME:NODES", or "NAME" where the file says how many nodes
    int vocab_size;      // 0: as the file says
    Setting settings[IMPORT_MAX_SETTINGS]; // the environment of a script
    int num_settings;
} ImportOptions;

enum { IMPORT_MAX_NOTES = 64 };

typedef struct {
    Arena *arena;
    const char *file;
    cJSON *scenario;                     // lives as long as the arena
    const char *notes[IMPORT_MAX_NOTES]; // sentences: what was left out or is priced otherwise
    int num_notes;
    const Undecided *undecided; // [num_undecided] variables of a script
    int num_undecided;
    const Document *documents; // [num_documents] files that a script writes
    int num_documents;
    int num_ranks; // that the file starts; 0: it does not say
    // Of comments that launch wrote (import/plan_lines_read.h)
    int idle_gpus, idle_of; // so many of so many GPUs run no rank; 0: all do
    cJSON *placement;       // NULL: nodes run ranks in their own order
    // How the file calls a flag of Megatron-LM, for what is said; NULL: as Megatron-LM does.
    const char *(*spell)(const char *flag, Arena *arena);
} Imported;

// Reads a file ("-" is standard input). The scenario has a complete `parallel`, without what
// follows from the rest; it is legal, but need not fit. What the software lacks at the version of
// its rules (config/software/rules.h) is a note with the rule and its source.
//   returns  STATUS_INVALID: "FILE: FLAG: ..." for what is missing, contradicts itself or cannot be
//            modelled; "FILE: KEY: ... (rule ...)" for what ends the software with an error
Status import_file(ImportSource source, const char *path, const ImportOptions *options,
                   Arena *arena, Imported *out);

// The sources. text ends with a NUL; out->scenario is an empty object.
Status import_megatron(const char *text, const ImportOptions *options, Imported *out);
Status import_nemo(const char *text, const ImportOptions *options, Imported *out);
Status import_deepspeed(const char *text, const ImportOptions *options, Imported *out);
Status import_torchtitan(const char *text, const ImportOptions *options, Imported *out);

void import_note(Imported *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Names that a note lists: as many as have room, and how many more there are. A file of a megabyte
// may have tens of thousands.
typedef struct {
    char text[400];
    size_t length;
    int num_left_out;
} NoteNames; // zero-initialise

// Adds FIRST and SECOND in one piece; a name of more than 200 bytes is cut off.
void note_names_add(NoteNames *names, const char *first, const char *second);

// "A, B", "A, B and 7 more", or "" where there are none.
const char *note_names_text(const NoteNames *names, Arena *arena);

// A refusal at a flag or key.
Status import_refuse(const Imported *out, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Adds "cluster": of NAME:NODES, or NAME with as many nodes as the file says; num_nodes 0: it does
// not. *num_gpus is the number of GPUs.
Status import_cluster(Imported *out, const ImportOptions *options, int num_nodes, int *num_gpus);
