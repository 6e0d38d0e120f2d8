#include "profiler/wrap_name.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// abi::__cxa_demangle of the Itanium C++ ABI, chapter 3.4.
typedef char *(*Demangle)(const char *mangled, char *buffer, size_t *size, int *status);

static Demangle demangle_find(void) {
    Demangle demangle = NULL;
    void *library = dlopen("libstdc++.so.6", RTLD_NOW);
    void *found = library ? dlsym(library, "__cxa_demangle") : NULL;
    memcpy(&demangle, &found, sizeof demangle);
    return demangle; // the library stays loaded: names come in thousands
}

// Leaves out what stands in <> and (), and a return type before. "(anonymous namespace)" stays.
static void arguments_cut(char *name) {
    static const char ANONYMOUS[] = "(anonymous namespace)";
    char *to = name;
    int depth = 0;
    for (const char *from = name; *from; from++) {
        if (depth == 0 && strncmp(from, ANONYMOUS, strlen(ANONYMOUS)) == 0) {
            from += strlen(ANONYMOUS) - 1;
            memcpy(to, "anonymous", 9);
            to += 9;
            continue;
        }
        if (*from == '(' && depth == 0) break;
        if (*from == '<' || *from == '(') depth++;
        if (depth == 0) *to++ = *from;
        if ((*from == '>' || *from == ')') && depth > 0) depth--;
    }
    *to = '\0';
    char *space = strrchr(name, ' ');
    if (space && space[1]) memmove(name, space + 1, strlen(space + 1) + 1);
}

const char *kernel_name_readable(const char *mangled, Arena *arena) {
    if (strncmp(mangled, "_Z", 2) != 0) return mangled;
    Demangle demangle = demangle_find();
    char *name = demangle ? demangle(mangled, NULL, NULL, NULL) : NULL;
    if (!name) return mangled;
    arguments_cut(name);
    const char *readable = name[0] ? arena_strdup(arena, name) : mangled;
    free(name);
    return readable;
}

bool kernel_is_nccl(const char *mangled) {
    const char *nccl = strstr(mangled, "nccl");
    return nccl && strstr(nccl, "Kernel");
}
