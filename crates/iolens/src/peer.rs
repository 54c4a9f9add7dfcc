//! The machine at the other end, from the flags to what a run knows of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use iolens_engine::doctor;
use iolens_engine::far::{Far, FarEnd, Launcher, NOT_NAMED, Way};
use iolens_harness::host::Root;
use iolens_model::axes::{IpVersion, Topology};
use iolens_model::command_line;
use iolens_model::plan::Plan;
use iolens_model::run::FarFacts;

use crate::args;
use crate::failure::{Failure, this_program, unusable, usage};
use crate::values::Parsed;

/// The other machine of a plan, reached, and what is known of it; nothing where the plan has
/// none. A run that is gone on with, or looked at anew, had reached it `before`.
pub(crate) fn reached(
    plan: &Plan,
    asked: &args::Peer,
    before: Option<&FarFacts>,
) -> Result<Option<(Far, FarFacts)>, Failure> {
    let is_apart = plan.topologies().iter().any(|topology| topology.is_apart());
    let Some(net) = plan.net().filter(|_| is_apart) else {
        return match &asked.peer {
            None => Ok(None),
            Some(_) => Err(usage!(
                "--peer has no effect: nothing of this plan goes to another machine\n  leave --peer \
                 out, or use --network {}",
                Topology::Host
            )),
        };
    };
    let launcher = asked.peer.clone().ok_or_else(|| not_named(before))?;
    let name = launcher.to_string();
    let mut far = Far::new(way(launcher, asked)?);
    let reached = far
        .reach(None)
        .map_err(|why| Failure::unusable(why.unwrap_or_else(|| "interrupted".to_owned())))?
        .clone();
    let address = far_address(&reached.end, asked.peer_address, &net.tuning.ip)?;
    let facts = FarFacts {
        launcher: name,
        build: reached.build,
        direction: net.direction,
        near_address: near_address(address)?,
        address,
        host: reached.end.host,
        findings: reached.end.findings,
        near_findings: doctor::findings(&Root::real()),
    };
    Ok(Some((far, facts)))
}

/// A stored launcher is data, and may lack its secrets: it is shown and never started.
fn not_named(before: Option<&FarFacts>) -> Failure {
    let Some(FarFacts { launcher, .. }) = before else { return Failure::usage(NOT_NAMED) };
    let secret = match command_line::is_redacted(std::slice::from_ref(launcher)) {
        true => format!(
            ", with a secret where {} stands: that is not stored, and has to be typed again",
            command_line::HIDDEN
        ),
        false => String::new(),
    };
    usage!("{NOT_NAMED}\n  the run reached it with `{launcher}`{secret}")
}

fn way(launcher: Launcher, asked: &args::Peer) -> Result<Way, Failure> {
    let own = this_program()?;
    let args::Peer { peer_binary, peer_any_build, .. } = asked;
    Ok(Way { launcher, program: peer_binary.clone(), own, any_build: *peer_any_build })
}

/// The address for data: as asked, or where the launcher got through, or the only one there.
fn far_address(
    end: &FarEnd,
    asked: Option<IpAddr>,
    versions: &[IpVersion],
) -> Result<IpAddr, Failure> {
    let [version] = versions else {
        return Err(Failure::usage(
            "to another machine messages go by one protocol: ask for --ip ipv4 or --ip ipv6",
        ));
    };
    let fits = |ip: &IpAddr| ip.is_ipv4() == (*version == IpVersion::V4);
    if let Some(address) = asked.or(end.reached_at.filter(fits)) {
        return match fits(&address) {
            true => Ok(address),
            false => Err(usage!(
                "the address {address} is not one of {version}: ask for --ip {}",
                if address.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
            )),
        };
    }
    let own: Vec<IpAddr> = end.addresses.iter().copied().filter(fits).collect();
    match own[..] {
        [only] => Ok(only),
        [] => Err(unusable!(
            "the other machine has no address of {version} that others reach: name the one for \
             data with --peer-address"
        )),
        _ => {
            let words: Vec<String> = own.iter().map(IpAddr::to_string).collect();
            Err(usage!(
                "the other machine has several addresses: {}\n  name the one for data with \
                 --peer-address",
                words.join(", ")
            ))
        }
    }
}

/// The address of this machine on the way there, as its routes have it; nothing is sent.
fn near_address(far: IpAddr) -> Result<IpAddr, Failure> {
    const ANY_PORT: u16 = 9;
    let any: IpAddr = match far {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let found = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(SocketAddr::new(far, ANY_PORT))?;
        socket.local_addr()
    });
    found.map(|address| address.ip()).map_err(|e| {
        unusable!(
            "cannot reach {far} from here: {e}\n  name another address of the other \
             machine with --peer-address"
        )
    })
}

