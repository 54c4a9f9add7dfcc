//! What remains possible of each study, from what was found.

use iolens_model::axes::Study;
use iolens_model::doctor::{Area, Finding, Outlook, State};

use super::{Patient, counters, limits, network};

/// What remains, in the order in which it is shown.
pub(super) fn outlooks(patient: &Patient<'_>, findings: &[Finding]) -> Vec<Outlook> {
    let known = Known { patient, findings };
    let [loopback, veth, sink, stream, rr, zerocopy, counts, attribution] = [
        known.loopback(),
        known.veth(),
        known.sink(),
        known.stream(),
        known.rr(),
        known.zerocopy(),
        known.counters(),
        known.attribution(),
    ];
    let net = [
        ("loopback", loopback),
        ("veth", veth),
        ("sink", sink),
        ("stream", stream),
        ("rr", rr),
        ("zero-copy", zerocopy),
        ("counters", counts),
        ("attribution", attribution),
    ];
    let net = net.map(|(part, remains)| outlook("net", part, remains));
    let others = [
        ("file", known.file()),
        ("copy", known.copy()),
        ("syscall", known.syscall()),
        ("server", known.server()),
    ];
    let others = others.map(|(study, remains)| outlook(study, study, remains));
    net.into_iter().chain(others).collect()
}

/// How much is possible, and what.
type Remains = (State, String);

fn outlook(study: &str, part: &str, (state, possible): Remains) -> Outlook {
    let built = Study::from_word(study).is_some();
    Outlook { study: study.to_owned(), part: part.to_owned(), state, built, possible }
}

fn all(possible: impl Into<String>) -> Remains {
    (State::Ok, possible.into())
}

fn some(possible: impl Into<String>) -> Remains {
    (State::Limited, possible.into())
}

fn nothing(possible: impl Into<String>) -> Remains {
    (State::Missing, possible.into())
}

struct Known<'a> {
    patient: &'a Patient<'a>,
    findings: &'a [Finding],
}

