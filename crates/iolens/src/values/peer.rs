//! Values of what another machine is reached with.

use std::net::IpAddr;

use iolens_engine::far::Launcher;
use iolens_model::secret;

use super::Parsed;

/// A command that starts programs on another machine.
pub(crate) fn launcher(text: &str) -> Parsed<Launcher> {
    let words = shlex::split(text)
        .ok_or_else(|| format!("`{text}` has a quotation mark that is not closed"))?;
    if secret::is_redacted(&words) {
        return Err(format!(
            "`{text}` has {} where a secret was: secrets are not stored\n  type the launcher \
             again with the secret itself, or let a key or an agent log in",
            secret::HIDDEN
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
    use super::*;

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
