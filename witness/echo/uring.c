// A witness: the loop of the model `uring`, written plainly in C with the system calls
// themselves. One thread and one ring (IORING_SETUP_SINGLE_ISSUER,
// IORING_SETUP_DEFER_TASKRUN, its descriptor registered); multishot accept, multishot
// receive into provided buffers, one send under way for each connection, and one
// io_uring_enter(2) for as much as there is.
//
//   cc -O2 -o uring uring.c
//   ./uring CPU

#include "protocol.h"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { SUBMISSIONS = 256, COMPLETIONS = 1024, BUFFERS = 512 };
enum { ACCEPT = 1, RECEIVE, SEND };

struct connection {
  // The beginning of a request.
  struct bytes held;
  // What the kernel sends, and what is to go out after it.
  struct bytes going;
  struct bytes next;
  bool sends;
  bool receives;
  bool ended;
};

static struct connection *connections[DESCRIPTORS];

static int ring;
static unsigned *sq_head, *sq_tail, *cq_head, *cq_tail;
static unsigned sq_mask, cq_mask, pushed;
static struct io_uring_sqe *submissions;
static struct io_uring_cqe *completions;
static struct io_uring_buf_ring *provided;
static char *memory;
static uint16_t provided_tail;

static void enter(unsigned wait) {
  unsigned flags = IORING_ENTER_REGISTERED_RING | (wait > 0 ? IORING_ENTER_GETEVENTS : 0);
  long done = syscall(SYS_io_uring_enter, ring, pushed, wait, flags, NULL, 0);
  if (done < 0 && errno != EINTR) fail("enter the ring");
  if (done > 0) pushed -= (unsigned)done;
}

static struct io_uring_sqe *push(int kind, int fd) {
  unsigned tail = *sq_tail;
  if (tail - __atomic_load_n(sq_head, __ATOMIC_ACQUIRE) > sq_mask) enter(0);
  struct io_uring_sqe *entry = &submissions[tail & sq_mask];
  memset(entry, 0, sizeof *entry);
  entry->fd = fd;
  entry->user_data = (uint64_t)kind << 32 | (uint32_t)fd;
  __atomic_store_n(sq_tail, tail + 1, __ATOMIC_RELEASE);
  pushed++;
  return entry;
}

static void ask_connections(int listener) {
  struct io_uring_sqe *entry = push(ACCEPT, listener);
  entry->opcode = IORING_OP_ACCEPT;
  entry->ioprio = IORING_ACCEPT_MULTISHOT;
  entry->accept_flags = SOCK_CLOEXEC;
}

static void ask_bytes(int fd) {
  struct io_uring_sqe *entry = push(RECEIVE, fd);
  entry->opcode = IORING_OP_RECV;
  entry->ioprio = IORING_RECV_MULTISHOT;
  entry->flags = IOSQE_BUFFER_SELECT;
  connections[fd]->receives = true;
}

static void put(int fd) {
  struct connection *of = connections[fd];
  struct bytes going = of->going;
  of->going = of->next;
  of->next = going;
  of->next.length = 0;
  of->sends = true;
  struct io_uring_sqe *entry = push(SEND, fd);
  entry->opcode = IORING_OP_SEND;
  entry->addr = (uintptr_t)of->going.at;
  entry->len = (unsigned)of->going.length;
  entry->msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
}

static void provide(uint16_t id) {
  struct io_uring_buf *buffer = &provided->bufs[provided_tail & (BUFFERS - 1)];
  buffer->addr = (uintptr_t)(memory + (size_t)id * RECEIVE_BYTES);
  buffer->len = RECEIVE_BYTES;
  buffer->bid = id;
  provided_tail++;
  __atomic_store_n(&provided->tail, provided_tail, __ATOMIC_RELEASE);
}

// Ends a connection when nothing of it is under way.
static void end(int fd) {
  struct connection *of = connections[fd];
  if (!of->ended) shutdown(fd, SHUT_RDWR);
  of->ended = true;
  if (of->sends || of->receives) return;
  release(&of->held);
  release(&of->going);
  release(&of->next);
  free(of);
  connections[fd] = NULL;
  close(fd);
}

static void accepted(int listener, const struct io_uring_cqe *entry) {
  if (entry->res < 0) {
    errno = -entry->res;
    fail("take a connection");
  }
  if (entry->res >= DESCRIPTORS) fail("have that many descriptors");
  if ((entry->flags & IORING_CQE_F_MORE) == 0) ask_connections(listener);
  connections[entry->res] = calloc(1, sizeof *connections[0]);
  if (connections[entry->res] == NULL) fail("get memory");
  ask_bytes(entry->res);
}

