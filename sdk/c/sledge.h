/* Write functions for Sledge in C.
 *
 * A reactor is a library that is initialised once and then called for each request, every time in a fresh
 * copy of the initialised state. It defines the entry point, reads the body and writes the reply:
 *
 *     #include "sledge.h"
 *
 *     SLEDGE_HANDLE {
 *         unsigned char body[4096];
 *         size_t length;
 *         if (sledge_read_body(body, sizeof body, &length) != SLEDGE_OK) return SLEDGE_FAILED;
 *         return sledge_write_reply(body, length);
 *     }
 *
 *     awsm compile echo.c -- -mexec-model=reactor
 *
 * A command needs nothing of this: it is a program whose main reads standard input and writes standard output.
 * The body is file descriptor 0, the reply is 1, the function's log is 2; nothing here buffers.
 * One header, C11 or C++, no library. */
#ifndef SLEDGE_H
#define SLEDGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the entry point returns: the reply is complete; there is none and the client learns that the function failed. */
enum { SLEDGE_OK = 0, SLEDGE_FAILED = 1, SLEDGE_TOO_LONG = 2 };

#if defined(__wasm__)
#define SLEDGE_EXPORT(name) __attribute__((export_name(name), used, visibility("default")))
#else
#define SLEDGE_EXPORT(name) /* natively, for tests: an ordinary function */
#endif

/* The entry point: write `SLEDGE_HANDLE { ... }` and return SLEDGE_OK or another number. */
SLEDGE_EXPORT("sledge_handle") int32_t sledge_handle(void);
#define SLEDGE_HANDLE SLEDGE_EXPORT("sledge_handle") int32_t sledge_handle(void)

/* Reads the whole body into `buffer`; its length goes to *length. SLEDGE_TOO_LONG if it has more than `capacity`
 * bytes (of which the first are in the buffer), SLEDGE_FAILED if it cannot be read. */
static inline int32_t sledge_read_body(void *buffer, size_t capacity, size_t *length) {
    char *next = (char *)buffer;
    char more;
    *length = 0;
    for (;;) {
        const size_t room = capacity - *length;
        const ssize_t got = room > 0 ? read(STDIN_FILENO, next + *length, room) : read(STDIN_FILENO, &more, 1);
        if (got < 0) {
            return SLEDGE_FAILED;
        }
        if (got == 0) {
            return SLEDGE_OK;
        }
        if (room == 0) {
            return SLEDGE_TOO_LONG;
        }
        *length += (size_t)got;
    }
}

/* Reads the whole body, at most `limit` bytes, into memory of its own, which is the caller's to free (or to leave: it
 * goes with the sandbox). SLEDGE_TOO_LONG beyond the limit, SLEDGE_FAILED without memory or input; then *body is
 * NULL. An empty body is not NULL. */
static inline int32_t sledge_read_all(size_t limit, unsigned char **body, size_t *length) {
    if (limit == SIZE_MAX) {
        limit--; /* there is room for one more byte, always */
    }
    size_t capacity = limit < 4096 ? limit : 4096;
    unsigned char *memory = (unsigned char *)malloc(capacity + 1);
    *body = NULL;
    *length = 0;
    while (memory != NULL) {
        /* One byte more than may be kept tells a full buffer from a longer body. */
        const ssize_t got = read(STDIN_FILENO, memory + *length, capacity + 1 - *length);
        if (got < 0) {
            break;
        }
        if (got == 0) {
            *body = memory;
            return SLEDGE_OK;
        }
        *length += (size_t)got;
        if (*length > limit) {
            free(memory);
            return SLEDGE_TOO_LONG;
        }
        if (*length > capacity) {
            capacity = limit - capacity < capacity ? limit : 2 * capacity;
            unsigned char *larger = (unsigned char *)realloc(memory, capacity + 1);
            if (larger == NULL) {
                break;
            }
            memory = larger;
        }
    }
    free(memory);
    return SLEDGE_FAILED;
}

static inline int32_t sledge_write_(int fd, const void *bytes, size_t length) {
    const char *next = (const char *)bytes;
    while (length > 0) {
        const ssize_t written = write(fd, next, length);
        if (written <= 0) {
            return SLEDGE_FAILED;
        }
        next += written;
        length -= (size_t)written;
    }
    return SLEDGE_OK;
}

/* Writes `length` bytes of the reply; may be called more than once. */
static inline int32_t sledge_write_reply(const void *bytes, size_t length) {
    return sledge_write_(STDOUT_FILENO, bytes, length);
}

/* Writes a line to the function's log. */
static inline void sledge_log(const char *line) {
    sledge_write_(STDERR_FILENO, line, strlen(line));
    sledge_write_(STDERR_FILENO, "\n", 1);
}

#ifdef __cplusplus
}
#endif

#endif
