//! The entries, in the order of the help. An entry is
//! ```text
//! place field: type, parser, Group "VALUE" { "flag" STUDIES "help" ... } was .. not .. needs .. ;
//! ```
//! and all that is said of it anywhere, beside what it does: the plan that it makes (`request`).

use std::net::IpAddr;
use std::path::PathBuf;

use iolens_engine::far::Launcher;
use iolens_harness::perf_control::PerfControl;
use iolens_model::axes::{Counting, Direction, Iovec, IpVersion, Mode, Study, WorkingSet};
use iolens_model::copy::CopySync;
use iolens_model::external::External;
use iolens_model::file::{CacheState, Consumer, Destination, DropMode, Pattern};
use iolens_model::load::{Arrivals, Length};
use iolens_model::plan::Passes;
use iolens_model::server::LoadLevel;
use iolens_model::slo::Slo;
use iolens_model::tuning::{BusyPoll, RingDepth, RingFlags};
use iolens_model::units::{Bytes, Nanos};

use super::{Axis, Group, Name, Place, Wish};
use crate::args::ProgressKind;
use crate::peer;
use crate::values::{self, List, Stand};

const EVERY: &[Study] = Study::OF_RUN;
const NET: &[Study] = &[Study::Net];
const FILE: &[Study] = &[Study::File];
const WRITE: &[Study] = &[Study::Write];
const COPY: &[Study] = &[Study::Copy];
const SYSCALL: &[Study] = &[Study::Syscall];
const SERVER: &[Study] = &[Study::Server];
const BLOCKS: &[Study] = &[Study::File, Study::Write];
const READING: &[Study] = &[Study::File, Study::Copy];
const DISK: &[Study] = &[Study::File, Study::Write, Study::Copy];
const WRITING: &[Study] = &[Study::Write, Study::Copy];
const LONG: &[Study] = &[Study::Net, Study::File];
const LOCAL: &[Study] = &[Study::Syscall, Study::File, Study::Write, Study::Copy, Study::Server];

/// Makes the table, and a struct with the values of all its entries.
macro_rules! axes {
    ($($place:ident $field:ident: $type:ty, $read:expr, $group:ident $value:literal {
        $($flag:literal $studies:ident $help:literal)+
    } $(was $($was:literal)+)? $(not $($not:ident)+)? $(needs $needs:ident)?
      $(short $short:literal)?;)+) => {
        /// What is asked for, as far as it was stated.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub(crate) struct Wishes {
            /// What is studied; on the command line it is no flag.
            pub(crate) study: Option<Study>,
            $(pub(crate) $field: $type,)+
        }

        impl Wishes {
            /// These, and those below where they are silent.
            pub(super) fn filled(self, below: Wishes) -> Wishes {
                Wishes {
                    study: self.study.or(below.study),
                    $($field: match self.$field.stated() {
                        Some(_) => self.$field,
                        None => below.$field,
                    },)+
                }
            }
        }

        /// Every entry.
        pub(crate) static AXES: &[Axis] = &[$(Axis {
            field: stringify!($field),
            place: Place::$place,
            group: Group::$group,
            value: $value,
            kind: <$type as Wish>::KIND,
            names: &[$(Name { flag: $flag, studies: $studies, help: $help }),+],
            was: &[$($($was),+)?],
            not_with: &[$($(stringify!($not)),+)?],
            needs: &[$(stringify!($needs))?],
            short: axes!(@first $($short)?),
            set: |wishes, text| {
                ($read)(text).map(|value| wishes.$field.put(value))
            },
            stated: |wishes| wishes.$field.stated(),
            clear: |wishes| wishes.$field = <$type>::default(),
        }),+];
    };
    (@first) => { None };
    (@first $letter:literal) => { Some($letter) };
}

