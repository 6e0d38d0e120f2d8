// report/page.h - the page of HTML reports (report/web), part of the program itself.
//
// The build makes the text of it where node and npm are, and an empty one elsewhere
// (report/page.cmake). A report takes the places of PAGE_TITLE and PAGE_DATA in it.
#pragma once

#include <stddef.h>

#define PAGE_TITLE "@MESHWRIGHT_TITLE@"
#define PAGE_DATA "@MESHWRIGHT_DATA@"

typedef struct {
    const char *text; // [size], HTML; no NUL ends it
    size_t size;      // 0: this build has none
} Page;

Page page_of_build(void);
