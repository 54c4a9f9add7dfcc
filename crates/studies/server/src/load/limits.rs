//! What this machine's limits allow a client, computed before it starts:
//! descriptors, ports, tracked connections.

use std::net::{IpAddr, SocketAddr};

use iolens_model::load::{Length, Pace};
use iolens_sys::proc::Root;
use iolens_sys::{process, sysctl};

use super::{Count, Settings};

/// Descriptors of this process that are no connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// How long a port is not used again after its connection was closed from this
/// side (`TCP_TIMEWAIT_LEN`, include/net/tcp.h).
const TIME_WAIT_S: f64 = 60.0;

/// The same where `net.ipv4.tcp_tw_reuse` lets a new connection take it over,
/// once its time stamp has moved on (`tcp_twsk_unique`, net/ipv4/tcp_ipv4.c).
const REUSE_S: f64 = 1.0;

/// Short connections per second for which there are to be ports where a client makes them as
/// fast as they end: more than any machine does.
const SHORT_PER_S: f64 = 100_000.0;

/// So many times as many ports as are held: to find a free one takes long where most are not.
const PORTS_OVER_HELD: f64 = 4.0;

/// Sysctls of our own network namespaces that many connections at a time need, and many
/// one after another; see ip-sysctl.rst of the kernel.
pub const ROOM: [(&str, &str); 4] = [
    ("net/core/somaxconn", "65535"),
    ("net/ipv4/tcp_max_syn_backlog", "65535"),
    ("net/ipv4/ip_local_port_range", "1024 65535"),
    // Who closes keeps the port: it may be used again after a second.
    ("net/ipv4/tcp_tw_reuse", "1"),
];

/// The ports of [`ROOM`].
const OWN_PORTS: (u64, u64) = (1024, 65_535);

/// The limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// `RLIMIT_NOFILE`, hard.
    descriptors: u64,
    /// `net.ipv4.ip_local_port_range`.
    ports: (u64, u64),
    /// `net.ipv4.tcp_tw_reuse`: 0 never, 1 always, 2 over loopback.
    tw_reuse: u64,
    /// `net.netfilter.nf_conntrack_max`; `None` where connections are not tracked.
    tracked: Option<u64>,
}

impl Limits {
    /// Those of this machine and process; what cannot be read is as it is where
    /// nobody has changed it.
    pub fn here(root: &Root) -> Limits {
        let number = |name: &str| sysctl::read(root, name).ok()?.parse::<u64>().ok();
        let range = sysctl::read(root, "net.ipv4.ip_local_port_range").unwrap_or_default();
        let mut range = range.split_whitespace().filter_map(|port| port.parse().ok());
        Limits {
            descriptors: process::descriptor_limits().1,
            ports: (range.next().unwrap_or(32_768), range.next().unwrap_or(60_999)),
            tw_reuse: number("net.ipv4.tcp_tw_reuse").unwrap_or(2),
            tracked: number("net.netfilter.nf_conntrack_max"),
        }
    }

    /// The same where a process may have so many descriptors.
    pub fn with_descriptors(self, descriptors: u64) -> Limits {
        Limits { descriptors, ..self }
    }

    /// The same in a network namespace that is made for a run, with [`ROOM`].
    pub fn in_own_namespace(&self) -> Limits {
        Limits { ports: OWN_PORTS, tw_reuse: 1, ..self.clone() }
    }

    /// Addresses of the loopback device to connect from, as many as have the ports for
    /// what is asked for; none where one is enough, or the server is somewhere else.
    pub fn sources(&self, settings: &Settings) -> Vec<IpAddr> {
        /// Of 127.0.0.0/24.
        const SOURCES_MAX: u64 = 254;
        let held = u64::from(settings.connections).saturating_add(self.held(settings));
        let needed = held.div_ceil(self.ports_each().max(1));
        let (IpAddr::V4(ip), 2..) = (settings.address.ip(), needed) else { return Vec::new() };
        if !ip.is_loopback() {
            return Vec::new();
        }
        let last = u8::try_from(needed.min(SOURCES_MAX)).unwrap_or(u8::MAX);
        (1..=last).map(|number| IpAddr::from([127, 0, 0, number])).collect()
    }

