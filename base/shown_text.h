// base/shown_text.h - text of users as it may be shown: names, paths and sentences that quote them
// (base/shown_character.h says what is escaped, and how).
#pragma once

#include "base/arena.h"
#include "base/shown_character.h"

// The whole text; itself where nothing of it needs an escape.
const char *shown_text(const char *text, Arena *arena);

// Prints a line as printf would, with what it quotes shown, and a newline.
void shown_line(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
