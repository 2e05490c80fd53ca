/* Write functions for Sledge in C or C++.
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

#if defined(__wasm__)
#define SLEDGE_IMPORT(module, name) __attribute__((import_module(module), import_name(name)))

/* The key-value store of the function's tenant (sdk/wit/keyvalue.wit). Results below zero are error numbers, negated: -SLEDGE_ENOENT and so on.
 * Pointers to results may be null where they are not wanted. What writes returns when it is durable. */
enum {
    SLEDGE_E2BIG = 1,
    SLEDGE_EACCES = 2,
    SLEDGE_EAGAIN = 6,
    SLEDGE_EALREADY = 7,
    SLEDGE_EBADF = 8,
    SLEDGE_ECHILD = 12,
    SLEDGE_EDQUOT = 19,
    SLEDGE_EFAULT = 21,
    SLEDGE_EFBIG = 22,
    SLEDGE_EINVAL = 28,
    SLEDGE_EIO = 29,
    SLEDGE_ELOOP = 32,
    SLEDGE_EMFILE = 33,
    SLEDGE_ENOENT = 44,
    SLEDGE_ENOTRECOVERABLE = 56,
    SLEDGE_ENOTSUP = 58,
    SLEDGE_EOVERFLOW = 61,
    SLEDGE_ERANGE = 68,
    SLEDGE_ETIMEDOUT = 73
};

typedef struct {
    const void *bytes;
    size_t length;
} sledge_kv_key;

/* A value of this length is none: the key is deleted, or does not exist. */
#define SLEDGE_KV_NOTHING ((size_t)-1)

typedef struct {
    const void *key;
    size_t key_length;
    const void *value;
    size_t value_length;
} sledge_kv_pair;

typedef struct {
    const void *key;
    size_t key_length;
    uint64_t version; /* 0: it does not exist */
} sledge_kv_expected;

typedef struct {
    uint64_t version;
    uint32_t offset; /* of the value, in the buffer */
    uint32_t length; /* SLEDGE_KV_NOTHING if there is none */
} sledge_kv_found;

/* A bucket's handle. */
SLEDGE_IMPORT("sledge:kv", "open") int32_t sledge_kv_open(const char *name, size_t length);
/* The value's length, of which as much is written as fits. */
SLEDGE_IMPORT("sledge:kv", "get")
int32_t sledge_kv_get(int32_t bucket, const void *key, size_t key_length, void *value, size_t capacity, uint64_t *version);
SLEDGE_IMPORT("sledge:kv", "exists") int32_t sledge_kv_exists(int32_t bucket, const void *key, size_t key_length);
/* The number of keys behind `after`, each written as its length (uint32_t, unaligned) and its bytes; 0 when there are no more. */
SLEDGE_IMPORT("sledge:kv", "list-keys")
int32_t sledge_kv_list_keys(int32_t bucket, const void *prefix, size_t prefix_length, const void *after, size_t after_length, void *keys, size_t capacity);
/* The bytes of all values; those that fit are in the buffer. */
SLEDGE_IMPORT("sledge:kv", "get-many")
int32_t sledge_kv_get_many(int32_t bucket, const sledge_kv_key *keys, size_t count, sledge_kv_found *found, void *values, size_t capacity);
SLEDGE_IMPORT("sledge:kv", "set")
int32_t sledge_kv_set(int32_t bucket, const void *key, size_t key_length, const void *value, size_t value_length, uint64_t *version);
SLEDGE_IMPORT("sledge:kv", "delete") int32_t sledge_kv_delete(int32_t bucket, const void *key, size_t key_length);
/* Adds to a decimal number, which is 0 where there is none. */
SLEDGE_IMPORT("sledge:kv", "increment")
int32_t sledge_kv_increment(int32_t bucket, const void *key, size_t key_length, int64_t delta, int64_t *sum);
/* 1 if the key had the version `expected` (0: did not exist) and has the value now, else 0; `version` gets the one that it has. */
SLEDGE_IMPORT("sledge:kv", "compare-and-swap")
int32_t sledge_kv_compare_and_swap(int32_t bucket, const void *key, size_t key_length, uint64_t expected, const void *value, size_t value_length, uint64_t *version);
SLEDGE_IMPORT("sledge:kv", "set-many")
int32_t sledge_kv_set_many(int32_t bucket, const sledge_kv_pair *pairs, size_t count, uint64_t *version);
SLEDGE_IMPORT("sledge:kv", "delete-many") int32_t sledge_kv_delete_many(int32_t bucket, const sledge_kv_key *keys, size_t count);
/* 1 if all keys had the versions expected and all changes were made, else 0 and nothing was. */
SLEDGE_IMPORT("sledge:kv", "commit")
int32_t sledge_kv_commit(int32_t bucket, const sledge_kv_expected *expected, size_t expected_count, const sledge_kv_pair *changes, size_t change_count, uint64_t *version);

