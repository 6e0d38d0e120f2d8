#include "base/share.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

typedef struct {
    void (*work)(void *context, int worker, int item);
    void *context;
    int num_items;
    atomic_int next_item, next_worker;
} Share;

static void *share_run(void *argument) {
    Share *share = argument;
    int worker = atomic_fetch_add(&share->next_worker, 1);
    for (;;) {
        int item = atomic_fetch_add(&share->next_item, 1);
        if (item >= share->num_items) return NULL;
        share->work(share->context, worker, item);
    }
}

void share_work(int num_items, int num_threads, void (*work)(void *context, int worker, int item),
                void *context) {
    Share share = {.work = work, .context = context, .num_items = num_items};
    pthread_t threads[SHARE_MAX_WORKERS - 1];
    int num_started = 0, num_wanted = num_threads < num_items ? num_threads - 1 : num_items - 1;
    if (num_wanted > SHARE_MAX_WORKERS - 1) num_wanted = SHARE_MAX_WORKERS - 1;
    while (num_started < num_wanted &&
           pthread_create(&threads[num_started], NULL, share_run, &share) == 0)
        num_started++;
    share_run(&share);
    for (int i = 0; i < num_started; i++) pthread_join(threads[i], NULL);
}
