//! What is asked for: the keys of a plan, every one optional. Flags and plan
//! files both turn into this, and the flags declared here are the one table of
//! keys: a key of a plan file is a long flag with `_` for `-`.

use iolens_model::axes::{Counting, Direction, Iovec, IpVersion, Mode, Study, WorkingSet};
use iolens_model::copy::{CopyAxes, CopySync, External};
use iolens_model::file::{
    CacheState, Consumer, Destination, DropMode, FileAxes, Pattern, WriteAxes,
};
use iolens_model::load::{Arrivals, Length};
use iolens_model::parse;
use iolens_model::plan::{Axes, NetAxes, Passes, Plan, Schedule};
use iolens_model::search::Slo;
use iolens_model::server::{LoadLevel, ServerAxes};
use iolens_model::units::{Bytes, Nanos};

use crate::values::{self, List, Stand};

const COMPARE: &str = "What to compare";
const LONG: &str = "How long and how exact";
pub(crate) const MACHINE: &str = "The machine and its network";
const RESULTS: &str = "Results";

/// The keys of a plan, as far as they were stated.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
pub(crate) struct Wishes {
    /// What is studied; on the command line it is no flag.
    #[arg(skip)]
    pub(crate) study: Option<Study>,

    /// A first look in under a minute: indicative sentences, no verdicts
    #[arg(long)]
    pub(crate) quick: bool,

