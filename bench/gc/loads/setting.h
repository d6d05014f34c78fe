// The settings of a run: words NAME=VALUE of the command line, in any order. A load reads each
// setting that it knows. An unknown word is an error, so that a mistyped one does not measure
// something else.

#ifndef SETTING_H
#define SETTING_H

#include "../../caches/programs/base.h"
#include <stdbool.h>

static char **setting_words;
static size_t setting_count;
static bool setting_asked[64];

static inline void settings_begin(const char *program, int argc, char **argv) {
    program_name = program;
    setting_words = argv + 1;
    setting_count = (size_t)argc - 1;
    if (setting_count > sizeof setting_asked)
        die(2, "too many settings");
}

// Returns the text behind `NAME=`, or NULL.
static inline const char *setting_text(const char *name) {
    size_t length = strlen(name);
    const char *found = NULL;
    for (size_t i = 0; i < setting_count; i++)
        if (strncmp(setting_words[i], name, length) == 0 && setting_words[i][length] == '=') {
            setting_asked[i] = true;
            found = setting_words[i] + length + 1;
        }
    return found;
}

static inline size_t setting(const char *name, size_t otherwise, size_t least, size_t most) {
    const char *text = setting_text(name);
    return text == NULL ? otherwise : number(text, name, least, most);
}

// Returns the index of the value among `names`, which end with NULL. Without a setting returns 0.
static inline size_t setting_choice(const char *name, const char *const *names) {
    const char *text = setting_text(name);
    if (text == NULL)
        return 0;
    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    fprintf(stderr, "%s: there is no %s '%s'\n", program_name, name, text);
    exit(2);
}

static inline void settings_end(void) {
    for (size_t i = 0; i < setting_count; i++)
        if (!setting_asked[i]) {
            fprintf(stderr, "%s: '%s' is no setting here\n", program_name, setting_words[i]);
            exit(2);
        }
}

#endif
