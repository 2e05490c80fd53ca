/* echo: the body is the reply, as it comes, without ever holding all of it. */
#include <stddef.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 << 10 };

int main(void) {
    static char chunk[CHUNK_BYTES];
    ssize_t got;
    while ((got = read(STDIN_FILENO, chunk, sizeof chunk)) > 0) {
        for (ssize_t sent = 0, count; sent < got; sent += count) {
            count = write(STDOUT_FILENO, chunk + sent, (size_t)(got - sent));
            if (count <= 0) {
                return 1;
            }
        }
    }
    return got == 0 ? 0 : 1;
}
