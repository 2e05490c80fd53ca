// Carries out the lines of its input, each a word, a name and a text, and replies with a line for each.
#include "lines.h"

static char reply[1 << 20];

static void tell(int32_t result) {
    if (result < 0) {
        printf("error %d\n", -result);
    } else {
        printf("%d %.*s\n", result, (int)(result < 40 ? result : 40), reply);
    }
}

static void carry_out(const char *word, const char *name, const char *text) {
    if (strcmp(word, "invoke") == 0) {
        tell(sledge_invoke(name, strlen(name), text, strlen(text), reply, sizeof reply));
    } else if (strcmp(word, "digest") == 0) {
        // Of all of the reply.
        const int32_t bytes = sledge_invoke(name, strlen(name), text, strlen(text), reply, sizeof reply);
        uint32_t sum = 0;
        for (int32_t at = 0; at < bytes; at++) {
            sum = sum * 31 + (uint8_t)reply[at];
        }
        printf("%d %u\n", bytes, sum);
    } else if (strcmp(word, "binary") == 0) {
        const int64_t number = strtoll(text, NULL, 10);
        tell(sledge_invoke(name, strlen(name), &number, 8, reply, 0));
    } else if (strcmp(word, "start") == 0) {
        const int64_t number = strtoll(text, NULL, 10);
        printf("call %d\n", sledge_start(name, strlen(name), &number, 8));
    } else if (strcmp(word, "wait") == 0) {
        tell(sledge_wait(atoi(name), reply, 0));
    } else if (strcmp(word, "take") == 0) {
        tell(sledge_wait(atoi(name), reply, sizeof reply));
    } else if (strcmp(word, "send") == 0) {
        printf("sent %d\n", sledge_send(name, strlen(name), text, strlen(text)));
    } else if (strcmp(word, "push") == 0) {
        printf("pushed %d\n", sledge_send(name, strlen(name), reply, (size_t)atol(text)));
    } else if (strcmp(word, "large") == 0) {
        tell(sledge_invoke(name, strlen(name), reply, (size_t)atol(text), reply, sizeof reply));
    } else if (strcmp(word, "pieces") == 0) {
        // A reply that is taken three bytes at a time.
        int32_t left = sledge_invoke(name, strlen(name), text, strlen(text), reply, 3);
        for (; left > 0; left = sledge_rest(reply, 3)) {
            printf("%d %.*s ", left, left < 3 ? left : 3, reply);
        }
        printf("%d\n", sledge_rest(reply, 3));
    } else if (strcmp(word, "fault") == 0) {
        tell(sledge_invoke(name, strlen(name), (void *)0xfffffff0, 64, reply, 8));
        tell(sledge_invoke(name, strlen(name), "", 0, (void *)0xfffffff0, 64));
    } else if (strcmp(word, "deep") == 0) {
        // Each calls the next, `name` and then `text` in turn, until that is refused; the innermost says why.
        char line[256];
        const int size = snprintf(line, sizeof line, "deep %s %s", text, name);
        const int32_t got = sledge_invoke(name, strlen(name), line, (size_t)size, reply, sizeof reply);
        if (got < 0) {
            printf("1 refused %d\n", -got);
        } else {
            reply[got] = 0;
            printf("%ld%s", 1 + strtol(reply, NULL, 10), strchr(reply, ' '));
        }
    } else if (strcmp(word, "log") == 0) {
        sledge_phase(7);
        printf("logged %d\n", sledge_message(atoi(name), text, strlen(text)));
    } else {
        printf("what?\n");
    }
}

int main(void) {
    return each_line(carry_out);
}
