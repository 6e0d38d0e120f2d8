// base/key_names.h - what other software and people call the keys of our documents: never read, but
// a refusal of an unknown key says what it is called here.
#pragma once

// The known key that `key` means: one that differs in capitals or "-" for "_" alone, or one that
// the table in key_names.c has it for. NULL where there is none.
//   known  ends with NULL
const char *key_meant(const char *key, const char *const *known);

// The full place of what `key` means: "parallel.micro_batch". NULL where the table has none.
const char *key_place(const char *key);
