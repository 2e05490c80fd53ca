// Carries out the lines of its input on files below /w, and prints a line for each: the answer, or why it failed. Words are separated by one space.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char input[1 << 16], text[1 << 16];

static const char *path(const char *name) {
    static char paths[2][300];
    static int turn;
    char *path = paths[turn ^= 1];
    snprintf(path, sizeof paths[0], "/w/%s", name);
    return path;
}

static void told(int failed) { puts(failed ? strerror(errno) : "ok"); }

static void get(const char *name) {
    FILE *file = fopen(path(name), "r");
    if (!file) return told(1);
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    text[bytes] = 0;
    fclose(file);
    printf("%s\n", text);
}

// Writes to a file that is opened so. What it was, and what it is then, is read through a descriptor that was open before, if there was the file.
static void put(const char *name, const char *what, int flags) {
    char before[64] = "", after[64] = "";
    int old = open(path(name), O_RDONLY);
    if (old >= 0) pread(old, before, sizeof before - 1, 0);
    int new = open(path(name), O_WRONLY | flags, 0644);
    if (new < 0) return told(1);
    ssize_t written = write(new, what, strlen(what));
    if (old < 0) old = open(path(name), O_RDONLY);
    pread(old, after, sizeof after - 1, 0);
    if (written < 0) {
        told(1);
    } else {
        printf("%s -> %s\n", before, after);
    }
    close(new);
    close(old);
}

static int order(const void *left, const void *right) { return strcmp(*(char *const *)left, *(char *const *)right); }

static void list(const char *name) {
    DIR *dir = opendir(path(name));
    if (!dir) return told(1);
    char *names[500];
    int count = 0;
    for (struct dirent *entry; count < 500 && (entry = readdir(dir));) {
        if (*entry->d_name == '.') continue;
        names[count] = malloc(strlen(entry->d_name) + 2);
        sprintf(names[count++], "%s%s", entry->d_name, entry->d_type == DT_DIR ? "/" : "");
    }
    closedir(dir);
    qsort(names, count, sizeof *names, order);
    for (int i = 0; i < count; i++) printf("%s ", names[i]);
    puts("");
}

// Writes so many bytes, and says how many there was room for, and what comes next.
static void fill(const char *name, long bytes) {
    int file = open(path(name), O_WRONLY | O_CREAT, 0644);
    if (file < 0) return told(1);
    enum { PIECE = 4096 };
    memset(text, 'x', PIECE);
    long done = 0;
    ssize_t now = 0;
    while (done < bytes) {
        long left = bytes - done;
        now = write(file, text, left < PIECE ? left : PIECE);
        if (now < 0) break;
        done += now;
    }
    printf("%ld %s\n", done, now < 0 ? strerror(errno) : "ok");
    close(file);
}

static void status(const char *name) {
    struct stat stat;
    if (lstat(path(name), &stat) != 0) return told(1);
    printf("%lld bytes, %llu names, %s\n", (long long)stat.st_size, (unsigned long long)stat.st_nlink,
           S_ISDIR(stat.st_mode) ? "folder" : S_ISLNK(stat.st_mode) ? "link" : "file");
}

static void carry_out(const char *word, const char *name, const char *rest) {
    if (!strcmp(word, "get")) return get(name);
    if (!strcmp(word, "set")) return put(name, rest, O_CREAT | O_TRUNC);
    if (!strcmp(word, "over")) return put(name, rest, 0);
    if (!strcmp(word, "append")) return put(name, rest, O_APPEND);
    if (!strcmp(word, "remove")) return told(unlink(path(name)) != 0);
    if (!strcmp(word, "rename")) return told(rename(path(name), path(rest)) != 0);
    if (!strcmp(word, "link")) return told(link(path(name), path(rest)) != 0);
    if (!strcmp(word, "symlink")) return told(symlink(rest, path(name)) != 0);
    if (!strcmp(word, "mkdir")) return told(mkdir(path(name), 0755) != 0);
    if (!strcmp(word, "rmdir")) return told(rmdir(path(name)) != 0);
    if (!strcmp(word, "list")) return list(name);
    if (!strcmp(word, "size")) return told(truncate(path(name), atol(rest)) != 0);
    if (!strcmp(word, "fill")) return fill(name, atol(rest));
    if (!strcmp(word, "stat")) return status(name);
    if (!strcmp(word, "sleep")) {
        nanosleep(&(struct timespec){atol(name) / 1000, atol(name) % 1000 * 1000000}, NULL);
        return told(0);
    }
    if (!strcmp(word, "loop")) {
        for (volatile int i = 0;; i++) {
        }
    }
    puts("what?");
}

int main(void) {
    input[fread(input, 1, sizeof input - 1, stdin)] = 0;
    for (char *next = input; *next;) {
        char *end = next + strcspn(next, "\n"), *rest = *end ? end + 1 : end;
        *end = 0;
        char *word = strtok(next, " "), *name = strtok(NULL, " "), *more = strtok(NULL, "");
        carry_out(word ? word : "", name ? name : "", more ? more : "");
        next = rest;
    }
}