    /// Arms, by id or by family, or all (see `iolens list primitives` and `list calls`) [default:
    /// the classic three and send; of syscall all calls]
    #[arg(long, value_name = "LIST", value_parser = values::words, help_heading = COMPARE)]
    pub(crate) primitives: Option<List<String>>,
    /// The arm the others are compared with [default: send_staged; of syscall getppid]
    #[arg(long, value_name = "ID", value_parser = values::word, help_heading = COMPARE)]
    pub(crate) baseline: Option<String>,
    /// Sizes of messages, of blocks (file) or of whole files (copy): a list, or a range by factors
    /// of 4 [default: 64..1MiB; of copy 1MiB..256MiB]
    #[arg(long, value_name = "LIST|A..B", value_parser = values::sizes, help_heading = COMPARE)]
    pub(crate) sizes: Option<List<Bytes>>,
    /// Thread pairs, one connection each, or of syscall threads [default: 1,4; 1]
    #[arg(long, value_name = "LIST", value_parser = values::threads, help_heading = COMPARE)]
    pub(crate) threads: Option<List<u32>>,
    /// loopback, veth, sink (dropped), host (see --peer), or auto: veth where permitted
    /// [default: auto]
    #[arg(long, value_name = "LIST", value_parser = values::topologies, help_heading = COMPARE)]
    pub(crate) topologies: Option<List<Stand>>,
    /// stream, rr (request and response) [default: stream]
    #[arg(long, value_name = "LIST", value_parser = values::modes, help_heading = COMPARE)]
    pub(crate) modes: Option<List<Mode>>,
    /// Memory that is sent from: hot, cold [default: hot]
    #[arg(long, alias = "working-sets", value_name = "LIST",
          value_parser = values::working_sets, help_heading = COMPARE)]
    pub(crate) working_set: Option<List<WorkingSet>>,
    /// Ways of receiving, by id (see `iolens list receivers`) [default: recv]
    #[arg(long, value_name = "LIST", value_parser = values::words, help_heading = COMPARE)]
    pub(crate) receivers: Option<List<String>>,
    /// Fields per message, 1 to 64 [default: 8]
    #[arg(long, value_name = "LIST", value_parser = values::fields, help_heading = COMPARE)]
    pub(crate) fields: Option<List<u32>>,
    /// When an iovec is built: per_message, prepared [default: per_message]
    #[arg(long, value_name = "LIST", value_parser = values::iovecs, help_heading = COMPARE)]
    pub(crate) iovec: Option<List<Iovec>>,
    /// Read completions of sendmsg_zerocopy after so many sends, or when needed [default: needed]
    #[arg(long, value_name = "LIST", value_parser = values::reap_batches, help_heading = COMPARE)]
    pub(crate) reap_batch: Option<List<Option<u32>>>,
    /// Sends that one call hands to a ring; on TCP one chain [default: 1]
    #[arg(long, value_name = "LIST", value_parser = values::uring_sends, help_heading = COMPARE)]
    pub(crate) uring_batch: Option<List<u32>>,
    /// Sends of a ring under way at once; on TCP a batch [default: the batch]
    #[arg(long, value_name = "LIST", value_parser = values::uring_sends, help_heading = COMPARE)]
    pub(crate) uring_depth: Option<List<u32>>,

    /// Of syscall: calls in a row that a slice is, numbers or fill, as many as fill it
    /// [default: fill,1,10,100,1000]
    #[arg(long, value_name = "LIST", value_parser = values::in_a_row, help_heading = COMPARE)]
    pub(crate) in_a_row: Option<List<Option<u64>>>,

    /// Of file and copy: what of the file that is read is in the page cache before: warm, cold
    /// (evicted), and of file dropped (with the whole system's caches; see --drop-caches)
    /// [default: warm,cold; quick, and of copy: warm]
    #[arg(long, value_name = "LIST", value_parser = values::caches, help_heading = COMPARE)]
    pub(crate) cache: Option<List<CacheState>>,
    /// Of write: what is there already: existing, new [default: existing,new]
    #[arg(long, value_name = "LIST", value_parser = values::destinations, help_heading = COMPARE)]
    pub(crate) destination: Option<List<Destination>>,
    /// Of file and write: order of blocks: sequential, random [default: sequential]
    #[arg(long, value_name = "LIST", value_parser = values::patterns, help_heading = COMPARE)]
    pub(crate) pattern: Option<List<Pattern>>,
    /// Of file: what becomes of the bytes: none, scan, hash [default: scan]
    #[arg(long, value_name = "LIST", value_parser = values::consumers, help_heading = COMPARE)]
    pub(crate) consumer: Option<List<Consumer>>,
    /// Of file and write: blocks under way at once in each thread, of engines that can have several
    /// [default: 8]
    #[arg(long, value_name = "LIST", value_parser = values::depths, help_heading = COMPARE)]
    pub(crate) depth: Option<List<u32>>,
    /// Of file and copy: a file of yours, which is only read, and of copy in its own size
    /// [default: ours, removed afterwards]
    #[arg(long, value_name = "FILE", value_parser = values::word, help_heading = COMPARE)]
    pub(crate) file: Option<String>,
    /// Of file, write and copy: the folder where ours are made, and copies [default: that of
    /// temporary files]
    #[arg(long, value_name = "DIR", value_parser = values::word, help_heading = COMPARE)]
    pub(crate) dir: Option<String>,
    /// Of file: size of ours [default: 4 times the last-level cache, 256MiB at least]; of write:
    /// of the region that each arm has [default: 64MiB at least]
    #[arg(long, value_name = "SIZE", value_parser = values::file_bytes, help_heading = COMPARE)]
    pub(crate) file_bytes: Option<Bytes>,
    /// Of file and copy: cold cells may evict your file from the page cache
    #[arg(long, help_heading = COMPARE)]
    pub(crate) evict: bool,
    /// Of file: drop caches of the whole system, as root, to see what each mode is worth:
    /// 1 (pages), 2 (dentries and inodes), 3 (both)
    #[arg(long, value_name = "LIST", value_parser = values::drop_modes, help_heading = COMPARE)]
    pub(crate) drop_caches: Option<List<DropMode>>,
    /// Of copy: bytes that one call is asked to move [default: 128KiB]
    #[arg(long, value_name = "LIST", value_parser = values::blocks, help_heading = COMPARE)]
    pub(crate) block: Option<List<Bytes>>,
    /// Of copy: what belongs to the time besides copying: none, fsync [default: none]
    #[arg(long, value_name = "LIST", value_parser = values::copy_syncs, help_heading = COMPARE)]
    pub(crate) sync: Option<List<CopySync>>,
    /// A program as an arm, of copy 'mine=prog {src} {dst} {block}', of server
    /// 'mine=prog {port}'; no shell; may be repeated
    #[arg(long, value_name = "NAME=COMMAND", value_parser = values::external,
          help_heading = COMPARE)]
    pub(crate) external: Vec<External>,

    /// Of server: what is asked for: echo, payload:BYTES, burn:MICROSECONDS, top2 (see `iolens
    /// serve --help`) [default: echo]
    #[arg(long, value_name = "LIST", value_parser = values::server::services, help_heading = COMPARE)]
    pub(crate) services: Option<List<String>>,
    /// Of server: connections at a time [default: 1,16,256]
    #[arg(long, value_name = "LIST", value_parser = values::server::connections,
          help_heading = COMPARE)]
    pub(crate) connections: Option<List<u32>>,
    /// Of server: requests of a connection: short (one), long (many) [default: long]
    #[arg(long, value_name = "LIST", value_parser = values::server::lengths, help_heading = COMPARE)]
    pub(crate) length: Option<List<Length>>,
    /// Of server: closed (as much as it takes), or a rate as a share of what the slowest model
    /// takes, like 50% [default: closed,50%]
    #[arg(long, value_name = "LIST", value_parser = values::server::loads, help_heading = COMPARE)]
    pub(crate) load: Option<List<LoadLevel>>,
    /// Of server: how requests of a rate follow each other: poisson, fixed [default: poisson]
    #[arg(long, value_name = "WHICH", value_parser = values::load::arrivals, help_heading = COMPARE)]
    pub(crate) arrivals: Option<Arrivals>,
    /// Of server: requests in flight on each connection, at most [default: 1]
    #[arg(long, value_name = "N", value_parser = values::server::in_flight, help_heading = COMPARE)]
    pub(crate) in_flight: Option<u32>,
    /// Of server: search for the highest rate at which latency stays below a limit, like 'p99<2ms'
    /// in quotes; p50, p90, p99, p99.9
    #[arg(long, value_name = "LIST", value_parser = values::server::slo, help_heading = COMPARE)]
    pub(crate) slo: Option<List<Slo>>,
    /// Of server: search for the rate beyond which latency climbs: the median more than twice that
    /// at a tenth of what a closed loop takes
    #[arg(long, help_heading = COMPARE)]
    pub(crate) knee: bool,

    /// Of server: how long requests are offered at a rate, the first quarter thrown away
    /// [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = values::span, help_heading = LONG)]
    pub(crate) phase: Option<Nanos>,
    /// Begin no pass that would end later [default: 10m; quick: 40s]
    #[arg(long, value_name = "TIME", value_parser = values::span, help_heading = LONG)]
    pub(crate) budget: Option<Nanos>,
    /// Half-width of a ratio at which it is precise enough [default: 3%]
    #[arg(long, value_name = "FRACTION", value_parser = values::fraction, help_heading = LONG)]
    pub(crate) precision: Option<f64>,
    /// Smallest difference that matters [default: 3%]
    #[arg(long, value_name = "FRACTION", value_parser = values::fraction, help_heading = LONG)]
    pub(crate) delta: Option<f64>,
    /// Visit every cell this often, budget permitting
    /// [default: 12..60; quick: 20, of other studies than net 5 to 10]
    #[arg(long, value_name = "N|A..B", value_parser = values::passes, help_heading = LONG)]
    pub(crate) passes: Option<Passes>,
    /// How long a slice is meant to last with one thread pair [default: 2ms]
    #[arg(long, value_name = "TIME", value_parser = values::slice,
          conflicts_with_all = ["window", "messages"], help_heading = LONG)]
    pub(crate) slice: Option<Nanos>,
    /// Rounds of slices that count in a trial [default: 10]
    #[arg(long, value_name = "N", value_parser = values::rounds,
          conflicts_with_all = ["window", "messages"], help_heading = LONG)]
    pub(crate) rounds: Option<u32>,
    /// The classic way: one arm after another, each for this long
    #[arg(long, value_name = "TIME", value_parser = values::span,
          conflicts_with = "messages", help_heading = LONG)]
    pub(crate) window: Option<Nanos>,
    /// The classic way: one arm after another, this many messages each
    #[arg(long, value_name = "N", value_parser = values::messages, help_heading = LONG)]
    pub(crate) messages: Option<u64>,
    /// One arm per process pair, instead of all of a cell together
    #[arg(long, conflicts_with_all = ["window", "messages"], help_heading = LONG)]
    pub(crate) isolate: bool,

    /// Processors to use, sending end first [default: all it may use]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MACHINE)]
    pub(crate) cpus: Option<List<u32>>,
    /// Of server: processors of the servers [default: the first half of --cpus]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MACHINE)]
    pub(crate) server_cpus: Option<List<u32>>,
    /// Of server: processors of the client [default: the other half]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MACHINE)]
    pub(crate) client_cpus: Option<List<u32>>,
    /// Of server: threads of the client [default: one for each of its processors]
    #[arg(long, value_name = "N", value_parser = values::load::threads, help_heading = MACHINE)]
    pub(crate) client_threads: Option<u32>,
    /// Of server: connections that may wait to be taken [default: 65535]
    #[arg(long, value_name = "N", value_parser = values::backlog, help_heading = MACHINE)]
    pub(crate) backlog: Option<u32>,
    /// Protocol under TCP: ipv4, ipv6 [default: ipv4]
    #[arg(long, value_name = "LIST", value_parser = values::ips, help_heading = MACHINE)]
    pub(crate) ip: Option<List<IpVersion>>,
    /// MTU of a veth device in bytes, headers included [default: 1500]
    #[arg(long, value_name = "LIST", value_parser = values::mtus, help_heading = MACHINE)]
    pub(crate) mtu: Option<List<u32>>,
    /// Which end is on this machine, where the other one is behind --peer: tx, rx [default: tx]
    #[arg(long, value_name = "END", value_parser = values::peer::direction, help_heading = MACHINE)]
    pub(crate) direction: Option<Direction>,
    /// TCP congestion control of every socket [default: reno]
    #[arg(long, value_name = "NAME", value_parser = values::word, help_heading = MACHINE)]
    pub(crate) congestion: Option<String>,
    /// SO_SNDBUF and SO_RCVBUF of every socket [default: 512KiB]
    #[arg(long, value_name = "LIST", value_parser = values::socket_buffers, help_heading = MACHINE)]
    pub(crate) socket_buffer: Option<List<Bytes>>,
    /// Bytes asked of one receiving call, whatever the message size [default: 128KiB]
    #[arg(long, alias = "receive-bytes", value_name = "LIST",
          value_parser = values::receive_sizes, help_heading = MACHINE)]
    pub(crate) receive_size: Option<List<Bytes>>,
    /// When counters are open: on, off, alternate: closed while the A/A arm runs,
    /// whose ratio then is their cost [default: on]
    #[arg(long, value_name = "WHEN", value_parser = values::counting, help_heading = MACHINE)]
    pub(crate) counters: Option<Counting>,
    /// Count switches, migrations and faults by the kernel's software events too
    #[arg(long, help_heading = MACHINE)]
    pub(crate) software_events: bool,
    /// Count tracepoints too: system calls, copies to receivers, retransmits, switches
    #[arg(long, help_heading = MACHINE)]
    pub(crate) tracepoints: bool,
    /// Change sysctls of the whole machine for the time of the run, as root, where
    /// a receiver needs it, and put them back
    #[arg(long, help_heading = MACHINE)]
    pub(crate) allow_sysctl: bool,
    /// Seed of every random order [default: random]
    #[arg(long, value_name = "N", help_heading = MACHINE)]
    pub(crate) seed: Option<u64>,

    /// A name for the run, which then stands for it like its id
    #[arg(long, value_name = "TEXT", value_parser = parse::run_name, help_heading = RESULTS)]
    pub(crate) name: Option<String>,
}

