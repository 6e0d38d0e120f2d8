#include "profiler/cupti/activity_decode.h"

#include "tests/profiler/made_up_buffer.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

static ActivityRecords take(ActivityDecoder *decoder, MadeUpBuffer *buffer) {
    activity_decode(decoder, made_up_next, buffer->bytes, buffer->valid_bytes);
    return activity_decoder_take(decoder);
}

static void every_field_is_read(void) {
    ActivityDecoder decoder = {0};
    MadeUpBuffer buffer = {0};
    made_up_kernel(&buffer, "gemm", 11, 100, 150);
    made_up_copy(&buffer, 12, 200, 260, 4096);
    made_up_set(&buffer, 13, 300, 310, 512);
    made_up_overhead(&buffer, 1000, 1030);
    made_up_overhead(&buffer, 2000, 2005);
    ActivityRecords got = take(&decoder, &buffer);
    CU_ASSERT_EQUAL_FATAL(got.num_records, 3);
    CU_ASSERT_EQUAL(got.num_dropped, 0);
    CU_ASSERT_EQUAL(got.overhead_ns, 35);
    const ActivityRecord *kernel = &got.records[0], *copy = kernel + 1, *set = kernel + 2;
    CU_ASSERT_EQUAL(kernel->kind, ACTIVITY_KERNEL);
    CU_ASSERT_EQUAL(kernel->start_ns, 100);
    CU_ASSERT_EQUAL(kernel->end_ns, 150);
    CU_ASSERT_EQUAL(kernel->tag, 0);
    CU_ASSERT_EQUAL(kernel->correlation_id, 11);
    CU_ASSERT_EQUAL(kernel->device, 1);
    CU_ASSERT_EQUAL(kernel->stream, 7);
    CU_ASSERT_EQUAL(kernel->bytes, 0);
    CU_ASSERT_STRING_EQUAL(kernel->name, "gemm");
    CU_ASSERT_EQUAL(copy->kind, ACTIVITY_COPY);
    CU_ASSERT_EQUAL(copy->bytes, 4096);
    CU_ASSERT_EQUAL(copy->device, 2);
    CU_ASSERT_EQUAL(copy->stream, 8);
    CU_ASSERT_STRING_EQUAL(copy->name, "copy host to device");
    CU_ASSERT_EQUAL(set->kind, ACTIVITY_SET);
    CU_ASSERT_EQUAL(set->bytes, 512);
    CU_ASSERT_EQUAL(set->device, 3);
    CU_ASSERT_EQUAL(set->stream, 9);
    activity_decoder_free(&decoder);
}

// Tag 5 is open, in it 6, then 5 again: CUPTI names the innermost before each call.
static void nested_tags_give_the_innermost(void) {
    ActivityDecoder decoder = {0};
    MadeUpBuffer buffer = {0};
    for (uint32_t call = 1; call <= 3; call++) {
        made_up_tag(&buffer, call, call == 2 ? 6 : 5);
        made_up_call(&buffer, CUPTI_ACTIVITY_KIND_RUNTIME, call, 1, call);
    }
    for (uint32_t call = 1; call <= 4; call++)
        made_up_kernel(&buffer, "k", call, 10 * call, 10 * call + 5);
    ActivityRecords got = take(&decoder, &buffer);
    static const uint64_t EXPECTED[] = {5, 6, 5, 0}; // the fourth was launched outside
    CU_ASSERT_EQUAL_FATAL(got.num_records, 4);
    for (size_t i = 0; i < 4; i++) CU_ASSERT_EQUAL(got.records[i].tag, EXPECTED[i]);
    activity_decoder_free(&decoder);
}

static void tags_of_other_tools_do_not_count(void) {
    ActivityDecoder decoder = {0};
    MadeUpBuffer buffer = {0};
    made_up_tag(&buffer, 1, 9);
    ((CUpti_ActivityExternalCorrelation *)(void *)buffer.bytes)->externalKind =
        CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC;
    made_up_kernel(&buffer, "k", 1, 10, 20);
    ActivityRecords got = take(&decoder, &buffer);
    CU_ASSERT_EQUAL_FATAL(got.num_records, 1);
    CU_ASSERT_EQUAL(got.records[0].tag, 0);
    activity_decoder_free(&decoder);
}

// The later kernels come first, the tag after its kernel and in another buffer.
static void buffers_out_of_order_give_sorted_records(void) {
    ActivityDecoder decoder = {0};
    MadeUpBuffer late = {0}, early = {0};
    made_up_kernel(&late, "b", 2, 50, 60);
    made_up_kernel(&late, "c", 3, 50, 55);
    made_up_kernel(&early, "a", 1, 10, 20);
    made_up_tag(&early, 3, 42);
    activity_decode(&decoder, made_up_next, late.bytes, late.valid_bytes);
    ActivityRecords got = take(&decoder, &early);
    CU_ASSERT_EQUAL_FATAL(got.num_records, 3);
    CU_ASSERT_STRING_EQUAL(got.records[0].name, "a");
    CU_ASSERT_STRING_EQUAL(got.records[1].name, "b");
    CU_ASSERT_STRING_EQUAL(got.records[2].name, "c");
    CU_ASSERT_EQUAL(got.records[1].tag, 0);
    CU_ASSERT_EQUAL(got.records[2].tag, 42);
    activity_decoder_free(&decoder);
}

// Without times a record says nothing; that it is missing has to be known.
static void records_without_times_are_dropped(void) {
    ActivityDecoder decoder = {0};
    MadeUpBuffer buffer = {0};
    made_up_kernel(&buffer, "unfinished", 1, 10, 0);
    made_up_kernel(&buffer, "no memory", 2, 0, 0);
    made_up_kernel(&buffer, "good", 3, 10, 10);
    ActivityRecords got = take(&decoder, &buffer);
    CU_ASSERT_EQUAL(got.num_records, 1);
    CU_ASSERT_EQUAL(got.num_dropped, 2);
    activity_decoder_free(&decoder);
}

