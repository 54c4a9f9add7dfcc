//! A page as a browser shows it: one self-contained file, no network, no script, light and dark,
//! printable.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::grid::{Align, Column, Grid, Row};
use crate::plain::is_obeyed;
use crate::sentence::{Span, Text};
use crate::tree::{Answer, Block, Screen};
use crate::tree::{Fact, Figure, Fold, Node, Page, Section};

const STYLE: &str = include_str!("html/style.css");

/// Between the parts of a line.
const SEPARATOR: &str = " · ";

/// The file.
pub fn page(page: &Page) -> String {
    let header = html! {
        header {
            p.mark { (parts(&page.mark)) }
            h1 { (page.heading) }
            p.meta { (parts(&page.meta)) }
            nav aria-label="Contents" {
                @for section in &page.sections {
                    a href={ "#" (section.id) } { (section.heading) }
                }
            }
        }
    };
    let main = html! { @for section in &page.sections { (self::section(section)) } };
    shell(page, &header, &main)
}

/// The file around a header and what is below it.
pub fn shell(page: &Page, header: &Markup, main: &Markup) -> String {
    let style = format!("{STYLE}\n{}", page.style);
    let drawn = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(page.generator);
                title { (page.title) }
                style { (PreEscaped(style)) }
            }
            body {
                (header)
                main { (main) }
                footer { p { (page.footer) } }
            }
        }
    };
    let is_shown = |c: char| !is_obeyed(c) || matches!(c, '\n' | '\t');
    let drawn = drawn.into_string();
    let drawn: String = drawn.chars().map(|c| if is_shown(c) { c } else { ' ' }).collect();
    without_optional_tags(&drawn)
}

/// HTML lets these end tags go where the next one begins, and a page of many settings has a
/// hundred thousand of them (HTML, 13.1.2.4 optional tags).
fn without_optional_tags(page: &str) -> String {
    const OPTIONAL: [&str; 5] = ["</td>", "</tr>", "</dd>", "</dt>", "</li>"];
    OPTIONAL.iter().fold(page.to_owned(), |page, tag| page.replace(tag, ""))
}

/// A section with its heading.
pub fn section(section: &Section) -> Markup {
    html! {
        section class={ "s-" (section.id) } aria-labelledby=(section.id) {
            h2 id=(section.id) { (section.heading) }
            @for node in &section.nodes { (self::node(node)) }
        }
    }
}

fn node(node: &Node) -> Markup {
    html! {
        @match node {
            Node::Say(said) => { p { (text(said)) } }
            Node::Aside(said) => { p.aside { (text(said)) } }
            Node::List(all) => { ul.remarks { @for one in all { li { (text(one)) } } } }
            Node::Heading(words) => { h3 { (words) } }
            Node::Screen(screen) => { (self::screen(screen)) }
            Node::Table(table) => { (table.html()) }
            Node::Block(block) => { (self::block(block)) }
            Node::Facts(all) => { (facts(all)) }
            Node::Groups(groups) => {
                div.columns { @for (name, nodes) in groups {
                    div.group { h3 { (name) } @for node in nodes { (self::node(node)) } }
                } }
            }
            Node::Figure(one) => { (figure(one)) }
            Node::Row(all) => { div.paths { @for one in all { (path(one)) } } }
            Node::Fold(one) => { (fold(one)) }
            Node::Code(words) => { pre { code { (words) } } }
        }
    }
}

/// A sentence.
fn text(said: &Text) -> Markup {
    html! {
        @for span in &said.0 {
            @match span {
                Span::Plain(words) => { (whole(words)) }
                Span::Code(words) | Span::File(words) => { (code(words)) }
                Span::Strong(words) => { b { (words) } }
            }
        }
    }
}

/// Code within a sentence: a line ends between its words, and within one only where a line is
/// too short for it. Browsers would end one at any hyphen.
fn code(words: &str) -> Markup {
    html! {
        code {
            @for (nth, word) in words.split(' ').enumerate() {
                @if nth > 0 { " " }
                @if word.contains('-') { span.word { (word) } } @else { (word) }
            }
        }
    }
}

/// Words, units kept with their numbers.
fn whole(words: &str) -> String {
    const UNITS: [&str; 9] = ["B", "KiB", "MiB", "GiB", "ns", "µs", "ms", "s", "thread"];
    let mut out = String::with_capacity(words.len());
    let mut before_is_digit = false;
    for (nth, word) in words.split(' ').enumerate() {
        let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let is_unit = before_is_digit && UNITS.contains(&bare);
        if nth > 0 {
            out.push(if is_unit { '\u{a0}' } else { ' ' });
        }
        out.push_str(word);
        before_is_digit = word.ends_with(|c: char| c.is_ascii_digit());
    }
    out
}

