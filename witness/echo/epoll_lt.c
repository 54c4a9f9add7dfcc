// A witness: the loop of the model `epoll_lt`, written plainly in C. One thread,
// epoll_wait(2), level-triggered, each connection entered once; one recv(2) and one
// send(2) for what is reported.
//
//   cc -O2 -o epoll_lt epoll_lt.c
//   ./epoll_lt CPU

#include "protocol.h"

#include <sys/epoll.h>

enum { EVENTS = 256 };

struct connection {
  // The beginning of a request.
  struct bytes held;
  // Replies that there was no room for.
  struct bytes unsent;
};

static struct connection *connections[DESCRIPTORS];
static char received[RECEIVE_BYTES];
static struct bytes replies;
static int epoll;

static void watch(int fd, int change, uint32_t events) {
  struct epoll_event event = {.events = events, .data.fd = fd};
  if (epoll_ctl(epoll, change, fd, &event) != 0) fail("watch a descriptor");
}

static void take(int listener) {
  for (;;) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EAGAIN || errno == ECONNABORTED) return;
      fail("take a connection");
    }
    if (fd >= DESCRIPTORS) fail("have that many descriptors");
    connections[fd] = calloc(1, sizeof *connections[fd]);
    if (connections[fd] == NULL) fail("get memory");
    watch(fd, EPOLL_CTL_ADD, EPOLLIN);
  }
}

static void end(int fd) {
  struct connection *of = connections[fd];
  release(&of->held);
  release(&of->unsent);
  free(of);
  connections[fd] = NULL;
  close(fd);
}

// Sends, and keeps what there is no room for; whether the connection stands.
static bool put(int fd, struct connection *of, const char *at, size_t length) {
  ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);
  if (sent < 0) {
    if (errno != EAGAIN) return false;
    sent = 0;
  }
  if ((size_t)sent < length) {
    append(&of->unsent, at + sent, length - (size_t)sent);
    watch(fd, EPOLL_CTL_MOD, EPOLLOUT);
  }
  return true;
}

static void serve(int fd, uint32_t events) {
  struct connection *of = connections[fd];
  if (of->unsent.length > 0) {
    if ((events & EPOLLOUT) == 0) return end(fd);
    ssize_t sent = send(fd, of->unsent.at, of->unsent.length, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN ? (void)0 : end(fd);
    drop_front(&of->unsent, (size_t)sent);
    if (of->unsent.length == 0) watch(fd, EPOLL_CTL_MOD, EPOLLIN);
    return;
  }
  ssize_t got = recv(fd, received, sizeof received, 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) return end(fd);
  replies.length = 0;
  const char *at = received;
  size_t length = (size_t)got;
  if (of->held.length > 0) {
    append(&of->held, received, length);
    at = of->held.at;
    length = of->held.length;
  }
  ssize_t used = answer(at, length, &replies);
  if (used < 0) return end(fd);
  if (of->held.length > 0) {
    drop_front(&of->held, (size_t)used);
  } else if ((size_t)used < length) {
    append(&of->held, at + used, length - (size_t)used);
  }
  if (replies.length > 0 && !put(fd, of, replies.at, replies.length)) end(fd);
}

int main(int argc, char **argv) {
  int listener = listen_here(argc, argv, SOCK_NONBLOCK);
  epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) fail("make an epoll instance");
  watch(listener, EPOLL_CTL_ADD, EPOLLIN);
  struct epoll_event events[EVENTS];
  for (;;) {
    int ready = epoll_wait(epoll, events, EVENTS, -1);
    if (ready < 0) fail("wait");
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      if (fd == listener) {
        take(listener);
      } else {
        serve(fd, events[i].events);
      }
    }
  }
}
