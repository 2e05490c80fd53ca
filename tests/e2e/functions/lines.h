// Functions that carry out the lines of their input, each a word, a name and a text.
#pragma once

#include "../../../sdk/c/sledge.h"

#include <stdio.h>

#ifndef INPUT_BYTES
#define INPUT_BYTES (1 << 16)
#endif

static char input[INPUT_BYTES];

// Calls `carry_out` with each line; what a line lacks is an empty string. The status to exit with.
static int each_line(void (*carry_out)(const char *word, const char *name, const char *text)) {
    size_t length;
    if (sledge_read_body(input, sizeof input - 1, &length) != SLEDGE_OK) {
        return 1;
    }
    for (char *next = input; *next != 0;) {
        char *end = next + strcspn(next, "\n");
        char *rest = *end == 0 ? end : end + 1;
        *end = 0;
        const char *word = strtok(next, " "), *name = strtok(NULL, " "), *text = strtok(NULL, "");
        carry_out(word == NULL ? "" : word, name == NULL ? "" : name, text == NULL ? "" : text);
        next = rest;
    }
    return 0;
}

// Prints names and values that lie one behind the other, each behind its length.
static inline void print_headers(const char *rows, int32_t bytes) {
    for (int32_t at = 0; at < bytes;) {
        for (int part = 0; part < 2; part++) {
            uint32_t size;
            memcpy(&size, rows + at, 4);
            printf(part == 0 ? "%.*s=" : "%.*s ", (int)size, rows + at + 4);
            at += 4 + (int32_t)size;
        }
    }
}
