/* hello-reactor: greets the person that the body names. The smallest reactor that does something.
 *
 * The greeting is put together by a constructor, that is, once, before the first request; each request starts from
 * a copy of that state, so that `served` is 0 at the start of every one. */
#include "../../sdk/c/sledge.h"

enum { NAME_BYTES_MAX = 256 };

static char greeting[16];
static int served;

__attribute__((constructor)) static void prepare(void) {
    strcpy(greeting, "Hello, ");
}

SLEDGE_HANDLE {
    char name[NAME_BYTES_MAX];
    size_t length;
    const int32_t status = sledge_read_body(name, sizeof name, &length);
    if (status != SLEDGE_OK) {
        sledge_log(status == SLEDGE_TOO_LONG ? "hello-reactor: the name has more than 256 bytes"
                                             : "hello-reactor: the body cannot be read");
        return status;
    }
    if (served++ != 0) {
        sledge_log("hello-reactor: this sandbox has served before");
        return SLEDGE_FAILED;
    }
    while (length > 0 && (name[length - 1] == '\n' || name[length - 1] == '\r')) {
        length--;
    }
    if (length == 0) {
        memcpy(name, "world", length = 5);
    }
    if (sledge_write_reply(greeting, strlen(greeting)) != SLEDGE_OK ||
        sledge_write_reply(name, length) != SLEDGE_OK) {
        return SLEDGE_FAILED;
    }
    return sledge_write_reply("!\n", 2);
}
