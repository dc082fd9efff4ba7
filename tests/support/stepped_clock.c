/* Preloaded: the wall clock, moved by as many seconds as the file STEPPED_CLOCK says at the moment. With FAST_CLOCK CLOCK_MONOTONIC runs by so
   many parts in a million faster than CLOCK_MONOTONIC_RAW, which is slower for it. No other clock is touched. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static long step(void) {
    char text[24] = {0};
    const char *path = getenv("STEPPED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
    close(file);
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int answer = (int)syscall(SYS_clock_gettime, clock, at);
    if (answer == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += step();
    const char *ppm = getenv("FAST_CLOCK");
    if (answer == 0 && ppm && clock == CLOCK_MONOTONIC_RAW) {
        long long nanos = at->tv_sec * 1000000000LL + at->tv_nsec;
        nanos -= nanos / (1000000 + atol(ppm)) * atol(ppm);
        at->tv_sec = nanos / 1000000000;
        at->tv_nsec = nanos % 1000000000;
    }
    return answer;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

int timespec_get(struct timespec *at, int base) { return clock_gettime(CLOCK_REALTIME, at) == 0 ? base : 0; }

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

/* The C library's wait for a condition, if librdkafka uses that (see crates/neli-kafka/src/librdkafka/conditions.rs), until a time that is looked
   at again every 50 ms: a step makes a wait that is under way longer or shorter, as one of the kernel's clock would. */
int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until) {
    static int (*wait)(cnd_t *, mtx_t *, const struct timespec *);
    if (!wait) *(void **)&wait = dlsym(RTLD_NEXT, "cnd_timedwait");
    for (;;) {
        struct timespec now, slice;
        clock_gettime(CLOCK_REALTIME, &now);
        if (now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec)) return thrd_timedout;
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &slice);
        slice.tv_nsec += 50000000;
        if (slice.tv_nsec >= 1000000000) slice.tv_sec++, slice.tv_nsec -= 1000000000;
        int answer = wait(condition, mutex, &slice);
        if (answer != thrd_timedout) return answer;
    }
}