static void received(int fd, const struct io_uring_cqe *entry) {
  struct connection *of = connections[fd];
  if ((entry->flags & IORING_CQE_F_MORE) == 0) of->receives = false;
  bool has_buffer = entry->flags & IORING_CQE_F_BUFFER;
  uint16_t id = (uint16_t)(entry->flags >> IORING_CQE_BUFFER_SHIFT);
  if (entry->res > 0 && !of->ended) {
    const char *at = memory + (size_t)id * RECEIVE_BYTES;
    size_t length = (size_t)entry->res;
    bool is_held = of->held.length > 0;
    if (is_held) {
      append(&of->held, at, length);
      at = of->held.at;
      length = of->held.length;
    }
    ssize_t used = answer(at, length, &of->next);
    if (used < 0) {
      of->next.length = 0;
      provide(id);
      return end(fd);
    }
    if (is_held) {
      drop_front(&of->held, (size_t)used);
    } else if ((size_t)used < length) {
      append(&of->held, at + used, length - (size_t)used);
    }
  }
  if (has_buffer) provide(id);
  if (of->ended || (entry->res <= 0 && entry->res != -ENOBUFS)) return end(fd);
  if (!of->receives) ask_bytes(fd);
  if (!of->sends && of->next.length > 0) put(fd);
}

static void sent(int fd, const struct io_uring_cqe *entry) {
  struct connection *of = connections[fd];
  of->sends = false;
  if (of->ended || entry->res != (int)of->going.length) return end(fd);
  if (of->next.length > 0) put(fd);
}

static void open_ring(void) {
  struct io_uring_params params = {
      .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
      .cq_entries = COMPLETIONS,
  };
  int fd = (int)syscall(SYS_io_uring_setup, SUBMISSIONS, &params);
  if (fd < 0) fail("set up a ring");
  size_t sq_bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
  size_t cq_bytes = params.cq_off.cqes + params.cq_entries * sizeof *completions;
  size_t bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
  const int access = PROT_READ | PROT_WRITE, kind = MAP_SHARED | MAP_POPULATE;
  // IORING_FEAT_SINGLE_MMAP: every kernel with these flags has it.
  char *rings = mmap(NULL, bytes, access, kind, fd, IORING_OFF_SQ_RING);
  submissions = mmap(NULL, params.sq_entries * sizeof *submissions, access, kind, fd,
                     IORING_OFF_SQES);
  if (rings == MAP_FAILED || submissions == MAP_FAILED) fail("map the ring");
  sq_head = (unsigned *)(rings + params.sq_off.head);
  sq_tail = (unsigned *)(rings + params.sq_off.tail);
  sq_mask = *(unsigned *)(rings + params.sq_off.ring_mask);
  cq_head = (unsigned *)(rings + params.cq_off.head);
  cq_tail = (unsigned *)(rings + params.cq_off.tail);
  cq_mask = *(unsigned *)(rings + params.cq_off.ring_mask);
  completions = (struct io_uring_cqe *)(rings + params.cq_off.cqes);
  unsigned *array = (unsigned *)(rings + params.sq_off.array);
  for (unsigned i = 0; i < params.sq_entries; i++) array[i] = i;
  struct io_uring_rsrc_update own = {.offset = -1U, .data = (uint64_t)fd};
  if (syscall(SYS_io_uring_register, fd, IORING_REGISTER_RING_FDS, &own, 1) != 1) {
    fail("register the ring's descriptor");
  }
  ring = (int)own.offset;
  const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
  provided = mmap(NULL, BUFFERS * sizeof(struct io_uring_buf), access, anonymous, -1, 0);
  memory = mmap(NULL, (size_t)BUFFERS * RECEIVE_BYTES, access, anonymous, -1, 0);
  if (provided == MAP_FAILED || memory == MAP_FAILED) fail("get memory");
  struct io_uring_buf_reg buffers = {
      .ring_addr = (uintptr_t)provided, .ring_entries = BUFFERS, .bgid = 0};
  if (syscall(SYS_io_uring_register, fd, IORING_REGISTER_PBUF_RING, &buffers, 1) != 0) {
    fail("provide buffers");
  }
  for (int id = 0; id < BUFFERS; id++) provide((uint16_t)id);
}

int main(int argc, char **argv) {
  int listener = listen_here(argc, argv, 0);
  open_ring();
  ask_connections(listener);
  for (;;) {
    enter(1);
    unsigned head = *cq_head;
    unsigned tail = __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE);
    for (; head != tail; head++) {
      struct io_uring_cqe entry = completions[head & cq_mask];
      __atomic_store_n(cq_head, head + 1, __ATOMIC_RELEASE);
      int fd = (int)(uint32_t)entry.user_data;
      switch (entry.user_data >> 32) {
        case ACCEPT: accepted(listener, &entry); break;
        case RECEIVE: received(fd, &entry); break;
        case SEND: sent(fd, &entry); break;
      }
    }
  }
}
