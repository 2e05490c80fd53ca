// What can be done with folders and paths.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static __wasi_filestat_t stat_of(const char *path, __wasi_lookupflags_t flags) {
    __wasi_filestat_t stat;
    SUCCEEDS(__wasi_path_filestat_get(WRITE, flags, path, &stat));
    return stat;
}

static void make(const char *path) {
    SUCCEEDS(__wasi_fd_close(open_at(WRITE, path, __WASI_OFLAGS_CREAT, 0)));
}

static void create_and_remove(void) {
    SUCCEEDS(__wasi_path_create_directory(WRITE, "dir"));
    ANSWERS(__WASI_ERRNO_EXIST, __wasi_path_create_directory(WRITE, "dir"));
    ANSWERS(__WASI_ERRNO_NOENT, __wasi_path_create_directory(WRITE, "none/dir"));
    SUCCEEDS(__wasi_path_create_directory(WRITE, "dir/inner/"));
    ANSWERS(__WASI_ERRNO_NOTEMPTY, __wasi_path_remove_directory(WRITE, "dir"));
    ANSWERS(__WASI_ERRNO_ISDIR, __wasi_path_unlink_file(WRITE, "dir/inner"));
    SUCCEEDS(__wasi_path_remove_directory(WRITE, "dir/inner/"));
    ANSWERS(__WASI_ERRNO_NOENT, __wasi_path_remove_directory(WRITE, "dir/inner"));
    make("dir/file");
    ANSWERS(__WASI_ERRNO_NOTDIR, __wasi_path_remove_directory(WRITE, "dir/file"));
    ANSWERS(__WASI_ERRNO_NOTDIR, __wasi_path_unlink_file(WRITE, "dir/file/"));
    SUCCEEDS(__wasi_path_unlink_file(WRITE, "dir/./file"));
    ANSWERS(__WASI_ERRNO_NOENT, __wasi_path_unlink_file(WRITE, "dir/file"));
    CHECK(stat_of("dir", 0).filetype == __WASI_FILETYPE_DIRECTORY);
    SUCCEEDS(__wasi_fd_sync(WRITE));
    __wasi_filestat_t stat;
    SUCCEEDS(__wasi_fd_filestat_get(WRITE, &stat));
    CHECK(stat.filetype == __WASI_FILETYPE_DIRECTORY);
    SUCCEEDS(__wasi_fd_filestat_set_times(WRITE, 0, 7000000000, __WASI_FSTFLAGS_MTIM));
    SUCCEEDS(__wasi_fd_filestat_get(WRITE, &stat));
    CHECK(stat.mtim == 7000000000);
}

static void renamed(void) {
    make("from");
    SUCCEEDS(__wasi_path_rename(WRITE, "from", WRITE, "dir/to"));
    ANSWERS(__WASI_ERRNO_NOENT, __wasi_path_rename(WRITE, "from", WRITE, "x"));
    SUCCEEDS(__wasi_path_create_directory(WRITE, "empty"));
    ANSWERS(__WASI_ERRNO_ISDIR, __wasi_path_rename(WRITE, "dir/to", WRITE, "empty"));
    ANSWERS(__WASI_ERRNO_NOTDIR, __wasi_path_rename(WRITE, "empty", WRITE, "dir/to"));
    ANSWERS(__WASI_ERRNO_NOTEMPTY, __wasi_path_rename(WRITE, "empty", WRITE, "dir"));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_path_rename(WRITE, "dir", WRITE, "dir/below"));
    ANSWERS(__WASI_ERRNO_NOTDIR, __wasi_path_rename(WRITE, "dir/to/", WRITE, "x"));
    // From one open folder to another, within the grant.
    __wasi_fd_t dir = open_at(WRITE, "dir", __WASI_OFLAGS_DIRECTORY, 0), empty = open_at(WRITE, "empty", __WASI_OFLAGS_DIRECTORY, 0);
    SUCCEEDS(__wasi_path_rename(dir, "to", empty, "to"));
    SUCCEEDS(__wasi_path_unlink_file(WRITE, "empty/to"));
    SUCCEEDS(__wasi_fd_close(dir));
    SUCCEEDS(__wasi_fd_close(empty));
    SUCCEEDS(__wasi_path_remove_directory(WRITE, "empty"));
}

static void linked(void) {
    make("one");
    SUCCEEDS(__wasi_path_link(WRITE, 0, "one", WRITE, "two"));
    CHECK(stat_of("one", 0).nlink == 2 && stat_of("one", 0).ino == stat_of("two", 0).ino);
    ANSWERS(__WASI_ERRNO_EXIST, __wasi_path_link(WRITE, 0, "one", WRITE, "two"));
    ANSWERS(__WASI_ERRNO_PERM, __wasi_path_link(WRITE, 0, "dir", WRITE, "three"));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_path_link(WRITE, __WASI_LOOKUPFLAGS_SYMLINK_FOLLOW, "one", WRITE, "three"));
    SUCCEEDS(__wasi_path_unlink_file(WRITE, "two"));
}

