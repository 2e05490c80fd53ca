// Serves the methods of `t.Callee`, and carries out the lines of its input when it is asked for anything else: calls by gRPC.
#include "lines.h"

#include <errno.h>
#include <time.h>
#include <wasi/api.h>

static char block[1 << 17], rows[1 << 14];

static void nap(int ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

// The value of a name among rows; an empty text where there is none.
static const char *find(const char *list, int32_t bytes, const char *wanted) {
    static char value[4][1000];
    static int next;
    char *into = value[next++ % 4];
    into[0] = 0;
    for (int32_t at = 0; at < bytes;) {
        uint32_t name, length;
        memcpy(&name, list + at, 4);
        memcpy(&length, list + at + 4 + name, 4);
        if (name == strlen(wanted) && memcmp(list + at + 4, wanted, name) == 0) {
            memcpy(into, list + at + 8 + name, length);
            into[length] = 0;
        }
        at += 8 + (int32_t)(name + length);
    }
    return into;
}

static void trailer(const char *name, const char *value) {
    sledge_set_trailer(name, strlen(name), value, strlen(value));
}

static void echo(void) {
    ssize_t count;
    while ((count = read(STDIN_FILENO, block, sizeof block)) > 0) {
        sledge_write_reply(block, (size_t)count);
    }
}

static int await(const int32_t *fds, int count, uint8_t type, int timeout_ms, int *ready);

// Writes, and waits for room where there is none; whether that had to be.
static int put(const char *bytes, size_t count) {
    const int32_t out = STDOUT_FILENO;
    int ready, waited = 0;
    for (size_t at = 0; at < count;) {
        const ssize_t written = write(out, bytes + at, count - at);
        if (written >= 0) {
            at += (size_t)written;
        } else if (errno == EAGAIN) {
            waited = 1;
            await(&out, 1, __WASI_EVENTTYPE_FD_WRITE, 20000, &ready);
        } else {
            exit(8);
        }
    }
    return waited;
}

// Echoes where neither reading nor writing waits by itself; whether reading had to be waited for.
static const char *duplex(void) {
    const int32_t in = STDIN_FILENO;
    int ready, waited = 0;
    for (;;) {
        const ssize_t count = read(in, block, sizeof block);
        if (count == 0) {
            return waited ? "waited" : "at once";
        }
        if (count > 0) {
            put(block, (size_t)count);
        } else if (errno == EAGAIN) {
            waited = 1;
            await(&in, 1, __WASI_EVENTTYPE_FD_READ, 20000, &ready);
        } else {
            exit(8);
        }
    }
}

static void never_wait(void) {
    for (__wasi_fd_t fd = 0; fd < 2; fd++) {
        __wasi_fdstat_t stat;
        if (__wasi_fd_fdstat_set_flags(fd, __WASI_FDFLAGS_NONBLOCK) != 0 || __wasi_fd_fdstat_get(fd, &stat) != 0 ||
            stat.fs_flags != __WASI_FDFLAGS_NONBLOCK) {
            exit(8);
        }
    }
}

// Adds a row.
static size_t add(char *list, size_t length, const char *name, const char *value) {
    for (int i = 0; i < 2; i++) {
        const char *part = i == 0 ? name : value;
        const uint32_t size = (uint32_t)strlen(part);
        memcpy(list + length, &size, 4);
        memcpy(list + length + 4, part, size);
        length += 4 + size;
    }
    return length;
}

// Answers with what the request is: its path, metadata and body, in one call each.
static int whole(void) {
    uint32_t lengths[3];
    static char trail[200];
    const int32_t needed = sledge_rpc_accept(block, 4, lengths), bytes = sledge_rpc_accept(block, sizeof block, lengths);
    if (needed != bytes || bytes != (int32_t)(lengths[0] + lengths[1])) {
        exit(8);
    }
    const char *body = lengths[2] == UINT32_MAX ? "none" : block + bytes;
    const int body_bytes = lengths[2] == UINT32_MAX ? 4 : (int)lengths[2];
    const char *in = find(block + lengths[0], (int32_t)lengths[1], "x-in");
    const int length = snprintf(rows, sizeof rows, "%.*s %s %.*s", (int)lengths[0], block, in, body_bytes, body);
    const size_t head = add(block, 0, "x-echo", "yes"), tail = add(trail, add(trail, 0, "x-behind", "7"), "grpc-status", "0");
    if (sledge_rpc_answer(block, head, rows, (size_t)length, trail, tail) != 0) {
        exit(8);
    }
    if (body_bytes > 0) {
        return 0;
    }
    // When its head is on its way nothing can be added.
    sledge_stream(-1);
    return sledge_rpc_answer(block, head, "", 0, trail, tail) == -EALREADY ? 0 : 8;
}

static int serve(const char *method) {
    const char grpc[] = "application/grpc";
    sledge_set_header("content-type", 12, grpc, strlen(grpc));
    if (strcmp(method, "Echo") == 0) {
        sledge_set_header("x-echo", 6, "yes", 3);
        echo();
    } else if (strcmp(method, "Whole") == 0) {
        return whole();
    } else if (strcmp(method, "Head") == 0) {
        const int32_t bytes = sledge_headers(rows, sizeof rows);
        sledge_write_reply(rows, (size_t)bytes);
    } else if (strcmp(method, "None") == 0) {
        trailer("grpc-message", "no such thing");
        trailer("grpc-status", "5");
        return 0;
    } else if (strcmp(method, "Only") == 0) {
        sledge_set_header("grpc-status", 11, "7", 1);
        return 0;
    } else if (strcmp(method, "Silent") == 0) {
        sledge_write_reply("x", 1);
        return 0;
    } else if (strcmp(method, "Http") == 0) {
        sledge_status(503);
        return 0;
    } else if (strcmp(method, "Trap") == 0) {
        __builtin_trap();
    } else if (strcmp(method, "Exit") == 0) {
        exit(3);
    } else if (strcmp(method, "Nap") == 0) {
        nap(200);
    } else if (strcmp(method, "Late") == 0) {
        sledge_kv_set(sledge_kv_open("signals", 7), "late", 4, "", 0, NULL);
        for (;;) {
            nap(10000);
        }
    } else if (strcmp(method, "Chat") == 0) {
        sledge_set_header("x-echo", 6, "yes", 3);
        sledge_stream(-1);
        echo();
    } else if (strcmp(method, "Duplex") == 0) {
        never_wait();
        sledge_stream(-1);
        trailer("x-behind", duplex());
        trailer("grpc-status", "0");
        return 0;
    } else if (strcmp(method, "Burst") == 0) {
        never_wait();
        sledge_stream(-1);
        trailer("x-behind", put(block, sizeof block) ? "waited" : "at once");
        trailer("grpc-status", "0");
        return 0;
    } else if (strcmp(method, "Torn") == 0) {
        sledge_stream(-1);
        sledge_write_reply("torn", 4);
        nap(30);
        __builtin_trap();
    } else if (strcmp(method, "Tired") == 0) {
        sledge_stream(-1);
        sledge_write_reply("tired", 5);
        for (;;) {
            nap(10000);
        }
    } else if (strcmp(method, "Large") == 0) {
        memset(block, 'x', sizeof block);
        sledge_stream(-1);
        for (int i = 0; i < 16; i++) {
            sledge_write_reply(block, sizeof block);
        }
    } else {
        return 9;
    }
    trailer("x-behind", "7");
    trailer("grpc-status", "0");
    return 0;
}

static int32_t begin(const char *path, const char *body, int64_t timeout_ms, uint32_t flags) {
    char full[200];
    snprintf(full, sizeof full, "/%s", path);
    const size_t length = add(rows, 0, "x-in", "seven");
    return sledge_rpc_begin(full, strlen(full), rows, length, body, strlen(body), timeout_ms < 0 ? -1 : timeout_ms * 1000000, flags);
}

// Waits until one of them can be read or written, or for so long. How many are ready; `ready` says which.
static int await(const int32_t *fds, int count, uint8_t type, int timeout_ms, int *ready) {
    __wasi_subscription_t in[8] = {0};
    __wasi_event_t out[8];
    for (int i = 0; i < count; i++) {
        in[i].userdata = (uint64_t)i;
        in[i].u.tag = type;
        in[i].u.u.fd_read.file_descriptor = fds[i];
    }
    in[count].userdata = 99;
    in[count].u.tag = __WASI_EVENTTYPE_CLOCK;
    in[count].u.u.clock.id = __WASI_CLOCKID_MONOTONIC;
    in[count].u.u.clock.timeout = (uint64_t)timeout_ms * 1000000;
    __wasi_size_t events;
    if (__wasi_poll_oneoff(in, out, (size_t)count + 1, &events) != 0) {
        exit(8);
    }
    int found = 0;
    for (__wasi_size_t i = 0; i < events; i++) {
        if (out[i].userdata != 99) {
            ready[found++] = (int)out[i].userdata;
        }
    }
    return found;
}

// Reads a reply to its end, and says how long it is and what it begins with.
static void tell(int32_t fd) {
    int32_t all = 0;
    char begins[41] = "";
    for (;;) {
        const ssize_t count = read(fd, block, sizeof block);
        if (count < 0) {
            int ready;
            if (errno != EAGAIN || await(&fd, 1, __WASI_EVENTTYPE_FD_READ, 20000, &ready) == 0) {
                printf("errno %d\n", errno);
                return;
            }
            continue;
        }
        if (count == 0) {
            break;
        }
        for (ssize_t at = 0; at < count && all + at < 40; at++) {
            begins[all + at] = block[at];
        }
        all += (int32_t)count;
    }
    static char head[1 << 14];
    const int32_t head_bytes = sledge_rpc_head(fd, head, sizeof head);
    const int32_t bytes = sledge_rpc_trailers(fd, rows, sizeof rows);
    printf(
        "%s %s|%d %s|%s %s\n", find(rows, bytes, "grpc-status"), find(rows, bytes, "grpc-message"), (int)all, begins, find(head, head_bytes, "x-echo"),
        find(rows, bytes, "x-behind")
    );
}

static void chat(int32_t fd, int rounds) {
    int ready;
    // Its head comes before anything is said.
    while (sledge_rpc_head(fd, rows, sizeof rows) == -EAGAIN) {
        await(&fd, 1, __WASI_EVENTTYPE_FD_READ, 20000, &ready);
    }
    printf("%s", find(rows, sledge_rpc_head(fd, rows, sizeof rows), "x-echo"));
    for (int i = 0; i < rounds; i++) {
        const char said = (char)('a' + i);
        char got = 0;
        printf(" %d", (int)write(fd, &said, 1));
        while (read(fd, &got, 1) < 0 && errno == EAGAIN) {
            await(&fd, 1, __WASI_EVENTTYPE_FD_READ, 20000, &ready);
        }
        printf("%c", got);
    }
    printf(" %d %d", (int)sledge_rpc_trailers(fd, rows, sizeof rows), (int)__wasi_sock_shutdown(fd, __WASI_SDFLAGS_WR));
    printf(" %d ", (int)write(fd, "x", 1) < 0 ? errno : 0);
    tell(fd);
}

// Writes as much as is taken while nothing is read, then the rest while all is read.
static void flood(int32_t fd, int32_t bytes) {
    memset(block, 'y', sizeof block);
    int32_t written = 0, got = 0, waits = 0;
    int ready;
    while (written < bytes) {
        const int32_t left = bytes - written;
        const ssize_t count = write(fd, block, (size_t)(left < 30000 ? left : 30000));
        if (count > 0) {
            written += (int32_t)count;
        } else if (errno == EAGAIN) {
            waits++;
            const ssize_t came = read(fd, block, sizeof block);
            if (came > 0) {
                got += (int32_t)came;
            } else if (await(&fd, 1, __WASI_EVENTTYPE_FD_WRITE, 10, &ready) == 0) {
                await(&fd, 1, __WASI_EVENTTYPE_FD_READ, 1000, &ready);
            }
        } else {
            printf("errno %d ", errno);
            break;
        }
    }
    if (__wasi_sock_shutdown(fd, __WASI_SDFLAGS_WR) != 0) {
        exit(8);
    }
    printf("%d %s %d+", (int)written, waits > 0 ? "waited" : "at once", (int)got > 0);
    int32_t rest = 0;
    for (;;) {
        const ssize_t count = read(fd, block, sizeof block);
        if (count == 0) {
            break;
        }
        if (count > 0) {
            rest += (int32_t)count;
        } else {
            await(&fd, 1, __WASI_EVENTTYPE_FD_READ, 20000, &ready);
        }
    }
    printf("%d ", (int)(got + rest));
    tell(fd);
}

static void carry_out(const char *word, const char *name, const char *text) {
    if (strcmp(word, "call") == 0) {
        const int32_t fd = begin(name, text, -1, SLEDGE_RPC_ENDS);
        if (fd < 0) {
            printf("refused %d\n", (int)fd);
            return;
        }
        tell(fd);
        close(fd);
    } else if (strcmp(word, "whole") == 0) {
        char full[200];
        snprintf(full, sizeof full, "/%s", name);
        uint32_t lengths[3];
        const size_t length = add(rows, 0, "x-in", "seven");
        const int32_t fd = sledge_rpc_call(full, strlen(full), rows, length, text, strlen(text), -1, block, 1000, lengths);
        if (fd < 0) {
            printf("refused %d\n", (int)fd);
        } else if (fd > 0) {
            printf("later ");
            tell(fd);
            close(fd);
        } else {
            const char *body = block + lengths[0], *trail = body + lengths[1];
            const int32_t head = (int32_t)lengths[0], behind = (int32_t)lengths[2];
            printf(
                "at once %s %s|%d %.*s|%s %s\n", find(trail, behind, "grpc-status"), find(trail, behind, "grpc-message"), (int)lengths[1],
                (int)lengths[1], body, find(block, head, "x-echo"), find(trail, behind, "x-behind")
            );
        }
    } else if (strcmp(word, "deep") == 0) {
        // What is replied is replied.
        const int32_t fd = begin(name, text, -1, SLEDGE_RPC_ENDS);
        if (fd < 0) {
            printf("refused %d\n", (int)fd);
            return;
        }
        int ready;
        await(&fd, 1, __WASI_EVENTTYPE_FD_READ, 20000, &ready);
        const ssize_t count = read(fd, block, sizeof block);
        fwrite(block, 1, count < 0 ? 0 : (size_t)count, stdout);
    } else if (strcmp(word, "x") == 0) {
        puts("nothing to do");
    } else if (strcmp(word, "within") == 0) {
        const int32_t fd = begin(text, "", atoi(name), SLEDGE_RPC_ENDS);
        tell(fd);
        close(fd);
    } else if (strcmp(word, "both") == 0) {
        int32_t fds[2] = {begin(name, text, -1, SLEDGE_RPC_ENDS), begin(name, text, -1, SLEDGE_RPC_ENDS)};
        int ready[2];
        printf("%d ", await(fds, 2, __WASI_EVENTTYPE_FD_READ, 1, ready));
        tell(fds[1]);
        tell(fds[0]);
    } else if (strcmp(word, "drop") == 0) {
        const int32_t fd = begin(name, text, -1, SLEDGE_RPC_ENDS);
        const int32_t signals = sledge_kv_open("signals", 7);
        while (sledge_kv_exists(signals, "late", 4) == 0) {
            nap(2);
        }
        sledge_kv_delete(signals, "late", 4);
        printf("closed %d\n", close(fd));
    } else if (strcmp(word, "chat") == 0) {
        chat(begin(name, "", -1, 0), atoi(text));
    } else if (strcmp(word, "flood") == 0) {
        flood(begin(name, "", -1, 0), atoi(text));
    } else if (strcmp(word, "many") == 0) {
        int32_t last, count = 0;
        while ((last = begin(name, text, -1, SLEDGE_RPC_ENDS)) >= 0) {
            count++;
        }
        printf("%d %d\n", (int)count, (int)last);
    } else if (strcmp(word, "stat") == 0) {
        const int32_t fd = begin(name, text, -1, SLEDGE_RPC_ENDS);
        __wasi_fdstat_t stat;
        const int error = __wasi_fd_fdstat_get(fd, &stat);
        printf("%d %d %d %d\n", error, stat.fs_filetype, stat.fs_flags, (int)__wasi_sock_shutdown(fd, __WASI_SDFLAGS_RD));
    } else {
        exit(9);
    }
}

int main(void) {
    char target[200] = "";
    const int32_t bytes = sledge_target(target, sizeof target - 1);
    if (bytes > 0 && strncmp(target, "/t.Callee/", 10) == 0) {
        return serve(target + 10);
    }
    return each_line(carry_out);
}