    /// Ports that there should be for connections that keep theirs after their end.
    fn held(&self, settings: &Settings) -> u64 {
        let per_s = match (settings.length, settings.pace) {
            (Length::Long, _) => return 0,
            (Length::Short, Pace::Open { rate, .. }) => rate,
            (Length::Short, _) => SHORT_PER_S,
        };
        let held = (per_s * self.hold_s(settings.address.ip()) * PORTS_OVER_HELD).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let held = held as u64;
        held
    }

    /// Ports of one source address.
    fn ports_each(&self) -> u64 {
        self.ports.1.saturating_sub(self.ports.0) + 1
    }

    /// Whether they are enough for what is asked for.
    ///
    /// Errors: which is not, with the arithmetic and what to do.
    pub fn allow(&self, settings: &Settings) -> Result<(), String> {
        let connections = u64::from(settings.connections);
        let needed = connections + OTHER_DESCRIPTORS + u64::from(settings.threads);
        if needed > self.descriptors {
            return Err(format!(
                "{connections} connections need {needed} descriptors ({connections} and \
                 {OTHER_DESCRIPTORS} others, and one per thread), and this process may have {} \
                 (RLIMIT_NOFILE, hard)\n  raise it with `ulimit -Hn {needed}` as root, or ask for \
                 fewer connections",
                self.descriptors
            ));
        }
        if let Some(tracked) = self.tracked.filter(|&tracked| connections > tracked) {
            return Err(format!(
                "{connections} connections are more than this machine tracks: \
                 net.netfilter.nf_conntrack_max is {tracked}"
            ));
        }
        self.allow_ports(settings)
    }

