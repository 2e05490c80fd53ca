// Answers with the file below /data that the body names. It leaves it open, and more besides.
#include <errno.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    char path[200] = "/data/";
    size_t bytes = fread(path + 6, 1, sizeof path - 7, stdin);
    path[6 + bytes] = 0;
    for (int i = 0; i < 20; i++) fopen(path, "r");
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("%s", strerror(errno));
        return 0;
    }
    static char text[1 << 16];
    while ((bytes = fread(text, 1, sizeof text, file)) > 0) fwrite(text, 1, bytes, stdout);
}
