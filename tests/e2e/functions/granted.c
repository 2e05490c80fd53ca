// Says what it may have of the machine, a line for each line of its input: `env NAME`, `read PATH`, `write PATH TEXT`, `get URL`.
#include "lines.h"

#include <errno.h>
#include <stdlib.h>

static void carry_out(const char *word, const char *name, const char *text) {
    static char line[128];
    if (strcmp(word, "env") == 0) {
        const char *value = getenv(name);
        printf("%s\n", value ? value : "none");
    } else if (strcmp(word, "get") == 0) {
        const int32_t request = sledge_fetch_send("GET", 3, name, strlen(name), NULL, 0, NULL, 0, NULL);
        const int32_t status = request < 0 ? request : sledge_fetch_status(request);
        printf("%s\n", status == 200 ? "reached" : status == -EACCES ? "not allowed" : "failed");
    } else {
        FILE *file = fopen(name, strcmp(word, "read") == 0 ? "r" : "w");
        if (!file) {
            printf("%s\n", strerror(errno));
            return;
        }
        if (strcmp(word, "read") == 0) {
            printf("%s\n", fgets(line, sizeof line, file) ? line : "");
        } else {
            printf("%s\n", fputs(text, file) < 0 ? "failed" : "written");
        }
        fclose(file);
    }
}

int main(void) {
    return each_line(carry_out);
}
