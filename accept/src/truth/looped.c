// Programs that speak the loop protocol. looped call CALLS | read CALLS FILE BLOCK | spin NS |
// send MESSAGES HOST PORT SIZE: an operation is so many system calls, reads of a block, or
// messages, or lasts so long. Blocks follow each other, and messages come from a ring of 256 KiB, as
// those of iolens do.
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long times, block, blocks, at;
static int fd;
static char *memory;

static void call(void) {
	for (long i = 0; i < times; i++) {
#ifdef __x86_64__
		long result = SYS_getppid;
		__asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
#else
		syscall(SYS_getppid);
#endif
	}
}

static void read_block(void) {
	for (long i = 0; i < times; i++) {
		if (pread(fd, memory, block, at * block) != block) err(2, "pread");
		if (++at == blocks) at = 0;
	}
}

static long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void spin(void) {
	for (long end = now() + times; now() < end;) {}
}

static void send_message(void) {
	for (long i = 0; i < times; i++) {
		const char *message = memory + at * block;
		for (long sent = 0, n; sent < block; sent += n)
			if ((n = send(fd, message + sent, block - sent, 0)) < 0) err(2, "send");
		if (++at == blocks) at = 0;
	}
}

static void connect_to(const char *host, const char *port) {
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
	inet_pton(AF_INET, host, &to.sin_addr);
	int one = 1, bytes = 512 << 10;  // The kernel doubles it (socket(7)).
	fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
	if (connect(fd, (struct sockaddr *)&to, sizeof to)) err(1, "connect");
}

static void *idle(void *nothing) {
	pause();
	return nothing;
}

int main(int argc, char **argv) {
	// With one thread a process finds its files without counting who uses them (fs/file.c, fdget),
	// and ours have several.
	pthread_t thread;
	if (pthread_create(&thread, 0, idle, 0)) errx(1, "no thread");
	void (*work)(void) = call;
	const char *way = argc > 2 ? argv[1] : "";
	times = argc > 2 ? atol(argv[2]) : 0;
	if (!strcmp(way, "spin")) work = spin;
	if (argc == 5 && !strcmp(way, "read")) {
		work = read_block;
		block = atol(argv[4]);
		if ((fd = open(argv[3], O_RDONLY)) < 0) err(1, "%s", argv[3]);
		blocks = lseek(fd, 0, SEEK_END) / block;
	}
	if (argc == 6 && !strcmp(way, "send")) {
		work = send_message;
		block = atol(argv[5]);
		connect_to(argv[3], argv[4]);
	}
	long bytes = 1 << 20;
	if (work == send_message) blocks = block < (256 << 10) ? (256 << 10) / block : 1;
	if (block > bytes) bytes = block;
	if (!(memory = aligned_alloc(4096, bytes))) err(1, "memory");
	memset(memory, 1, bytes);
	char line[64];
	for (puts("ready"), fflush(stdout); fgets(line, sizeof line, stdin); puts("ok"), fflush(stdout))
		for (long n = atol(line); n > 0; n--) work();
}
