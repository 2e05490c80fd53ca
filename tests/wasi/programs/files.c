// What can be done with a file: contents, position, size, times, flags, rights.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static __wasi_fd_t fd;

static size_t put(const char *text) {
    __wasi_ciovec_t list[] = {{(const uint8_t *)text, 1}, {(const uint8_t *)text + 1, 0}, {(const uint8_t *)text + 1, strlen(text) - 1}};
    __wasi_size_t count;
    SUCCEEDS(__wasi_fd_write(fd, list, 3, &count));
    return count;
}

static uint64_t position(void) {
    __wasi_filesize_t at;
    SUCCEEDS(__wasi_fd_tell(fd, &at));
    return at;
}

static uint64_t size(void) {
    __wasi_filestat_t stat;
    SUCCEEDS(__wasi_fd_filestat_get(fd, &stat));
    CHECK(stat.filetype == __WASI_FILETYPE_REGULAR_FILE && stat.nlink == 1);
    return stat.size;
}

static void contents(void) {
    uint8_t first[4] = {0}, rest[100] = {0};
    __wasi_iovec_t list[] = {{first, 4}, {rest, sizeof rest}};
    __wasi_size_t count;
    __wasi_filesize_t at;
    CHECK(put("hello world") == 11 && position() == 11 && size() == 11);
    SUCCEEDS(__wasi_fd_read(fd, list, 2, &count));
    CHECK(count == 0);
    SUCCEEDS(__wasi_fd_seek(fd, 1, __WASI_WHENCE_SET, &at));
    CHECK(at == 1);
    SUCCEEDS(__wasi_fd_read(fd, list, 2, &count));
    CHECK(count == 10 && !memcmp(first, "ello", 4) && !memcmp(rest, " world", 7));
    SUCCEEDS(__wasi_fd_seek(fd, -3, __WASI_WHENCE_CUR, &at));
    CHECK(at == 8);
    SUCCEEDS(__wasi_fd_seek(fd, 5, __WASI_WHENCE_END, &at));
    CHECK(at == 16 && size() == 11);
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_seek(fd, -1, __WASI_WHENCE_SET, &at));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_seek(fd, -100, __WASI_WHENCE_END, &at));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_seek(fd, 0, 3, &at));
    CHECK(position() == 16);
    // At an offset, the position stays.
    __wasi_ciovec_t more = {(const uint8_t *)"J", 1};
    SUCCEEDS(__wasi_fd_pwrite(fd, &more, 1, 0, &count));
    SUCCEEDS(__wasi_fd_pread(fd, list, 1, 0, &count));
    CHECK(count == 4 && !memcmp(first, "Jell", 4) && position() == 16);
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_pread(fd, list, 1, UINT64_MAX, &count));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_pwrite(fd, &more, 1, UINT64_MAX, &count));
    // Buffers of a read may overlap each other and the list.
    __wasi_iovec_t over[2] = {{(uint8_t *)over, 4}, {(uint8_t *)over, 7}};
    SUCCEEDS(__wasi_fd_pread(fd, over, 2, 0, &count));
    CHECK(count == 11 && !memcmp(over, "o world", 7));
}

static void sizes(void) {
    SUCCEEDS(__wasi_fd_filestat_set_size(fd, 4));
    CHECK(size() == 4);
    SUCCEEDS(__wasi_fd_filestat_set_size(fd, 100));
    CHECK(size() == 100);
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_filestat_set_size(fd, UINT64_MAX));
    int allocated = __wasi_fd_allocate(fd, 90, 20);
    CHECK(allocated == __WASI_ERRNO_NOTSUP || (allocated == 0 && size() == 110));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_allocate(fd, 0, 0));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_allocate(fd, UINT64_MAX, 1));
    for (int advice = 0; advice < 6; advice++) SUCCEEDS(__wasi_fd_advise(fd, 0, 0, advice));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_advise(fd, 0, 10, 6));
    SUCCEEDS(__wasi_fd_sync(fd));
    SUCCEEDS(__wasi_fd_datasync(fd));
}

