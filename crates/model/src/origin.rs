//! Where a run was measured: the label of its host, and what tells two machines apart.

use serde::{Deserialize, Serialize};

use crate::host::HostFacts;
use crate::units::Bytes;

/// Group and name of the fact that is the machine's host name, as uname(2) has it.
pub const HOST_NAME: (&str, &str) = ("kernel", "host name");

/// Characters that a label has at most: those of a host name, `HOST_NAME_MAX`.
pub const LABEL_MAX: usize = 64;

/// Where a run came from that was not measured into the database that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Label of the machine that measured it; two machines never have one label.
    pub host: String,
    /// The file that it was imported from.
    pub path: String,
    /// When, nanoseconds since 1970 (UTC).
    pub imported_unix_ns: u64,
}

/// The label of a host: 1 to [`LABEL_MAX`] letters, digits and marks, no blanks.
///
/// Errors: what is wrong with it.
pub fn label(text: &str) -> Result<String, String> {
    let refused = |why: &str| Err(format!("`{}` cannot be a host's label: {why}", shown(text)));
    if text.is_empty() || text.chars().count() > LABEL_MAX {
        return refused(&format!("write 1 to {LABEL_MAX} characters"));
    }
    if !text.chars().all(is_of_label) {
        return refused("write letters, digits and marks such as - _ . without blanks");
    }
    Ok(text.to_owned())
}

/// A text of which as much as is harmless in a message.
fn shown(text: &str) -> String {
    text.chars().filter(|&c| is_of_label(c) || c == ' ').take(LABEL_MAX).collect()
}

fn is_of_label(letter: char) -> bool {
    letter.is_alphanumeric() || letter.is_ascii_punctuation()
}

impl HostFacts {
    /// The host name, where it was read and can be a label.
    pub fn name(&self) -> Option<&str> {
        let (group, name) = HOST_NAME;
        self.known(group, name).filter(|name| label(name).is_ok())
    }
}

/// What a machine was, for a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sighting<'a> {
    /// Its facts.
    pub host: &'a HostFacts,
    /// From when, nanoseconds since 1970 (UTC).
    pub first_unix_ns: u64,
    /// Until when.
    pub last_unix_ns: u64,
}

/// What shows that two sightings are of two machines; `None` where nothing does.
///
/// - Another CPU model, another architecture, a cache of another size, or memory that differs
///   by more than 1/16: a kernel keeps some of it for itself, and another kernel another part.
/// - Another host name, unless the boot is the same: containers of one machine have names of
///   their own.
/// - Two boots at the same time.
///
/// What one of the two does not tell shows nothing. Two machines of one model and name that were
/// never up at the same time cannot be told from one that was booted again.
pub fn told_apart(a: &Sighting<'_>, b: &Sighting<'_>) -> Option<String> {
    let differ = |what: &str, a: &str, b: &str| Some(format!("{what}: {a} and {b}"));
    let of = |group: &str, name: &str| a.host.known(group, name).zip(b.host.known(group, name));
    for (what, group, name) in
        [("CPU model", "cpu", "model"), ("architecture", "kernel", "architecture")]
    {
        if let Some((a, b)) = of(group, name).filter(|(a, b)| a != b) {
            return differ(what, a, b);
        }
    }
    let caches = [
        ("L1d cache", &a.host.l1d, &b.host.l1d),
        ("L2 cache", &a.host.l2, &b.host.l2),
        ("last-level cache", &a.host.llc, &b.host.llc),
    ];
    for (what, a, b) in caches {
        if let Some((a, b)) = a.value().zip(b.value()).filter(|(a, b)| a != b) {
            return differ(what, &a.to_string(), &b.to_string());
        }
    }
    if let Some((a, b)) = a.host.memory.value().zip(b.host.memory.value())
        && !about_as_much(*a, *b)
    {
        return differ("memory", &a.to_string(), &b.to_string());
    }
    let boots = of("kernel", "boot id");
    if boots.is_some_and(|(a, b)| a == b) {
        return None;
    }
    if let Some((a, b)) = of(HOST_NAME.0, HOST_NAME.1).filter(|(a, b)| a != b) {
        return differ("host name", a, b);
    }
    let at_once = a.first_unix_ns <= b.last_unix_ns && b.first_unix_ns <= a.last_unix_ns;
    let (a, b) = boots.filter(|_| at_once)?;
    differ("two boots at the same time", a, b)
}

fn about_as_much(a: Bytes, b: Bytes) -> bool {
    a.0.abs_diff(b.0) <= a.0.max(b.0) / 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Fact;
    use crate::reading::Reading;

    fn host(name: &str, model: &str, boot: &str) -> HostFacts {
        let fact = |group: &str, name: &str, value: &str| Fact {
            group: group.to_owned(),
            name: name.to_owned(),
            value: Reading::Exact(value.to_owned()),
        };
        HostFacts {
            cores: Vec::new(),
            cpus: vec![0],
            l1d: Reading::not_measured("not told"),
            l2: Reading::Exact(Bytes(1 << 20)),
            llc: Reading::Exact(Bytes(32 << 20)),
            memory: Reading::Exact(Bytes(8 << 30)),
            descriptors_max: Reading::Exact(1024),
            changed: Vec::new(),
            facts: vec![
                fact("cpu", "model", model),
                fact("kernel", "boot id", boot),
                fact(HOST_NAME.0, HOST_NAME.1, name),
            ],
        }
    }

    fn seen(host: &HostFacts, first: u64, last: u64) -> Sighting<'_> {
        Sighting { host, first_unix_ns: first, last_unix_ns: last }
    }

    #[test]
    fn machines_are_told_apart_by_what_both_tell() {
        let here = host("a", "X", "1");
        let check = |other: &HostFacts, first, expect: Option<&str>| {
            let apart = told_apart(&seen(&here, 10, 20), &seen(other, first, first + 5));
            let back = told_apart(&seen(other, first, first + 5), &seen(&here, 10, 20));
            assert_eq!(apart.is_some(), back.is_some());
            match expect {
                None => assert_eq!(apart, None),
                Some(what) => assert!(apart.clone().is_some_and(|a| a.contains(what)), "{apart:?}"),
            }
        };
        check(&here, 12, None);
        check(&host("b", "X", "1"), 12, None); // a container there
        check(&host("a", "Y", "1"), 12, Some("CPU model: "));
        check(&host("a", "X", "2"), 30, None); // booted again
        check(&host("a", "X", "2"), 18, Some("two boots at the same time"));
        check(&host("b", "X", "2"), 30, Some("host name: "));
        let memory = |bytes| HostFacts { memory: Reading::Exact(Bytes(bytes)), ..here.clone() };
        check(&memory((8 << 30) - (100 << 20)), 30, None);
        check(&memory(16 << 30), 30, Some("memory: "));
        let cache = HostFacts { l2: Reading::Exact(Bytes(2 << 20)), ..here.clone() };
        check(&cache, 30, Some("L2 cache: "));
        let silent = HostFacts { facts: Vec::new(), ..here.clone() };
        check(&silent, 12, None);
    }

    #[test]
    fn labels_are_words_that_can_be_seen() {
        for good in ["a", "node-7.rack_2", "höst", "10.0.0.1:22"] {
            assert_eq!(label(good).as_deref(), Ok(good));
        }
        for bad in ["", "two words", "a\nb", "\u{1b}[31m", "\u{202e}x", &"x".repeat(65)] {
            assert!(label(bad).is_err(), "{bad}");
        }
        assert_eq!(host("(none) x", "X", "1").name(), None);
        assert_eq!(host("alpha", "X", "1").name(), Some("alpha"));
    }
}
