// Stands between a server and its C library (LD_PRELOAD): an fsync of the store's log fails when the test says so, as that of a bad disk does. What was written since the last one is on the disk then as a whole, not at
// all, or its first bytes; nothing of it is written again. The test says so in a file of numbers that both have in memory: see `fsync.rs`.
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILES_MAX = 1 << 16, HEAD_BYTES = 64 };

// What is on the disk of what was written since the last fsync.
enum { ALL, NOTHING, HEAD };

struct told {
    _Atomic uint64_t syncs; // so far
    _Atomic uint64_t from;  // the first that fails
    _Atomic uint64_t to;    // the first after it that does not
    _Atomic uint64_t way;
    _Atomic uint64_t failed; // so far
};

// What was there before a write.
struct write {
    struct write *before;
    int file;
    off_t at;
    size_t bytes;
    char was[];
};

static struct told *told;
static _Atomic char is_log[FILES_MAX];
static struct write *writes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
    const int file = open(getenv("SYNCS"), O_RDWR);
    void *at = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || at == MAP_FAILED) {
        abort();
    }
    close(file);
    told = at;
}

static int is_watched(int file) {
    return told != NULL && file >= 0 && file < FILES_MAX && is_log[file];
}

static int opened(int file, const char *path) {
    static const char name[] = "kv.redb.log";
    const size_t length = strlen(path);
    if (file >= 0 && file < FILES_MAX) {
        is_log[file] = length >= sizeof name - 1 && strcmp(path + length - (sizeof name - 1), name) == 0;
    }
    return file;
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = va_arg(more, int);
    va_end(more);
    return opened((int)syscall(SYS_openat, AT_FDCWD, path, flags, mode), path);
}

ssize_t pwrite64(int file, const void *data, size_t bytes, off64_t at) {
    if (is_watched(file)) {
        struct write *write = calloc(1, sizeof *write + bytes);
        if (write == NULL) {
            abort();
        }
        // Behind the end of the file there are zeros.
        syscall(SYS_pread64, file, write->was, bytes, at);
        pthread_mutex_lock(&lock);
        *write = (struct write){.before = writes, .file = file, .at = at, .bytes = bytes};
        writes = write;
        pthread_mutex_unlock(&lock);
    }
    return syscall(SYS_pwrite64, file, data, bytes, at);
}

// Forgets what was written to a file, the last first; `keeps` says what stays on the disk.
static void forget(int file, uint64_t keeps) {
    pthread_mutex_lock(&lock);
    for (struct write **next = &writes; *next != NULL;) {
        struct write *write = *next;
        if (write->file != file) {
            next = &write->before;
            continue;
        }
        const size_t most = keeps == ALL ? write->bytes : keeps == HEAD ? HEAD_BYTES : 0;
        const size_t kept = most < write->bytes ? most : write->bytes;
        if (kept < write->bytes) {
            syscall(SYS_pwrite64, file, write->was + kept, write->bytes - kept, write->at + (off_t)kept);
        }
        *next = write->before;
        free(write);
    }
    pthread_mutex_unlock(&lock);
}

static int synced(long call, int file) {
    if (!is_watched(file)) {
        return (int)syscall(call, file);
    }
    const uint64_t number = atomic_fetch_add(&told->syncs, 1);
    if (number >= told->from && number < told->to) {
        forget(file, told->way);
        atomic_fetch_add(&told->failed, 1);
        errno = EIO;
        return -1;
    }
    const int result = (int)syscall(call, file);
    if (result == 0) {
        forget(file, ALL);
    }
    return result;
}

int fdatasync(int file) {
    return synced(SYS_fdatasync, file);
}

int fsync(int file) {
    return synced(SYS_fsync, file);
}
