//! Where what comes from another machine is received, and the threads that follow it.
//!
//! A card with several queues gives each connection one of them, by its addresses and ports,
//! and with it the CPU that receives it (RSS, RPS; Documentation/networking/scaling.rst). A
//! thread that is bound to any other one would measure the way between the two, of each arm
//! another one and in each trial another one. So a thread of the receiving end goes, from one
//! slice to the next, to where its connection of that arm comes in. It stays within the CPUs
//! that it was given, and keeps from those of other threads: connections that come in on one
//! CPU do not bring their threads together there.

use iolens_model::outcome::Flows;
use iolens_model::transport::Transport;
use iolens_model::trial::{SliceKind, Trial};
use iolens_sys::socket;

use super::crew::{Stop, ThreadReport};
use super::facts;
use super::link::Links;
use iolens_net::lane::Lane;

/// The CPU that receives for a lane; `None` where the kernel does not tell. Of MPTCP it tells of
/// no path, and what stays on the machine is received by nobody.
fn incoming(lane: &Lane) -> Option<u32> {
    let tells = matches!(lane.transport(), Transport::Tcp | Transport::Udp);
    tells.then(|| socket::incoming_cpu(lane.data()).ok().flatten()).flatten()
}

fn incoming_of(links: &Links, arm: usize) -> Vec<Option<u32>> {
    links.of_arm(arm).iter().map(incoming).collect()
}

/// The CPU of each thread that was given `cpus` and receives on `incoming`.
fn places(cpus: &[u32], incoming: &[Option<u32>]) -> Vec<u32> {
    let mut taken: Vec<u32> = Vec::new();
    let mut take = |cpu: &u32| {
        let is_free = cpus.contains(cpu) && !taken.contains(cpu);
        is_free.then(|| taken.push(*cpu)).is_some()
    };
    let followed: Vec<Option<u32>> =
        incoming.iter().map(|cpu| cpu.filter(|cpu| take(cpu))).collect();
    let given = |thread: usize| cpus[thread % cpus.len()];
    let mut elsewhere = |thread| {
        let free = [given(thread)].into_iter().chain(cpus.iter().copied()).find(|cpu| take(cpu));
        free.unwrap_or_else(|| given(thread))
    };
    let places = followed.into_iter().enumerate();
    places.map(|(thread, cpu)| cpu.unwrap_or_else(|| elsewhere(thread))).collect()
}

/// A thread of the receiving end of a trial.
pub(super) struct Follower<'a> {
    trial: &'a Trial,
    links: &'a Links,
    thread: usize,
    /// The CPU that it is bound to.
    at: u32,
    /// Where it receives each arm, once that is known.
    homes: Vec<Option<u32>>,
    follows: bool,
}

impl<'a> Follower<'a> {
    /// One that was bound to the CPU that it was given. It stays there where both ends are on
    /// one machine, and where the CPUs are not `alike`: its counters are those of one kind.
    pub(super) fn of(
        trial: &'a Trial,
        links: &'a Links,
        thread: usize,
        alike: bool,
    ) -> Follower<'a> {
        let at = trial.rx_cpus[thread % trial.rx_cpus.len()];
        let homes = vec![None; trial.arms.len()];
        Follower { trial, links, thread, at, homes, follows: trial.hosts.is_some() && alike }
    }

    /// Goes where this slice's arm is received, outside everything that is timed. Known is that
    /// from the arm's second slice on, the first one of which is thrown away.
    ///
    /// Errors: what was tried and what the system said.
    pub(super) fn turn_to(&mut self, index: usize) -> Result<(), Stop> {
        if !self.follows {
            return Ok(());
        }
        let (slice, earlier) = (&self.trial.slices[index], &self.trial.slices[..index]);
        let is_known = slice.kind == SliceKind::Measured
            || earlier.iter().any(|earlier| earlier.arm == slice.arm);
        let cpus = &self.trial.rx_cpus;
        let cpu = match self.homes[slice.arm] {
            Some(home) => home,
            None if is_known => places(cpus, &incoming_of(self.links, slice.arm))[self.thread],
            None => cpus[self.thread % cpus.len()],
        };
        if is_known {
            self.homes[slice.arm] = Some(cpu);
        }
        if cpu != self.at {
            facts::pin(&[cpu], 0)?;
            self.at = cpu;
        }
        Ok(())
    }

    /// Where it received each arm; nothing where it stayed.
    pub(super) fn homes(&self) -> Vec<u32> {
        if self.follows {
            self.homes.iter().map(|home| home.unwrap_or(self.at)).collect()
        } else {
            Vec::new()
        }
    }
}

/// Each CPU that a thread was bound to, from those of its arms.
pub(super) fn distinct(homes: &[u32]) -> Vec<u32> {
    let mut cpus = homes.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// What an end of a trial between two machines says of this, once its slices are over.
pub(super) fn facts_of(trial: &Trial, links: &Links, threads: &[ThreadReport]) -> Vec<Flows> {
    let of = |arm: usize| {
        let cpu = |thread: &ThreadReport| thread.homes.get(arm).or(thread.cpus.first()).copied();
        let cpus = threads.iter().filter_map(cpu).collect();
        Flows { arm, incoming_cpus: incoming_of(links, arm), cpus }
    };
    let arms = if trial.hosts.is_some() { trial.arms.len() } else { 0 };
    (0..arms).map(of).collect()
}

#[cfg(test)]
mod tests {
    use iolens_net::lane;

    use super::*;

    fn check(cpus: &[u32], incoming: &[Option<u32>], expect: &[u32]) {
        assert_eq!(places(cpus, incoming), expect, "{cpus:?} {incoming:?}");
    }

    #[test]
    fn threads_go_where_their_flows_come_in() {
        check(&[0, 1, 2, 3], &[Some(3), Some(1)], &[3, 1]);
        check(&[0, 1, 2, 3], &[None, Some(1), None], &[0, 1, 2]);
        check(&[4, 5], &[Some(0)], &[4]);
        check(&[4, 5], &[None], &[4]);
    }

    #[test]
    fn threads_whose_flows_come_in_on_one_cpu_stay_apart() {
        check(&[0, 1, 2], &[Some(1), Some(1), Some(1)], &[1, 0, 2]);
        check(&[0, 1], &[Some(1), Some(0), Some(1)], &[1, 0, 0]);
        check(&[7], &[Some(7), Some(7)], &[7, 7]);
    }

    /// Over loopback it is a CPU of the sender's, whichever it was on at that moment.
    #[test]
    fn the_kernel_tells_of_a_connection_and_of_a_port() {
        let options = lane::short_options(std::time::Duration::from_secs(20));
        let at = std::net::Ipv4Addr::LOCALHOST.into();
        let cpus = iolens_sys::affinity::thread_cpus().unwrap();
        for transport in [Transport::Tcp, Transport::Udp] {
            let [tx, rx] = lane::pair(transport, at, &options).unwrap();
            for &cpu in &cpus {
                facts::pin(&[cpu], 0).unwrap();
                socket::send(tx.data(), b"bytes").unwrap();
                assert_eq!(socket::recv(rx.data(), &mut [0; 16]), Ok(5));
                let told = incoming(&rx).unwrap();
                let is_one = std::path::Path::new("/sys/devices/system/cpu")
                    .join(format!("cpu{told}"))
                    .exists();
                assert!(is_one, "{transport:?}: {told}");
            }
        }
        let [_tx, rx] = lane::pair(Transport::Pipe, at, &options).unwrap();
        assert_eq!(incoming(&rx), None);
    }
}