impl Wishes {
    /// Whether arms run one after another, the classic way.
    pub(crate) fn is_classic(&self) -> bool {
        self.window.is_some() || self.messages.is_some()
    }

    /// These wishes, and where they are silent what `below` says. A way to lay
    /// out trials that is stated here takes the place of another one below.
    pub(crate) fn or(self, mut below: Wishes) -> Wishes {
        self.take_the_place_of(&mut below);
        Wishes {
            study: self.study.or(below.study),
            quick: self.quick || below.quick,
            primitives: self.primitives.or(below.primitives),
            baseline: self.baseline.or(below.baseline),
            sizes: self.sizes.or(below.sizes),
            threads: self.threads.or(below.threads),
            topologies: self.topologies.or(below.topologies),
            modes: self.modes.or(below.modes),
            working_set: self.working_set.or(below.working_set),
            receivers: self.receivers.or(below.receivers),
            fields: self.fields.or(below.fields),
            iovec: self.iovec.or(below.iovec),
            reap_batch: self.reap_batch.or(below.reap_batch),
            uring_batch: self.uring_batch.or(below.uring_batch),
            uring_depth: self.uring_depth.or(below.uring_depth),
            in_a_row: self.in_a_row.or(below.in_a_row),
            cache: self.cache.or(below.cache),
            pattern: self.pattern.or(below.pattern),
            consumer: self.consumer.or(below.consumer),
            depth: self.depth.or(below.depth),
            file: self.file.or(below.file),
            dir: self.dir.or(below.dir),
            file_bytes: self.file_bytes.or(below.file_bytes),
            evict: self.evict || below.evict,
            drop_caches: self.drop_caches.or(below.drop_caches),
            destination: self.destination.or(below.destination),
            block: self.block.or(below.block),
            sync: self.sync.or(below.sync),
            external: stated_or(self.external, below.external),
            services: self.services.or(below.services),
            connections: self.connections.or(below.connections),
            length: self.length.or(below.length),
            load: self.load.or(below.load),
            arrivals: self.arrivals.or(below.arrivals),
            in_flight: self.in_flight.or(below.in_flight),
            slo: self.slo.or(below.slo),
            knee: self.knee || below.knee,
            phase: self.phase.or(below.phase),
            server_cpus: self.server_cpus.or(below.server_cpus),
            client_cpus: self.client_cpus.or(below.client_cpus),
            client_threads: self.client_threads.or(below.client_threads),
            backlog: self.backlog.or(below.backlog),
            budget: self.budget.or(below.budget),
            precision: self.precision.or(below.precision),
            delta: self.delta.or(below.delta),
            passes: self.passes.or(below.passes),
            slice: self.slice.or(below.slice),
            rounds: self.rounds.or(below.rounds),
            window: self.window.or(below.window),
            messages: self.messages.or(below.messages),
            isolate: self.isolate || below.isolate,
            cpus: self.cpus.or(below.cpus),
            ip: self.ip.or(below.ip),
            mtu: self.mtu.or(below.mtu),
            direction: self.direction.or(below.direction),
            congestion: self.congestion.or(below.congestion),
            socket_buffer: self.socket_buffer.or(below.socket_buffer),
            receive_size: self.receive_size.or(below.receive_size),
            counters: self.counters.or(below.counters),
            software_events: self.software_events || below.software_events,
            tracepoints: self.tracepoints || below.tracepoints,
            allow_sysctl: self.allow_sysctl || below.allow_sysctl,
            seed: self.seed.or(below.seed),
            name: self.name.or(below.name),
        }
    }