/// Parts of a line.
fn parts(all: &[Text]) -> Markup {
    html! {
        @for (nth, part) in all.iter().enumerate() {
            @if nth > 0 { (SEPARATOR) }
            (text(part))
        }
    }
}

fn facts(all: &[Fact]) -> Markup {
    html! {
        dl.facts { @for fact in all {
            dt { (fact.name) }
            dd class=[fact.is_faint.then_some("faint")] { (text(&fact.value)) }
        } }
    }
}

fn fold(fold: &Fold) -> Markup {
    html! {
        details open[fold.is_open] {
            summary { (text(&fold.summary)) }
            @for node in &fold.nodes { (self::node(node)) }
        }
    }
}

/// A drawing and, folded, its numbers.
fn figure(figure: &Figure) -> Markup {
    html! {
        figure id=(figure.id) data-lines=(figure.lines) {
            div class=(if figure.narrow.is_some() { "scroll wide" } else { "scroll" }) { (PreEscaped(&figure.wide)) }
            @if let Some(narrow) = &figure.narrow { div.narrow { (PreEscaped(narrow)) } }
            @if !figure.caption.0.is_empty() { figcaption { (text(&figure.caption)) } }
            (numbers(figure))
        }
    }
}

/// Folded, the numbers of a drawing.
fn numbers(figure: &Figure) -> Markup {
    html! {
        @if let Some(twin) = &figure.twin {
            details { summary { "Numbers" } (twin.html()) }
        }
    }
}

/// One of several that stand side by side.
fn path(figure: &Figure) -> Markup {
    html! {
        figure.path id=(figure.id) {
            figcaption { (text(&figure.caption)) }
            (PreEscaped(&figure.wide))
            @if !figure.sum.is_empty() { p.sum { (figure.sum) } }
        }
    }
}

/// The first screen: what follows, with its picture beside it where there is room, the tables,
/// what marks mean, what has no number.
fn screen(screen: &Screen) -> Markup {
    html! {
        @if let Some(alarm) = &screen.alarm { p.alarm { (text(alarm)) } }
        div.first {
            @if let Some(one) = screen.figure.as_ref().filter(|one| one.narrow.is_some()) {
                (picture("beside", one))
            }
            @if !screen.answers.is_empty() { dl.lead { (answers(&screen.answers)) } }
            @if let Some(one) = screen.figure.as_ref().filter(|one| one.narrow.is_none()) {
                (picture("below", one))
            }
            @for one in &screen.blocks { div.block { (block(one)) } }
            @if !screen.legend.is_empty() {
                p.aside.legend { @for (nth, part) in screen.legend.iter().enumerate() {
                    @if nth > 0 { "\u{2003}" }
                    (text(part))
                } }
            }
            @for problem in &screen.problems { p.problem { (text(problem)) } }
        }
    }
}

/// A drawing with what it shows, where there is one as it is for a narrow screen.
fn picture(class: &str, figure: &Figure) -> Markup {
    let drawn = figure.narrow.as_ref().unwrap_or(&figure.wide);
    html! {
        figure.(class) id=(figure.id) data-lines=(figure.lines) {
            div.scroll { (PreEscaped(drawn)) }
            (numbers(figure))
        }
    }
}

/// Labelled lines; of several with one label the first has it.
fn answers(all: &[Answer]) -> Markup {
    html! {
        @for (nth, answer) in all.iter().enumerate() {
            @let is_first = nth == 0 || all[nth - 1].label != answer.label;
            dt { @if is_first { (answer.label.word()) } }
            dd { (parts(&answer.said)) }
        }
    }
}

fn block(block: &Block) -> Markup {
    match block {
        Block::Matrix(matrix) => grid(&matrix.grid(usize::MAX)),
        Block::Grid(table) => grid(table),
        Block::Listing(listing) => {
            html! {
                p.caption { (listing.title) }
                ul.listing { @for row in padded(&listing.rows) {
                    @if let Row::Cells(cells) = row {
                        li { @for cell in &cells { span { (cell.join(" ")) } } }
                    }
                } }
            }
        }
    }
}

