// Looks over a command line before argp does, so that a mistake gets a sentence of ours.
#include "base/json.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

enum { MAX_OPTIONS = 64 };

static const char *const ARGP_OPTIONS[] = {"help", "usage", NULL};

// The option that name[0 .. length - 1] means: exact, or the only one it is the beginning of.
//   *ambiguous is set where there are several
static const struct argp_option *option_find(const struct argp_option *options, const char *name,
                                             size_t length, bool *ambiguous) {
    const struct argp_option *found = NULL;
    int num_found = 0;
    for (const struct argp_option *o = options; o->name || o->key; o++) {
        if (!o->name || strncmp(o->name, name, length) != 0) continue;
        if (strlen(o->name) == length) {
            *ambiguous = false;
            return o;
        }
        found = o;
        num_found++;
    }
    *ambiguous = num_found > 1;
    return num_found == 1 ? found : NULL;
}

static bool option_of_argp(const char *name, size_t length) {
    for (int i = 0; ARGP_OPTIONS[i]; i++)
        if (length > 0 && strncmp(ARGP_OPTIONS[i], name, length) == 0) return true;
    return length == 1 && name[0] == '?';
}

static Status option_unknown(const char *command, const struct argp_option *options,
                             const char *name, size_t length) {
    const char *names[MAX_OPTIONS + 1];
    int num_names = 0;
    for (const struct argp_option *o = options; (o->name || o->key) && num_names < MAX_OPTIONS - 1;
         o++)
        if (o->name && !(o->flags & OPTION_HIDDEN)) names[num_names++] = o->name;
    names[num_names++] = "help";
    names[num_names] = NULL;
    char text[80];
    snprintf(text, sizeof text, "%.*s", (int)(length < 60 ? length : 60), name);
    const char *nearest = name_nearest(text, names);
    if (nearest)
        return usage_error("%s: unknown option --%s; the nearest is --%s", command, text, nearest);
    return usage_error("%s: unknown option --%s; meshwright %s --help lists the options", command,
                       text, command);
}

// Options with a value that stand there.
typedef struct {
    const struct argp_option *options[MAX_OPTIONS];
    int num_options;
} Given;

// An option that takes one value has one: of two the first would be lost without a word.
static Status given_add(Given *given, const char *command, const struct argp_option *option) {
    static const char *const REPEATED[] = {"vary", "set", NULL};
    for (int i = 0; option->name && REPEATED[i]; i++)
        if (strcmp(option->name, REPEATED[i]) == 0) return status_ok();
    for (int i = 0; i < given->num_options; i++) {
        if (given->options[i] != option) continue;
        if (!option->name)
            return usage_error("%s: -%c is given twice; it takes one value", command, option->key);
        return usage_error("%s: --%s is given twice; it takes one value", command, option->name);
    }
    if (given->num_options < MAX_OPTIONS) given->options[given->num_options++] = option;
    return status_ok();
}

// Checks argv[*i], a long option; moves *i over its value.
static Status long_option_check(const struct argp_option *options, const char *command, int argc,
                                char **argv, int *i, Given *given) {
    const char *name = argv[*i] + 2;
    size_t length = strcspn(name, "=");
    bool ambiguous;
    const struct argp_option *option = option_find(options, name, length, &ambiguous);
    if (ambiguous)
        return usage_error("%s: --%.*s could mean several options; meshwright %s --help lists them",
                           command, (int)length, name, command);
    if (!option)
        return option_of_argp(name, length) ? status_ok()
                                            : option_unknown(command, options, name, length);
    if (!option->arg && name[length] == '=')
        return usage_error("%s: --%s takes no value", command, option->name);
    if (option->arg && name[length] != '=') {
        if (*i + 1 >= argc)
            return usage_error("%s: --%s needs a value: --%s %s", command, option->name,
                               option->name, option->arg);
        ++*i;
    }
    return option->arg ? given_add(given, command, option) : status_ok();
}

// Reads a bundle of short options.
static Status short_options_check(const struct argp_option *options, const char *command, int argc,
                                  char **argv, int *i, Given *given) {
    for (const char *c = argv[*i] + 1; *c; c++) {
        if (*c == '?') return status_ok();
        if (strcmp(argv[*i], "-h") == 0) {
            argv[*i] = "--help";
            return status_ok();
        }
        const struct argp_option *o = options;
        while ((o->name || o->key) && o->key != *c) o++;
        if (!o->name && !o->key)
            return usage_error("%s: unknown option -%c; meshwright %s --help lists the options",
                               command, *c, command);
        if (!o->arg) continue;
        if (c[1] == '\0' && ++*i >= argc)
            return usage_error("%s: -%c needs a value: -%c %s", command, *c, *c, o->arg);
        return given_add(given, command, o);
    }
    return status_ok();
}

static Status options_check(const struct argp_option *options, const char *command, int argc,
                            char **argv) {
    Given given = {.num_options = 0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) break;
        if (strncmp(argv[i], "--", 2) == 0)
            TRY(long_option_check(options, command, argc, argv, &i, &given));
        else if (argv[i][0] == '-' && argv[i][1] != '\0')
            TRY(short_options_check(options, command, argc, argv, &i, &given));
    }
    return status_ok();
}

Status command_parse(const struct argp *argp, int argc, char **argv, CommonOptions *options) {
    const char *command = strchr(argv[0], ' ') + 1;
    options->status = status_ok();
    options->argp = argp;
    TRY(options_check(argp->options, command, argc, argv));
    int error = argp_parse(argp, argc, argv, 0, NULL, options);
    if (options->status.code != STATUS_OK) return options->status;
    if (error) return usage_error("%s: %s", command, strerror(error));
    return status_ok();
}
