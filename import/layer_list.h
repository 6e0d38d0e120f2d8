// import/layer_list.h - lists of Megatron-LM's own small language.
#pragma once

#include "base/arena.h"

#include <stdbool.h>

// "([0]*3+[1]*58)": lists of whole numbers, joined by + and repeated by *.
//   returns  the number of entries, at most most; -1 where it is anything else
int number_list(const char *text, int most, int *out);

// "Ettt|(tt|)*30mL" with every repetition written out: "Ettt|tt|tt|...|mL".
//   returns  NULL where a bracket or a number is missing, or it has more than most letters
const char *layout_unfold(const char *text, int most, Arena *arena);