/// A table whose columns have parts that line up.
fn grid(grid: &Grid) -> Markup {
    let heads = grid.columns.iter().map(|column| column.head.len()).max().unwrap_or(0);
    let all: usize = grid.columns.iter().map(|column| column.parts.len()).sum();
    let padded = padded(grid);
    html! {
        @if !grid.title.is_empty() { p.caption { (grid.title) } }
        div.table {
            table.grid aria-label=[Some(&grid.title).filter(|title| !title.is_empty())] {
                thead { @for nth in 0..heads { tr {
                    @for column in &grid.columns { (head(column, nth, heads)) }
                } } }
                tbody { @for row in &padded {
                    @match row {
                        Row::Cells(cells) => { tr {
                            @for (cell, column) in cells.iter().zip(&grid.columns) {
                                (self::cell(cell, column))
                            }
                        } }
                        Row::Heading(words) => {
                            tr.group { th colspan=(all) { (words) } }
                        }
                        Row::Gap => {}
                    }
                } }
            }
        }
    }
}

/// The rows with decimal parts padded behind the point, so that points stand below each other.
fn padded(grid: &Grid) -> Vec<Row> {
    let behind = |part: &str| part.find('.').map_or(0, |at| part.len() - at);
    let cells = grid.rows.iter().filter_map(|row| match row {
        Row::Cells(cells) => Some(cells),
        _ => None,
    });
    let mut widest = vec![Vec::new(); grid.columns.len()];
    for cells in cells {
        for (widths, cell) in widest.iter_mut().zip(cells) {
            widths.resize(widths.len().max(cell.len()), 0);
            for (width, part) in widths.iter_mut().zip(cell) {
                *width = behind(part).max(*width);
            }
        }
    }
    let part = |column: usize, nth: usize, part: &String| {
        let is_decimal = grid.columns[column].parts.get(nth) == Some(&Align::Decimal);
        let is_number = part.starts_with(|c: char| c.is_ascii_digit());
        match is_decimal && is_number {
            true => part.clone() + &crate::number::pad(part, widest[column][nth] - behind(part)),
            false => part.clone(),
        }
    };
    let row = |row: &Row| match row {
        Row::Cells(cells) => {
            let cell = |(column, cell): (usize, &Vec<String>)| {
                cell.iter().enumerate().map(|(nth, own)| part(column, nth, own)).collect()
            };
            Row::Cells(cells.iter().enumerate().map(cell).collect())
        }
        other => other.clone(),
    };
    grid.rows.iter().map(row).collect()
}

fn head(column: &Column, nth: usize, heads: usize) -> Markup {
    let class = if column.is_of_numbers() { "r" } else { "l" };
    html! { th.(class) colspan=(column.parts.len()) { (column.line(nth, heads)) } }
}

fn cell(cell: &[String], column: &Column) -> Markup {
    let class = |align: &Align| if *align == Align::Left { "l" } else { "r" };
    html! {
        @if column.is_across(cell) {
            td colspan=(column.parts.len()) { (cell[0]) }
        } @else {
            @for (nth, align) in column.parts.iter().enumerate() {
                td class={ (class(align)) @if nth > 0 { " part" } } {
                    (cell.get(nth).map_or("", String::as_str))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_escaped_and_units_stay_with_their_numbers() {
        let said = Text::plain("<b> takes 16 KiB, in ").and_code("a & b");
        let drawn = text(&said).into_string();
        assert_eq!(drawn, "&lt;b&gt; takes 16\u{a0}KiB, in <code>a &amp; b</code>");
        let drawn = code("run a-b --x").into_string();
        let word = |word: &str| format!("<span class=\"word\">{word}</span>");
        assert_eq!(drawn, format!("<code>run {} {}</code>", word("a-b"), word("--x")));
    }

    #[test]
    fn parts_of_a_column_have_cells_of_their_own() {
        let words = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect();
        let grid = Grid {
            title: "cost, ns".to_owned(),
            columns: vec![
                Column::left(""),
                Column::of("send", &[Align::Decimal, Align::Right, Align::Left]),
            ],
            rows: vec![
                Row::Cells(vec![words(&["1 KiB"]), words(&["1.5", "−9%", "="])]),
                Row::Cells(vec![words(&["2 KiB"]), words(&["not run"])]),
                Row::Heading("CPU".to_owned()),
            ],
        };
        insta::assert_snapshot!(super::grid(&grid).into_string());
    }

    #[test]
    fn a_fold_says_what_it_holds() {
        let node = Node::Fold(Fold {
            summary: "3 more".into(),
            is_open: false,
            nodes: vec![Node::Facts(vec![Fact::new("kernel", "6.18")])],
        });
        let drawn = super::node(&node).into_string();
        let expect = "<details><summary>3 more</summary><dl class=\"facts\"><dt>kernel</dt>\
                      <dd>6.18</dd></dl></details>";
        assert_eq!(drawn, expect);
    }
}
