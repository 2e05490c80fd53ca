// Carries out the lines of its input, and replies with a line for each.
#include "../../../sdk/c/sledge.h"

#include <stdio.h>

static char input[1 << 16], text[1 << 16];

static void tell(int32_t result) {
    if (result < 0) {
        printf("error %d\n", -result);
    } else {
        printf("%.*s\n", (int)result, text);
    }
}

int main(void) {
    size_t length;
    if (sledge_read_body(input, sizeof input - 1, &length) != SLEDGE_OK) {
        return 1;
    }
    for (char *next = input; *next != 0;) {
        char *end = next + strcspn(next, "\n");
        char *rest = *end == 0 ? end : end + 1;
        *end = 0;
        char *word = strtok(next, " "), *name = strtok(NULL, " "), *value = strtok(NULL, "");
        name = name == NULL ? "" : name;
        value = value == NULL ? "" : value;
        if (strcmp(word, "method") == 0) {
            tell(sledge_method(text, sizeof text));
        } else if (strcmp(word, "target") == 0) {
            tell(sledge_target(text, sizeof text));
        } else if (strcmp(word, "header") == 0) {
            tell(sledge_header(name, strlen(name), text, sizeof text));
        } else if (strcmp(word, "headers") == 0) {
            const int32_t bytes = sledge_headers(text, sizeof text);
            for (int32_t at = 0; at < bytes;) {
                uint32_t size;
                memcpy(&size, text + at, 4);
                printf("%.*s", (int)size, text + at + 4);
                at += 4 + (int32_t)size;
                memcpy(&size, text + at, 4);
                printf("=%.*s ", (int)size, text + at + 4);
                at += 4 + (int32_t)size;
            }
            printf("\n");
        } else if (strcmp(word, "status") == 0) {
            printf("%d\n", sledge_status(atoi(name)));
        } else if (strcmp(word, "set") == 0) {
            printf("%d\n", sledge_set_header(name, strlen(name), value, strlen(value)));
        } else if (strcmp(word, "add") == 0) {
            printf("%d\n", sledge_add_header(name, strlen(name), value, strlen(value)));
        } else if (strcmp(word, "many") == 0) {
            int32_t last = 0, count = 0;
            while ((last = sledge_add_header("x-many", 6, value, strlen(value))) == 0) {
                count++;
            }
            printf("%d %d\n", count, last);
        } else {
            printf("%d %d\n", sledge_header((const char *)0xfffffff0, 64, text, 1), sledge_target((char *)0xfffffff0, 64));
        }
        next = rest;
    }
    return 0;
}
