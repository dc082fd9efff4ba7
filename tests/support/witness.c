/*
 * The job of the tests and of the bench. It says from when to when it ran, and under which term, by lines appended to a file:
 *
 *     NANOS EVENT ROLE PID EPOCH DEADLINE DETAIL
 *
 * NANOS and DEADLINE (of NELI_LEASE_FD; 0 when unknown) are CLOCK_BOOTTIME. EVENT is `start` (the first instruction of main), `beat`,
 * `signal` (DETAIL: which) or `end` (about to exit by itself). ROLE is `main` or what the process was made for.
 * In C and static, since what is measured is the time to a job's first instruction, and a runtime or a loader would count in it.
 *
 * A FILE that ends in a dot is one file a term: NELI_EPOCH is appended to its name.
 *
 *     witness FILE [--every-us N] [--ignore-stop] [--linger-ms N] [--end-ms N] [--status N] [--limit-ms N]
 *                  [--uid N] [--child] [--group] [--session] [--daemon] [--runner] [--leaker]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int out = -1;
static const char *epoch = "-";
static const volatile uint64_t *lease = NULL;
static volatile sig_atomic_t caught[65];

static const char *role = "main";
static long every_us = 2000, linger_ms = 0, end_ms = -1, limit_ms = 120000, status = 0, uid = -1;
static int ignore_stop = 0, is_leaking = 0;

static uint64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_BOOTTIME, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static void say(uint64_t at, const char *event, long detail) {
    char line[200];
    uint64_t deadline = lease ? lease[1] : 0;
    int length = snprintf(line, sizeof line, "%llu %s %s %d %s %llu %ld\n", (unsigned long long)at, event, role, (int)getpid(), epoch,
                          (unsigned long long)deadline, detail);
    /* A full disk is the test's failure, not ours: the checker then finds no beats. (Where memory is at a limit, part of a line may be
     * written. Who takes that memory tries again.) */
    if (write(out, line, (size_t)length) != length && !is_leaking) _exit(99);
}

static void on_signal(int number) { caught[number] = 1; }

/* Writes a line for each signal received since the last call; returns true if one of them asks the process to stop. */
static int told_to_stop(void) {
    int stop = 0;
    for (int number = 1; number <= 64; number++) {
        if (!caught[number]) continue;
        caught[number] = 0;
        say(now(), "signal", number);
        stop |= number == SIGTERM || number == SIGINT || number == SIGQUIT || number == SIGHUP;
    }
    return stop && !ignore_stop;
}

/* Beats until it is asked to stop, until its set end, or until a time limit, so that no forgotten witness lives on for ever. */
static _Noreturn void beat(void) {
    uint64_t started = now(), ends = UINT64_MAX, limit = started + (uint64_t)limit_ms * 1000000u;
    if (end_ms >= 0) ends = started + (uint64_t)end_ms * 1000000u;
    for (;;) {
        uint64_t at = now();
        say(at, "beat", 0);
        if (told_to_stop() && ends > at + (uint64_t)linger_ms * 1000000u) ends = at + (uint64_t)linger_ms * 1000000u;
        if (now() >= ends || now() >= limit) break;
        struct timespec pause = {every_us / 1000000, every_us % 1000000 * 1000};
        nanosleep(&pause, NULL);
    }
    say(now(), "end", status);
    _exit((int)status);
}