impl Known<'_> {
    /// The state of a finding; what was not looked at is not there.
    fn state(&self, area: Area, name: &str) -> State {
        let found = self.findings.iter().find(|f| f.area == area && f.name == name);
        found.map_or(State::Missing, |finding| finding.state)
    }

    fn has(&self, area: Area, name: &str) -> bool {
        self.state(area, name) != State::Missing
    }

    fn cpus(&self) -> usize {
        self.patient.tried.cpus.len()
    }

    fn loopback(&self) -> Remains {
        match self.cpus() {
            0 | 1 => some("every method, both ends on one CPU"),
            cpus => all(format!("every method; {} without sharing a CPU", pairs(cpus / 2))),
        }
    }

    fn veth(&self) -> Remains {
        match &self.patient.tried.veth {
            Ok(()) => all("every method, each end in its own network namespace"),
            Err(_) => nothing("not possible; use loopback"),
        }
    }

    fn sink(&self) -> Remains {
        match (&self.patient.tried.sink, self.has(Area::Network, network::ZEROCOPY)) {
            (Ok(()), true) => all("sending only; zero-copy sends are not copied"),
            (Ok(()), false) => some("sending only; no zero-copy sends"),
            (Err(_), _) => nothing("not possible; zero-copy sends are copied everywhere else"),
        }
    }

    fn stream(&self) -> Remains {
        match self.cpus() {
            0 | 1 => some("ratios; times include context switches of the shared CPU"),
            _ => all("ratios and times per message"),
        }
    }

    fn rr(&self) -> Remains {
        let clock = self.state(Area::Machine, "clock");
        match (self.cpus(), clock) {
            (0 | 1, _) => some("round trips, including context switches of the shared CPU"),
            (_, State::Ok) => all("every round trip timed, percentiles with intervals"),
            _ => some("every round trip timed, by a slow clock"),
        }
    }

    /// The kernel copies late whatever is delivered on the same machine
    /// (`skb_orphan_frags_rx`), so its gain is nowhere to be seen but in sink.
    fn zerocopy(&self) -> Remains {
        if !self.has(Area::Network, network::ZEROCOPY) {
            return nothing("not supported by sockets");
        }
        let copied = match self.patient.tried.sink {
            Ok(()) => "copied anyway on this machine, except into sink",
            Err(_) => "cost without gain: copied anyway on one machine",
        };
        match self.patient.tried.locked_memory.largest_message() {
            Some(largest) if self.state(Area::Network, network::LOCKED_MEMORY) != State::Ok => {
                some(format!("messages up to {largest}; {copied}"))
            }
            _ => all(copied),
        }
    }

    fn counters(&self) -> Remains {
        const ACCOUNTS: &str = "CPU time, switches, faults";
        if !self.has(Area::Counters, counters::PMU) {
            return some(format!("{ACCOUNTS}; no cycles: no PMU"));
        }
        if !self.has(Area::Counters, counters::PMU_COUNTERS) {
            return some(format!("{ACCOUNTS}; no cycles: not permitted"));
        }
        match self.state(Area::Counters, counters::PMU_COUNTERS) {
            State::Ok if self.only_over_loopback() => {
                some("all over loopback; no cycles over veth, in a user namespace")
            }
            State::Ok => all(format!("{ACCOUNTS}, cycles, instructions, caches")),
            _ => some(format!("{ACCOUNTS}; some PMU counters")),
        }
    }

    /// Rights of the program's file end where its workers make a user
    /// namespace; a sysctl holds there too.
    fn only_over_loopback(&self) -> bool {
        let level = super::rights::current_level(self.patient.root).unwrap_or(i32::MAX);
        self.patient.tried.user != 0
            && self.patient.tried.veth.is_ok()
            && level > super::rights::LEVEL_KERNEL
    }

    fn attribution(&self) -> Remains {
        let sampled = self.has(Area::Counters, counters::KERNEL_SAMPLING);
        let named = self.has(Area::Counters, counters::KERNEL_SYMBOLS);
        match (sampled, named, self.patient.tried.sample_user) {
            (true, true, _) if self.only_over_loopback() => {
                some("kernel functions over loopback; only user code over veth")
            }
            (true, true, _) => all("copies, pinning, softirq and so on, by kernel function"),
            (true, false, _) => some("kernel and user time, without kernel functions"),
            (false, _, Ok(())) => some("only user code"),
            (false, _, Err(_)) => nothing("no samples at all"),
        }
    }

    fn file(&self) -> Remains {
        let ways = "pread, mmap, O_DIRECT";
        match self.has(Area::Limits, limits::IO_URING) {
            true => all(format!("{ways}, io_uring")),
            false => some(format!("{ways}; no io_uring")),
        }
    }

    fn copy(&self) -> Remains {
        let ways = "read and write, copy_file_range, sendfile, splice, O_DIRECT, dd and cp";
        match self.has(Area::Limits, limits::IO_URING) {
            true => all(format!("{ways}, io_uring")),
            false => some(format!("{ways}; no io_uring")),
        }
    }

    fn syscall(&self) -> Remains {
        match self.patient.rights.seccomp {
            None | Some(0) => all("the cost of a system call"),
            Some(_) => some("the cost of a system call, seccomp filter included"),
        }
    }

    fn server(&self) -> Remains {
        if self.cpus() <= 1 {
            return some("server and clients on one CPU: cost per request, no rates");
        }
        let mut fewer = Vec::new();
        if self.state(Area::Limits, limits::DESCRIPTORS) != State::Ok {
            fewer.push(format!("{} descriptors", self.patient.tried.descriptors));
        }
        if !self.has(Area::Limits, limits::IO_URING) {
            fewer.push("no io_uring".to_owned());
        }
        if self.cpus() < 4 {
            fewer.push(format!("rates are lower bounds on {} CPUs", self.cpus()));
        }
        match fewer.is_empty() {
            true => all("every model, 10 000 connections"),
            false => some(fewer.join("; ")),
        }
    }
}

fn pairs(count: usize) -> String {
    if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") }
}
