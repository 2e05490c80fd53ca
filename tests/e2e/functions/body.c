// Does with its body what the request's header `x-do` says: a word, and a text.
#include "../../../sdk/c/sledge.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

static char block[1 << 16], text[4096];

static void nap(int ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

// Reads to the end; how much that was.
static long drain(void) {
    long all = 0;
    for (ssize_t count; (count = read(STDIN_FILENO, block, sizeof block)) != 0; all += count) {
        if (count < 0) {
            exit(7);
        }
    }
    return all;
}

static void await(const char *name) {
    const int32_t signals = sledge_kv_open("signals", 7);
    while (sledge_kv_exists(signals, name, strlen(name)) == 0) {
        nap(2);
    }
}

static void mark(const char *name) {
    sledge_kv_set(sledge_kv_open("signals", 7), name, strlen(name), "", 0, NULL);
}

// What came behind the body.
static void tell_trailer(const char *name) {
    char value[256];
    const int32_t length = sledge_trailer(name, strlen(name), value, sizeof value);
    if (length < 0) {
        printf("error %d\n", -length);
    } else {
        printf("%.*s\n", (int)length, value);
    }
}

// How much can be read, after at most so long.
static void tell_ready(int ms) {
    struct pollfd fd = {STDIN_FILENO, POLLIN, 0};
    printf("%d ", poll(&fd, 1, ms));
}

int main(void) {
    const int32_t length = sledge_header("x-do", 4, text, sizeof text - 1);
    text[length < 0 ? 0 : length] = 0;
    const char *word = strtok(text, " "), *name = strtok(NULL, "");
    word = word == NULL ? "" : word;
    if (strcmp(word, "count") == 0) {
        printf("%ld\n", drain());
    } else if (strcmp(word, "echo") == 0) {
        sledge_stream(-1);
        for (ssize_t count; (count = read(STDIN_FILENO, block, sizeof block)) > 0;) {
            sledge_write_reply(block, (size_t)count);
        }
    } else if (strcmp(word, "after") == 0) {
        await(name);
        printf("%ld\n", drain());
    } else if (strcmp(word, "slowly") == 0) {
        // It is not the client that is slow.
        char byte;
        const ssize_t first = read(STDIN_FILENO, &byte, 1);
        nap(atoi(name));
        printf("%ld\n", drain() + first);
    } else if (strcmp(word, "begun") == 0) {
        sledge_stream(-1);
        sledge_write_reply("begun\n", 6);
        printf("%ld\n", drain());
    } else if (strcmp(word, "late") == 0) {
        drain();
        mark("late");
    } else if (strcmp(word, "marked") == 0) {
        printf("%d\n", sledge_kv_exists(sledge_kv_open("signals", 7), name, strlen(name)));
    } else if (strcmp(word, "mark") == 0) {
        mark(name);
    } else if (strcmp(word, "trailer") == 0) {
        tell_trailer(name);
        mark(name);
        printf("%ld\n", drain());
        tell_trailer(name);
    } else if (strcmp(word, "poll") == 0) {
        // Nothing has come; then something has, and then nothing again until the end.
        char byte;
        tell_ready(0);
        tell_ready(30);
        mark(name);
        tell_ready(-1);
        const ssize_t none = read(STDIN_FILENO, &byte, 0);
        const ssize_t some = read(STDIN_FILENO, block, sizeof block);
        printf("%ld %ld ", (long)none, (long)some);
        tell_ready(20);
        mark("again");
        tell_ready(60000);
        printf("%ld\n", drain());
    } else {
        printf("ignored\n");
    }
    return 0;
}