/// Which end of a run is where, in words.
pub(crate) fn in_words(far: &FarFacts) -> String {
    let [here, there] = far.direction.words();
    format!(
        "this machine ({}) {here}, the one behind `{}` ({}, {}) {there}",
        far.near_address, far.launcher, far.address, far.build
    )
}

/// A command that starts programs on another machine.
pub(crate) fn launcher(text: &str) -> Parsed<Launcher> {
    let words = shlex::split(text)
        .ok_or_else(|| format!("`{text}` has a quotation mark that is not closed"))?;
    if command_line::is_redacted(&words) {
        return Err(format!(
            "`{text}` has {} where a secret was: secrets are not stored\n  type the launcher \
             again with the secret itself, or let a key or an agent log in",
            command_line::HIDDEN
        ));
    }
    Launcher::new(words)
}

/// An address of that machine.
pub(crate) fn address(text: &str) -> Parsed<IpAddr> {
    text.trim()
        .parse()
        .map_err(|_| format!("`{text}` is not an IP address, like 10.0.0.2 or fd00::2"))
}

/// A program on another machine; it is sent there as one line.
pub(crate) fn far_program(text: &str) -> Parsed<String> {
    match text.is_empty() || text.contains('\n') {
        true => Err("a program is a path, or a name, in one line".to_owned()),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use iolens_harness::host;

    use super::*;

    fn end(reached_at: Option<&str>, addresses: &[&str]) -> FarEnd {
        FarEnd {
            host: host::limits(&host::Root::real()).unwrap(),
            reached_at: reached_at.map(|ip| ip.parse().unwrap()),
            addresses: addresses.iter().map(|ip| ip.parse().unwrap()).collect(),
            findings: Vec::new(),
        }
    }

    fn address(end: &FarEnd, asked: Option<&str>) -> Result<String, String> {
        let asked = asked.map(|ip| ip.parse().unwrap());
        let found = far_address(end, asked, &[IpVersion::V4]);
        found.map(|ip| ip.to_string()).map_err(|failure| failure.message)
    }

    #[test]
    fn the_address_is_the_one_that_is_sure() {
        let one = end(None, &["192.0.2.2", "2001:db8::2"]);
        assert_eq!(address(&one, None).unwrap(), "192.0.2.2");
        let two = end(None, &["192.0.2.2", "198.51.100.2"]);
        assert!(address(&two, None).unwrap_err().contains("192.0.2.2, 198.51.100.2\n"));
        assert_eq!(address(&two, Some("203.0.113.1")).unwrap(), "203.0.113.1");
        let by_ssh = end(Some("198.51.100.2"), &["192.0.2.2", "198.51.100.2"]);
        assert_eq!(address(&by_ssh, None).unwrap(), "198.51.100.2");
    }

    #[test]
    fn an_address_of_another_protocol_is_refused_with_the_flag() {
        let some = end(Some("2001:db8::2"), &["2001:db8::2"]);
        assert!(address(&some, Some("2001:db8::2")).unwrap_err().contains("--ip ipv6"));
        assert!(address(&some, None).unwrap_err().contains("no address of ipv4"));
    }

    #[test]
    fn this_machine_is_reached_by_itself() {
        let own = near_address(Ipv4Addr::LOCALHOST.into()).unwrap();
        assert_eq!(own, IpAddr::from(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn a_launcher_is_the_words_of_a_command() {
        let launcher = launcher("ssh -o 'ConnectTimeout 5' user@host").unwrap();
        assert_eq!(launcher.to_string(), "ssh -o 'ConnectTimeout 5' user@host");
        for (text, expect) in [("", "is a command"), ("ssh 'host", "not closed")] {
            assert!(super::launcher(text).unwrap_err().contains(expect), "{text}");
        }
    }

    #[test]
    fn a_launcher_as_it_is_stored_without_its_secret_is_not_run() {
        let why = launcher("sshpass -p '***' ssh host").unwrap_err();
        assert!(why.contains("secrets are not stored"), "{why}");
        assert!(launcher("ssh '***' host").is_ok());
    }

    #[test]
    fn a_program_is_one_line() {
        assert_eq!(far_program("/opt/a b/iolens").unwrap(), "/opt/a b/iolens");
        assert!(far_program("a\nb").is_err() && far_program("").is_err());
    }
}
