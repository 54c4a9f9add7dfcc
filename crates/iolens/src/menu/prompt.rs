//! Asking on a terminal: a list to walk through by arrows or numbers, or, on a terminal that
//! can do no more than print lines, a number that is typed. The terminal's settings are
//! changed for the reading of one key at a time and put back after each, also where a signal
//! ends the waiting.

use std::io::{self, BufRead, Write};

use console::{Key, Term};
use iolens_engine::terminal::Keys;

use super::{Choice, Value};
use crate::output;

/// What Ctrl-D sends.
const END_OF_INPUT: char = '\u{4}';

/// Columns where the terminal does not tell.
const COLUMNS: usize = 80;

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Picked {
    /// What the answer adds to the command line.
    Answer(Vec<String>),
    /// To the question before.
    Back,
    /// No more questions.
    Leave,
}

/// Who is asked.
pub(super) struct Prompt {
    term: Term,
    /// Whether lines can be drawn again.
    draws: bool,
    /// Rows of the screen that each answer, and what was said, has taken.
    rows: Vec<usize>,
}

/// What a key does to a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// This one is pointed at.
    At(usize),
    /// This one is taken.
    Take(usize),
    Back,
    Leave,
}

impl Prompt {
    pub(super) fn on_this_terminal() -> Prompt {
        Prompt { draws: output::stderr_redraws(), term: Term::stderr(), rows: Vec::new() }
    }

    /// Prints a text.
    pub(super) fn say(&mut self, text: &str) {
        // Who cannot be told cannot be asked either, and that is an error.
        let _ = self.term.write_line(text);
        self.rows.push(text.split('\n').map(|line| self.rows_of(line)).sum());
    }

    /// Takes back what was answered, or said, last: its rows are free again.
    ///
    /// Errors: what the terminal said.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        self.term.clear_last_lines(self.rows.pop().unwrap_or(0))
    }

    fn columns(&self) -> usize {
        self.term.size_checked().map_or(COLUMNS, |(_, columns)| columns.into())
    }

    fn rows_of(&self, line: &str) -> usize {
        line.chars().count().div_ceil(self.columns().max(1)).max(1)
    }

    /// One of these. Errors: what the terminal said, `Interrupted` for Ctrl-C and signals.
    pub(super) fn choose(&mut self, text: &str, choices: &[Choice]) -> io::Result<Picked> {
        match self.draws {
            true => self.walk(text, choices),
            false => self.number(text, choices),
        }
    }

    /// A value, asked for until it can be taken. Errors: as above.
    pub(super) fn value(&mut self, text: &str, value: &Value) -> io::Result<Picked> {
        let mut rows = 0;
        loop {
            let prompt = format!("{text} [{}] ", value.default);
            let Some(typed) = self.line(&prompt)? else { return Ok(Picked::Leave) };
            rows += self.rows_of(&format!("{prompt}{}", typed.trim_end()));
            match value.adds(&typed) {
                Ok(adds) => {
                    self.rows.push(rows);
                    return Ok(Picked::Answer(adds));
                }
                Err(why) => {
                    let why = format!("  {why}");
                    self.term.write_line(&why)?;
                    rows += why.split('\n').map(|line| self.rows_of(line)).sum::<usize>();
                }
            }
        }
    }

    fn walk(&mut self, text: &str, choices: &[Choice]) -> io::Result<Picked> {
        let columns = self.columns();
        let heading = format!("{text}  (arrows or a number, Enter; Esc leaves)");
        self.term.write_line(&cut(&heading, columns))?;
        let mut at = first(choices);
        loop {
            let lines: Vec<String> = choices
                .iter()
                .enumerate()
                .map(|(i, one)| cut(&line(i, one, i == at), columns))
                .collect();
            self.term.write_line(&lines.join("\n"))?;
            let key = self.key();
            self.term.clear_last_lines(lines.len())?;
            let key = key?;
            if key == Key::CtrlC {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match step(&key, at, choices) {
                Step::At(next) => at = next,
                Step::Take(taken) => {
                    self.term
                        .write_line(&cut(&format!("  > {}", choices[taken].label), columns))?;
                    self.rows.push(2);
                    return Ok(Picked::Answer(choices[taken].adds.clone()));
                }
                Step::Back => {
                    self.term.clear_last_lines(1)?;
                    return Ok(Picked::Back);
                }
                Step::Leave => return Ok(Picked::Leave),
            }
        }
    }

    /// A key; `Interrupted` where a signal came first, which ends the process as soon as the
    /// terminal is as it was.
    fn key(&self) -> io::Result<Key> {
        let keys = Keys::of_stdin()?;
        keys.wait()?;
        self.term.read_key_raw()
    }

    fn number(&mut self, text: &str, choices: &[Choice]) -> io::Result<Picked> {
        self.term.write_line(text)?;
        for (i, choice) in choices.iter().enumerate() {
            self.term.write_line(&line(i, choice, false))?;
        }
        loop {
            let default = first(choices) + 1;
            let typed = self.line(&format!("1 to {}, q leaves [{default}] ", choices.len()))?;
            let Some(typed) = typed else { return Ok(Picked::Leave) };
            let wanted = match typed.trim() {
                "" => Some(default),
                "q" => return Ok(Picked::Leave),
                word => numbered(word, choices),
            };
            let choice = wanted.and_then(|n| choices.get(n.checked_sub(1)?));
            match choice {
                Some(Choice { refused: None, adds, .. }) => {
                    return Ok(Picked::Answer(adds.clone()));
                }
                Some(Choice { refused: Some(why), .. }) => {
                    self.term.write_line(&format!("  not here: {why}"))?;
                }
                None => self.term.write_line("  none of these")?,
            }
        }
    }

    /// A typed line; none at the end of input, or where Esc was typed.
    fn line(&self, prompt: &str) -> io::Result<Option<String>> {
        self.print(prompt)?;
        if self.draws {
            let typed = self.keys_of_a_line();
            self.term.write_line("")?;
            return typed;
        }
        let mut typed = String::new();
        let read = io::stdin().lock().read_line(&mut typed)?;
        let left = read == 0 || typed.starts_with('\u{1b}');
        Ok((!left).then_some(typed))
    }

    /// The same, key by key: the terminal itself would print Esc as `^[` and wait for Enter.
    fn keys_of_a_line(&self) -> io::Result<Option<String>> {
        let keys = Keys::of_stdin()?;
        let mut typed = String::new();
        loop {
            keys.wait()?;
            match self.term.read_key_raw()? {
                Key::Enter => return Ok(Some(typed)),
                Key::Escape => return Ok(None),
                Key::Char(END_OF_INPUT) if typed.is_empty() => return Ok(None),
                Key::CtrlC => return Err(io::ErrorKind::Interrupted.into()),
                Key::Backspace if typed.pop().is_some() => self.term.clear_chars(1)?,
                Key::Char(c) if !c.is_control() => {
                    typed.push(c);
                    self.print(c.encode_utf8(&mut [0; 4]))?;
                }
                _ => {}
            }
        }
    }

    fn print(&self, text: &str) -> io::Result<()> {
        let mut term = &self.term;
        term.write_all(text.as_bytes())?;
        term.flush()
    }
}

