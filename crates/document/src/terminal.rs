//! A screen as a terminal shows it. Colour repeats what words and marks say.

use crate::sentence::Joined;
use std::borrow::Cow;

use crate::grid::{Grid, Row};
use crate::plain::shown;
use crate::sentence;
use crate::sentence::{Span, Text};
use crate::table::{Ink, Table};
use crate::tree::{Answer, Block, Label, Listing, Screen};
use crate::tree::{Fact, Node, Section};

/// How the terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences may be used.
    pub colour: bool,
    /// Columns.
    pub width: usize,
    /// The file of `--db` as it is typed, which what is typed next needs again.
    pub database: Option<&'static str>,
}

impl Style {
    /// Without colour.
    pub const fn plain(width: usize) -> Style {
        Style { colour: false, width, database: None }
    }

    /// Columns that are used: lines longer than 100 are hard to read.
    pub fn columns(self) -> usize {
        self.width.clamp(40, 100)
    }

    /// Text in a colour, or as it is.
    pub fn paint(self, escape: &str, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{escape}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Escapes of [`Style::paint`].
pub const BOLD: &str = "1";
/// As [`BOLD`].
pub const DIM: &str = "2";
/// As [`BOLD`].
pub const YELLOW: &str = "33";
/// As [`BOLD`].
pub const RED: &str = "31";

/// All that [`Style::paint`] writes, what ends it last.
pub const ESCAPES: [&str; 5] = [BOLD, DIM, YELLOW, RED, "0"];

/// A table with its verdicts in colour.
pub fn table(table: &Table, style: &Style) -> String {
    let paint = |ink: Ink, text: &str| {
        let escape = match ink {
            Ink::Better => "32",
            Ink::Worse => "35",
            Ink::Same => "36",
            Ink::Open => YELLOW,
            Ink::Fault => RED,
        };
        style.paint(escape, text)
    };
    table.painted(style.columns(), &paint)
}

/// Between the parts of a line.
const SEPARATOR: &str = " · ";

/// Where the words of a labelled line begin.
const INDENT: usize = 11;

/// The screen.
pub fn draw(screen: &Screen, style: &Style) -> String {
    let mut parts: Vec<String> = vec![header(screen, style)];
    let alarm = screen.alarm.iter().map(|alarm| folded(alarm, style.columns(), ""));
    parts.extend(alarm.map(|alarm| painted(&alarm, RED, style)));
    parts.extend(screen.blocks.iter().map(|block| self::block(block, style)));
    let legend = legend(screen, style);
    if let (Some(last), false) = (parts.last_mut(), legend.is_empty()) {
        last.push('\n');
        last.push_str(&legend);
    }
    if !screen.problems.is_empty() {
        let problem = |text: &Text| {
            lines(std::slice::from_ref(text), SEPARATOR, style.columns() - 2).join("\n  ")
        };
        parts.push(screen.problems.iter().map(problem).joined("\n"));
    }
    let above = std::iter::once(None).chain(screen.answers.iter().map(|a| Some(a.label)));
    let answers = screen.answers.iter().zip(above);
    let answers =
        answers.map(|(own, above)| answer(&here(own, style), above != Some(own.label), style));
    let answers: Vec<String> = answers.collect();
    if !answers.is_empty() {
        parts.push(answers.join("\n"));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

/// What stands below a screen: a heading for each section, its parts, an empty line between them.
/// Drawings are left out.
pub fn sections(all: &[Section], style: &Style) -> String {
    let one = |section: &Section| {
        let inside = nodes(&section.nodes, style);
        if inside.is_empty() {
            return String::new();
        }
        let heading = style.paint(BOLD, &shown(&section.heading).to_uppercase());
        format!("{heading}\n{inside}\n")
    };
    let drawn = all.iter().map(one).filter(|part| !part.is_empty());
    drawn.joined("\n")
}

/// Parts below each other, with an empty line around those that are more than lines.
fn nodes(all: &[Node], style: &Style) -> String {
    let is_block = |node: &Node| {
        !matches!(node, Node::Say(_) | Node::Aside(_) | Node::List(_) | Node::Facts(_))
    };
    let mut out = String::new();
    let mut after_heading = true;
    for (nth, one) in all.iter().enumerate() {
        let Some(drawn) = node(one, style) else { continue };
        let drawn = drawn.trim_end();
        if drawn.is_empty() {
            continue;
        }
        if !out.is_empty() {
            let apart = !after_heading && (is_block(one) || nth > 0 && is_block(&all[nth - 1]));
            out.push_str(if apart { "\n\n" } else { "\n" });
        }
        out.push_str(drawn);
        after_heading = matches!(one, Node::Heading(_));
    }
    out
}

/// The lines of a part.
fn node(node: &Node, style: &Style) -> Option<String> {
    let said = |text: &Text| folded(text, style.columns() - 2, "  ");
    Some(match node {
        Node::Say(text) => said(text),
        Node::Aside(text) => painted(&said(text), DIM, style),
        Node::List(all) => all.iter().map(said).joined("\n"),
        Node::Heading(words) => heading(words, style),
        Node::Screen(screen) => draw(screen, style),
        Node::Table(table) => {
            let caption = match table.caption.as_str() {
                "" => String::new(),
                caption => heading(caption, style) + "\n",
            };
            format!("{caption}{}\n", self::table(table, style))
        }
        Node::Block(block) => self::block(block, style) + "\n",
        Node::Facts(all) => facts(all, style),
        Node::Groups(all) => {
            let group = |(name, inside): &(String, Vec<Node>)| {
                format!("{}\n{}", style.paint(BOLD, &shown(name)), nodes(inside, style))
            };
            all.iter().map(group).joined("\n")
        }
        Node::Figure(_) | Node::Row(_) => return None,
        Node::Fold(fold) => {
            let inside = nodes(&fold.nodes, style);
            if inside.is_empty() {
                return None;
            }
            let summary = painted(&folded(&fold.summary, style.columns(), ""), BOLD, style);
            format!("{summary}\n{inside}")
        }
        Node::Code(words) => words.lines().map(|line| format!("  {}\n", shown(line))).collect(),
    })
}

/// What stands above a table.
pub fn heading(words: &str, style: &Style) -> String {
    style.paint(BOLD, &sentence::hanging(words, style.columns(), 2))
}

fn painted(lines: &str, escape: &str, style: &Style) -> String {
    lines.lines().map(|line| style.paint(escape, line)).joined("\n")
}

/// Parts of a line in as many lines as they take.
fn lines(parts: &[Text], separator: &str, width: usize) -> Vec<String> {
    let plain = |line: &Vec<sentence::Word>| sentence::line(line, |span| span.words().to_owned());
    sentence::lines(parts, separator, width).iter().map(plain).collect()
}

/// A sentence, indented, in as many lines as it takes.
fn folded(text: &Text, width: usize, indent: &str) -> String {
    let lines = lines(std::slice::from_ref(text), SEPARATOR, width).into_iter();
    lines.map(|line| format!("{indent}{line}")).joined("\n")
}

/// Characters of a name beside its value, at most.
const NAME_MAX: usize = 24;

/// Names and what they are, below each other.
fn facts(all: &[Fact], style: &Style) -> String {
    let longest = all.iter().map(|fact| fact.name.chars().count()).max().unwrap_or(0);
    let wide = longest.min(NAME_MAX);
    let one = |fact: &Fact| {
        let lines = folded(&fact.value, style.columns().saturating_sub(wide + 4), "");
        let mut lines = lines.lines();
        let first = lines.next().unwrap_or_default();
        let name = shown(&fact.name);
        let mut out = match name.chars().count() > wide {
            true => format!("  {name}\n  {:<wide$}  {first}", ""),
            false => format!("  {name:<wide$}  {first}"),
        };
        for line in lines {
            out.push_str(&format!("\n  {:<wide$}  {line}", ""));
        }
        out
    };
    all.iter().map(one).joined("\n")
}

fn header(screen: &Screen, style: &Style) -> String {
    let header = lines(&screen.header, SEPARATOR, style.columns()).into_iter();
    let header = header.map(|line| style.paint(BOLD, &line));
    let effort = lines(&screen.effort, SEPARATOR, style.columns());
    let all = header.chain(effort).filter(|line| !line.is_empty());
    all.joined("\n")
}

fn block(block: &Block, style: &Style) -> String {
    match block {
        Block::Matrix(matrix) => parts(&matrix.grid(style.columns()), style),
        Block::Grid(table) => parts(table, style),
        Block::Listing(listing) => self::listing(listing, style),
    }
}

/// A table, or several below each other where it is too wide.
fn parts(table: &Grid, style: &Style) -> String {
    let parts = table.within(style.columns());
    parts.iter().map(|part| grid(part, style)).joined("\n\n")
}

fn title(words: &str, style: &Style) -> Vec<String> {
    if words.is_empty() {
        return Vec::new();
    }
    let lines = lines(&[Text::plain(words)], SEPARATOR, style.columns()).into_iter();
    lines.map(|line| style.paint(BOLD, &line)).collect()
}

fn grid(grid: &Grid, style: &Style) -> String {
    let mut lines = title(&grid.title, style);
    let drawn = grid.lines();
    // Heads stand before the rows.
    let heads = drawn.len() - grid.rows.len();
    lines.extend(drawn.iter().take(heads).cloned());
    for (row, line) in grid.rows.iter().zip(drawn.into_iter().skip(heads)) {
        match row {
            Row::Heading(words) => lines.extend(title(words, style)),
            Row::Cells(_) | Row::Gap => lines.push(line),
        }
    }
    lines.join("\n")
}

/// Between the columns of a listing.
const APART: usize = 4;

fn listing(listing: &Listing, style: &Style) -> String {
    let columns = style.columns();
    let rows = match listing.rows.width() <= columns {
        true => listing.rows.lines(),
        // What stands behind the values has no room.
        false => listing.rows.with_columns(1, 2).lines(),
    };
    let wide = rows.iter().map(|row| row.chars().count()).max().unwrap_or(0).max(1);
    let columns = ((columns + APART) / (wide + APART)).max(1);
    let high = rows.len().div_ceil(columns);
    let mut lines = title(&listing.title, style);
    for line in 0..high {
        let cells = rows.iter().skip(line).step_by(high).map(|row| format!("{row:<wide$}"));
        lines.push(cells.joined(&" ".repeat(APART)).trim_end().to_owned());
    }
    lines.join("\n")
}

fn legend(screen: &Screen, style: &Style) -> String {
    let lines = lines(&screen.legend, "   ", style.columns().saturating_sub(2)).into_iter();
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(|line| style.paint(DIM, &format!("  {line}"))).joined("\n")
}

/// A labelled line; of several with one label the first has it.
fn answer(answer: &Answer, is_first: bool, style: &Style) -> String {
    let lines = sentence::lines(&answer.said, SEPARATOR, style.columns() - INDENT);
    let shown = |span: &Span| match span {
        Span::File(path) if style.colour && path.starts_with('/') => link(path),
        span => span.words().to_owned(),
    };
    let escape = if answer.label == Label::Caution { YELLOW } else { BOLD };
    let one = |(nth, line): (usize, &Vec<sentence::Word>)| {
        let label = if nth == 0 && is_first { answer.label.word() } else { "" };
        let label = style.paint(escape, &format!("{label:<INDENT$}"));
        format!("{label}{}", sentence::line(line, shown))
    };
    lines.iter().enumerate().map(one).joined("\n")
}

/// What is typed next with the database that it is in, named once; `tune` keeps nothing in one.
fn here<'a>(answer: &'a Answer, style: &Style) -> Cow<'a, Answer> {
    let Some(database) = style.database.filter(|_| answer.label == Label::Next) else {
        return Cow::Borrowed(answer);
    };
    let mut answer = answer.clone();
    let spans = answer.said.iter_mut().flat_map(|text| &mut text.0);
    let mut commands: Vec<&mut String> = spans.filter_map(reads_runs).collect();
    match &mut commands[..] {
        [] => {}
        [command] => command.push_str(&format!(" --db {database}")),
        _ => {
            let flag = format!("--db {database}");
            answer.said.push(Text::plain("each with ").and_code(flag));
        }
    }
    Cow::Owned(answer)
}

/// A command that reads or keeps runs.
fn reads_runs(span: &mut Span) -> Option<&mut String> {
    match span {
        Span::Code(command) if command.starts_with("iolens ") => {
            Some(command).filter(|command| !command.starts_with("iolens tune "))
        }
        _ => None,
    }
}

/// A hyperlink, which terminals without any show as its text (OSC 8).
fn link(path: &str) -> String {
    let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte);
    let escaped: String = path
        .bytes()
        .map(|byte| match is_safe(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect();
    format!("\x1b]8;;file://{escaped}\x1b\\{path}\x1b]8;;\x1b\\")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Column;

    const PLAIN: Style = Style::plain(60);

    #[test]
    fn a_screen_has_its_parts_in_order() {
        let cells = |name: &str, ns: &str| Row::Cells(vec![vec![name.into()], vec![ns.into()]]);
        let screen = Screen {
            header: vec![
                "syscall".into(),
                "1 thread".into(),
                "AMD EPYC, 2 CPUs (VM), Linux 6.18".into(),
            ],
            effort: vec!["quick look: 25 trials × 0.1 s".into(), "24 s".into()],
            alarm: None,
            figure: None,
            blocks: vec![Block::Listing(Listing {
                title: "cost of a call, ns".to_owned(),
                rows: Grid {
                    columns: vec![Column::left(""), Column::decimal("")],
                    rows: vec![
                        cells("function*", "1.8"),
                        cells("getppid", "197"),
                        cells("read_zero", "309"),
                        cells("stat", "1080"),
                    ],
                    ..Grid::default()
                },
            })],
            legend: vec!["* does not enter the kernel".into()],
            problems: vec!["fsync not run: the file system is read-only".into()],
            answers: vec![
                Answer::one(Label::Crossing, "197 ns into the kernel and back"),
                Answer {
                    label: Label::Next,
                    said: vec![
                        Text::code("iolens run syscall").and(" (verdicts)"),
                        Text::code("iolens show last").and(" (everything)"),
                    ],
                },
            ],
        };
        insta::assert_snapshot!(draw(&screen, &PLAIN));
        let coloured = draw(&screen, &Style { colour: true, ..Style::plain(60) });
        assert!(coloured.contains("\x1b[1mNext"), "{coloured}");
    }

    #[test]
    fn what_is_typed_next_names_the_database_once() {
        let database = Some("'my runs.db'");
        let drawn = |label, said: &[&str]| {
            let said = said.iter().copied().map(Text::code).collect();
            let screen = Screen { answers: vec![Answer { label, said }], ..Screen::default() };
            draw(&screen, &Style { database, ..Style::plain(100) }).trim().to_owned()
        };
        let one = ["iolens show last", "iolens tune read FILE", "--verbose"];
        let named = "iolens show last --db 'my runs.db' · iolens tune read FILE · --verbose";
        assert_eq!(drawn(Label::Next, &one), format!("{:<INDENT$}{named}", "Next"));
        let named = "iolens confirm last · iolens show last · each with --db 'my runs.db'";
        let two = ["iolens confirm last", "iolens show last"];
        assert_eq!(drawn(Label::Next, &two), format!("{:<INDENT$}{named}", "Next"));
        assert!(!drawn(Label::RunIt, &one).contains("my runs"), "what is not stored needs none");
    }

    #[test]
    fn text_from_elsewhere_commands_no_terminal_and_turns_no_line() {
        const ODD: &str = "a\x1b[31mb\u{9b}c\u{202e}d\x07";
        let cell = Row::Cells(vec![vec![ODD.to_owned()]]);
        let heads = vec![Column::left(ODD)];
        let rows = vec![Row::Heading(ODD.to_owned()), cell];
        let grid = Grid { title: ODD.to_owned(), columns: heads, rows };
        let inside = || vec![Node::Say(Text::plain(ODD).and_code(ODD))];
        let nodes = vec![
            Node::Heading(ODD.to_owned()),
            Node::Facts(vec![Fact::new(ODD, ODD), Fact::new("name", Text::file(ODD))]),
            Node::Groups(vec![(ODD.to_owned(), inside())]),
            Node::Code(ODD.to_owned()),
            Node::Block(Block::Grid(grid)),
            Node::Fold(crate::Fold { summary: Text::strong(ODD), nodes: inside(), is_open: true }),
        ];
        let section = Section { id: "odd", heading: ODD.to_owned(), nodes };
        let drawn = sections(std::slice::from_ref(&section), &PLAIN);
        let obeyed = |c: char| crate::plain::is_obeyed(c) && c != '\n';
        assert!(drawn.matches("[31mb c d").count() >= 9 && !drawn.contains(obeyed), "{drawn:?}");
        let page = crate::Page { sections: vec![section], footer: ODD.into(), ..<_>::default() };
        let drawn = crate::html::page(&page);
        assert!(drawn.matches("[31mb c d").count() >= 9 && !drawn.contains(obeyed), "{drawn:?}");
    }

    #[test]
    fn a_path_is_a_link_where_escapes_are_taken() {
        let report = Answer { label: Label::Report, said: vec![Text::file("/tmp/a b.html")] };
        let linked = answer(&report, true, &Style { colour: true, ..Style::plain(80) });
        assert!(linked.contains("\x1b]8;;file:///tmp/a%20b.html\x1b\\/tmp/a b.html"), "{linked:?}");
        assert_eq!(answer(&report, true, &PLAIN), "Report     /tmp/a b.html");
    }
}
