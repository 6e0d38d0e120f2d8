// What `import` makes of a start script against what bash does: the arguments of pretrain.py are
// the same, or the script is refused.
#include "import/shell_words.h"

#include "tests/laws/shell_scripts.h"

#include <CUnit/CUnit.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_OUTPUT = 1 << 16 };

typedef struct {
    char folder[64];
    char path[128]; // for the environment
    uint64_t seed;
    int num_scripts, num_read, num_other;
} Shells;

// The stand-in: one line for all of its arguments, one character that no script has between them.
static bool shells_open(Shells *s) {
    char name[128];
    strcpy(s->folder, "/tmp/meshwright-bash-XXXXXX");
    if (!mkdtemp(s->folder)) return false;
    snprintf(s->path, sizeof s->path, "PATH=%s:/usr/bin:/bin", s->folder);
    snprintf(name, sizeof name, "%s/pretrain.py", s->folder);
    FILE *file = fopen(name, "w");
    if (!file) return false;
    // Not to standard output, which a script may give to something else.
    fprintf(file, "#!/bin/sh\n{ printf '%%s\\001' \"$@\"; echo; } >>%s/seen\n", s->folder);
    fclose(file);
    return chmod(name, 0700) == 0;
}

static void shells_close(const Shells *s) {
    static const char *const FILES[] = {"pretrain.py", "seen", "script.sh"};
    char name[128];
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        snprintf(name, sizeof name, "%s/%s", s->folder, FILES[i]);
        remove(name);
    }
    rmdir(s->folder);
}

// The arguments of the last pretrain.py that bash starts; "none".
static const char *bash_says(const Shells *s, const char *script, Arena *arena) {
    char name[128], seen[128], *text = ARENA_ARRAY(arena, MAX_OUTPUT, char);
    snprintf(name, sizeof name, "%s/script.sh", s->folder);
    snprintf(seen, sizeof seen, "%s/seen", s->folder);
    remove(seen);
    FILE *file = fopen(name, "w");
    if (!file) return "no file";
    fputs(script, file);
    fclose(file);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_addopen(&actions, i, "/dev/null", i ? 1 : 0, 0);
    char *argv[] = {"timeout", "10", "bash", name, NULL}, *envp[] = {(char *)s->path, NULL};
    pid_t child;
    int status;
    if (posix_spawnp(&child, "timeout", &actions, NULL, argv, envp) == 0)
        waitpid(child, &status, 0);
    posix_spawn_file_actions_destroy(&actions);
    file = fopen(seen, "r");
    if (!file) return "none";
    const size_t size = fread(text, 1, MAX_OUTPUT - 1, file);
    fclose(file);
    if (size > 0 && text[size - 1] == '\n') text[size - 1] = '\0';
    char *last = strrchr(text, '\n');
    return last ? last + 1 : text;
}

// What we say; NULL: refused, as megatron_command_find does.
static const char *we_say(const char *script, Arena *arena) {
    const ShellCommand *c = ARENA_NEW(arena, ShellCommand);
    *(ShellCommand *)c = shell_command(script, "pretrain", NULL, 0, arena);
    if (!c->found || c->overflow || c->too_large || c->syntax.name || c->unended || c->num_maybe)
        return NULL;
    const char *text = "";
    for (int i = c->program + 1; i < c->words.num_words; i++) {
        if (strpbrk(c->words.words[i], "$`")) return NULL;
        text = arena_printf(arena, "%s%s\001", text, c->words.words[i]);
    }
    return c->words.num_words == c->program + 1 ? "\001" : text;
}

// Whether a "&" puts something beside what follows: of two programs either may be the last.
static bool has_background(const char *script) {
    for (const char *at = strchr(script, '&'); at; at = strchr(at + 1, '&'))
        if (at[1] != '&' && at[1] != '>' && (at == script || !strchr("&>", at[-1]))) return true;
    return false;
}

// Whether it does so, each time where that may differ from time to time.
static bool differs(Shells *s, const char *script, Arena *arena) {
    const char *ours = we_say(script, arena);
    const int num_times = has_background(script) ? 3 : 1;
    for (int i = 0; ours && i < num_times; i++)
        if (strcmp(ours, bash_says(s, script, arena)) == 0) return false;
    return ours != NULL;
}

// Without any line that it differs without; where bash starts the program it still does.
static const char *shrink(Shells *s, const char *script, Arena *arena) {
    const bool starts = strcmp(bash_says(s, script, arena), "none") != 0;
    for (const char *line = script; *line;) {
        const char *end = strchr(line, '\n'), *next = end ? end + 1 : line + strlen(line);
        const size_t place = (size_t)(line - script);
        const char *shorter = arena_printf(arena, "%.*s%s", (int)place, script, next);
        const bool still = strcmp(bash_says(s, shorter, arena), "none") != 0;
        if (still == starts && differs(s, shorter, arena)) {
            script = shorter;
            line = script; // again from the first
        } else {
            line = next;
        }
    }
    return script;
}

static void script_check(Shells *s, uint32_t number) {
    Arena arena = {0};
    Draw draw = draw_start(s->seed, number, 0);
    const char *script = shell_script_draw(&draw, &arena);
    s->num_scripts++;
    s->num_read += we_say(script, &arena) != NULL;
    if (differs(s, script, &arena)) {
        if (s->num_other++ < 5) {
            script = shrink(s, script, &arena);
            printf("    seed %llu, script %u:\n%s    import: %s\n    bash:   %s\n",
                   (unsigned long long)s->seed, number, script, we_say(script, &arena),
                   bash_says(s, script, &arena));
        }
    }
    arena_free(&arena);
}

static void arguments_are_those_of_bash_or_refused(void) {
    const char *seed = getenv("MESHWRIGHT_LAW_SEED");
    Shells s = {.seed = seed ? strtoull(seed, NULL, 10) : 28};
    const int num = getenv("MESHWRIGHT_TEST_FULL") ? 20000 : 500;
    if (access("/bin/bash", X_OK) != 0) {
        printf("    skipped: no /bin/bash\n");
        return;
    }
    CU_ASSERT_FATAL(shells_open(&s));
    for (int i = 0; i < num; i++) script_check(&s, (uint32_t)i);
    shells_close(&s);
    printf("    seed %llu: %d scripts, %d read, %d with other arguments\n",
           (unsigned long long)s.seed, s.num_scripts, s.num_read, s.num_other);
    CU_ASSERT_EQUAL(s.num_other, 0);
    CU_ASSERT(s.num_read > s.num_scripts / 3); // what refuses all proves nothing
}

CU_TestInfo shell_bash_tests[] = {
    {"arguments_are_those_of_bash_or_refused", arguments_are_those_of_bash_or_refused},
    CU_TEST_INFO_NULL,
};
