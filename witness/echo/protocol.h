// What both witnesses share: the protocol of docs/server-protocol.md with the service
// `echo`, read and answered in C; a listening socket with the options that ours has;
// and how one connection waits. Lines that are no request are not answered with an
// error, as a server should: they end the connection.

#ifndef IOLENS_WITNESS_ECHO_PROTOCOL_H
#define IOLENS_WITNESS_ECHO_PROTOCOL_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  BACKLOG = 4096,
  RECEIVE_BYTES = 16 << 10,
  REQUEST_MAX = 64 << 10,
  DESCRIPTORS = 1 << 20,
};

static void fail(const char *tried) {
  fprintf(stderr, "cannot %s: %s\n", tried, strerror(errno));
  exit(1);
}

// Bytes that grow as they must.
struct bytes {
  char *at;
  size_t length;
  size_t room;
};

static void append(struct bytes *to, const char *from, size_t length) {
  if (to->length + length > to->room) {
    to->room = (to->length + length) * 2;
    to->at = realloc(to->at, to->room);
    if (to->at == NULL) fail("get memory");
  }
  memcpy(to->at + to->length, from, length);
  to->length += length;
}

static void drop_front(struct bytes *of, size_t length) {
  of->length -= length;
  memmove(of->at, of->at + length, of->length);
}

static void release(struct bytes *of) {
  free(of->at);
  *of = (struct bytes){0};
}

// Appends the replies to all whole requests in `from`; returns how many bytes they
// took, or -1 where a line is no request.
static ssize_t answer(const char *from, size_t length, struct bytes *replies) {
  size_t used = 0;
  for (;;) {
    const char *line = from + used;
    const char *end = memchr(line, '\n', length - used);
    if (end == NULL) {
      return length - used > REQUEST_MAX ? -1 : (ssize_t)used;
    }
    size_t digits = 0;
    while (line[digits] >= '0' && line[digits] <= '9') digits++;
    if (digits > 20 || (line[digits] != ' ' && line[digits] != '\n')) return -1;
    size_t whole = (size_t)(end - line) + 1;
    if (line[digits] == ' ') {
      // Number, space, text and newline come back as they are.
      append(replies, line, whole);
    } else {
      append(replies, line, digits);
      append(replies, " \n", 2);
    }
    used += whole;
  }
}

// Listens on 127.0.0.1, on a free port that it prints, and runs on one CPU.
static int listen_here(int argc, char **argv, int flags) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  if (argc != 2) {
    fprintf(stderr, "usage: %s CPU\n", argv[0]);
    exit(2);
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(atoi(argv[1]), &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) fail("run on that CPU");
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  if (fd < 0) fail("make a socket");
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4) != 0) fail("set TCP_CONGESTION");
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("set TCP_NODELAY");
  if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) != 0) fail("set SO_KEEPALIVE");
  struct sockaddr_in address = {.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(fd, (struct sockaddr *)&address, length) != 0) fail("bind");
  if (listen(fd, BACKLOG) != 0) fail("listen");
  if (getsockname(fd, (struct sockaddr *)&address, &length) != 0) fail("read the address");
  printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return fd;
}

#endif
