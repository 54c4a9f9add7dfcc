//! Values of a question about one message.

use iolens_model::axes::Mode;

use super::{Parsed, Stand, lookup, narrow};
use iolens_model::parse;

/// Connections, each with a thread at either end.
pub(crate) fn connections(text: &str) -> Parsed<u32> {
    match narrow(parse::count(text).map_err(|e| e.to_string())?)? {
        n if n > super::THREADS_MAX => Err(format!(
            "{n} connections cannot be measured: each has a thread of its own at either end, and \
             there can be {} of them\n  ask about {} at most; `iolens run server --connections \
             {n}` measures servers, where threads have many",
            super::THREADS_MAX,
            super::THREADS_MAX
        )),
        n => Ok(n),
    }
}

/// What travels.
pub(crate) fn mode(text: &str) -> Parsed<Mode> {
    lookup(text.trim(), "mode", Mode::ALL, Mode::word)
}

/// Where the ends stand.
pub(crate) fn network(text: &str) -> Parsed<Stand> {
    lookup(text.trim(), "network", &Stand::ALL, Stand::word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_connections_than_threads_are_refused_in_words() {
        assert_eq!(connections("1024"), Ok(1024));
        let why = connections("1025").unwrap_err();
        assert!(why.contains("a thread of its own at either end") && why.contains("1024"), "{why}");
        assert!(connections("0").is_err() && connections("many").is_err());
        assert!(mode("both").unwrap_err().contains("rr"));
        assert_eq!(network("auto"), Ok(Stand::Auto));
    }
}