    fn allow_ports(&self, settings: &Settings) -> Result<(), String> {
        let each = self.ports_each();
        let sources = settings.sources.len().max(1) as u64;
        let (from, to) = self.ports;
        let have = format!(
            "{each} ports ({from} to {to}, net.ipv4.ip_local_port_range) × {sources} source \
             address{} = {}",
            if sources == 1 { "" } else { "es" },
            each * sources
        );
        let advice = |needed: u64| more_sources(&settings.address, needed.div_ceil(each.max(1)));
        let connections = u64::from(settings.connections);
        if connections > each * sources {
            return Err(format!(
                "{connections} connections need as many ports, and there are {have}\n  {}",
                advice(connections)
            ));
        }
        let (Length::Short, Pace::Open { rate, .. }) = (settings.length, settings.pace) else {
            return Ok(());
        };
        let hold_s = self.hold_s(settings.address.ip());
        let held = match settings.count {
            Count::Requests(n) => rate * hold_s.min(n as f64 / rate),
            Count::Time(time) => rate * hold_s.min(time.as_seconds()),
        };
        if held <= (each * sources) as f64 {
            return Ok(());
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let needed = held.ceil() as u64;
        Err(format!(
            "{rate} short connections per second, each of which keeps its port for {hold_s} s \
             after its end (net.ipv4.tcp_tw_reuse is {}), need {needed} ports, and there are \
             {have}\n  {}",
            self.tw_reuse,
            advice(needed)
        ))
    }

    /// How long a port is held after its connection.
    pub fn hold_s(&self, server: IpAddr) -> f64 {
        match self.tw_reuse {
            1 => REUSE_S,
            2 if server.is_loopback() => REUSE_S,
            _ => TIME_WAIT_S,
        }
    }
}

/// What to do where ports are too few.
pub(super) fn more_sources(server: &SocketAddr, sources: u64) -> String {
    match server.ip() {
        IpAddr::V4(ip) if ip.is_loopback() && sources < 254 => {
            format!("use more source addresses: --sources 127.0.0.1-127.0.0.{}", sources.max(2))
        }
        _ => "use more source addresses of this machine (--sources), or widen \
              net.ipv4.ip_local_port_range"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::load::Arrivals;
    use iolens_model::units::Nanos;

    use super::*;

    const LIMITS: Limits =
        Limits { descriptors: 20_000, ports: (32_768, 60_999), tw_reuse: 2, tracked: None };

    fn settings(connections: u32, length: Length, rate: f64) -> Settings {
        Settings {
            connections,
            length,
            pace: Pace::Open { rate, arrivals: Arrivals::Fixed },
            count: Count::Time(Nanos(10 * Nanos::SECOND.0)),
            ..Settings::closed_loop("127.0.0.1:9".parse().unwrap())
        }
    }

    #[test]
    fn too_few_descriptors_are_refused_with_the_sum() {
        let long = |connections| LIMITS.allow(&settings(connections, Length::Long, 1.0));
        assert_eq!(long(10_000), Ok(()));
        assert_eq!(long(20_000 - 65), Ok(()));
        let why = long(20_000 - 64).unwrap_err();
        assert!(
            why.contains("need 20001 descriptors") && why.contains("ulimit -Hn 20001"),
            "{why}"
        );
    }

    #[test]
    fn too_few_ports_are_refused_with_the_product() {
        let limits = Limits { descriptors: u64::MAX, ..LIMITS };
        let mut many = settings(60_000, Length::Long, 1.0);
        let why = limits.allow(&many).unwrap_err();
        assert!(why.contains("28232 ports (32768 to 60999"), "{why}");
        assert!(why.contains("× 1 source address = 28232"), "{why}");
        assert!(why.ends_with("--sources 127.0.0.1-127.0.0.3"), "{why}");
        many.sources = ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(|s| s.parse().unwrap()).into();
        assert_eq!(limits.allow(&many), Ok(()));
        let tracked = Limits { tracked: Some(59_999), ..limits };
        assert!(tracked.allow(&many).unwrap_err().contains("nf_conntrack_max is 59999"));
    }

    #[test]
    fn over_loopback_there_are_as_many_sources_as_are_needed() {
        let sources = |address: &str, connections| {
            let address = address.parse().unwrap();
            let settings = Settings { address, ..settings(connections, Length::Long, 1.0) };
            LIMITS.sources(&settings).len()
        };
        assert_eq!((sources("127.0.0.1:9", 28_232), sources("127.0.0.1:9", 28_233)), (0, 2));
        assert_eq!((sources("127.0.0.1:9", 60_000), sources("127.0.0.1:9", 9_000_000)), (3, 254));
        assert_eq!(sources("192.0.2.1:9", 60_000), 0);
    }

    #[test]
    fn short_ones_have_those_whose_ports_they_leave_behind() {
        let sources =
            |limits: &Limits, rate| limits.sources(&settings(10, Length::Short, rate)).len();
        assert_eq!([5_000.0, 7_055.5, 7_056.0].map(|rate| sources(&LIMITS, rate)), [0, 0, 2]);
        let kept = Limits { tw_reuse: 0, ..LIMITS };
        assert_eq!([100.0, 2_000.0, 1e6].map(|rate| sources(&kept, rate)), [0, 18, 254]);
        let short = settings(10, Length::Short, 1.0);
        let closed = Settings { pace: Pace::Closed { think: Nanos(0) }, ..short };
        assert_eq!(LIMITS.sources(&closed).len(), 15);
    }

    #[test]
    fn short_connections_hold_their_ports() {
        let short = |limits: &Limits, rate| limits.allow(&settings(10, Length::Short, rate));
        // A second each over loopback, a minute where ports are not taken over; but
        // only for as long as there is load.
        assert_eq!(short(&LIMITS, 28_000.0), Ok(()));
        assert!(short(&LIMITS, 29_000.0).unwrap_err().contains("need 29000 ports"));
        let kept = Limits { tw_reuse: 0, ..LIMITS };
        assert_eq!(short(&kept, 2_800.0), Ok(()));
        let why = short(&kept, 2_900.0).unwrap_err();
        assert!(why.contains("for 60 s") && why.contains("need 29000 ports"), "{why}");
        let some =
            Settings { count: Count::Requests(28_000), ..settings(1, Length::Short, 2_900.0) };
        assert_eq!(kept.allow(&some), Ok(()));
    }

    #[test]
    fn what_is_not_there_is_what_nobody_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits::here(&Root::at(folder.path()));
        assert_eq!((limits.ports, limits.tw_reuse, limits.tracked), ((32_768, 60_999), 2, None));
        assert!(Limits::here(&Root::real()).ports.0 > 0);
    }
}
