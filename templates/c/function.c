/* Greets the name in the body. */
#include "sledge.h"

#include <stdio.h>

enum { NAME_BYTES_MAX = 256 };

/* Writes the greeting of `length` bytes of `name`; its length. */
static size_t greet(const char *name, size_t length, char *greeting, size_t capacity) {
    while (length > 0 && (name[length - 1] == '\n' || name[length - 1] == '\r')) {
        length--;
    }
    return (size_t)snprintf(greeting, capacity, "Hello, %.*s!\n", (int)length, name);
}

SLEDGE_HANDLE {
    char name[NAME_BYTES_MAX], greeting[NAME_BYTES_MAX + 16];
    size_t length;
    if (sledge_read_body(name, sizeof name, &length) != SLEDGE_OK) {
        sledge_log("the name has more than 256 bytes");
        return SLEDGE_FAILED;
    }
    sledge_log("sending a greeting");
    return sledge_write_reply(greeting, greet(name, length, greeting, sizeof greeting));
}