    /// Forgets of `below` how trials are laid out, where these wishes say it another way.
    fn take_the_place_of(&self, below: &mut Wishes) {
        if self.is_classic() {
            below.forget_slices();
        }
        if self.is_classic() || self.slice.is_some() || self.rounds.is_some() || self.isolate {
            (below.window, below.messages) = (None, None);
        }
    }

    /// Forgets what only trials of slices have.
    fn forget_slices(&mut self) {
        (self.slice, self.rounds, self.isolate) = (None, None, false);
    }

    /// The wishes that lead to this plan, each one stated.
    pub(crate) fn of(plan: &Plan, name: Option<&str>) -> Wishes {
        let (mut slice, mut rounds, mut window, mut messages) = (None, None, None, None);
        match plan.schedule {
            Schedule::Slices { slice: length, rounds: count, .. } => {
                (slice, rounds) = (Some(length), Some(count));
            }
            Schedule::Window { window: length } => window = Some(length),
            Schedule::Messages { messages: count } => messages = Some(count),
        }
        // The size of a file that is copied is its own.
        let is_of_a_file = plan.copy().is_some_and(|copy| copy.file.is_some());
        Wishes {
            study: Some(plan.study()),
            quick: plan.quick,
            primitives: Some(List(plan.primitives.clone())),
            baseline: Some(plan.baseline.clone()),
            sizes: (plan.study().has_sizes() && !is_of_a_file).then(|| List(plan.sizes.clone())),
            threads: Some(List(plan.threads.clone())),
            budget: Some(plan.budget),
            precision: Some(plan.precision),
            delta: Some(plan.delta),
            passes: Some(plan.passes),
            slice,
            rounds,
            window,
            messages,
            isolate: plan.isolate,
            cpus: plan.cpus.clone().map(List),
            counters: Some(plan.probes.counting),
            software_events: plan.probes.software,
            tracepoints: plan.probes.tracepoints,
            seed: Some(plan.seed),
            name: name.map(str::to_owned),
            ..match &plan.axes {
                Axes::Net(net) => Wishes::of_net(net),
                Axes::File(file) => Wishes::of_file(file),
                Axes::Write(write) => Wishes::of_write(write),
                Axes::Copy(copy) => Wishes::of_copy(copy),
                Axes::Server(server) => Wishes::of_server(server),
                Axes::Syscall(syscall) => {
                    Wishes { in_a_row: Some(List(syscall.in_a_row.clone())), ..Wishes::default() }
                }
            }
        }
    }

