// The methods of shop.Echo, of an application: messages come back as they are. `main` of the program is init-component.
#include "../../../sdk/c/sledge.h"

SLEDGE_EXPORT("init-component") void init_component(void) {}

static char block[1 << 16];

static void set(const char *name, const char *value) {
    sledge_set_header(name, strlen(name), value, strlen(value));
}

static void trailer(const char *name, const char *value) {
    sledge_set_trailer(name, strlen(name), value, strlen(value));
}

// A header of the request, as a header of the reply by another name.
static void pass(const char *from, const char *to) {
    char value[1000];
    const int32_t length = sledge_header(from, strlen(from), value, sizeof value);
    if (length >= 0) {
        sledge_set_header(to, strlen(to), value, (size_t)length);
    }
}

static int32_t echo(void) {
    ssize_t count;
    while ((count = read(STDIN_FILENO, block, sizeof block)) > 0) {
        if (sledge_write_reply(block, (size_t)count) != SLEDGE_OK) {
            return SLEDGE_FAILED;
        }
    }
    return SLEDGE_OK;
}

SLEDGE_HANDLE {
    char target[200] = "";
    const int32_t length = sledge_target(target, sizeof target - 1);
    const char *method = length > 0 ? strrchr(target, '/') + 1 : "";
    set("content-type", "application/grpc");
    pass("x-in", "x-out");
    pass("x-in-bin", "x-out-bin");
    trailer("x-behind", "7");
    if (strcmp(method, "Unary") == 0) {
        pass("grpc-encoding", "grpc-encoding");
        trailer("grpc-status", "0");
        return echo();
    }
    if (strcmp(method, "Head") == 0) {
        // What the function sees of the request.
        pass("content-type", "x-type");
        pass("grpc-timeout", "x-timeout");
        pass("te", "x-te");
        pass("connect-protocol-version", "x-connect");
        pass("content-encoding", "x-encoding");
        trailer("grpc-status", "0");
        return echo();
    }
    if (strcmp(method, "Chat") == 0) {
        pass("grpc-encoding", "grpc-encoding");
        sledge_stream(-1);
        const int32_t result = echo();
        trailer("grpc-status", "0");
        return result;
    }
    if (strcmp(method, "Fail") == 0) {
        // google.rpc.Status { code: 9, details: [Any { type_url: "type.googleapis.com/shop.Text", value: Text { text: "why" } }] }
        trailer("grpc-status-details-bin", "CAkaJgoddHlwZS5nb29nbGVhcGlzLmNvbS9zaG9wLlRleHQSBQoDd2h5");
        trailer("grpc-message", "not%20now%2C %C3%A4");
        trailer("grpc-status", "9");
        return SLEDGE_OK;
    }
    if (strcmp(method, "Trap") == 0) {
        __builtin_trap();
    }
    trailer("grpc-status", "12");
    return SLEDGE_OK;
}