/* Other functions of the same tenant (sdk/wit/call.wit). The reply's length, of which as much is written as fits, or an error number, negated:
 * SLEDGE_ENOENT, SLEDGE_EAGAIN (busy), SLEDGE_ECHILD (it failed), SLEDGE_ELOOP (too many wait for each other), SLEDGE_ENOTRECOVERABLE (it is quarantined:
 * something is wrong with it that an operator has to put right), SLEDGE_ETIMEDOUT. */
SLEDGE_IMPORT("sledge:call", "invoke")
int32_t sledge_invoke(const char *name, size_t name_length, const void *input, size_t length, void *reply, size_t capacity);
/* The same in two parts, of which the first does not wait: a handle. A call that is not waited for ends with the caller. */
SLEDGE_IMPORT("sledge:call", "start") int32_t sledge_start(const char *name, size_t name_length, const void *input, size_t length);
SLEDGE_IMPORT("sledge:call", "wait") int32_t sledge_wait(int32_t call, void *reply, size_t capacity);
/* What of the last reply did not fit: its length, of which as much is written as fits. */
SLEDGE_IMPORT("sledge:call", "rest") int32_t sledge_rest(void *reply, size_t capacity);
/* A call whose reply is not wanted, and which may outlive the caller. */
SLEDGE_IMPORT("sledge:call", "send") int32_t sledge_send(const char *name, size_t name_length, const void *input, size_t length);

/* What a request says beside its body, and the head of the reply (sdk/wit/http.wit). Lengths, of which as much is written as fits. */
SLEDGE_IMPORT("sledge:http", "method") int32_t sledge_method(char *text, size_t capacity);
/* Path and query. */
SLEDGE_IMPORT("sledge:http", "target") int32_t sledge_target(char *text, size_t capacity);
SLEDGE_IMPORT("sledge:http", "header") int32_t sledge_header(const char *name, size_t name_length, char *text, size_t capacity);
/* Each as its name's length (uint32_t, unaligned), its name, its value's length, its value. */
SLEDGE_IMPORT("sledge:http", "headers") int32_t sledge_headers(void *rows, size_t capacity);
/* What came behind the body, as sledge_header; SLEDGE_EAGAIN before a body that is streamed was read to its end. */
SLEDGE_IMPORT("sledge:http", "trailer") int32_t sledge_trailer(const char *name, size_t name_length, char *text, size_t capacity);
SLEDGE_IMPORT("sledge:http", "status") int32_t sledge_status(int32_t code);
SLEDGE_IMPORT("sledge:http", "set-header")
int32_t sledge_set_header(const char *name, size_t name_length, const char *value, size_t value_length);
SLEDGE_IMPORT("sledge:http", "add-header")
int32_t sledge_add_header(const char *name, size_t name_length, const char *value, size_t value_length);
/* What comes behind the reply, also set while it is streamed. HTTP/1.1 sends it to clients that say `te: trailers`; of a reply that is streamed only the
 * names that were set before sledge_stream. */
SLEDGE_IMPORT("sledge:http", "set-trailer")
int32_t sledge_set_trailer(const char *name, size_t name_length, const char *value, size_t value_length);
SLEDGE_IMPORT("sledge:http", "add-trailer")
int32_t sledge_add_trailer(const char *name, size_t name_length, const char *value, size_t value_length);
/* The head goes out, and from now on the reply while it is written; of `length` bytes, or -1 where that is not known. Writing waits while the client
 * has not fetched what was written; where the function fails from then on, the client sees that the reply breaks off. */
SLEDGE_IMPORT("sledge:http", "stream") int32_t sledge_stream(int64_t length);

/* Requests over HTTP to other servers, to those that `http_hosts` in the configuration allows the function (sdk/wit/fetch.wit). */
typedef struct {
    uint32_t head_ms;  /* for the head of the response; 0: 30 s */
    uint32_t piece_ms; /* for each piece of its body; 0: 30 s */
} sledge_fetch_times;