static void times(void) {
    __wasi_filestat_t before, after;
    SUCCEEDS(__wasi_fd_filestat_get(fd, &before));
    SUCCEEDS(__wasi_fd_filestat_set_times(fd, 1000000007, 5, __WASI_FSTFLAGS_ATIM));
    SUCCEEDS(__wasi_fd_filestat_get(fd, &after));
    CHECK(after.atim == 1000000007 && after.mtim == before.mtim);
    SUCCEEDS(__wasi_fd_filestat_set_times(fd, 5, 3000000009, __WASI_FSTFLAGS_MTIM));
    SUCCEEDS(__wasi_fd_filestat_get(fd, &after));
    CHECK(after.atim == 1000000007 && after.mtim == 3000000009);
    SUCCEEDS(__wasi_fd_filestat_set_times(fd, 5, 5, __WASI_FSTFLAGS_ATIM_NOW | __WASI_FSTFLAGS_MTIM_NOW));
    SUCCEEDS(__wasi_fd_filestat_get(fd, &after));
    CHECK(after.atim >= before.ctim && after.mtim >= before.ctim);
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_filestat_set_times(fd, 0, 0, __WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_ATIM_NOW));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_filestat_set_times(fd, 0, 0, __WASI_FSTFLAGS_MTIM | __WASI_FSTFLAGS_MTIM_NOW));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_filestat_set_times(fd, 0, 0, 0x10));
}

static void flags(void) {
    __wasi_fdstat_t stat;
    SUCCEEDS(__wasi_fd_fdstat_get(fd, &stat));
    CHECK(stat.fs_filetype == __WASI_FILETYPE_REGULAR_FILE && stat.fs_flags == 0);
    SUCCEEDS(__wasi_fd_filestat_set_size(fd, 3));
    SUCCEEDS(__wasi_fd_fdstat_set_flags(fd, __WASI_FDFLAGS_APPEND | __WASI_FDFLAGS_NONBLOCK));
    SUCCEEDS(__wasi_fd_fdstat_get(fd, &stat));
    CHECK(stat.fs_flags == (__WASI_FDFLAGS_APPEND | __WASI_FDFLAGS_NONBLOCK));
    __wasi_filesize_t at;
    SUCCEEDS(__wasi_fd_seek(fd, 0, __WASI_WHENCE_SET, &at));
    CHECK(put("end") == 3 && size() == 6);
    SUCCEEDS(__wasi_fd_fdstat_set_flags(fd, 0));
    SUCCEEDS(__wasi_fd_seek(fd, 0, __WASI_WHENCE_SET, &at));
    CHECK(put("end") == 3 && size() == 6);
    // When a file is flushed is said when it is opened.
    ANSWERS(__WASI_ERRNO_NOTSUP, __wasi_fd_fdstat_set_flags(fd, __WASI_FDFLAGS_SYNC));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_fd_fdstat_set_flags(fd, 0x20));
    __wasi_fd_t synced = open_at(WRITE, "synced", __WASI_OFLAGS_CREAT, __WASI_FDFLAGS_SYNC | __WASI_FDFLAGS_DSYNC | __WASI_FDFLAGS_RSYNC);
    SUCCEEDS(__wasi_fd_fdstat_get(synced, &stat));
    CHECK(stat.fs_flags == (__WASI_FDFLAGS_SYNC | __WASI_FDFLAGS_DSYNC | __WASI_FDFLAGS_RSYNC));
    SUCCEEDS(__wasi_fd_close(synced));
}

static void renumbered(void) {
    __wasi_fd_t a = open_at(WRITE, "a", __WASI_OFLAGS_CREAT, 0), b = open_at(WRITE, "b", __WASI_OFLAGS_CREAT, 0);
    CHECK(b == a + 1);
    SUCCEEDS(__wasi_fd_renumber(a, a));
    SUCCEEDS(__wasi_fd_renumber(a, b));
    __wasi_fdstat_t stat;
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_fdstat_get(a, &stat));
    SUCCEEDS(__wasi_fd_fdstat_get(b, &stat));
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_renumber(b, a));
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_renumber(a, b));
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_renumber(a, a));
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_renumber(b, UINT32_MAX));
    // The lowest free number is the next: what POSIX programs redirect by.
    CHECK(open_at(WRITE, "a", 0, 0) == a);
    SUCCEEDS(__wasi_fd_close(a));
    SUCCEEDS(__wasi_fd_close(b));
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_close(b));
}

