/* The page of HTML reports as the build made it, empty where it could not (report/page.cmake). */
    .section .rodata
    .global meshwright_page_begin
    .global meshwright_page_end
meshwright_page_begin:
    .incbin MESHWRIGHT_PAGE
meshwright_page_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
