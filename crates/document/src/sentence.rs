//! Sentences made of spans, which a form may show in its own way and never has to read back; and
//! text broken into lines at blanks. Widths count characters.

use std::borrow::Borrow;

use crate::plain;

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// Words, which may be broken at blanks.
    Plain(String),
    /// Something to type, which stays in one piece.
    Code(String),
    /// A file, which a form may make a link of.
    File(String),
    /// Words that stand out.
    Strong(String),
}

impl Span {
    /// What it says, without any form.
    pub fn words(&self) -> &str {
        match self {
            Span::Plain(words) | Span::Code(words) | Span::File(words) | Span::Strong(words) => {
                words
            }
        }
    }

    /// The same, with nothing in it that is obeyed.
    fn shown(&self) -> Span {
        let words = plain::shown(self.words());
        match self {
            Span::Plain(_) => Span::Plain(words),
            Span::Code(_) => Span::Code(words),
            Span::File(_) => Span::File(words),
            Span::Strong(_) => Span::Strong(words),
        }
    }
}

/// A sentence, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text(pub Vec<Span>);

impl Text {
    /// A sentence of plain words.
    pub fn plain(words: impl Into<String>) -> Text {
        Text(vec![Span::Plain(words.into())])
    }

    /// A command.
    pub fn code(command: impl Into<String>) -> Text {
        Text(vec![Span::Code(command.into())])
    }

    /// Words that stand out.
    pub fn strong(words: impl Into<String>) -> Text {
        Text(vec![Span::Strong(words.into())])
    }

    /// A file.
    pub fn file(path: impl Into<String>) -> Text {
        Text(vec![Span::File(path.into())])
    }

    /// The same with more words.
    #[must_use]
    pub fn and(mut self, words: impl Into<String>) -> Text {
        self.0.push(Span::Plain(words.into()));
        self
    }

    /// The same with a command.
    #[must_use]
    pub fn and_code(mut self, command: impl Into<String>) -> Text {
        self.0.push(Span::Code(command.into()));
        self
    }

    /// Parts of a line.
    pub fn parts<T: Into<Text>>(all: impl IntoIterator<Item = T>) -> Vec<Text> {
        all.into_iter().map(T::into).collect()
    }

    /// What it says, without any form.
    pub fn words(&self) -> String {
        self.0.iter().map(Span::words).collect()
    }
}

impl From<String> for Text {
    fn from(words: String) -> Text {
        Text::plain(words)
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Text {
        Text::plain(words)
    }
}

/// What a line is made of: a word, or a piece that is never broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) span: Span,
    /// Whether it follows the one before it without a blank.
    joined: bool,
    /// Whether no line ends before it: it is the unit of a number.
    is_unit: bool,
}

/// Units that stay with their number, as one says them.
const UNITS: [&str; 17] = [
    "ns", "µs", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "TiB", "B/s", "KiB/s", "MiB/s",
    "GiB/s", "Gbit/s", "req/s",
];

/// Whether a word is the unit of the number before it.
pub(crate) fn is_unit(number: &str, word: &str) -> bool {
    number.ends_with(|c: char| c.is_ascii_digit())
        && UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')', ']', '?']))
}

impl Word {
    fn width(&self) -> usize {
        self.span.words().chars().count()
    }
}

/// The words of a text, in its order.
fn words(text: &Text) -> Vec<Word> {
    let mut all: Vec<Word> = Vec::new();
    // Whether what was last ends with a blank, or nothing was.
    let mut apart = true;
    for span in &text.0 {
        match span {
            Span::Plain(plain) => {
                let begins_apart = plain.starts_with(' ');
                let mut before = "";
                for (nth, word) in plain.split_whitespace().enumerate() {
                    let joined = nth == 0 && !apart && !begins_apart;
                    let is_unit = is_unit(before, word);
                    let span = Span::Plain(plain::shown(word));
                    all.push(Word { span, joined, is_unit });
                    before = word;
                }
                if !plain.is_empty() {
                    apart = plain.ends_with(' ');
                }
            }
            whole => {
                all.push(Word { span: whole.shown(), joined: !apart, is_unit: false });
                apart = false;
            }
        }
    }
    all
}

/// The lines of items that follow each other with a separator, such as ` · `, at the end of a
/// line without it; no line is wider than `width` unless a word is. Where the separator is blank,
/// an item that takes several lines shares none of them.
pub(crate) fn lines(items: &[Text], separator: &str, width: usize) -> Vec<Vec<Word>> {
    let mut lines: Vec<Vec<Word>> = vec![Vec::new()];
    let mut used = 0;
    let mark = separator.trim();
    let mut is_broken = false;
    for (nth, item) in items.iter().enumerate() {
        let mut item = words(item);
        let whole: usize = item.iter().map(|w| w.width() + usize::from(!w.joined)).sum();
        if nth > 0 {
            let room = width.saturating_sub(used + separator.chars().count());
            // An item that fits a line of its own is not broken.
            let begins_a_line = mark.is_empty() || whole <= width + 1 || room < width / 4;
            if is_broken || whole.saturating_sub(1) > room && begins_a_line {
                lines.push(Vec::new());
                used = 0;
            } else {
                let span = Span::Plain(mark.to_owned());
                item.insert(0, Word { span, joined: false, is_unit: false });
            }
        }
        let before = lines.len();
        for chunk in chunks(item) {
            let blanks = chunk.iter().filter(|word| word.is_unit).count();
            let wide = chunk.iter().map(Word::width).sum::<usize>() + blanks;
            let blank = usize::from(used > 0);
            if used > 0 && used + blank + wide > width {
                lines.push(Vec::new());
                used = 0;
            }
            used += wide + usize::from(used > 0);
            lines.last_mut().into_iter().for_each(|line| line.extend(chunk.clone()));
        }
        is_broken = mark.is_empty() && lines.len() > before;
    }
    lines
}

