/* Work whose amount is known, as a loop program and as a whole command:
 *   work KIND AMOUNT          speaks the loop protocol
 *   work KIND AMOUNT TIMES    does so many operations and ends
 * cpu, pread; memory and cache: random words of 32 and of 8 MiB; fixed: cpu, and 150 us of CPU time
 * in each request besides. An operation of AMOUNT 103 is 3 % more than one of 100. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static size_t words;
static uint64_t state = 1, *memory;
static int file;

static void cpu(long amount) {
    for (long i = 0; i < amount * 64; i++) state = state * 6364136223846793005u + 1442695040888963407u;
}

static void from_file(long amount) {
    char block[4096];
    for (long i = 0; i < amount; i++)
        if (pread(file, block, sizeof block, 4096 * (i % 4)) < 1) abort();
}

static void from_memory(long amount) {
    for (long i = 0; i < amount; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        memory[(state >> 33) % words]++;
    }
}

static long cpu_us(void) {
    struct timespec spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return spent.tv_sec * 1000000 + spent.tv_nsec / 1000;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    void (*work)(long) = cpu;
    if (!strcmp(argv[1], "pread")) {
        work = from_file;
        file = open("/proc/self/exe", O_RDONLY);
    } else if (!strcmp(argv[1], "memory") || !strcmp(argv[1], "cache")) {
        work = from_memory;
        words = argv[1][0] == 'm' ? 4 << 20 : 1 << 20;
        memory = malloc(words * sizeof *memory);
        memset(memory, 1, words * sizeof *memory);
    }
    long fixed_us = strcmp(argv[1], "fixed") ? 0 : 150;
    const char *seed = getenv("IOLENS_SEED");
    state = seed ? strtoull(seed, 0, 10) : 1;
    long amount = atol(argv[2]);
    if (argc > 3) {
        for (long n = atol(argv[3]); n > 0; n--) work(amount);
        return state == 42;
    }
    char line[64];
    for (puts("ready"), fflush(stdout); fgets(line, sizeof line, stdin); puts("ok"), fflush(stdout)) {
        for (long begin = cpu_us(); cpu_us() - begin < fixed_us;);
        for (long n = atol(line); n > 0; n--) work(amount);
    }
    return 0;
}
