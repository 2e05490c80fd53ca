// Carries out the lines of its input on the key-value store, and replies with a line for each; also as the method of a service, and calls such methods by gRPC.
#include "lines.h"

#include <errno.h>
#include <time.h>
#include <wasi/api.h>

static char value[1 << 12], status[8] = "0";

static void nap(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static int32_t bucket(void) {
    return sledge_kv_open("b", 1);
}

static long long number(const char *key) {
    const int32_t got = sledge_kv_get(bucket(), key, strlen(key), value, sizeof value - 1, NULL);
    value[got < 0 ? 0 : got] = 0;
    return got < 0 ? -1 : strtoll(value, NULL, 10);
}

static void put(const char *key, long long to) {
    const int length = snprintf(value, sizeof value, "%lld", to);
    sledge_kv_set(bucket(), key, strlen(key), value, (size_t)length, NULL);
}

static void wait_for(int32_t fd) {
    __wasi_subscription_t in = {0};
    __wasi_event_t out;
    __wasi_size_t events;
    in.u.tag = __WASI_EVENTTYPE_FD_READ;
    in.u.u.fd_read.file_descriptor = fd;
    if (__wasi_poll_oneoff(&in, &out, 1, &events) != 0) {
        exit(8);
    }
}

// A call of a method with lines that are separated by `;`: its status, and what it has replied in one line.
static void rpc(const char *method, const char *text, uint32_t flags) {
    static char path[200], message[1 << 12], rows[1 << 12];
    snprintf(path, sizeof path, "/%s", method);
    size_t length = 0;
    for (; text[length] != 0; length++) {
        message[length] = text[length] == ';' ? '\n' : text[length];
    }
    const int32_t fd = sledge_rpc_begin(path, strlen(path), NULL, 0, message, length, -1, flags);
    if (fd < 0) {
        printf("refused %d\n", (int)fd);
        return;
    }
    size_t all = 0;
    for (ssize_t count; (count = read(fd, message + all, sizeof message - all)) != 0;) {
        if (count > 0) {
            all += (size_t)count;
        } else if (errno == EAGAIN) {
            wait_for(fd);
        } else {
            exit(8);
        }
    }
    const int32_t bytes = sledge_rpc_trailers(fd, rows, sizeof rows);
    close(fd);
    for (int32_t at = 0; at < bytes;) {
        uint32_t name, size;
        memcpy(&name, rows + at, 4);
        memcpy(&size, rows + at + 4 + name, 4);
        if (name == 11 && memcmp(rows + at + 4, "grpc-status", 11) == 0) {
            printf("rpc %.*s ", (int)size, rows + at + 8 + name);
        }
        at += 8 + (int32_t)(name + size);
    }
    for (size_t at = 0; at < all; at++) {
        putchar(message[at] == '\n' ? ';' : message[at]);
    }
    printf("\n");
}

static void carry_out(const char *word, const char *name, const char *text) {
    if (strcmp(word, "get") == 0) {
        printf("%lld\n", number(name));
    } else if (strcmp(word, "set") == 0) {
        put(name, atoll(text));
        printf("set\n");
    } else if (strcmp(word, "next") == 0) {
        const long long before = number(name);
        put(name, before + 1);
        printf("next %lld\n", before + 1);
    } else if (strcmp(word, "pause") == 0) {
        nap(atol(name));
        printf("paused\n");
    } else if (strcmp(word, "trap") == 0) {
        __builtin_trap();
    } else if (strcmp(word, "status") == 0) {
        snprintf(status, sizeof status, "%s", name);
    } else if (strcmp(word, "rpc") == 0) {
        rpc(name, text, SLEDGE_RPC_ENDS);
    } else if (strcmp(word, "open") == 0) {
        rpc(name, text, 0);
    } else {
        exit(9);
    }
}

int main(void) {
    char target[200] = "";
    const int32_t bytes = sledge_target(target, sizeof target - 1);
    const int is_method = bytes > 0 && strncmp(target, "/t.", 3) == 0;
    if (is_method) {
        const char grpc[] = "application/grpc";
        sledge_set_header("content-type", 12, grpc, strlen(grpc));
    }
    const int result = each_line(carry_out);
    if (is_method) {
        sledge_set_trailer("grpc-status", 11, status, strlen(status));
    }
    return result;
}
