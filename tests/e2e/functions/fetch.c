// Carries out the lines of its input, and replies with a line for each.
#include "lines.h"

static char text[1 << 16], headers[1 << 12];
static size_t headers_length;

static void put(const char *part) {
    const uint32_t length = (uint32_t)strlen(part);
    memcpy(headers + headers_length, &length, 4);
    memcpy(headers + headers_length + 4, part, length);
    headers_length += 4 + length;
}

static int32_t begin(const char *method, const char *url, const char *body, const sledge_fetch_times *times) {
    return sledge_fetch_send(method, strlen(method), url, strlen(url), headers, headers_length, body, strlen(body), times);
}

// Status, length and beginning of a response; closes it.
static void tell(int32_t request) {
    int32_t status = request < 0 ? request : sledge_fetch_status(request);
    if (status < 0) {
        printf("error %d\n", -status);
    } else {
        int32_t all = 0, count;
        char begins[41] = "";
        while ((count = sledge_fetch_read(request, text, sizeof text)) > 0) {
            for (int32_t at = 0; at < count && all + at < 40; at++) {
                begins[all + at] = text[at];
            }
            all += count;
        }
        printf("%d %d %s\n", status, count < 0 ? count : all, begins);
    }
    if (request >= 0) {
        sledge_fetch_close(request);
    }
}

static void carry_out(const char *word, const char *url, const char *body) {
    if (strcmp(word, "header") == 0) {
        put(url);
        put(body);
    } else if (strcmp(word, "both") == 0) {
        // Both are on their way before the first is waited for.
        const int32_t first = begin("POST", url, body, NULL), second = begin("POST", url, body, NULL);
        tell(second);
        tell(first);
    } else if (strcmp(word, "within") == 0) {
        // Long enough for what comes at once, on a busy machine too.
        const sledge_fetch_times times = {2000, 2000};
        tell(begin("POST", url, body, &times));
    } else if (strcmp(word, "headers") == 0) {
        const int32_t request = begin("GET", url, body, NULL);
        const int32_t bytes = sledge_fetch_headers(request, text, sizeof text);
        print_headers(text, bytes);
        printf("%s\n", bytes < 0 ? "none" : "");
        sledge_fetch_close(request);
    } else if (strcmp(word, "wait") == 0) {
        const int64_t time = strtoll(body, NULL, 10);
        const int32_t request = sledge_fetch_send("POST", 4, url, strlen(url), NULL, 0, &time, 8, NULL);
        printf("%d\n", sledge_fetch_status(request));
    } else if (strcmp(word, "pieces") == 0) {
        const int32_t request = begin("POST", url, body, NULL);
        int32_t count;
        while ((count = sledge_fetch_read(request, text, 3)) > 0) {
            printf("%.*s,", (int)count, text);
        }
        printf("%d %d\n", count, sledge_fetch_read(request, text, 3));
    } else if (strcmp(word, "many") == 0) {
        int32_t last = 0, count = 0;
        while ((last = begin("POST", url, body, NULL)) >= 0) {
            count++;
        }
        printf("%d %d\n", count, last);
    } else if (strcmp(word, "fault") == 0) {
        const int32_t bad = sledge_fetch_send("GET", 3, (char *)0xfffffff0, 64, NULL, 0, NULL, 0, NULL);
        const int32_t request = begin("POST", url, "x", NULL);
        printf("%d %d %d %d\n", bad, sledge_fetch_read(request, (char *)0xfffffff0, 64), sledge_fetch_read(99, text, 1), sledge_fetch_close(99));
    } else {
        tell(begin(word, url, body, NULL));
    }
}

int main(void) {
    return each_line(carry_out);
}
