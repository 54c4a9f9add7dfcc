//! Addresses as users write them: a host and a port.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// A host by name or number and a port; not looked up yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    host: String,
    port: u16,
}

/// What stands for a host that was left out: this machine alone.
const HERE: &str = "127.0.0.1";

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let refused = |why: &str| {
            format!(
                "`{text}` is not an address: {why}; write one like 127.0.0.1:5001, [::1]:5001 or \
                 :5001"
            )
        };
        let unbracketed = || refused("an IPv6 address stands in brackets before its port");
        let text = text.trim();
        if text.parse::<Ipv6Addr>().is_ok() {
            return Err(unbracketed());
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| refused("it has no port"))?;
        // Numbers also take a sign.
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| is_number);
        let port = port.ok_or_else(|| refused("a port is a whole number up to 65535"))?;
        let host = match host.strip_prefix('[').map(|inner| inner.strip_suffix(']')) {
            Some(Some(inner)) => inner,
            Some(None) => return Err(unbracketed()),
            None if host.contains(':') => return Err(unbracketed()),
            None if host.is_empty() => HERE,
            None => host,
        };
        match host.is_empty() || host.contains(char::is_whitespace) {
            true => Err(refused("it has no host")),
            false => Ok(Address { host: host.to_owned(), port }),
        }
    }
}

impl Address {
    /// Its numbers; a name can have several, and has one at least.
    ///
    /// Errors: what was looked up and what the system said.
    pub(crate) fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        let failed = |said: &str| format!("cannot look up the host `{}`: {said}", self.host);
        let found = (self.host.as_str(), self.port).to_socket_addrs().map_err(|error| {
            let said = error.to_string().to_lowercase();
            failed(said.rsplit(": ").next().unwrap_or_default())
        })?;
        let found: Vec<SocketAddr> = found.collect();
        if found.is_empty() { Err(failed("it has no address")) } else { Ok(found) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_and_a_port_make_an_address() {
        let check = |text: &str, expect: &str| {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), expect);
            assert_eq!(address.resolve().unwrap()[0].to_string(), expect);
        };
        check("127.0.0.1:5001", "127.0.0.1:5001");
        check(":0", "127.0.0.1:0");
        check("[::1]:5001", "[::1]:5001");
        check(" 0.0.0.0:65535 ", "0.0.0.0:65535");
    }

    #[test]
    fn anything_else_is_refused_with_what_would_do() {
        let check = |text: &str, expect: &str| {
            let why = text.parse::<Address>().unwrap_err();
            assert!(why.contains(expect) && why.contains("[::1]:5001"), "{text}: {why}");
        };
        check("5001", "it has no port");
        check("localhost", "it has no port");
        check("::1:5001", "stands in brackets");
        check("::1", "stands in brackets");
        check("[::1:5001", "stands in brackets");
        check("host:", "whole number");
        check("host:+1", "whole number");
        check("host:65536", "whole number");
        check("[]:1", "it has no host");
        check("a b:1", "it has no host");
    }
}
