#include "planner/harvest/price_shelf.h"

#include "base/arena.h"
#include "planner/harvest/loose_entry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Keys that are on the shelf at once: what threads work on, and what they worked on last.
enum { MAX_TABLES = 16 };

typedef struct {
    LooseShape shape;
    bool known[NUM_GRADIENTS];
    LoosePrice prices[NUM_GRADIENTS];
} Item;

// The prices of one key.
typedef struct {
    char *key;      // NULL: a free place
    int num_makers; // threads that have yet to lay what they make
    bool is_empty;  // nobody has laid anything yet
    int64_t last_use;
    Item **slots; // [num_slots] open addressing; NULL is free
    size_t num_slots, num_items;
    Arena arena;
} Table;

struct PriceShelf {
    pthread_mutex_t mutex; // of all
    pthread_cond_t laid;
    Table tables[MAX_TABLES];
    int64_t clock;
    PriceShelfStats stats;
};

PriceShelf *price_shelf_new(void) {
    PriceShelf *shelf = calloc(1, sizeof *shelf);
    if (!shelf) return NULL;
    pthread_mutex_init(&shelf->mutex, NULL);
    pthread_cond_init(&shelf->laid, NULL);
    return shelf;
}

static void table_free(Table *table) {
    arena_free(&table->arena);
    free(table->slots);
    *table = (Table){0};
}

void price_shelf_free(PriceShelf *shelf) {
    if (!shelf) return;
    for (int i = 0; i < MAX_TABLES; i++) table_free(&shelf->tables[i]);
    pthread_cond_destroy(&shelf->laid);
    pthread_mutex_destroy(&shelf->mutex);
    free(shelf);
}

PriceShelfStats price_shelf_stats(PriceShelf *shelf) {
    pthread_mutex_lock(&shelf->mutex);
    const PriceShelfStats stats = shelf->stats;
    pthread_mutex_unlock(&shelf->mutex);
    return stats;
}

// --- Tables

static Table *table_find(PriceShelf *shelf, const char *key) {
    for (int i = 0; i < MAX_TABLES; i++)
        if (shelf->tables[i].key && strcmp(shelf->tables[i].key, key) == 0)
            return &shelf->tables[i];
    return NULL;
}

// A free place, or that of the key that was asked for longest ago; NULL where all are in use.
static Table *table_new(PriceShelf *shelf, const char *key) {
    Table *oldest = NULL;
    for (int i = 0; i < MAX_TABLES; i++) {
        Table *table = &shelf->tables[i];
        if (table->key && table->num_makers > 0) continue;
        if (!oldest || table->last_use < oldest->last_use) oldest = table;
    }
    if (!oldest) return NULL;
    table_free(oldest);
    oldest->key = arena_strdup(&oldest->arena, key);
    oldest->is_empty = true;
    return oldest;
}

// FNV-1a over the fields.
static size_t shape_hash(const LooseShape *shape) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof *shape; i++)
        hash = (hash ^ ((const unsigned char *)shape)[i]) * 1099511628211u;
    return (size_t)(hash ^ hash >> 32);
}

// The slot of a shape, or the free one where it belongs.
static Item **slot_find(const Table *table, const LooseShape *shape) {
    size_t i = shape_hash(shape) & (table->num_slots - 1);
    while (table->slots[i] && memcmp(&table->slots[i]->shape, shape, sizeof *shape) != 0)
        i = (i + 1) & (table->num_slots - 1);
    return &table->slots[i];
}

// Keeps half of the slots free.
//   returns  false where there is no memory for it
static bool table_grow(Table *table) {
    if (2 * (table->num_items + 1) <= table->num_slots) return true;
    const Table old = *table;
    const size_t num_slots = old.num_slots ? 2 * old.num_slots : 512;
    Item **slots = calloc(num_slots, sizeof(Item *));
    if (!slots) return false;
    table->slots = slots;
    table->num_slots = num_slots;
    for (size_t i = 0; i < old.num_slots; i++)
        if (old.slots[i]) *slot_find(table, &old.slots[i]->shape) = old.slots[i];
    free(old.slots);
    return true;
}

// --- Taking and laying

static void entry_take(PriceShelf *shelf, const Table *table, struct LooseEntry *entry) {
    const Item *item = table->num_slots > 0 ? *slot_find(table, &entry->shape) : NULL;
    for (int i = 0; item && i < NUM_GRADIENTS; i++) {
        if (!item->known[i] || !(entry->wanted[0][i] || entry->wanted[1][i])) continue;
        entry->known[i] = true;
        entry->prices[i] = item->prices[i];
        shelf->stats.num_taken++;
    }
}

bool price_shelf_take(const PriceSource *source, struct LooseEntry *entries, int num_entries) {
    PriceShelf *shelf = source->shelf;
    pthread_mutex_lock(&shelf->mutex);
    Table *table = table_find(shelf, source->key);
    while (table && table->is_empty) {
        pthread_cond_wait(&shelf->laid, &shelf->mutex);
        table = table_find(shelf, source->key);
    }
    if (!table) table = table_new(shelf, source->key);
    if (table) {
        table->num_makers++;
        table->last_use = ++shelf->clock;
        for (int i = 0; i < num_entries; i++) entry_take(shelf, table, &entries[i]);
    }
    pthread_mutex_unlock(&shelf->mutex);
    return table != NULL;
}

static void entry_lay(PriceShelf *shelf, Table *table, const struct LooseEntry *entry) {
    if (!table_grow(table)) return;
    Item **slot = slot_find(table, &entry->shape);
    if (!*slot) {
        *slot = ARENA_NEW(&table->arena, Item);
        (*slot)->shape = entry->shape;
        table->num_items++;
    }
    for (int i = 0; i < NUM_GRADIENTS; i++) {
        if (!entry->known[i] || (*slot)->known[i]) continue;
        (*slot)->known[i] = true;
        (*slot)->prices[i] = entry->prices[i];
        shelf->stats.num_made++;
    }
}

void price_shelf_lay(const PriceSource *source, const struct LooseEntry *entries, int num_entries,
                     bool first) {
    PriceShelf *shelf = source->shelf;
    pthread_mutex_lock(&shelf->mutex);
    Table *table = table_find(shelf, source->key);
    for (int i = 0; table && i < num_entries; i++) entry_lay(shelf, table, &entries[i]);
    if (table && first) {
        table->num_makers--;
        table->is_empty = false;
        pthread_cond_broadcast(&shelf->laid);
    }
    pthread_mutex_unlock(&shelf->mutex);
}
