// What a program knows of itself and of time: arguments, environment, clocks, random numbers, waiting, its end.
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static __wasi_size_t count;

// The C library's header leaves it out.
__attribute__((import_module("wasi_snapshot_preview1"), import_name("proc_raise"))) int raise_signal(int signal);
enum { SIGNAL_TERM = 15, SIGNAL_CHLD = 16, SIGNAL_STOP = 18 };

static uint64_t now(__wasi_clockid_t id) {
    __wasi_timestamp_t time;
    SUCCEEDS(__wasi_clock_time_get(id, 1, &time));
    return time;
}

static void clocks(void) {
    __wasi_timestamp_t resolution;
    for (int id = 0; id < 2; id++) {
        uint64_t first = now(id);
        CHECK(first > 0 && now(id) >= first);
        SUCCEEDS(__wasi_clock_res_get(id, &resolution));
        CHECK(resolution > 0);
    }
    // Later than this was written.
    CHECK(now(__WASI_CLOCKID_REALTIME) > 1700000000ull * 1000000000);
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_clock_time_get((__wasi_clockid_t){2}, 0, &resolution));
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_clock_res_get((__wasi_clockid_t){77}, &resolution));
}

static void random_numbers(void) {
    static uint8_t bytes[100000], others[100000];
    SUCCEEDS(__wasi_random_get(bytes, sizeof bytes));
    SUCCEEDS(__wasi_random_get(others, sizeof others));
    CHECK(memcmp(bytes, others, sizeof bytes) != 0);
    SUCCEEDS(__wasi_random_get(bytes, 0));
}

static __wasi_subscription_t clock_subscription(__wasi_clockid_t id, uint64_t timeout, __wasi_subclockflags_t flags) {
    __wasi_subscription_t one = {.userdata = timeout, .u.tag = __WASI_EVENTTYPE_CLOCK};
    one.u.u.clock = (__wasi_subscription_clock_t){.id = id, .timeout = timeout, .flags = flags};
    return one;
}

static __wasi_subscription_t fd_subscription(__wasi_eventtype_t type, __wasi_fd_t fd) {
    __wasi_subscription_t one = {.userdata = fd, .u.tag = type};
    one.u.u.fd_read.file_descriptor = fd;
    return one;
}

static void waiting(void) {
    enum { TIME = 60000000 };
    __wasi_event_t events[4];
    // Relative and absolute, on both clocks; the earlier of two is the event.
    for (int id = 0; id < 2; id++) {
        for (int flags = 0; flags < 2; flags++) {
            uint64_t begun = now(1), base = flags ? now(id) : 0;
            __wasi_subscription_t list[] = {clock_subscription(id, base + 1000ull * TIME, flags), clock_subscription(id, base + TIME, flags)};
            SUCCEEDS(__wasi_poll_oneoff(list, events, 2, &count));
            CHECK(count == 1 && events[0].userdata == base + TIME && events[0].error == 0 && events[0].type == __WASI_EVENTTYPE_CLOCK);
            CHECK(now(1) - begun >= TIME - 1000000);
        }
    }
    // A time that is over, and what is no clock.
    __wasi_subscription_t over[] = {clock_subscription(1, 1, 1), clock_subscription((__wasi_clockid_t){9}, 1, 0)};
    SUCCEEDS(__wasi_poll_oneoff(over, events, 2, &count));
    CHECK(count == 2 && events[0].error == 0 && events[1].error == __WASI_ERRNO_INVAL);
    // There is no waiting for a file, for a reply, or for what is not open.
    __wasi_fd_t file = open_at(WRITE, "polled", __WASI_OFLAGS_CREAT, 0);
    __wasi_ciovec_t text = {(const uint8_t *)"text", 4};
    __wasi_filesize_t at;
    SUCCEEDS(__wasi_fd_write(file, &text, 1, &count));
    SUCCEEDS(__wasi_fd_seek(file, 1, __WASI_WHENCE_SET, &at));
    __wasi_subscription_t ready[] = {
        fd_subscription(__WASI_EVENTTYPE_FD_READ, file),
        fd_subscription(__WASI_EVENTTYPE_FD_WRITE, 1),
        fd_subscription(__WASI_EVENTTYPE_FD_READ, CLOSED),
        clock_subscription(1, 3600ull * 1000000000, 0),
    };
    SUCCEEDS(__wasi_poll_oneoff(ready, events, 4, &count));
    CHECK(events[0].fd_readwrite.nbytes == 3);
    CHECK(count == 3 && events[0].error == 0 && events[1].error == 0 && events[2].error == __WASI_ERRNO_BADF);
    CHECK(events[1].type == __WASI_EVENTTYPE_FD_WRITE && events[1].userdata == 1);
    // The two lists in one place.
    union { __wasi_subscription_t in[2]; __wasi_event_t out[2]; } both = {.in = {ready[0], ready[1]}};
    SUCCEEDS(__wasi_poll_oneoff(both.in, both.out, 2, &count));
    CHECK(count == 2 && both.out[0].userdata == file && both.out[1].userdata == 1);
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_poll_oneoff(ready, events, 0, &count));
    static __wasi_subscription_t many[2000];
    static __wasi_event_t told[2000];
    ANSWERS(__WASI_ERRNO_INVAL, __wasi_poll_oneoff(many, told, 2000, &count));
    struct timespec time = {.tv_nsec = TIME};
    uint64_t begun = now(1);
    CHECK(nanosleep(&time, NULL) == 0 && now(1) - begun >= TIME);
    struct pollfd polled = {.fd = 1, .events = POLLOUT};
    CHECK(poll(&polled, 1, -1) == 1 && polled.revents == POLLOUT);
}

int main(int argc, char **argv) {
    CHECK(argc == 4 && !strcmp(argv[1], "one") && !strcmp(argv[2], "") && !strcmp(argv[3], "th ree"));
    CHECK(!strcmp(getenv("NAME"), "value") && !strcmp(getenv("EMPTY"), "") && getenv("PATH") == NULL);
    clocks();
    random_numbers();
    waiting();
    SUCCEEDS(__wasi_sched_yield());
    SUCCEEDS(raise_signal(0));
    SUCCEEDS(raise_signal(SIGNAL_CHLD));
    ANSWERS(__WASI_ERRNO_NOTSUP, raise_signal(SIGNAL_STOP));
    ANSWERS(__WASI_ERRNO_INVAL, raise_signal(77));
    puts("process");
    fflush(stdout);
    if (!strcmp(getenv("END"), "raise")) raise_signal(SIGNAL_TERM);
    exit(atoi(getenv("END")));
}