static void unknown_kinds_are_skipped(void) {
    ActivityDecoder decoder = {0};
    MadeUpBuffer buffer = {0};
    made_up_other(&buffer);
    made_up_kernel(&buffer, "k", 1, 10, 20);
    made_up_other(&buffer);
    made_up_call(&buffer, CUPTI_ACTIVITY_KIND_DRIVER, 1, 1, 5);
    ActivityRecords got = take(&decoder, &buffer);
    CU_ASSERT_EQUAL(got.num_records, 1);
    CU_ASSERT_EQUAL(got.num_dropped, 0);
    activity_decoder_free(&decoder);
}

// A buffer that ends within a record, at every byte of it, gives the records before.
static void a_truncated_buffer_gives_what_is_whole(void) {
    MadeUpBuffer buffer = {0};
    made_up_kernel(&buffer, "whole", 1, 10, 20);
    size_t first_bytes = buffer.valid_bytes;
    made_up_kernel(&buffer, "cut", 2, 30, 40);
    for (size_t valid = first_bytes; valid < buffer.valid_bytes; valid++) {
        ActivityDecoder decoder = {0};
        activity_decode(&decoder, made_up_next, buffer.bytes, valid);
        ActivityRecords got = activity_decoder_take(&decoder);
        CU_ASSERT_EQUAL(got.num_records, 1);
        activity_decoder_free(&decoder);
    }
}

static void a_broken_record_counts_as_dropped(void) {
    ActivityDecoder decoder = {0};
    MadeUpBuffer buffer = {0};
    made_up_kernel(&buffer, "k", 1, 10, 20);
    buffer.valid_bytes += 64; // kind 0
    ActivityRecords got = take(&decoder, &buffer);
    CU_ASSERT_EQUAL(got.num_records, 1);
    CU_ASSERT_EQUAL(got.num_dropped, 1);
    activity_decoder_free(&decoder);
}

// More than the first tables hold: 20,000 kernels of 3,000 names, every third one tagged, and the
// name's memory changes after its buffer was read.
static void many_records_keep_names_and_tags(void) {
    ActivityDecoder decoder = {0};
    char name[32];
    for (uint32_t i = 0; i < 20000; i++) {
        MadeUpBuffer buffer = {0};
        snprintf(name, sizeof name, "kernel %u", i % 3000);
        if (i % 3 == 0) made_up_tag(&buffer, i, i + 1);
        made_up_kernel(&buffer, name, i, i + 1, i + 2);
        activity_decode(&decoder, made_up_next, buffer.bytes, buffer.valid_bytes);
    }
    memset(name, 0, sizeof name);
    ActivityRecords got = activity_decoder_take(&decoder);
    CU_ASSERT_EQUAL_FATAL(got.num_records, 20000);
    int num_wrong = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "kernel %u", i % 3000);
        num_wrong += got.records[i].correlation_id != i;
        num_wrong += got.records[i].tag != (i % 3 == 0 ? i + 1 : 0);
        num_wrong += strcmp(got.records[i].name, expected) != 0;
    }
    CU_ASSERT_EQUAL(num_wrong, 0);
    CU_ASSERT_PTR_EQUAL(got.records[0].name, got.records[3000].name); // one copy of each
    activity_decoder_free(&decoder);
}

static void a_take_begins_anew(void) {
    ActivityDecoder decoder = {0};
    MadeUpBuffer first = {0}, second = {0};
    made_up_tag(&first, 1, 5);
    made_up_kernel(&first, "k", 1, 10, 20);
    made_up_overhead(&first, 1, 2);
    made_up_kernel(&second, "k", 1, 30, 40);
    decoder.num_dropped = 3;
    ActivityRecords got = take(&decoder, &first);
    CU_ASSERT_EQUAL(got.num_records, 1);
    CU_ASSERT_EQUAL(got.num_dropped, 3);
    const ActivityRecord *old = got.records;
    activity_decode(&decoder, made_up_next, second.bytes, second.valid_bytes);
    CU_ASSERT_STRING_EQUAL(old->name, "k"); // valid until the next take
    got = activity_decoder_take(&decoder);
    CU_ASSERT_EQUAL_FATAL(got.num_records, 1);
    CU_ASSERT_EQUAL(got.records[0].start_ns, 30);
    CU_ASSERT_EQUAL(got.records[0].tag, 0);
    CU_ASSERT_EQUAL(got.num_dropped, 0);
    CU_ASSERT_EQUAL(got.overhead_ns, 0);
    got = activity_decoder_take(&decoder);
    CU_ASSERT_EQUAL(got.num_records, 0);
    activity_decoder_free(&decoder);
}

CU_TestInfo activity_decode_tests[] = {
    {"every field is read", every_field_is_read},
    {"nested tags give the innermost", nested_tags_give_the_innermost},
    {"tags of other tools do not count", tags_of_other_tools_do_not_count},
    {"buffers out of order give sorted records", buffers_out_of_order_give_sorted_records},
    {"records without times are dropped", records_without_times_are_dropped},
    {"unknown kinds are skipped", unknown_kinds_are_skipped},
    {"a truncated buffer gives what is whole", a_truncated_buffer_gives_what_is_whole},
    {"a broken record counts as dropped", a_broken_record_counts_as_dropped},
    {"many records keep names and tags", many_records_keep_names_and_tags},
    {"a take begins anew", a_take_begins_anew},
    CU_TEST_INFO_NULL,
};
