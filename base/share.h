// base/share.h - independent pieces of work shared by threads.
#pragma once

enum { SHARE_MAX_WORKERS = 64 };

// Calls work(context, worker, item) once for each item of [0, num_items), on up to num_threads
// threads, the calling one among them. Which thread takes which item is not determined: a piece
// may write only what is its own, or its worker's (0 .. SHARE_MAX_WORKERS - 1). Where no thread
// can be started the calling one does it all.
void share_work(int num_items, int num_threads, void (*work)(void *context, int worker, int item),
                void *context);
