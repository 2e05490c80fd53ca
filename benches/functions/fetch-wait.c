// Asks the server whose URL is the body for a reply that takes a minute.
#include "../../sdk/c/sledge.h"

int main(void) {
    char url[256];
    size_t length;
    if (sledge_read_body(url, sizeof url, &length) != SLEDGE_OK) {
        return 1;
    }
    const int64_t nanoseconds = 60000000000;
    const sledge_fetch_times times = {120000, 120000};
    const int32_t request = sledge_fetch_send("POST", 4, url, length, NULL, 0, &nanoseconds, sizeof nanoseconds, &times);
    return sledge_fetch_status(request) == 200 ? 0 : 1;
}