/// Which one is meant, from 1 on: by its number, or by how it alone begins, as in `y`.
fn numbered(word: &str, choices: &[Choice]) -> Option<usize> {
    let begins = |(_, choice): &(usize, &Choice)| choice.label.starts_with(word);
    let by_word = || {
        let mut all = choices.iter().enumerate().filter(begins);
        all.next().filter(|_| all.next().is_none()).map(|(i, _)| i + 1)
    };
    word.parse().ok().or_else(by_word)
}

/// The first that can be taken.
fn first(choices: &[Choice]) -> usize {
    choices.iter().position(|choice| choice.refused.is_none()).unwrap_or(0)
}

fn line(i: usize, choice: &Choice, is_at: bool) -> String {
    let mark = if is_at { '>' } else { ' ' };
    match &choice.refused {
        None => format!("{mark} {}. {}", i + 1, choice.label),
        Some(why) => format!("{mark} -  {} (not here: {why})", choice.label),
    }
}

/// As much as fits a line, so that as many lines are cleared as were drawn.
fn cut(text: &str, columns: usize) -> String {
    let most = columns.saturating_sub(1);
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{kept}...")
}

fn step(key: &Key, at: usize, choices: &[Choice]) -> Step {
    let can = |i: &usize| choices.get(*i).is_some_and(|choice| choice.refused.is_none());
    let before = (0..at).rev().find(can);
    let behind = (at + 1..choices.len()).find(can);
    match key {
        Key::ArrowUp | Key::Char('k') => Step::At(before.unwrap_or(at)),
        Key::ArrowDown | Key::Tab | Key::Char('j') => Step::At(behind.unwrap_or(at)),
        Key::Enter if can(&at) => Step::Take(at),
        Key::Backspace | Key::ArrowLeft => Step::Back,
        Key::Escape | Key::Char('q') => Step::Leave,
        Key::Char(c) => match c.to_digit(10).and_then(|n| (n as usize).checked_sub(1)) {
            Some(i) if can(&i) => Step::Take(i),
            _ => Step::At(at),
        },
        _ => Step::At(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices() -> Vec<Choice> {
        let choice = |label: &str, refused: Option<&str>| Choice {
            label: label.to_owned(),
            adds: vec![label.to_owned()],
            refused: refused.map(str::to_owned),
        };
        vec![
            choice("a", Some("no veth")),
            choice("b", None),
            choice("c", Some("x")),
            choice("d", None),
        ]
    }

    #[test]
    fn a_number_or_how_one_alone_begins_is_typed() {
        let choices =
            [Choice::new("yes", &[]), Choice::new("no", &[]), Choice::new("not now", &[])];
        let meant = ["y", "yes", "no", "not", "2", "9", "x"].map(|word| numbered(word, &choices));
        assert_eq!(meant, [Some(1), Some(1), None, Some(3), Some(2), Some(9), None]);
    }

    #[test]
    fn keys_walk_over_what_cannot_be_taken() {
        let all = choices();
        assert_eq!(first(&all), 1);
        let check = |key: Key, at: usize, expect: Step| assert_eq!(step(&key, at, &all), expect);
        check(Key::ArrowDown, 1, Step::At(3));
        check(Key::ArrowDown, 3, Step::At(3));
        check(Key::ArrowUp, 3, Step::At(1));
        check(Key::ArrowUp, 1, Step::At(1));
        check(Key::Enter, 3, Step::Take(3));
        check(Key::Char('2'), 3, Step::Take(1));
        check(Key::Char('1'), 3, Step::At(3));
        check(Key::Char('9'), 3, Step::At(3));
        check(Key::Char('0'), 3, Step::At(3));
        check(Key::Char('q'), 1, Step::Leave);
        check(Key::Escape, 1, Step::Leave);
        check(Key::Backspace, 1, Step::Back);
        check(Key::Unknown, 1, Step::At(1));
    }

    #[test]
    fn a_line_is_never_longer_than_the_terminal() {
        let all = choices();
        assert_eq!(line(0, &all[0], true), "> -  a (not here: no veth)");
        assert_eq!(line(1, &all[1], false), "  2. b");
        assert_eq!(cut("abcdefgh", 8), "abcd...");
        assert_eq!(cut("abcdefgh", 9), "abcdefgh");
        assert_eq!(cut("ä", 0), "...");
    }
}
