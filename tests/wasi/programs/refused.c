// What is refused, and how: paths that lead out, changes to what may only be read, descriptors that are not open, addresses and sizes that
// are wrong. The test that runs this has put links into the folders that lead out of them, and looks afterwards at what lies outside.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static __wasi_fd_t fd;
static __wasi_size_t used;
static __wasi_filesize_t at;
static __wasi_filestat_t stat_;
static __wasi_fdstat_t fdstat;
static uint8_t buffer[64];

static void leads_out(void) {
    static const char *const paths[] = {
        "..",          "../outside",        "/",                  "/etc/passwd", "dir/../../outside/secret", "dir/..//../outside/secret",
        "out/secret",  "absolute/secret",   "below/up/../outside/secret", "./.././outside/secret", "chain/secret",
    };
    SUCCEEDS(__wasi_path_create_directory(WRITE, "dir"));
    for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++) {
        const char *path = paths[i];
        ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_open(WRITE, 1, path, 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
        ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_filestat_get(WRITE, 1, path, &stat_));
        ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_filestat_set_times(WRITE, 1, path, 0, 0, __WASI_FSTFLAGS_MTIM));
        CHECK(__wasi_path_open(WRITE, 1, path, __WASI_OFLAGS_CREAT | __WASI_OFLAGS_TRUNC, ALL_RIGHTS, 0, 0, &fd) != 0);
        CHECK(__wasi_path_create_directory(WRITE, path) != 0);
        CHECK(__wasi_path_unlink_file(WRITE, path) != 0);
        CHECK(__wasi_path_remove_directory(WRITE, path) != 0);
        CHECK(__wasi_path_rename(WRITE, path, WRITE, "mine") != 0);
        CHECK(__wasi_path_link(WRITE, 0, path, WRITE, "mine") != 0);
    }
    static const char *const targets[] = {"../outside/new", "/tmp/sledge-must-not-be-there", "out/new", "absolute/new", "below/up/../outside/new"};
    SUCCEEDS(__wasi_fd_close(open_at(WRITE, "file", __WASI_OFLAGS_CREAT, 0)));
    for (unsigned i = 0; i < sizeof targets / sizeof *targets; i++) {
        const char *path = targets[i];
        ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_open(WRITE, 1, path, __WASI_OFLAGS_CREAT, ALL_RIGHTS, 0, 0, &fd));
        ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_create_directory(WRITE, path));
        ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_symlink("file", WRITE, path));
        ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_rename(WRITE, "file", WRITE, path));
        ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_link(WRITE, 0, "file", WRITE, path));
    }
    // A link may say what it likes but for an absolute path, and leads nowhere from there.
    ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_symlink("/etc/passwd", WRITE, "passwd"));
    SUCCEEDS(__wasi_path_symlink("../outside/secret", WRITE, "made"));
    ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_open(WRITE, 1, "made", 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_readlink(WRITE, "absolute", buffer, sizeof buffer, &used));
    // Nor does a folder that was opened below.
    __wasi_fd_t dir = open_at(WRITE, "dir", __WASI_OFLAGS_DIRECTORY, 0);
    ANSWERS(__WASI_ERRNO_NOTCAPABLE, __wasi_path_open(dir, 0, "..", 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    SUCCEEDS(__wasi_fd_close(dir));
    // A pipe would let everybody wait.
    ANSWERS(__WASI_ERRNO_NOTSUP, __wasi_path_open(WRITE, 0, "pipe", 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
}

static void only_read(void) {
    __wasi_iovec_t in = {buffer, 5};
    SUCCEEDS(__wasi_path_open(READ, 0, "kept", 0, ALL_RIGHTS & ~__WASI_RIGHTS_FD_WRITE, 0, 0, &fd));
    SUCCEEDS(__wasi_fd_read(fd, &in, 1, &used));
    CHECK(used == 4 && !memcmp(buffer, "kept", 4));
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_write(fd, (__wasi_ciovec_t *)&in, 1, &used));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_fd_filestat_set_times(fd, 0, 0, __WASI_FSTFLAGS_MTIM));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_fd_filestat_set_size(fd, 0));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_fd_allocate(fd, 0, 100));
    SUCCEEDS(__wasi_fd_sync(fd));
    SUCCEEDS(__wasi_fd_fdstat_get(fd, &fdstat));
    CHECK(!(fdstat.fs_rights_base & (__WASI_RIGHTS_FD_WRITE | __WASI_RIGHTS_FD_FILESTAT_SET_TIMES)));
    __wasi_fd_t other;
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_open(READ, 0, "kept", 0, __WASI_RIGHTS_FD_WRITE, 0, 0, &other));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_open(READ, 0, "kept", __WASI_OFLAGS_TRUNC, __WASI_RIGHTS_FD_READ, 0, 0, &other));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_open(READ, 0, "new", __WASI_OFLAGS_CREAT, __WASI_RIGHTS_FD_READ, 0, 0, &other));
    ANSWERS(__WASI_ERRNO_EXIST,
            __wasi_path_open(READ, 0, "kept", __WASI_OFLAGS_CREAT | __WASI_OFLAGS_EXCL, __WASI_RIGHTS_FD_READ, 0, 0, &other));
    // As on a read-only file system, what is there can be opened so.
    SUCCEEDS(__wasi_path_open(READ, 0, "kept", __WASI_OFLAGS_CREAT, __WASI_RIGHTS_FD_READ, 0, 0, &other));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_create_directory(READ, "new"));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_unlink_file(READ, "kept"));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_remove_directory(READ, "folder"));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_rename(READ, "kept", READ, "new"));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_link(READ, 0, "kept", READ, "new"));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_symlink("kept", READ, "new"));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_filestat_set_times(READ, 0, "kept", 0, 0, __WASI_FSTFLAGS_MTIM_NOW));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_fd_filestat_set_times(READ, 0, 0, __WASI_FSTFLAGS_MTIM_NOW));
    // A folder below it is the same, and rights that are not there cannot be asked for.
    __wasi_fd_t folder = open_at(READ, "folder", __WASI_OFLAGS_DIRECTORY, 0);
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_create_directory(folder, "new"));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_open(folder, 0, "new", __WASI_OFLAGS_CREAT, ALL_RIGHTS, 0, 0, &other));
    FAILS(EROFS, open("/r/kept", O_RDWR));
    FAILS(EROFS, open("/r/new", O_CREAT | O_WRONLY, 0644));
    FAILS(EROFS, mkdir("/r/new", 0755));
    FAILS(EROFS, unlink("/r/kept"));
    CHECK(access("/r/kept", R_OK) == 0);
}

