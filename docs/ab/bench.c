/* A benchmark of your own for `iolens ab --loop`. cc -O2 -o bench bench.c; ./bench 100 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void work(int fd, long amount) { /* what you want to measure */
    char block[512];
    for (long i = 0; i < amount; i++)
        if (pread(fd, block, sizeof block, 512 * (i % 8)) < 1) abort();
}

int main(int argc, char **argv) {
    long amount = argc > 1 ? atol(argv[1]) : 100;
    int fd = open("/proc/self/exe", O_RDONLY);
    char line[64];
    for (puts("ready"), fflush(stdout); fgets(line, sizeof line, stdin); puts("ok"), fflush(stdout))
        for (long n = atol(line); n > 0; n--) work(fd, amount);
    return 0;
}
