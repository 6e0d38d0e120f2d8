// whatif/journal.h - points of a grid that are done, kept in a folder while others are worked on:
// for a process that goes on after an interruption, and for processes that share the work.
//
// Files of the folder, beside the answer:
//   whatif.journal    which grid it is; its bytes are locked, see below
//   whatif.journal.K  a line that says of which grid, then the points that the process with slot K
//                     did, one JSON document a line
// A file of these names that does not begin so is not ours: it is refused, and stays.
// Any number of processes, on any machines that share the folder, may work on one grid: those that
// mpirun or srun starts, or two started by hand. There is no connection between them and none of
// them is special, so any may die. What they agree on are locks (fcntl, F_SETLK) on bytes of
// whatif.journal, which the system gives back when a process dies:
//   byte 0                   who holds it checks and starts the journal, or writes the answer
//   byte 1 + K               slot K is in use
//   byte JOURNAL_BLOCKS + b  the points of block b are being worked on
// A process appends only to its own file, so that no line is torn by another; a line that its own
// death tore has no newline and is not read. Correctness does not depend on the locks: a point that
// is done twice has the same answer twice.
//
// Source: IEEE Std 1003.1-2017, fcntl: advisory record locks; also of network file systems (NFS
//         from version 4 on, Lustre mounted with flock).
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOURNAL_MAX_SLOTS = 4096, JOURNAL_BLOCKS = 8192 };

typedef struct Journal Journal;

typedef struct {
    const char *folder; // exists
    uint64_t question;  // names the grid (whatif_question)
    // Of processes that were started together, without spaces: the answer is given once for all of
    // them, also to those that begin when it is there already. NULL: none.
    const char *job;
    bool force; // gives up the points of another grid that nobody works on, and files of others
} JournalSpec;

// Opens or starts the journal of a grid.
//   finished  set where the job has its answer; there is no journal then
// Refused (STATUS_INVALID) unless forced: a journal of another grid, a file that is no journal.
// Closed with the arena.
Status journal_open(const JournalSpec *spec, Arena *arena, Journal **out, bool *finished);

// Calls visit for every line that is in the journal and was not visited before, but for those that
// this process added. The line ends with a NUL in place of its newline.
Status journal_read(Journal *journal, void (*visit)(void *context, const char *line),
                    void *context);

// Whether this process has block b from now on: no other has.
bool journal_claim(Journal *journal, int64_t block);
void journal_release(Journal *journal, int64_t block);

// Appends whole lines.
Status journal_add(Journal *journal, const char *lines);

// Once all points are known here: waits until no other process writes the answer.
//   is_mine  whether this one has to: none has
Status journal_answer(Journal *journal, bool *is_mine);

// After the answer is written: waits until all processes that live know all points, then removes
// the journal, so that the next grid starts anew. Of a job a line remains that says so to those of
// its processes that begin late.
//   answered  there is one; else nothing remains
Status journal_finish(Journal *journal, bool answered);

// How many processes have worked on it.
int journal_num_slots(const Journal *journal);