// From one grant to the other: neither renaming nor linking, in no direction.
static void across(void) {
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_rename(READ, "kept", WRITE, "kept"));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_rename(WRITE, "file", READ, "file"));
    ANSWERS(__WASI_ERRNO_ROFS, __wasi_path_link(READ, 0, "kept", WRITE, "kept"));
    // The third folder may be written to as well.
    ANSWERS(__WASI_ERRNO_XDEV, __wasi_path_rename(WRITE, "file", READ + 1, "file"));
    ANSWERS(__WASI_ERRNO_XDEV, __wasi_path_link(WRITE, 0, "file", READ + 1, "file"));
    __wasi_fd_t below = open_at(READ + 1, ".", __WASI_OFLAGS_DIRECTORY, 0);
    ANSWERS(__WASI_ERRNO_XDEV, __wasi_path_rename(WRITE, "file", below, "file"));
    FAILS(EXDEV, rename("/w/file", "/w2/file"));
}

// Every function that takes a descriptor, with one that is not open and with one that is for something else.
static void descriptors(void) {
    __wasi_iovec_t in = {buffer, sizeof buffer};
    __wasi_ciovec_t out = {buffer, sizeof buffer};
    __wasi_prestat_t prestat;
    __wasi_roflags_t roflags;
    __wasi_fd_t file = open_at(WRITE, "file", 0, 0);
    // Not open; a stream; a file; a folder.
    static const struct { __wasi_fd_t fd; int file, folder, socket; } answers[] = {
        {CLOSED, __WASI_ERRNO_BADF, __WASI_ERRNO_BADF, __WASI_ERRNO_BADF},
        {UINT32_MAX, __WASI_ERRNO_BADF, __WASI_ERRNO_BADF, __WASI_ERRNO_BADF},
        {0, __WASI_ERRNO_BADF, __WASI_ERRNO_NOTDIR, __WASI_ERRNO_NOTSOCK},
        {0x80000003, __WASI_ERRNO_BADF, __WASI_ERRNO_BADF, __WASI_ERRNO_BADF},
        {WRITE, __WASI_ERRNO_ISDIR, 0, __WASI_ERRNO_NOTSOCK},
        {READ, __WASI_ERRNO_ISDIR, 0, __WASI_ERRNO_NOTSOCK},
    };
    for (unsigned i = 0; i < sizeof answers / sizeof *answers; i++) {
        __wasi_fd_t fd = answers[i].fd;
        int no = answers[i].file;
        ANSWERS(no, __wasi_fd_advise(fd, 0, 0, 0));
        ANSWERS(no, __wasi_fd_allocate(fd, 0, 1));
        // A folder can be flushed as a file can.
        ANSWERS(no == __WASI_ERRNO_ISDIR ? 0 : no, __wasi_fd_datasync(fd));
        ANSWERS(no, __wasi_fd_filestat_set_size(fd, 0));
        ANSWERS(no, __wasi_fd_pread(fd, &in, 1, 0, &used));
        ANSWERS(no, __wasi_fd_pwrite(fd, &out, 1, 0, &used));
        ANSWERS(no, __wasi_fd_write(fd, &out, 1, &used));
        if (fd != 0) {
            ANSWERS(no, __wasi_fd_read(fd, &in, 1, &used));
            ANSWERS(no, __wasi_fd_seek(fd, 0, 0, &at));
            ANSWERS(no, __wasi_fd_tell(fd, &at));
        }
        ANSWERS(answers[i].socket, __wasi_sock_accept(fd, 0, &file));
        ANSWERS(answers[i].socket, __wasi_sock_recv(fd, &in, 1, 0, &used, &roflags));
        ANSWERS(answers[i].socket, __wasi_sock_send(fd, &out, 1, 0, &used));
        ANSWERS(answers[i].socket, __wasi_sock_shutdown(fd, __WASI_SDFLAGS_RD));
        no = answers[i].folder;
        if (no == 0) continue;
        ANSWERS(no, __wasi_fd_readdir(fd, buffer, sizeof buffer, 0, &used));
        ANSWERS(no, __wasi_path_create_directory(fd, "x"));
        ANSWERS(no, __wasi_path_filestat_get(fd, 0, "x", &stat_));
        ANSWERS(no, __wasi_path_filestat_set_times(fd, 0, "x", 0, 0, 0));
        ANSWERS(no, __wasi_path_link(fd, 0, "x", WRITE, "y"));
        ANSWERS(no, __wasi_path_link(WRITE, 0, "x", fd, "y"));
        ANSWERS(no, __wasi_path_open(fd, 0, "x", 0, 0, 0, 0, &file));
        ANSWERS(no, __wasi_path_readlink(fd, "x", buffer, sizeof buffer, &used));
        ANSWERS(no, __wasi_path_remove_directory(fd, "x"));
        ANSWERS(no, __wasi_path_rename(fd, "x", WRITE, "y"));
        ANSWERS(no, __wasi_path_rename(WRITE, "x", fd, "y"));
        ANSWERS(no, __wasi_path_symlink("x", fd, "y"));
        ANSWERS(no, __wasi_path_unlink_file(fd, "x"));
        ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_prestat_get(fd, &prestat));
        ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_prestat_dir_name(fd, buffer, sizeof buffer));
        if (fd == 0) continue;
        ANSWERS(no, __wasi_fd_close(fd));
        ANSWERS(no, __wasi_fd_fdstat_get(fd, &fdstat));
        ANSWERS(no, __wasi_fd_fdstat_set_flags(fd, 0));
        ANSWERS(no, __wasi_fd_fdstat_set_rights(fd, 0, 0));
        ANSWERS(no, __wasi_fd_filestat_get(fd, &stat_));
        ANSWERS(no, __wasi_fd_filestat_set_times(fd, 0, 0, 0));
        ANSWERS(no, __wasi_fd_renumber(fd, 1));
        ANSWERS(no, __wasi_fd_sync(fd));
    }
    ANSWERS(__WASI_ERRNO_SPIPE, __wasi_fd_seek(0, 0, __WASI_WHENCE_SET, &at));
    ANSWERS(__WASI_ERRNO_SPIPE, __wasi_fd_tell(1, &at));
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_sync(1));
    // Streams are something that can be asked about.
    SUCCEEDS(__wasi_fd_filestat_get(1, &stat_));
    CHECK(stat_.filetype == __WASI_FILETYPE_UNKNOWN && stat_.size == 0);
}