static void rights(void) {
    __wasi_fdstat_t stat;
    __wasi_size_t count;
    __wasi_filesize_t at;
    uint8_t byte;
    __wasi_iovec_t in = {&byte, 1};
    __wasi_ciovec_t out = {&byte, 1};
    __wasi_fd_t only;
    SUCCEEDS(__wasi_path_open(WRITE, 0, "a", 0, __WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_TELL, 0, 0, &only));
    SUCCEEDS(__wasi_fd_fdstat_get(only, &stat));
    CHECK(stat.fs_rights_base == (__WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_TELL));
    SUCCEEDS(__wasi_fd_read(only, &in, 1, &count));
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_write(only, &out, 1, &count));
    SUCCEEDS(__wasi_fd_tell(only, &at));
    SUCCEEDS(__wasi_fd_seek(only, 0, __WASI_WHENCE_CUR, &at));
    ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_fd_seek(only, 0, __WASI_WHENCE_SET, &at));
    ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_fd_pread(only, &in, 1, 0, &count));
    ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_fd_allocate(only, 0, 1));
    ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_fd_fdstat_set_rights(only, ALL_RIGHTS, 0));
    SUCCEEDS(__wasi_fd_fdstat_set_rights(only, 0, 0));
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_read(only, &in, 1, &count));
    SUCCEEDS(__wasi_fd_close(only));
    // Rights that a folder does not pass on cannot be had through it.
    __wasi_fd_t folder = open_at(WRITE, ".", __WASI_OFLAGS_DIRECTORY, 0);
    SUCCEEDS(__wasi_fd_fdstat_get(folder, &stat));
    SUCCEEDS(__wasi_fd_fdstat_set_rights(folder, stat.fs_rights_base & ~__WASI_RIGHTS_PATH_CREATE_FILE,
                                         stat.fs_rights_inheriting & ~(__WASI_RIGHTS_FD_WRITE | __WASI_RIGHTS_FD_SYNC)));
    ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_open(folder, 0, "a", 0, __WASI_RIGHTS_FD_WRITE, 0, 0, &only));
    ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_open(folder, 0, "new", __WASI_OFLAGS_CREAT, __WASI_RIGHTS_FD_READ, 0, 0, &only));
    SUCCEEDS(__wasi_path_open(folder, 0, "a", 0, ALL_RIGHTS & ~__WASI_RIGHTS_FD_WRITE, 0, 0, &only));
    ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_fd_sync(only));
    SUCCEEDS(__wasi_fd_close(only));
    SUCCEEDS(__wasi_fd_close(folder));
}

// The same through the C library.
static void libc(void) {
    int file = open("/w/libc", O_CREAT | O_EXCL | O_RDWR, 0644);
    CHECK(file >= 0);
    FAILS(EEXIST, open("/w/libc", O_CREAT | O_EXCL | O_RDWR, 0644));
    CHECK(write(file, "12345678", 8) == 8 && lseek(file, 2, SEEK_SET) == 2);
    char text[9] = {0};
    CHECK(read(file, text, 3) == 3 && !strcmp(text, "345"));
    CHECK(ftruncate(file, 5) == 0);
    struct stat stat;
    CHECK(fstat(file, &stat) == 0 && stat.st_size == 5 && S_ISREG(stat.st_mode));
    CHECK(!isatty(file) && errno == ENOTTY);
    CHECK(close(file) == 0);
    FAILS(EBADF, close(file));
    file = open("/w/libc", O_WRONLY | O_TRUNC);
    CHECK(file >= 0 && fstat(file, &stat) == 0 && stat.st_size == 0);
    FAILS(EBADF, read(file, text, 1));
    CHECK(close(file) == 0);
    FAILS(ENOENT, open("/w/nothing", O_RDONLY));
    FAILS(ENOTDIR, open("/w/libc", O_RDONLY | O_DIRECTORY));
    FAILS(EISDIR, open("/w/.", O_WRONLY));
    FAILS(ENOTDIR, open("/w/libc/x", O_RDONLY));
    FILE *stream = fopen("/w/stdio", "w+");
    CHECK(stream && fprintf(stream, "%d lines\n", 3) == 8);
    rewind(stream);
    int lines;
    CHECK(fscanf(stream, "%d", &lines) == 1 && lines == 3 && fclose(stream) == 0);
}

int main(void) {
    fd = open_at(WRITE, "file", __WASI_OFLAGS_CREAT, 0);
    contents();
    sizes();
    times();
    flags();
    renumbered();
    rights();
    libc();
    puts("files");
}
