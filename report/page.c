#include "report/page.h"

// From report/page.S.
extern const char meshwright_page_begin[], meshwright_page_end[];

Page page_of_build(void) {
    return (Page){meshwright_page_begin, (size_t)(meshwright_page_end - meshwright_page_begin)};
}
