// tests/laws/shell_scripts.h - random start scripts within what `import` reads of bash.
//
// They set a few variables and arrays in all the ways that scripts have, with here documents behind
// commands, and end with one command: pretrain.py with flags made of these. They write nothing and
// end by themselves.
#pragma once

#include "base/arena.h"
#include "tests/laws/draw.h"

const char *shell_script_draw(Draw *draw, Arena *arena);