/* A request's handle; it is on its way at once. Headers as sledge_headers writes them. SLEDGE_EACCES: the host is not allowed. */
SLEDGE_IMPORT("sledge:fetch", "send")
int32_t sledge_fetch_send(const char *method, size_t method_length, const char *url, size_t url_length, const void *headers, size_t headers_length, const void *body, size_t body_length, const sledge_fetch_times *times);
/* Waits for the head of the response: its status; its headers, as sledge_headers writes them. */
SLEDGE_IMPORT("sledge:fetch", "status") int32_t sledge_fetch_status(int32_t request);
SLEDGE_IMPORT("sledge:fetch", "headers") int32_t sledge_fetch_headers(int32_t request, void *rows, size_t capacity);
/* Waits for more of the body: its length, at least 1; 0 at the end. */
SLEDGE_IMPORT("sledge:fetch", "read") int32_t sledge_fetch_read(int32_t request, void *buffer, size_t capacity);
/* Gives it up, if it is not at its end. */
SLEDGE_IMPORT("sledge:fetch", "close") int32_t sledge_fetch_close(int32_t request);

/* Calls of services by gRPC, to where `edges` in the configuration leads (docs/internals/grpc.md). A call is a file descriptor that never waits: reading gives the
 * reply's body, writing adds to the request's, sock_shutdown ends that, poll_oneoff waits for either, closing gives the call up. */
enum { SLEDGE_RPC_ENDS = 1 };
/* A call's descriptor. Metadata as sledge_headers writes headers; `message` is what the request's body begins with. A time below 0: the invocation's own.
 * SLEDGE_RPC_ENDS: nothing is written behind the message. */
SLEDGE_IMPORT("sledge:rpc", "begin")
int32_t sledge_rpc_begin(const char *path, size_t path_length, const void *metadata, size_t metadata_length, const void *message, size_t message_length, int64_t timeout_ns, uint32_t flags);
/* The reply's headers, and when its body was read to the end its trailers, as sledge_headers writes them; -SLEDGE_EAGAIN before they are known. Among the
 * trailers there is always `grpc-status`. */
SLEDGE_IMPORT("sledge:rpc", "head") int32_t sledge_rpc_head(int32_t fd, void *rows, size_t capacity);
SLEDGE_IMPORT("sledge:rpc", "trailers") int32_t sledge_rpc_trailers(int32_t fd, void *rows, size_t capacity);
/* A call of one message, as sledge_rpc_begin with SLEDGE_RPC_ENDS. What is called runs meanwhile. 0: all of the reply is there, its headers, body and trailers behind each other, and
 * their lengths; else its descriptor. */
SLEDGE_IMPORT("sledge:rpc", "call")
int32_t sledge_rpc_call(const char *path, size_t path_length, const void *metadata, size_t metadata_length, const void *message, size_t message_length, int64_t timeout_ns, void *reply, size_t capacity, uint32_t lengths[3]);
/* The request that is answered: path and query, headers as sledge_headers writes them, and its body behind each other, and their lengths; of a body that is not there yet, or has no
 * room, UINT32_MAX: it is to be read. The answer is the length of path and headers; where they have no room, nothing is written. */
SLEDGE_IMPORT("sledge:rpc", "accept") int32_t sledge_rpc_accept(void *text, size_t capacity, uint32_t lengths[3]);
/* Adds to headers, body and trailers of the reply; -SLEDGE_EALREADY when its head has gone out. */
SLEDGE_IMPORT("sledge:rpc", "answer")
int32_t sledge_rpc_answer(const void *headers, size_t headers_length, const void *body, size_t body_length, const void *trailers, size_t trailers_length);

/* A message for the server's log (sdk/wit/note.wit). */
enum { SLEDGE_TRACE, SLEDGE_DEBUG, SLEDGE_INFO, SLEDGE_WARN, SLEDGE_ERROR };
SLEDGE_IMPORT("sledge:note", "log") int32_t sledge_message(int32_t level, const char *message, size_t length);
/* From here on the function is in that part of its work. -SLEDGE_EINVAL: its configuration has `phases`, and this is none of them. */
SLEDGE_IMPORT("sledge:note", "phase") int32_t sledge_phase(uint32_t id);
#endif

#ifdef __cplusplus
}
#endif

#endif