/* A process that forks every millisecond and lets the child continue, for ever: so its pid changes every millisecond. */
static _Noreturn void run(void) {
    uint64_t limit = now() + (uint64_t)limit_ms * 1000000u;
    while (now() < limit) {
        say(now(), "beat", 0);
        pid_t child = fork();
        if (child > 0) _exit(0);
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    _exit(0);
}

/* A process whose children allocate memory until the kernel kills them, and are then replaced, for ever: this keeps a control group at its memory limit. */
static _Noreturn void leak(void) {
    uint64_t limit = now() + (uint64_t)limit_ms * 1000000u;
    while (now() < limit) {
        say(now(), "beat", 0);
        for (int i = 0; i < 8; i++) {
            if (fork() != 0) continue;
            /* The kernel must choose this process at a lack of memory, and neither process of neli-run. */
            is_leaking = 1;
            int score = open("/proc/self/oom_score_adj", O_WRONLY);
            if (score < 0 || write(score, "1000", 4) != 4) _exit(94);
            for (;;) {
                const size_t size = 1 << 20;
                char *piece = malloc(size);
                if (piece) memset(piece, 1, size);
                say(now(), "beat", 0);
            }
        }
        /* Waits for the children that could be created; if there was none, waits a moment. */
        while (wait(NULL) > 0) {}
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    _exit(0);
}

/* Creates a process of the kind that the option names; returns only in the parent. */
static void make(const char *kind) {
    if (fork() != 0) return;
    role = kind;
    if (!strcmp(kind, "group")) setpgid(0, 0);
    if (!strcmp(kind, "session") || !strcmp(kind, "daemon") || !strcmp(kind, "leaker")) setsid();
    if (!strcmp(kind, "daemon") && fork() != 0) _exit(0);
    end_ms = -1;
    if (!strcmp(kind, "runner")) run();
    if (!strcmp(kind, "leaker")) leak();
    beat();
}

static void listen_to_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    for (int number = 1; number <= 64; number++) {
        switch (number) {
        case SIGKILL: case SIGSTOP: case SIGTSTP: case SIGTTIN: case SIGTTOU: case SIGCHLD:
        case SIGSEGV: case SIGBUS: case SIGFPE: case SIGILL: case SIGABRT: case SIGTRAP: case SIGSYS:
            break;
        default:
            sigaction(number, &action, NULL);
        }
    }
    signal(SIGCHLD, SIG_IGN);
}

static void map_lease(void) {
    const char *number = getenv("NELI_LEASE_FD");
    if (!number) return;
    void *at = mmap(NULL, 16, PROT_READ, MAP_SHARED, atoi(number), 0);
    if (at != MAP_FAILED) lease = at;
}

int main(int count, char **arguments) {
    uint64_t first = now();
    if (count < 2) return 98;
    if (getenv("NELI_EPOCH")) epoch = getenv("NELI_EPOCH");
    char name[4096];
    size_t length = strlen(arguments[1]);
    int by_term = length > 0 && arguments[1][length - 1] == '.';
    if (snprintf(name, sizeof name, "%s%s", arguments[1], by_term ? epoch : "") >= (int)sizeof name) return 97;
    out = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (out < 0) return 97;
    map_lease();
    say(first, "start", (long)getppid());
    listen_to_signals();

    const char *kinds[8];
    int kind_count = 0;
    for (int i = 2; i < count; i++) {
        const char *option = arguments[i];
        const char *value = i + 1 < count ? arguments[i + 1] : "0";
        if (!strcmp(option, "--ignore-stop")) ignore_stop = 1;
        else if (!strcmp(option, "--every-us")) every_us = atol(value), i++;
        else if (!strcmp(option, "--linger-ms")) linger_ms = atol(value), i++;
        else if (!strcmp(option, "--end-ms")) end_ms = atol(value), i++;
        else if (!strcmp(option, "--limit-ms")) limit_ms = atol(value), i++;
        else if (!strcmp(option, "--status")) status = atol(value), i++;
        else if (!strcmp(option, "--uid")) uid = atol(value), i++;
        else if (!strncmp(option, "--", 2) && kind_count < 8) kinds[kind_count++] = option + 2;
        else return 96;
    }
    if (uid >= 0 && (setgroups(0, NULL) || setgid((gid_t)uid) || setuid((uid_t)uid))) return 95;
    for (int i = 0; i < kind_count; i++) make(kinds[i]);
    beat();
}