    /// What only plans of `file` state.
    fn of_file(file: &FileAxes) -> Wishes {
        Wishes {
            cache: Some(List(file.cache.clone())),
            pattern: Some(List(file.pattern.clone())),
            consumer: Some(List(file.consumer.clone())),
            depth: Some(List(file.depth.clone())),
            file: file.file.clone(),
            dir: file.dir.clone(),
            file_bytes: file.file_bytes,
            evict: file.evict,
            drop_caches: (!file.drop_caches.is_empty()).then(|| List(file.drop_caches.clone())),
            ..Wishes::default()
        }
    }

    /// What only plans of `write` state.
    fn of_write(write: &WriteAxes) -> Wishes {
        Wishes {
            destination: Some(List(write.destination.clone())),
            pattern: Some(List(write.pattern.clone())),
            depth: Some(List(write.depth.clone())),
            dir: write.dir.clone(),
            file_bytes: write.file_bytes,
            ..Wishes::default()
        }
    }

    /// What only plans of `copy` state.
    fn of_copy(copy: &CopyAxes) -> Wishes {
        Wishes {
            block: Some(List(copy.block.clone())),
            cache: Some(List(copy.cache.clone())),
            sync: Some(List(copy.sync.clone())),
            file: copy.file.clone(),
            dir: copy.dir.clone(),
            evict: copy.evict,
            external: copy.external.clone(),
            ..Wishes::default()
        }
    }

