/* Makes a function of a command, an example that reads its standard input and writes its standard output, for `wasmtime serve`: linked with
 * it, a reactor that handles a request of wasi:http. What the C library imports of WASI preview 1 is defined here, over the body and the reply.
 *
 * The imports are those of component.wit, as the component model's canonical ABI flattens them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HTTP "wasi:http/types@0.2.0"
#define STREAMS "wasi:io/streams@0.2.0"
#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))

/* Most that a stream takes at once. */
enum { WRITE_BYTES_MAX = 4096, READ_BYTES_MAX = 1 << 16 };
/* WASI preview 1: bad file descriptor, that cannot seek. */
enum { BADF = 8, SPIPE = 70 };

/* Results: zero at the first byte says that it went well. Room for the largest, whose error is an `error-code`. */
typedef struct {
    _Alignas(8) uint8_t failed;
    union {
        _Alignas(4) int32_t handle;
        struct {
            uint8_t *bytes;
            size_t count;
        } list;
        uint64_t error[7];
    } of;
} result;
typedef struct {
    _Alignas(4) uint8_t failed;
    int32_t handle;
} handle_result;
typedef struct {
    _Alignas(4) uint8_t failed;
    uint8_t *bytes;
    size_t count;
} list_result;

IMPORT(HTTP, "[method]incoming-request.consume") void request_consume(int32_t request, handle_result *);
IMPORT(HTTP, "[method]incoming-body.stream") void incoming_body_stream(int32_t body, handle_result *);
IMPORT(HTTP, "[constructor]fields") int32_t fields_new(void);
IMPORT(HTTP, "[method]fields.append")
void fields_append(int32_t fields, const char *name, size_t name_bytes, const char *value, size_t value_bytes, result *);
IMPORT(HTTP, "[constructor]outgoing-response") int32_t response_new(int32_t fields);
IMPORT(HTTP, "[method]outgoing-response.body") void response_body(int32_t response, handle_result *);
IMPORT(HTTP, "[method]outgoing-body.write") void outgoing_body_write(int32_t body, handle_result *);
IMPORT(HTTP, "[static]outgoing-body.finish") void outgoing_body_finish(int32_t body, int32_t some, int32_t trailers, result *);
IMPORT(HTTP, "[static]response-outparam.set")
void outparam_set(int32_t param, int32_t failed, int32_t response, int32_t, int64_t, int32_t, int32_t, int32_t, int32_t);
IMPORT(STREAMS, "[method]input-stream.blocking-read") void stream_read(int32_t stream, int64_t bytes_max, list_result *);
IMPORT(STREAMS, "[method]output-stream.blocking-write-and-flush")
void stream_write(int32_t stream, const uint8_t *bytes, size_t count, result *);
IMPORT(STREAMS, "[resource-drop]output-stream") void stream_drop(int32_t stream);

int main(void);

typedef struct {
    uint8_t *bytes;
    size_t count, room;
} buffer;

static buffer input, output;
static size_t consumed;

static void append(buffer *to, const uint8_t *bytes, size_t count) {
    if (to->room - to->count < count) {
        to->room = to->room * 2 + count;
        to->bytes = realloc(to->bytes, to->room);
        if (to->bytes == NULL) {
            abort();
        }
    }
    memcpy(to->bytes + to->count, bytes, count);
    to->count += count;
}

static void check(uint8_t failed) {
    if (failed) {
        __builtin_trap();
    }
}

static void read_body(int32_t request) {
    handle_result body, stream;
    request_consume(request, &body);
    check(body.failed);
    incoming_body_stream(body.handle, &stream);
    check(stream.failed);
    /* It fails when it is closed; a client that has gone asks for no reply. */
    for (list_result part; stream_read(stream.handle, READ_BYTES_MAX, &part), !part.failed; free(part.bytes)) {
        append(&input, part.bytes, part.count);
    }
}

static void reply(int32_t response_out) {
    static const char name[] = "content-length";
    char length[24];
    const int digits = snprintf(length, sizeof length, "%zu", output.count);
    const int32_t headers = fields_new();
    result done;
    fields_append(headers, name, sizeof name - 1, length, (size_t)digits, &done);
    check(done.failed);
    const int32_t response = response_new(headers);
    handle_result body, stream;
    response_body(response, &body);
    check(body.failed);
    outparam_set(response_out, 0, response, 0, 0, 0, 0, 0, 0);
    outgoing_body_write(body.handle, &stream);
    check(stream.failed);
    for (size_t sent = 0; sent < output.count;) {
        const size_t left = output.count - sent, part = left < WRITE_BYTES_MAX ? left : WRITE_BYTES_MAX;
        stream_write(stream.handle, output.bytes + sent, part, &done);
        check(done.failed);
        sent += part;
    }
    stream_drop(stream.handle);
    outgoing_body_finish(body.handle, 0, 0, &done);
    check(done.failed);
}

__attribute__((export_name("wasi:http/incoming-handler@0.2.0#handle"))) void handle(int32_t request, int32_t response_out) {
    read_body(request);
    const int status = main();
    check(status != 0 || fflush(stdout) != 0);
    reply(response_out);
}

/* Room for what the host hands over. */
__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *old, size_t old_bytes, size_t alignment, size_t bytes) {
    (void)old_bytes, (void)alignment;
    return realloc(old, bytes);
}

/* ---- WASI preview 1, as the C library calls it ------------------------------------------------ */

typedef struct {
    uint8_t *bytes;
    size_t count;
} vector;

int32_t __imported_wasi_snapshot_preview1_fd_read(int32_t fd, int32_t vectors, int32_t count, int32_t sum) {
    if (fd != 0) {
        return BADF;
    }
    size_t *got = (size_t *)sum;
    *got = 0;
    for (const vector *part = (const vector *)vectors; count-- > 0; part++) {
        const size_t left = input.count - consumed, bytes = left < part->count ? left : part->count;
        memcpy(part->bytes, input.bytes + consumed, bytes);
        consumed += bytes;
        *got += bytes;
    }
    return 0;
}

int32_t __imported_wasi_snapshot_preview1_fd_write(int32_t fd, int32_t vectors, int32_t count, int32_t sum) {
    if (fd != 1 && fd != 2) {
        return BADF;
    }
    size_t *put = (size_t *)sum;
    *put = 0;
    for (const vector *part = (const vector *)vectors; count-- > 0; part++) {
        if (fd == 1) {
            append(&output, part->bytes, part->count);
        }
        *put += part->count;
    }
    return 0;
}

int32_t __imported_wasi_snapshot_preview1_fd_fdstat_get(int32_t fd, int32_t to) {
    if (fd < 0 || fd > 2) {
        return BADF;
    }
    memset((void *)to, 0, 24);
    return 0;
}

int32_t __imported_wasi_snapshot_preview1_fd_seek(int32_t fd, int64_t offset, int32_t whence, int32_t to) {
    (void)fd, (void)offset, (void)whence, (void)to;
    return SPIPE;
}

int32_t __imported_wasi_snapshot_preview1_fd_close(int32_t fd) {
    (void)fd;
    return 0;
}

_Noreturn void __imported_wasi_snapshot_preview1_proc_exit(int32_t status) {
    (void)status;
    __builtin_trap();
}
