# The page of HTML reports (report/web), packed by npm and esbuild into one text that becomes part
# of the program. Where node or npm is missing, or npm reaches no registry, the text is empty: the
# build says so and goes on, and `report --format html` ends with 3. Such a text is tried again by
# the next build.
enable_language(ASM)
find_program(NODE_PROGRAM NAMES node nodejs)
find_program(NPM_PROGRAM npm)

set(page_folder ${PROJECT_BINARY_DIR}/page)
set(page_text ${page_folder}/page.html)
file(MAKE_DIRECTORY ${page_folder})
if(NODE_PROGRAM AND NPM_PROGRAM)
    file(GLOB_RECURSE page_sources CONFIGURE_DEPENDS
        ${PROJECT_SOURCE_DIR}/report/web/*.js ${PROJECT_SOURCE_DIR}/report/web/*.mjs
        ${PROJECT_SOURCE_DIR}/report/web/*.css ${PROJECT_SOURCE_DIR}/report/web/*.html
        ${PROJECT_SOURCE_DIR}/report/web/*.json)
    list(FILTER page_sources EXCLUDE REGEX "/node_modules/")
    add_custom_command(OUTPUT ${page_text}
        COMMAND sh ${PROJECT_SOURCE_DIR}/report/web/build.sh
            ${NODE_PROGRAM} ${NPM_PROGRAM} ${page_folder}
        DEPENDS ${page_sources} ${PROJECT_SOURCE_DIR}/report/web/build.sh
        COMMENT "Packing the page of HTML reports" VERBATIM)
else()
    message(WARNING "node or npm is missing: this build makes no HTML reports")
    file(WRITE ${page_text} "")
endif()

target_sources(mw_model PRIVATE ${PROJECT_SOURCE_DIR}/report/page.S)
set_source_files_properties(${PROJECT_SOURCE_DIR}/report/page.S PROPERTIES
    OBJECT_DEPENDS ${page_text}
    COMPILE_DEFINITIONS MESHWRIGHT_PAGE="${page_text}")
