// What a rank holds on its way between two chunks.
#include "costmodel/memory/held_messages.h"

#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#define TRAINING "{\"seq_len\": 1024, \"global_batch\": 8}"
static const char *const INTERLEAVED = "{\"pp\": 2, \"vpp\": 2}"; // rank 0 has chunks 0 and 2

// A case, and what its rank 0 or 1 holds at the start, messages beside the compute or not.
static HeldMessages *start(Case *c, const char *parallel, int rank, bool beside,
                           HeldMessages *messages) {
    if (!case_make(c, MADE_UP_MOE, 8, TRAINING, parallel)) return NULL;
    c->scenario.execution.stack.communication.p2p_overlap = beside;
    return held_messages(&c->scenario, &c->plan, &c->workload, rank, &c->arena, messages);
}

static void run(HeldMessages *m, int chunk, WorkKind kind) {
    message_take(m, chunk, kind);
    message_make(m, chunk, kind);
}

// A micro-batch arrives and is read; the first chunk of a model reads none.
static void arrivals_are_held_until_they_are_read(void) {
    Case c;
    HeldMessages messages, *m = start(&c, INTERLEAVED, 0, true, &messages);
    if (m) {
        message_receive(m, 0, WORK_FORWARD);
        CU_ASSERT_EQUAL(m->num_held, 0);
        message_receive(m, 2, WORK_FORWARD);
        CU_ASSERT_EQUAL(m->num_held, 1);
        CU_ASSERT_EQUAL(held_messages_bytes(m), 1024 * 1024 * 2);
        message_take(m, 2, WORK_FORWARD);
        CU_ASSERT_EQUAL(m->num_held, 0);
    }
    case_free(&c);
}

// The second one to leave shows that the first has.
static void what_was_sent_last_is_held_until_the_next_leaves(void) {
    Case c;
    HeldMessages messages, *m = start(&c, INTERLEAVED, 0, true, &messages);
    if (m) {
        run(m, 0, WORK_FORWARD);
        message_send(m, 0, WORK_FORWARD);
        CU_ASSERT_EQUAL(m->num_held, 1);
        run(m, 0, WORK_FORWARD);
        CU_ASSERT_EQUAL(m->num_held, 2);
        message_send(m, 0, WORK_FORWARD);
        CU_ASSERT_EQUAL(m->num_held, 1);
    }
    case_free(&c);
}

// A forward and a backward that run together send once, and are held together.
static void a_pair_leaves_together(void) {
    Case c;
    HeldMessages messages, *m = start(&c, INTERLEAVED, 0, true, &messages);
    if (m) {
        run(m, 0, WORK_FORWARD);
        message_receive(m, 2, WORK_BACKWARD);
        run(m, 2, WORK_BACKWARD);
        message_send(m, 0, WORK_FORWARD);
        message_send(m, 2, WORK_BACKWARD);
        CU_ASSERT_EQUAL(m->num_held, 2);
        run(m, 0, WORK_FORWARD);
        message_send(m, 0, WORK_FORWARD);
        CU_ASSERT_EQUAL(m->num_held, 1);
    }
    case_free(&c);
}

static void blocking_messages_are_gone_when_sent(void) {
    Case c;
    HeldMessages messages, *m = start(&c, INTERLEAVED, 0, false, &messages);
    if (m) {
        run(m, 0, WORK_FORWARD);
        CU_ASSERT_EQUAL(m->num_held, 1);
        message_send(m, 0, WORK_FORWARD);
        CU_ASSERT_EQUAL(m->num_held, 0);
    }
    case_free(&c);
}

// Of a V, rank 1 has chunks 1 and 2: what one makes waits for the other, and is not sent.
static void what_is_handed_on_waits_for_its_chunk(void) {
    Case c;
    HeldMessages messages,
        *m = start(&c, "{\"pp\": 2, \"vpp\": 2, \"schedule\": \"v-half\"}", 1, true, &messages);
    if (m) {
        message_receive(m, 1, WORK_FORWARD);
        run(m, 1, WORK_FORWARD);
        message_send(m, 1, WORK_FORWARD);
        message_receive(m, 2, WORK_FORWARD);
        CU_ASSERT_EQUAL(m->num_held, 1);
        message_take(m, 2, WORK_FORWARD);
        CU_ASSERT_EQUAL(m->num_held, 0);
    }
    case_free(&c);
}

CU_TestInfo held_messages_tests[] = {
    {"arrivals_are_held_until_they_are_read", arrivals_are_held_until_they_are_read},
    {"what_was_sent_last_is_held_until_the_next_leaves",
     what_was_sent_last_is_held_until_the_next_leaves},
    {"a_pair_leaves_together", a_pair_leaves_together},
    {"blocking_messages_are_gone_when_sent", blocking_messages_are_gone_when_sent},
    {"what_is_handed_on_waits_for_its_chunk", what_is_handed_on_waits_for_its_chunk},
    CU_TEST_INFO_NULL,
};