    /// What only plans of `server` state.
    fn of_server(server: &ServerAxes) -> Wishes {
        let stands = server.topologies.iter().map(|&topology| Stand::At(topology)).collect();
        Wishes {
            topologies: Some(List(stands)),
            services: Some(List(server.services.clone())),
            connections: Some(List(server.connections.clone())),
            length: Some(List(server.lengths.clone())),
            load: Some(List(server.loads.clone())),
            arrivals: Some(server.arrivals),
            in_flight: Some(server.in_flight),
            slo: (!server.slo.is_empty()).then(|| List(server.slo.clone())),
            knee: server.knee,
            phase: Some(server.phase),
            server_cpus: server.server_cpus.clone().map(List),
            client_cpus: server.client_cpus.clone().map(List),
            client_threads: server.client_threads,
            backlog: Some(server.backlog),
            external: server.external.clone(),
            ..Wishes::default()
        }
    }

    /// What only plans of `net` state.
    fn of_net(net: &NetAxes) -> Wishes {
        let stands = net.topologies.iter().map(|&topology| Stand::At(topology)).collect();
        let depths = &net.batches.uring_depth;
        let apart = net.topologies.iter().any(|topology| topology.is_apart());
        Wishes {
            topologies: Some(List(stands)),
            modes: Some(List(net.modes.clone())),
            working_set: Some(List(net.working_sets.clone())),
            receivers: Some(List(net.receivers.clone())),
            fields: Some(List(net.fields.clone())),
            iovec: Some(List(net.iovec.clone())),
            reap_batch: Some(List(net.batches.reap_batch.clone())),
            uring_batch: Some(List(net.batches.uring_batch.clone())),
            uring_depth: (!depths.is_empty()).then(|| List(depths.clone())),
            ip: Some(List(net.network.ip.clone())),
            mtu: Some(List(net.network.mtu_bytes.clone())),
            direction: apart.then_some(net.direction),
            congestion: Some(net.socket.congestion.clone()),
            socket_buffer: Some(List(net.socket.buffer_bytes.clone())),
            receive_size: Some(List(net.socket.receive_bytes.clone())),
            allow_sysctl: net.allow_sysctl,
            ..Wishes::default()
        }
    }
}

/// A list that may be stated, or what stands below it.
fn stated_or<T>(own: Vec<T>, below: Vec<T>) -> Vec<T> {
    if own.is_empty() { below } else { own }
}
