// Carries out the lines of its input, and replies with a line for each.
#include "lines.h"

static char text[1 << 16];

static void tell(int32_t result) {
    if (result < 0) {
        printf("error %d\n", -result);
    } else {
        printf("%.*s\n", (int)result, text);
    }
}

static void carry_out(const char *word, const char *name, const char *value) {
    if (strcmp(word, "method") == 0) {
        tell(sledge_method(text, sizeof text));
    } else if (strcmp(word, "target") == 0) {
        tell(sledge_target(text, sizeof text));
    } else if (strcmp(word, "header") == 0) {
        tell(sledge_header(name, strlen(name), text, sizeof text));
    } else if (strcmp(word, "headers") == 0) {
        print_headers(text, sledge_headers(text, sizeof text));
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
}

int main(void) {
    return each_line(carry_out);
}
