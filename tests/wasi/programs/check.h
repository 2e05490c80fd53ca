// What these programs check with: the first check that fails ends the program, and says which one it was.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wasi/api.h>

#define CHECK(condition)                                                                      \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

// A call of WASI that has to answer with that error number.
#define ANSWERS(expected, call)                                                                         \
    do {                                                                                                \
        int answer_ = (call);                                                                           \
        if (answer_ != (expected)) {                                                                    \
            fprintf(stderr, "%s:%d: %s is %d, not %s\n", __FILE__, __LINE__, #call, answer_, #expected); \
            exit(1);                                                                                    \
        }                                                                                               \
    } while (0)
#define SUCCEEDS(call) ANSWERS(0, call)

// A call of the C library that has to fail with that errno.
#define FAILS(expected, call)                                                                             \
    do {                                                                                                  \
        errno = 0;                                                                                        \
        if ((call) != -1 || errno != (expected)) {                                                        \
            fprintf(stderr, "%s:%d: %s: errno %d, not %s\n", __FILE__, __LINE__, #call, errno, #expected); \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

// What every file can be opened with.
#define ALL_RIGHTS ((__wasi_rights_t)0x1fffffff)

// Descriptors of what is granted: the first folder for writing, the second for reading.
enum { WRITE = 3, READ = 4, CLOSED = 99 };

static inline __wasi_fd_t open_at(__wasi_fd_t folder, const char *path, __wasi_oflags_t oflags, __wasi_fdflags_t flags) {
    __wasi_fd_t fd;
    // Only files are opened for writing.
    __wasi_rights_t rights = oflags & __WASI_OFLAGS_DIRECTORY ? ALL_RIGHTS & ~__WASI_RIGHTS_FD_WRITE : ALL_RIGHTS;
    SUCCEEDS(__wasi_path_open(folder, 0, path, oflags, rights, ALL_RIGHTS, flags, &fd));
    return fd;
}
