//! Versions of the kernel.

use std::fmt;

/// A version of Linux, as in `6.5` or `2.6.17`. Stable releases (`6.12.3`)
/// change nothing that matters here, so the third number is only of use before
/// 3.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    major: u16,
    minor: u16,
    patch: u16,
}

impl KernelVersion {
    /// A version by its numbers; 0 for a third one that it does not have.
    #[must_use]
    pub const fn new(major: u16, minor: u16, patch: u16) -> KernelVersion {
        KernelVersion { major, minor, patch }
    }

    /// The version in a release as uname(2) gives it, such as
    /// `6.18.44-fc-v669`; `None` where there is none.
    #[must_use]
    pub fn of_release(release: &str) -> Option<KernelVersion> {
        let mut numbers = release.split(['.', '-', '+', '_', ' ']);
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?.parse().ok()?;
        let patch = numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        Some(KernelVersion { major, minor, patch })
    }
}

/// `6.5`, `2.6.17`.
impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        match self.patch {
            0 => Ok(()),
            patch => write!(f, ".{patch}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn releases_have_versions_that_can_be_ordered() {
        let of = KernelVersion::of_release;
        let check = |release, major, minor, patch| {
            assert_eq!(of(release), Some(KernelVersion::new(major, minor, patch)), "{release}");
        };
        check("6.18.44-fc-v669", 6, 18, 44);
        check("6.1.0-13-amd64", 6, 1, 0);
        check("5.15-rc3", 5, 15, 0);
        check("4.14.336+", 4, 14, 336);
        assert!(of("6.5.0") > of("6.4.99") && of("2.6.17") < of("3.0"));
        assert_eq!([of("six"), of(""), of("6"), of("99999999.1")], [None; 4]);
    }

    proptest! {
        #[test]
        fn a_version_reads_back((major, minor, patch) in any::<(u16, u16, u16)>()) {
            let version = KernelVersion::new(major, minor, patch);
            prop_assert_eq!(KernelVersion::of_release(&version.to_string()), Some(version));
        }

        #[test]
        fn no_release_panics(release in ".{0,24}") {
            let _ = KernelVersion::of_release(&release);
        }
    }
}