static void symbolic(void) {
    uint8_t target[10];
    __wasi_size_t used;
    __wasi_fd_t fd;
    SUCCEEDS(__wasi_path_symlink("one", WRITE, "link"));
    ANSWERS(__WASI_ERRNO_EXIST, __wasi_path_symlink("one", WRITE, "link"));
    SUCCEEDS(__wasi_path_readlink(WRITE, "link", target, sizeof target, &used));
    CHECK(used == 3 && !memcmp(target, "one", 3));
    SUCCEEDS(__wasi_path_readlink(WRITE, "link", target, 2, &used));
    CHECK(used == 2);
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_path_readlink(WRITE, "one", target, sizeof target, &used));
    CHECK(stat_of("link", 0).filetype == __WASI_FILETYPE_SYMBOLIC_LINK);
    CHECK(stat_of("link", __WASI_LOOKUPFLAGS_SYMLINK_FOLLOW).ino == stat_of("one", 0).ino);
    // What ends with a slash, or with a dot behind one, is a folder, be it by way of a link.
    __wasi_filestat_t stat;
    SUCCEEDS(__wasi_path_symlink("dir", WRITE, "link-to-dir"));
    CHECK(stat_of("link-to-dir", 0).filetype == __WASI_FILETYPE_SYMBOLIC_LINK);
    CHECK(stat_of("link-to-dir/", 0).filetype == __WASI_FILETYPE_DIRECTORY);
    CHECK(stat_of("link-to-dir/.", 0).filetype == __WASI_FILETYPE_DIRECTORY);
    ANSWERS(__WASI_ERRNO_NOTDIR, __wasi_path_filestat_get(WRITE, 0, "one/", &stat));
    ANSWERS(__WASI_ERRNO_NOTDIR, __wasi_path_filestat_get(WRITE, 0, "one/.", &stat));
    SUCCEEDS(__wasi_path_unlink_file(WRITE, "link-to-dir"));
    ANSWERS(__WASI_ERRNO_LOOP, __wasi_path_open(WRITE, 0, "link", 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    SUCCEEDS(__wasi_path_open(WRITE, __WASI_LOOKUPFLAGS_SYMLINK_FOLLOW, "link", 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    SUCCEEDS(__wasi_fd_close(fd));
    // Times of the link and of what it names are two things.
    SUCCEEDS(__wasi_path_filestat_set_times(WRITE, 0, "link", 1000, 2000, __WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_MTIM));
    CHECK(stat_of("link", 0).mtim == 2000 && stat_of("one", 0).mtim != 2000);
    SUCCEEDS(__wasi_path_filestat_set_times(WRITE, __WASI_LOOKUPFLAGS_SYMLINK_FOLLOW, "link", 0, 3000, __WASI_FSTFLAGS_MTIM));
    CHECK(stat_of("one", 0).mtim == 3000 && stat_of("link", 0).mtim == 2000);
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_path_filestat_set_times(WRITE, 0, "one", 0, 0, __WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_ATIM_NOW));
    ANSWERS(__WASI_ERRNO_NOENT, __wasi_path_filestat_set_times(WRITE, 0, "none", 0, 0, __WASI_FSTFLAGS_ATIM));
    // One that names itself, and one that names nothing.
    SUCCEEDS(__wasi_path_symlink("loop", WRITE, "loop"));
    ANSWERS(__WASI_ERRNO_LOOP, __wasi_path_open(WRITE, 1, "loop", 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    ANSWERS(__WASI_ERRNO_LOOP, __wasi_path_filestat_get(WRITE, 1, "loop/x", &stat));
    SUCCEEDS(__wasi_path_symlink("none", WRITE, "dangling"));
    ANSWERS(__WASI_ERRNO_NOENT, __wasi_path_open(WRITE, 1, "dangling", 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    SUCCEEDS(__wasi_path_unlink_file(WRITE, "loop"));
    SUCCEEDS(__wasi_path_unlink_file(WRITE, "dangling"));
    SUCCEEDS(__wasi_path_unlink_file(WRITE, "link"));
}

// A listing in small pieces has every name once, and each cookie goes on behind its entry.
static void listed(void) {
    enum { FILES = 200 };
    char name[32];
    SUCCEEDS(__wasi_path_create_directory(WRITE, "many"));
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "many/file-%d", i);
        make(name);
    }
    __wasi_fd_t fd = open_at(WRITE, "many", __WASI_OFLAGS_DIRECTORY, 0);
    for (unsigned room = 40; room < 4000; room = room * 3 + 1) {
        int seen[FILES] = {0}, dots = 0;
        uint8_t buffer[4000];
        __wasi_dircookie_t cookie = 0;
        __wasi_size_t used;
        do {
            SUCCEEDS(__wasi_fd_readdir(fd, buffer, room, cookie, &used));
            CHECK(used <= room);
            unsigned at = 0;
            for (__wasi_dirent_t entry; at + sizeof entry <= used; at += sizeof entry + entry.d_namlen) {
                memcpy(&entry, buffer + at, sizeof entry);
                if (at + sizeof entry + entry.d_namlen > used) break;
                const char *text = (const char *)buffer + at + sizeof entry;
                cookie = entry.d_next;
                if (*text == '.') {
                    dots++;
                    CHECK(entry.d_type == __WASI_FILETYPE_DIRECTORY);
                    continue;
                }
                CHECK(!memcmp(text, "file-", 5) && entry.d_type == __WASI_FILETYPE_REGULAR_FILE && entry.d_ino != 0);
                snprintf(name, sizeof name, "%.*s", (int)entry.d_namlen, text);
                seen[atoi(name + 5)]++;
            }
            CHECK(at > 0 || used < room);
        } while (used == room);
        CHECK(dots == 2);
        for (int i = 0; i < FILES; i++) CHECK(seen[i] == 1);
    }
    ANSWERS(__WASI_ERRNO_NOTDIR, __wasi_fd_readdir(open_at(WRITE, "one", 0, 0), 0, 0, 0, (__wasi_size_t *)name));
    SUCCEEDS(__wasi_fd_close(fd));
    // Through the C library, which goes back to the beginning too.
    DIR *dir = opendir("/w/many");
    CHECK(dir);
    for (int round = 0; round < 2; round++, rewinddir(dir)) {
        int count = 0;
        while (readdir(dir)) count++;
        CHECK(count == FILES + 2);
    }
    CHECK(closedir(dir) == 0);
}

static void granted(void) {
    __wasi_prestat_t prestat;
    uint8_t name[8];
    SUCCEEDS(__wasi_fd_prestat_get(WRITE, &prestat));
    CHECK(prestat.tag == __WASI_PREOPENTYPE_DIR && prestat.u.dir.pr_name_len == 2);
    SUCCEEDS(__wasi_fd_prestat_dir_name(WRITE, name, 2));
    CHECK(!memcmp(name, "/w", 2));
    ANSWERS(__WASI_ERRNO_NAMETOOLONG, __wasi_fd_prestat_dir_name(WRITE, name, 1));
    SUCCEEDS(__wasi_fd_prestat_get(READ, &prestat));
    SUCCEEDS(__wasi_fd_prestat_get(READ + 1, &prestat));
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_prestat_get(READ + 2, &prestat));
    // What was opened is nothing that was granted.
    __wasi_fd_t fd = open_at(WRITE, "dir", __WASI_OFLAGS_DIRECTORY, 0);
    ANSWERS(__WASI_ERRNO_BADF, __wasi_fd_prestat_get(fd, &prestat));
    __wasi_fdstat_t stat;
    SUCCEEDS(__wasi_fd_fdstat_get(fd, &stat));
    CHECK(stat.fs_filetype == __WASI_FILETYPE_DIRECTORY && !(stat.fs_rights_base & __WASI_RIGHTS_FD_SEEK));
    SUCCEEDS(__wasi_fd_close(fd));
}

static void opened(void) {
    __wasi_fd_t fd;
    ANSWERS(__WASI_ERRNO_EXIST, __wasi_path_open(WRITE, 0, "one", __WASI_OFLAGS_CREAT | __WASI_OFLAGS_EXCL, ALL_RIGHTS, 0, 0, &fd));
    ANSWERS(__WASI_ERRNO_NOTDIR, __wasi_path_open(WRITE, 0, "one", __WASI_OFLAGS_DIRECTORY, 0, 0, 0, &fd));
    ANSWERS(__WASI_ERRNO_NOTDIR, __wasi_path_open(WRITE, 0, "one/", 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    ANSWERS(__WASI_ERRNO_ISDIR, __wasi_path_open(WRITE, 0, "dir", 0, __WASI_RIGHTS_FD_WRITE, 0, 0, &fd));
    ANSWERS(__WASI_ERRNO_NOENT, __wasi_path_open(WRITE, 0, "", 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_path_open(WRITE, 2, "one", 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_path_open(WRITE, 0, "one", 0x10, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_path_open(WRITE, 0, "one", 0, __WASI_RIGHTS_FD_READ, 0, 0x20, &fd));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_path_open(WRITE, 0, "x", __WASI_OFLAGS_CREAT | __WASI_OFLAGS_DIRECTORY, 0, 0, 0, &fd));
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    ANSWERS(__WASI_ERRNO_NAMETOOLONG, __wasi_path_open(WRITE, 0, name, 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    ANSWERS(__WASI_ERRNO_ILSEQ, __wasi_path_open(WRITE, 0, "\xff", 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
    static char path[5000];
    for (unsigned at = 0; at + 2 < sizeof path; at += 2) memcpy(path + at, "./", 2);
    ANSWERS(__WASI_ERRNO_NAMETOOLONG, __wasi_path_open(WRITE, 0, path, 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
}

int main(void) {
    create_and_remove();
    renamed();
    linked();
    symbolic();
    listed();
    granted();
    opened();
    puts("folders");
}