// Addresses at which there is nothing: EFAULT, and nothing has happened.
static void addresses(void) {
    uint8_t *none = (uint8_t *)0xfffffff0;
    __wasi_fd_t file = open_at(WRITE, "file", 0, 0);
    __wasi_ciovec_t out[] = {{(const uint8_t *)"text", 4}, {none, 100}};
    __wasi_iovec_t in[] = {{buffer, 4}, {none, 100}};
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_write(file, out, 2, &used));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_pwrite(file, out, 2, 0, &used));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_write(file, out, 1, (__wasi_size_t *)none + 3));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_write(file, (__wasi_ciovec_t *)none, 2, &used));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_write(file, out, UINT32_MAX, &used));
    SUCCEEDS(__wasi_fd_filestat_get(file, &stat_));
    CHECK(stat_.size == 0);
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_read(file, in, 2, &used));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_pread(file, in, 0x20000001, 0, &used));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_readdir(WRITE, buffer, UINT32_MAX, 0, &used));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_readdir(WRITE, none, 100, 0, &used));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_filestat_get(file, (__wasi_filestat_t *)(none - 60)));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_path_filestat_get(WRITE, 0, "file", (__wasi_filestat_t *)(none - 60)));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_tell(file, (__wasi_filesize_t *)(none + 12)));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_path_open(WRITE, 0, "unmade", __WASI_OFLAGS_CREAT, ALL_RIGHTS, 0, 0, (__wasi_fd_t *)(none + 14)));
    ANSWERS(__WASI_ERRNO_NOENT, __wasi_path_filestat_get(WRITE, 0, "unmade", &stat_));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_path_readlink(WRITE, "made", none, 100, &used));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_random_get(none, 100));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_poll_oneoff((__wasi_subscription_t *)none, (__wasi_event_t *)buffer, 1, &used));
    ANSWERS(__WASI_ERRNO_FAULT, __wasi_fd_prestat_dir_name(WRITE, none + 15, 100));
    SUCCEEDS(__wasi_fd_close(file));
}

// As many descriptors as there may be, and 10^5 attempts.
static void exhausted(void) {
    int opened = 0, answer = 0;
    for (int i = 0; i < 100000; i++) {
        __wasi_fd_t one;
        answer = __wasi_path_open(WRITE, 0, "file", 0, __WASI_RIGHTS_FD_READ, 0, 0, &one);
        if (answer == 0) opened++;
    }
    CHECK(answer == __WASI_ERRNO_MFILE && opened > 200 && opened < 256);
    FAILS(EMFILE, open("/w/file", O_RDONLY));
}

int main(void) {
    leads_out();
    only_read();
    across();
    descriptors();
    addresses();
    exhausted();
    puts("refused");
}