axes! {
    Plan methods: Option<List<String>>, values::words, Compare "LIST" {
        "methods" NET "Methods or families, or all (iolens list methods) \
            [default: send_staged,sendmsg_iov,sendmsg_zerocopy,send,memcpy]"
        "engines" FILE "Engines, or all (iolens list engines) \
            [default: read,preadv2_dontcache,mmap,direct,uring,uring_direct]"
        "engines" WRITE "Engines, or all (iolens list engines) [default: write,pwrite,writev,mmap,\
            direct,uring_fixed,write_fsync,write_fdatasync,write_dsync]"
        "engines" COPY "Engines and programs, or all (iolens list engines) [default: read_write,\
            copy_file_range,sendfile,splice,mmap_write,uring_copy,direct,reflink,dd,cp]"
        "calls" SYSCALL "Calls or kinds of them, or all (iolens list calls) [default: all]"
        "models" SERVER "Models, or all (iolens list models) [default: all]"
    } was "primitives";
    Plan baseline: Option<String>, values::word, Compare "ID" {
        "baseline" NET "Method the others are compared with [default: send_staged]"
        "baseline" FILE "Engine the others are compared with [default: read]"
        "baseline" WRITE "Engine the others are compared with [default: write]"
        "baseline" COPY "Engine the others are compared with [default: read_write]"
        "baseline" SYSCALL "Call the others are compared with [default: getppid]"
        "baseline" SERVER "Model the others are compared with [default: epoll_lt]"
    };
    Plan external: Vec<External>, values::server::external, Compare "NAME=CMD" {
        "external" NET "Your own sender as a method: mine='prog {host} {port} {size}'; no shell; \
            repeatable (docs/external.md)"
        "external" FILE "Your own reader as an engine, over the loop protocol: \
            mine='prog {file} {block}'; no shell; repeatable (docs/external.md)"
        "external" SYSCALL "Your own program as a call, over the loop protocol: \
            mine='prog'; no shell; repeatable (docs/external.md)"
        "external" COPY "Your own program beside the engines: mine='prog {src} {dst} {block}'; no \
            shell; repeatable"
        "external" SERVER "Your own server as a model: mine='prog {port}'; no shell; repeatable \
            (it speaks docs/server-protocol.md)"
    };
    Plan external_loop: bool, values::switch, Compare "" {
        "loop" NET "Your senders speak the loop protocol, and are measured in short slices"
    };
    Plan sizes: Option<List<Bytes>>, values::sizes, Compare "LIST|A..B" {
        "sizes" NET "Message sizes; A..B steps by factors of 4 [default: 64..1MiB]"
        "block-sizes" FILE "Bytes per read; A..B steps by factors of 4 \
            [default: 512,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB]"
        "block-sizes" WRITE "Bytes per write; A..B steps by factors of 4 \
            [default: 512,4KiB,16KiB,64KiB,256KiB,1MiB]"
        "sizes" SYSCALL "Bytes per call; calls that move none are left out; A..B steps by factors \
            of 4 [default: 1 byte, and every call]"
        "file-sizes" COPY "Sizes of the files; A..B steps by factors of 4 \
            [default: 1MiB,16MiB,256MiB]"
    } was "sizes";
    Plan service: Option<List<String>>, values::server::services, Compare "LIST" {
        "service" SERVER "echo, payload:BYTES, burn:MICROSECONDS, top2 [default: echo]"
    } was "services";
    Plan connections: Option<List<u32>>, values::server::connections, Compare "LIST" {
        "connections" SERVER "Open connections [default: 1,16,256]"
    };
    Plan keep_alive: Option<List<Length>>, values::list, Compare "LIST" {
        "keep-alive" SERVER "yes (many requests per connection) or no (one) [default: yes]"
    } was "length";
    Plan bursts: Option<List<Option<u64>>>, values::bursts, Compare "LIST" {
        "bursts" SYSCALL "Back-to-back calls per slice: counts, or full (as many as fit) \
            [default: full,1,10,100,1000]"
    } was "in-a-row";
    Plan threads: Option<List<u32>>, values::threads, Compare "LIST|A..B" {
        "threads" NET "Sender-receiver thread pairs, one connection each [default: 1,4]"
        "threads" FILE "Reading threads [default: 1]"
        "threads" WRITE "Writing threads [default: 1]"
        "threads" COPY "Threads that share each copy, each copying a part of the file [default: 1]"
        "threads" SYSCALL "Threads that make the calls [default: 1]"
        "threads" SERVER "Workers, for models with a fixed number [default: 1]"
    };
    Plan network: Option<List<Stand>>, values::list, Compare "LIST" {
        "network" NET "loopback, veth, sink (drops everything), peer (--peer), or auto: veth if \
            permitted, else loopback [default: auto]"
        "network" SERVER "loopback, veth, or auto: veth if permitted [default: auto]"
    } was "topologies";
    Plan mode: Option<List<Mode>>, values::list, Compare "LIST" {
        "mode" NET "stream (one-way) or rr (request and response) [default: stream]"
    } was "modes";
    Plan block_size: Option<List<Bytes>>, values::blocks, Compare "LIST" {
        "block-size" COPY "Bytes that one call is asked to move [default: 128KiB]"
    } was "block";
    Plan cache: Option<List<CacheState>>, values::list, Compare "LIST" {
        "cache" FILE "Page cache before each read: warm, cold (this file evicted), dropped (all \
            caches, as root) [default: warm,cold; --quick: warm]"
        "cache" COPY "Page cache before each copy: warm, cold (the source evicted) [default: warm]"
    };
    Plan target: Option<List<Destination>>, values::list, Compare "LIST" {
        "target" WRITE "What is written: existing blocks, or new ones [default: existing,new]"
    } was "destination";
    Plan pattern: Option<List<Pattern>>, values::list, Compare "LIST" {
        "pattern" BLOCKS "sequential, random [default: sequential]"
    };
    Plan consumer: Option<List<Consumer>>, values::list, Compare "LIST" {
        "consumer" FILE "What is done with the bytes: none, scan (look at each), hash \
            [default: scan]"
    };
    Plan queue_depth: Option<List<u32>>, values::depths, Compare "LIST" {
        "queue-depth" FILE "Reads in flight per thread, for io_uring engines [default: 8]"
        "queue-depth" WRITE "Writes in flight per thread, for io_uring engines [default: 8]"
    } was "depth";
    Plan sync: Option<List<CopySync>>, values::list, Compare "LIST" {
        "sync" COPY "What the time includes besides the copy: none, fsync [default: none]"
    };

    Plan load: Option<List<LoadLevel>>, values::each_of, Load "LIST" {
        "load" SERVER "closed (next request after the reply), or a fixed rate as a share of the \
            slowest model's maximum, such as 50% [default: closed,50%; --quick: closed]"
    };
    Plan arrivals: Option<Arrivals>, values::one, Load "KIND" {
        "arrivals" SERVER "Arrivals at a fixed rate: poisson, fixed [default: poisson]"
    };
    Plan in_flight: Option<u32>, values::up_to(1024, "requests in flight on a connection"), Load "N" {
        "in-flight" SERVER "Requests in flight per connection, at most [default: 1]"
    };
    Plan step_time: Option<Nanos>, values::span, Load "TIME" {
        "step-time" SERVER "Time at each fixed rate; the first quarter is discarded \
            [default: 2s; --quick: 1s]"
    } was "phase";
    Plan slo: Option<List<Slo>>, values::each_of, Load "LIST" {
        "slo" SERVER "Find the highest rate that meets a latency limit, such as 'p99<2ms' (p50, \
            p90, p99, p99.9)"
    };
    Plan knee: bool, values::switch, Load "" {
        "knee" SERVER "Find the rate at which latency takes off: median 2× that at 10% load"
    };

    Plan dir: Option<String>, values::word, Files "DIR" {
        "dir" FILE "Create the test file here; it is removed afterwards [default: /tmp]"
        "dir" WRITING "Create the test files here; they are removed afterwards [default: /tmp]"
    };
    Plan file_size: Option<Bytes>, values::file_size, Files "SIZE" {
        "file-size" FILE "Size of the test file [default: 4 × last-level cache, 256MiB or more]"
        "file-size" WRITE "Size of the region that each engine writes [default: 64MiB or more]"
    } was "file-bytes";
    Plan file: Option<String>, values::word, Files "FILE" {
        "file" FILE "Read a file of yours instead; it is never written"
        "file" SYSCALL "Make the calls on a file of yours, never written: calls that would write \
            are refused, calls without a file left out"
        "file" COPY "Copy a file of yours, in its own size; it is never written"
    };
    Plan allow_evict: bool, values::switch, Files "" {
        "allow-evict" READING "Allow evicting your --file from the page cache, for --cache cold"
    } was "evict";
    Plan drop_caches: Option<List<DropMode>>, values::list, Files "LIST" {
        "drop-caches" FILE "Drop all caches, as root: 1 (pages), 2 (dentries, inodes), 3 (both); \
            slows every program on the machine; --cache dropped needs 3"
    };

    Plan quick: bool, values::switch, Exact "" {
        "quick" NET "A first look: 3 sizes, 1 thread, 20 trials, usually under 40 s; no verdicts"
        "quick" FILE "A first look: 4 engines, 3 sizes, warm, usually under 40 s; no verdicts"
        "quick" WRITE "A first look: 6 engines, 2 sizes, usually under 25 s; no verdicts"
        "quick" COPY "A first look: 6 engines, 2 sizes, usually under 25 s; no verdicts"
        "quick" SYSCALL "A first look: all calls, 5 trials, usually under 30 s; no verdicts"
        "quick" SERVER "A first look: 16 connections, closed loop, usually under 100 s; no verdicts"
    };
    Plan budget: Option<Nanos>, values::span, Exact "TIME" {
        "budget" LONG "Stop after this long [default: 10m; --quick: 40s]"
        "budget" WRITE "Stop after this long [default: 10m; --quick: 25s]"
        "budget" COPY "Stop after this long [default: 5m; --quick: 25s]"
        "budget" SYSCALL "Stop after this long [default: 5m; --quick: 30s]"
        "budget" SERVER "Stop after this long [default: 30m; --quick: 100s]"
    };
    Plan precision: Option<f64>, values::fraction, Exact "PCT" {
        "precision" EVERY "Stop early once every interval is within ± this [default: 3%]"
    };
    Plan threshold: Option<f64>, values::fraction, Exact "PCT" {
        "threshold" EVERY "Smallest difference that matters to you [default: 3%]"
    } was "delta";
    Plan passes: Option<Passes>, values::passes, Exact "N|A..B" {
        "passes" NET "Trials of each setting, least to most [default: 12..60; --quick: 20]"
        "passes" FILE "Trials of each setting, least to most [default: 12..60; --quick: 10]"
        "passes" WRITE "Trials of each setting, least to most [default: 12..40; --quick: 10]"
        "passes" COPY "Trials of each setting, least to most [default: 12..24; --quick: 8]"
        "passes" SYSCALL "Trials of each setting, least to most [default: 12..24; --quick: 5]"
        "passes" SERVER "Trials of each setting, least to most [default: 12..60; --quick: 10]"
    };

    Plan fields: Option<List<u32>>, values::fields, Messages "LIST" {
        "fields" NET "Separate buffers per message, 1 to 64 [default: 8]"
    };
    Plan send_memory: Option<List<WorkingSet>>, values::list, Messages "LIST" {
        "send-memory" NET "hot (fits L2) or cold (exceeds the last-level cache) [default: hot]"
    } was "working-set" "working-sets";
    Plan iovec: Option<List<Iovec>>, values::list, Messages "LIST" {
        "iovec" NET "Build the iovec per-message, or once: prebuilt [default: per-message]"
    };
    Plan receivers: Option<List<String>>, values::words, Messages "LIST" {
        "receivers" NET "Ways to receive (iolens list receivers) [default: recv]"
    };
    Plan receive_size_bytes: Option<List<Option<Bytes>>>, values::recv_sizes, Messages "LIST" {
        "recv-size" NET "Bytes per receive call [default: 128KiB]"
    } was "receive-size" "receive-bytes";
    Plan reap_batch: Option<List<Option<u32>>>, values::reap_batches, Messages "LIST" {
        "reap-batch" NET "Reap zero-copy completions every N sends, or when needed \
            [default: needed]"
    };
    Plan uring_batch: Option<List<u32>>, values::uring_sends, Messages "LIST" {
        "uring-batch" NET "Sends submitted per io_uring_enter; linked on TCP [default: 1]"
    };
    Plan uring_depth: Option<List<RingDepth>>, values::each_of, Messages "LIST" {
        "uring-depth" NET "Sends in flight per ring; on TCP always the batch [default: batch]"
    };
    Plan ring_flags: Option<List<RingFlags>>, values::each_of, Messages "LIST" {
        "ring-flags" NET "Flags of rings that send: none, coop_taskrun, single_issuer, \
            defer_taskrun, sqpoll, fixed_file, registered_ring or a+b \
            [default: single_issuer+defer_taskrun]"
    };
    Plan busy_poll_us: Option<List<BusyPoll>>, values::each_of, Messages "LIST" {
        "busy-poll" NET "Poll the device this many µs before a receive sleeps; 0: only devices \
            that can be polled [default: off]"
    };

    Plan ip: Option<List<IpVersion>>, values::list, Network "LIST" {
        "ip" NET "ipv4, ipv6 [default: ipv4]"
    };
    Plan mtu_bytes: Option<List<Option<u32>>>, values::mtus, Network "LIST" {
        "mtu" NET "MTU of the veth pair, in bytes [default: 1500]"
    };
    Plan congestion: Option<String>, values::word, Network "NAME" {
        "congestion" NET "TCP congestion control [default: reno]"
    };
    Plan socket_buffer_bytes: Option<List<Bytes>>, values::socket_buffers, Network "LIST" {
        "socket-buffer" NET "SO_SNDBUF and SO_RCVBUF [default: 512KiB]"
    };

    Run peer: Option<Launcher>, peer::launcher, Peer "LAUNCHER" {
        "peer" NET "Command that starts programs there: 'ssh user@host', 'srun -w node2', 'kubectl \
            exec -i pod --'; not passed to a shell"
    };
    Plan local_end: Option<Direction>, values::one, Peer "END" {
        "local-end" NET "Which end runs here: tx, rx [default: tx]"
    } was "direction";
    Run peer_binary: Option<String>, peer::far_program, Peer "PATH" {
        "peer-binary" NET "iolens on that machine [default: copied there for the run]"
    } needs peer;
    Run peer_address: Option<IpAddr>, peer::address, Peer "ADDR" {
        "peer-address" NET "Its address for data [default: the one the launcher reached]"
    } needs peer;
    Run peer_any_build: bool, values::switch, Peer "" {
        "peer-any-build" NET "Accept a different build of iolens there"
    } was "any-build" needs peer_binary;

    Plan cpus: Option<List<u32>>, values::cpus, Machine "LIST" {
        "cpus" NET "CPUs to use, sender first [default: all, by core]"
        "cpus" LOCAL "CPUs to use [default: all available]"
    };
    Plan server_cpus: Option<List<u32>>, values::cpus, Machine "LIST" {
        "server-cpus" SERVER "CPUs of the server [default: one half of them]"
    };
    Plan client_cpus: Option<List<u32>>, values::cpus, Machine "LIST" {
        "client-cpus" SERVER "CPUs of the client [default: the other half]"
    };
    Plan client_threads: Option<u32>, values::server::load_threads, Machine "N" {
        "client-threads" SERVER "Threads of the client [default: one per client CPU]"
    };
    Plan backlog: Option<u32>, values::backlog, Machine "N" {
        "backlog" SERVER "Listen backlog [default: 65535]"
    };
    Plan counters: Option<Counting>, values::one, Machine "WHEN" {
        "counters" EVERY "on, off, or alternate (measures the cost of counting) [default: on]"
    };
    Plan software_events: bool, values::switch, Machine "" {
        "software-events" EVERY "Also count perf's switches, migrations and faults"
    };
    Plan tracepoints: bool, values::switch, Machine "" {
        "tracepoints" NET "Also count system calls, receive copies, retransmits and switches"
        "tracepoints" LOCAL "Also count system calls and switches"
    };
    Run perf_control: Option<PerfControl>, str::parse, Machine "FIFOS" {
        "perf-control" EVERY "Let perf count only the measured slices: fifo:CTL,ACK"
    };
    Plan allow_sysctl: bool, values::switch, Machine "" {
        "allow-sysctl" NET "Change sysctls a receiver needs, as root; restored afterwards"
    };
    Plan seed: Option<u64>, values::seed, Machine "N" {
        "seed" EVERY "Seed of every random order [default: random]"
    };

    Plan slice: Option<Nanos>, values::slice, Experts "TIME" {
        "slice" NET "Length of a slice with one thread pair [default: 2ms]"
        "slice" FILE "Length of a warm slice; cold ones are 10 times as long [default: 2ms]"
        "slice" WRITING "Length of a slice [default: 2ms]"
        "slice" SYSCALL "Length of a full slice [default: 2ms]"
        "slice" SERVER "Length of a closed-loop slice [default: 100ms; --quick: 50ms]"
    } not sequential_time sequential_messages;
    Plan rounds: Option<u32>, values::up_to(100_000, "rounds"), Experts "N" {
        "rounds" NET "Counted rounds per trial [default: 10]"
        "rounds" DISK "Counted rounds per trial [default: 10]"
        "rounds" SYSCALL "Counted rounds per trial [default: 10]"
        "rounds" SERVER "Counted rounds per trial [default: 10; --quick: 3]"
    } not sequential_time sequential_messages;
    Plan isolate: bool, values::switch, Experts "" {
        "isolate" NET "Give each method its own processes"
        "isolate" DISK "Give each engine its own process"
        "isolate" SYSCALL "Give each call its own process"
        "isolate" SERVER "Measure each model by itself"
    } not sequential_time sequential_messages;
    Plan sequential_time: Option<Nanos>, values::span, Experts "TIME" {
        "sequential-time" NET "Run methods one after another, each this long (less precise)"
        "sequential-time" FILE "Run engines one after another, each this long (less precise)"
        "sequential-time" SYSCALL "Run calls one after another, each this long (less precise)"
    } was "window" not sequential_messages;
    Plan sequential_messages: Option<u64>, values::messages, Experts "N" {
        "sequential-messages" NET "The same, each for this many messages"
        "sequential-messages" FILE "The same, each for this many blocks"
        "sequential-messages" SYSCALL "The same, each for this many calls"
    } was "messages";

    Run dry_run: bool, values::switch, After "" {
        "dry-run" EVERY "Print settings and expected time; measure nothing"
    };
    Run print_plan: bool, values::switch, After "" {
        "print-plan" EVERY "Print the run as a plan file; measure nothing"
    } not dry_run;
    Run wait: bool, values::switch, After "" {
        "wait" EVERY "Wait while another run is measuring, instead of failing"
    };
    Plan name: Option<String>, values::run_name, After "NAME" {
        "name" EVERY "Name the run; the name then works like its ID"
    };
    Run strict: bool, values::switch, After "" {
        "strict" EVERY "Exit 1 if anything stays undecided or invalid"
    };
    Run progress: Option<ProgressKind>, values::one, After "HOW" {
        "progress" EVERY "bar (on a terminal), passes (elsewhere), plain (every trial) or none"
    };
    Run db: Option<PathBuf>, values::path, After "FILE" {
        "db" EVERY "Results database [default: ~/.local/share/iolens/iolens.db]"
    };
    Run json: bool, values::switch, After "" {
        "json" EVERY "Print the result as JSON"
    };
    Run verbose: bool, values::switch, After "" {
        "verbose" EVERY "Print everything, as iolens show does"
    } short 'v';
}
