//! A line of acceptance and what it found: named rows of evidence, each of them judged or not.

use std::cell::RefCell;
use std::fmt::{Debug, Display};
use std::ops::RangeBounds;
use std::rc::Rc;

/// What ends a line early is told in words, and fails it.
pub type Res<T = ()> = anyhow::Result<T>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Evidence that is not judged.
    Note,
    Good,
    /// Something was not there to be tried, which counts as a failure: nothing was shown.
    Missing,
    Bad,
}

/// What a line has found so far.
#[derive(Clone, Default)]
pub struct Check(Rc<RefCell<Vec<(State, String)>>>);

impl Check {
    pub fn judge(&self, name: impl Display, good: bool, words: impl Display) {
        self.row(if good { State::Good } else { State::Bad }, name, words);
    }

    pub fn note(&self, name: impl Display, words: impl Display) {
        self.row(State::Note, name, words);
    }

    pub fn missing(&self, why: impl Display) {
        self.row(State::Missing, "missing", why);
    }

    /// Something that has to be said.
    pub fn said(&self, name: impl Display, words: &str) {
        self.judge(name, !words.is_empty(), words);
    }

    /// Something that is told only where it is wrong.
    pub fn expect(&self, good: bool, name: impl Display, words: impl Display) {
        if !good {
            self.judge(name, false, words);
        }
    }

    pub fn holds(&self, name: impl Display, holds: bool) {
        self.judge(name, holds, holds);
    }

    /// A number that has to lie in a range.
    pub fn within<T: PartialOrd + Display>(
        &self,
        name: impl Display,
        value: T,
        range: impl RangeBounds<T> + Debug,
    ) {
        self.judge(name, range.contains(&value), format!("{value:.4} (asked: {range:?})"));
    }

    pub fn same<T, E>(&self, name: impl Display, found: T, expected: E)
    where
        T: PartialEq<E> + Debug,
        E: Debug,
    {
        let good = found == expected;
        let beside = if good { String::new() } else { format!(", not {expected:?}") };
        self.judge(name, good, format!("{found:?}{beside}"));
    }

    /// A part whose error fails the line; the parts behind it are tried all the same.
    pub fn part(&self, name: impl Display, part: Res<impl Display>) {
        let good = part.is_ok();
        self.judge(
            name,
            good,
            part.map_or_else(|why| format!("{why:#}"), |words| words.to_string()),
        );
    }

    fn row(&self, state: State, name: impl Display, words: impl Display) {
        let mark = if state == State::Bad { "WRONG: " } else { "" };
        let words = format!("{mark}{name}: {words}");
        eprintln!("   {words}");
        self.0.borrow_mut().push((state, words));
    }

    /// The worst of its rows; a line without a judged row has shown nothing.
    pub fn state(&self) -> State {
        let rows = self.0.borrow();
        let states = rows.iter().map(|(state, _)| *state);
        states.max().filter(|state| *state != State::Note).unwrap_or(State::Missing)
    }

    pub fn evidence(&self) -> String {
        let rows = self.0.borrow();
        rows.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// Whether this passes a check of its own.
#[cfg(test)]
pub fn passes(judge: impl FnOnce(&Check)) -> bool {
    let check = Check::default();
    judge(&check);
    check.state() == State::Good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_row_decides_and_no_row_shows_nothing() {
        let state = |judge: fn(&Check)| {
            let check = Check::default();
            judge(&check);
            check.state()
        };
        assert!(state(|_| ()) == State::Missing);
        assert!(state(|check| check.note("a", 1)) == State::Missing);
        assert!(passes(|check| check.judge("a", true, 1)));
        assert!(
            state(|check| {
                check.judge("a", true, 1);
                check.missing("b");
            }) == State::Missing
        );
        assert!(
            state(|check| {
                check.judge("a", false, 1);
                check.missing("b");
            }) == State::Bad
        );
    }

    #[test]
    fn a_number_that_is_none_is_in_no_range() {
        let within = |value: f64| passes(|check| check.within("x", value, ..=1.0));
        assert!(within(1.0) && !within(1.1) && !within(f64::NAN));
        assert!(!passes(|check| check.within("x", f64::NAN, 1.0..)));
        assert!(!passes(|check| check.same("x", 1, 2)));
    }
}
