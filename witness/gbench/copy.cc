// A witness: the copy loop of `iolens file copy --engine read_write`, timed by
// another harness, google-benchmark. Same calls, same blocks, same state of the
// destination: a new file each time, whose making and removing is no part of the
// time. The rate is bytes over wall time; CPU time is shown beside it.
//
//   c++ -O2 -std=c++17 copy.cc -lbenchmark -lpthread -o copy
//   ./copy --src=FILE --dst=NEW_FILE --block=BYTES [--behind=BYTES]
//          [--benchmark_format=json ...]
//
// The buffer begins with a page, as ours does, or so many bytes behind the beginning
// of one: copies to and from the page cache take other times then. malloc puts large
// buffers 16 bytes behind.
//
// Exits with 1 and one line on stderr where a call fails, and never overwrites a
// file: the destination is made with O_EXCL and removed at the end.

#include <benchmark/benchmark.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

struct Options {
  std::string src;
  std::string dst;
  size_t block = 0;
  size_t behind = 0;
};

constexpr size_t kPage = 4096;

Options options;

[[noreturn]] void fail(const char* tried, const std::string& on) {
  std::fprintf(stderr, "cannot %s %s: %s\n", tried, on.c_str(), std::strerror(errno));
  std::exit(1);
}

// Copies until the end of the source; returns the bytes.
uint64_t copy(int from, int to, char* buffer) {
  uint64_t bytes = 0;
  for (;;) {
    ssize_t got = read(from, buffer, options.block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", options.src);
    if (got == 0) return bytes;
    for (ssize_t put = 0; put < got;) {
      ssize_t n = write(to, buffer + put, static_cast<size_t>(got - put));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        int saved = errno;
        unlink(options.dst.c_str());
        errno = saved;
        fail("write", options.dst);
      }
      put += n;
    }
    bytes += static_cast<uint64_t>(got);
  }
}

void read_write(benchmark::State& state) {
  // Faulted in before any clock runs.
  size_t room = (options.behind + options.block + kPage - 1) / kPage * kPage;
  std::unique_ptr<void, decltype(&std::free)> pages(std::aligned_alloc(kPage, room), &std::free);
  if (!pages) fail("have memory for", options.dst);
  std::memset(pages.get(), 1, room);
  char* buffer = static_cast<char*>(pages.get()) + options.behind;
  uint64_t bytes = 0;
  for (auto _ : state) {
    int from = open(options.src.c_str(), O_RDONLY | O_CLOEXEC);
    if (from < 0) fail("open", options.src);
    int to = open(options.dst.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0) fail("make", options.dst);
    auto begin = std::chrono::steady_clock::now();
    bytes += copy(from, to, buffer);
    auto end = std::chrono::steady_clock::now();
    state.SetIterationTime(std::chrono::duration<double>(end - begin).count());
    close(from);
    close(to);
    if (unlink(options.dst.c_str()) != 0) fail("remove", options.dst);
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

BENCHMARK(read_write)->UseManualTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

// Takes our own options out of the arguments.
void take_options(int& argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    std::string one = argv[i];
    if (one.rfind("--src=", 0) == 0) {
      options.src = one.substr(6);
    } else if (one.rfind("--dst=", 0) == 0) {
      options.dst = one.substr(6);
    } else if (one.rfind("--block=", 0) == 0) {
      options.block = std::strtoull(one.c_str() + 8, nullptr, 10);
    } else if (one.rfind("--behind=", 0) == 0) {
      options.behind = std::strtoull(one.c_str() + 9, nullptr, 10);
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
}

}  // namespace

int main(int argc, char** argv) {
  take_options(argc, argv);
  constexpr size_t kBlockMax = size_t{64} << 20;
  if (options.src.empty() || options.dst.empty() || options.block == 0 ||
      options.block > kBlockMax || options.behind >= kPage) {
    std::fprintf(stderr, "usage: %s --src=FILE --dst=NEW_FILE --block=1..%zu [--behind=0..%zu]\n",
                 argv[0], kBlockMax, kPage - 1);
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