/// Words with those that stay with them.
fn chunks(words: Vec<Word>) -> Vec<Vec<Word>> {
    let mut chunks: Vec<Vec<Word>> = Vec::new();
    for word in words {
        match chunks.last_mut() {
            Some(chunk) if word.joined || word.is_unit => chunk.push(word),
            _ => chunks.push(vec![word]),
        }
    }
    chunks
}

/// A line as text, each span as `shown` writes it.
pub(crate) fn line(words: &[Word], shown: impl Fn(&Span) -> String) -> String {
    let mut out = String::new();
    for (nth, word) in words.iter().enumerate() {
        if nth > 0 && !word.joined {
            out.push(' ');
        }
        out.push_str(&shown(&word.span));
    }
    out
}

/// Folds a text at blanks to `width` characters; lines after the first are
/// indented by `indent`. The text's own leading blanks stay; control characters
/// become blanks, since reasons and names come from outside.
pub fn hanging(text: &str, width: usize, indent: usize) -> String {
    let text = plain::shown(text);
    let lead: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut out = lead.clone();
    let mut column = lead.len();
    let mut line_is_empty = true;
    let mut words = text.split_ascii_whitespace().peekable();
    let mut before = "";
    while let Some(word) = words.next() {
        let length = word.chars().count();
        let unit = words.peek().filter(|next| is_unit(word, next));
        let whole = length + unit.map_or(0, |unit| 1 + unit.chars().count());
        if !line_is_empty && !is_unit(before, word) && column + 1 + whole > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
            line_is_empty = true;
        }
        if !line_is_empty {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        (line_is_empty, before) = (false, word);
    }
    out
}

/// Texts as one.
pub trait Joined: Iterator<Item: Borrow<str>> + Sized {
    /// What `join` makes of a list of them.
    fn joined(self, between: &str) -> String {
        self.collect::<Vec<_>>().join(between)
    }
}

impl<All: Iterator<Item: Borrow<str>>> Joined for All {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folded(items: &[Text], width: usize) -> Vec<String> {
        let plain = |span: &Span| span.words().to_owned();
        lines(items, " · ", width).iter().map(|words| line(words, plain)).collect()
    }

    #[test]
    fn lines_break_between_items_and_never_within_a_command() {
        let items = [
            Text::code("iolens run net").and(" (verdicts)"),
            Text::code("iolens confirm last").and(" (exact size)"),
            Text::plain("x"),
        ];
        assert_eq!(
            folded(&items, 34),
            ["iolens run net (verdicts)", "iolens confirm last (exact size)", "x"]
        );
        assert_eq!(
            folded(&items, 60),
            ["iolens run net (verdicts) · iolens confirm last (exact size)", "x"]
        );
        assert_eq!(folded(&items[..1], 10), ["iolens run net", "(verdicts)"]);
    }

    #[test]
    fn what_follows_without_a_blank_stays_with_it() {
        let text = Text::plain("narrow it with `").and_code("iolens confirm last").and("`; then");
        assert_eq!(folded(&[text], 24), ["narrow it with", "`iolens confirm last`;", "then"]);
    }

    #[test]
    fn a_number_keeps_its_unit() {
        let text = "starting dd takes 1.05 ms of 2 s, so 3 copies";
        assert_eq!(
            folded(&[Text::plain(text)], 22),
            ["starting dd takes", "1.05 ms of 2 s, so 3", "copies"]
        );
    }

    #[test]
    fn folds_at_blanks_with_an_indent() {
        assert_eq!(hanging("  a bc def ghij", 9, 4), "  a bc\n    def\n    ghij");
        assert_eq!(hanging("  a of 12 GiB", 9, 4), "  a of\n    12 GiB");
        assert_eq!(hanging("", 9, 4), "");
        assert_eq!(hanging("a\x1b[2Jb", 9, 4), "a [2Jb");
    }

    proptest! {
        #[test]
        fn no_word_is_lost_and_no_line_is_too_wide(
            items in proptest::collection::vec("[a-z]{1,8}( [a-z]{1,8}){0,9}", 1..5),
            width in 12..60usize,
        ) {
            let texts: Vec<Text> = items.iter().map(|item| Text::plain(item.clone())).collect();
            let lines = folded(&texts, width);
            let kept = lines.join(" ").replace("· ", "");
            prop_assert_eq!(kept, items.join(" "));
            prop_assert!(lines.iter().all(|line| line.chars().count() <= width));
        }
    }
}
