/* A socket program of a course: sender WAY HOST PORT SIZE THREADS MESSAGES

   WAY is two (copy eight fields together, then send), one (sendmsg) or zero (MSG_ZEROCOPY), and
   behind it what is wrong: +size (8 bytes more each), +early (half of the messages), +shared (one
   socket for all threads), +nagle (TCP_NODELAY is left off). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <linux/errqueue.h>

/* As many messages as the ring of iolens has at 16 KiB with an L2 cache of 1 MiB: one that is sent
   again and again would lie in L1. */
enum { FIELDS = 8, RING = 16, PENDING = 16 };

static char way;
static int nagle, threads, shared = -1;
static size_t size;
static long messages;
static struct sockaddr_in receiver;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int dial(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, buffer = 512 << 10;
    /* As large as those of iolens, or the programs would differ in that. */
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer)) die("send buffer");
    if (connect(fd, (void *)&receiver, sizeof receiver)) die("connect");
    if (!nagle && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) die("nodelay");
    if (way == 'z' && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one)) die("zerocopy");
    return fd;
}

/* Sends that have completed. */
static int completed(int fd, int wait_ms) {
    char control[128];
    struct msghdr msg = {.msg_control = control, .msg_controllen = sizeof control};
    struct pollfd ready = {.fd = fd};
    if (wait_ms) poll(&ready, 1, wait_ms);
    if (recvmsg(fd, &msg, MSG_ERRQUEUE) < 0) return 0;
    struct sock_extended_err *err = (void *)CMSG_DATA(CMSG_FIRSTHDR(&msg));
    return err->ee_data - err->ee_info + 1;
}

/* Sends all of it; the calls that took. */
static int send_whole(int fd, struct iovec *iov, size_t count) {
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = count};
    int calls = 0;
    while (msg.msg_iovlen) {
        ssize_t sent = sendmsg(fd, &msg, way == 'z' ? MSG_ZEROCOPY : 0);
        if (sent < 0 && errno == ENOBUFS) {
            calls -= completed(fd, 100);
            continue;
        }
        if (sent < 0) die("sendmsg");
        calls++;
        while (msg.msg_iovlen && (size_t)sent >= msg.msg_iov->iov_len) {
            sent -= msg.msg_iov->iov_len;
            msg.msg_iov++;
            msg.msg_iovlen--;
        }
        if (msg.msg_iovlen) {
            msg.msg_iov->iov_base = (char *)msg.msg_iov->iov_base + sent;
            msg.msg_iov->iov_len -= sent;
        }
    }
    return calls;
}

static void *work(void *argument) {
    long number = (long)argument, own = messages / threads + (number < messages % threads);
    int fd = shared >= 0 ? shared : dial();
    char *ring[RING][FIELDS], *staged = malloc(size);
    size_t part = size / FIELDS, last = size - part * (FIELDS - 1);
    long pending = 0;
    for (int i = 0; i < RING * FIELDS; i++) {
        char **field = &ring[i / FIELDS][i % FIELDS];
        memset(*field = malloc(last), i, last);
    }
    for (long nth = 0; nth < own; nth++) {
        char **fields = ring[nth % RING];
        struct iovec iov[FIELDS];
        for (int i = 0; i < FIELDS; i++)
            iov[i] = (struct iovec){fields[i], i < FIELDS - 1 ? part : last};
        if (way == 't') {
            for (int i = 0; i < FIELDS; i++) memcpy(staged + i * part, fields[i], iov[i].iov_len);
            iov[0] = (struct iovec){staged, size};
        }
        if (shared >= 0) pthread_mutex_lock(&lock);
        int calls = send_whole(fd, iov, way == 't' ? 1 : FIELDS);
        if (shared >= 0) pthread_mutex_unlock(&lock);
        for (pending += way == 'z' ? calls : 0; pending > PENDING;) pending -= completed(fd, 100);
    }
    while (pending > 0) pending -= completed(fd, 100);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    way = argv[1][0];
    receiver.sin_family = AF_INET;
    inet_aton(argv[2], &receiver.sin_addr);
    receiver.sin_port = htons(atoi(argv[3]));
    size = atol(argv[4]) + (strstr(argv[1], "+size") ? 8 : 0);
    threads = atoi(argv[5]);
    messages = atol(argv[6]) / (strstr(argv[1], "+early") ? 2 : 1);
    nagle = !!strstr(argv[1], "+nagle");
    if (strstr(argv[1], "+shared")) shared = dial();
    pthread_t all[256];
    for (long i = 0; i < threads; i++) pthread_create(all + i, NULL, work, (void *)i);
    for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
    return 0;
}
