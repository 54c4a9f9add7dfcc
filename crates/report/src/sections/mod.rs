//! What stands below the first screen, for `iolens show` and on pages: one section for each
//! question, in the order in which a reader asks them. A fact has one home.

pub(crate) mod machine;
pub(crate) mod paths;
pub(crate) mod trust;
pub(crate) mod why;

use iolens_document::{Node, Text};
use iolens_model::cell::Cell;
use iolens_model::run::Run;

use crate::figure::{Figure, Group};
use crate::words;

/// Where sections are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In a terminal, without figures.
    Terminal {
        /// Its columns.
        columns: usize,
        /// Whether everything is asked for that a run of very many methods leaves out.
        is_whole: bool,
    },
    /// On a page.
    Page,
}

impl Form {
    /// Columns that a table may take.
    pub(crate) fn columns(self) -> usize {
        match self {
            Form::Terminal { columns, .. } => columns,
            Form::Page => usize::MAX,
        }
    }

    /// Whether a run of very many methods leaves something out.
    pub(crate) fn is_short(self) -> bool {
        matches!(self, Form::Terminal { is_whole: false, .. })
    }
}

/// Figures as parts of a section.
pub(crate) fn drawn(figures: Vec<Figure>) -> Vec<Node> {
    figures.into_iter().map(|figure| Node::Figure(shown(figure))).collect()
}

pub(crate) fn shown(figure: Figure) -> iolens_document::Figure {
    iolens_document::Figure {
        id: figure.file_stem,
        caption: Text::default(),
        wide: figure.inline,
        narrow: figure.narrow,
        lines: figure.lines,
        twin: Some(figure.table),
        sum: String::new(),
    }
}

/// The figures that fit a page, those first that say most, and how many do not. The ratios of
/// all families are always among them, where there are families.
pub(crate) fn within(
    room: usize,
    figures: Vec<Figure>,
    has_families: bool,
) -> (Vec<Figure>, usize) {
    const ORDER: [&str; 6] =
        ["ratio", "crossovers", "cheapest", "goodput-by-size", "ns-per-message", "latency-by-size"];
    let rank = |figure: &Figure| {
        let place =
            ORDER.iter().position(|metric| figure.file_stem.contains(&format!("-{metric}-")));
        place.unwrap_or(ORDER.len() + usize::from(figure.group >= Group::Threads))
    };
    let bytes = |figure: &Figure| figure.inline.len() + figure.table.html().into_string().len();
    let mut order: Vec<usize> = (0..figures.len()).collect();
    order.sort_by_key(|&i| rank(&figures[i]));
    let (mut used, mut kept) = (0, vec![false; figures.len()]);
    for i in order {
        let own = bytes(&figures[i]);
        if used + own <= room || (has_families && rank(&figures[i]) == 0) {
            (used, kept[i]) = (used + own, true);
        }
    }
    let left_out = kept.iter().filter(|kept| !**kept).count();
    let kept = figures.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(figure, _)| figure);
    let kept: Vec<Figure> = kept.collect();
    // Where all have room once only, narrow screens scroll.
    let narrow: usize =
        kept.iter().map(|figure| figure.narrow.as_ref().map_or(0, String::len)).sum();
    let kept = match used + narrow <= room {
        true => kept,
        false => kept.into_iter().map(|figure| Figure { narrow: None, ..figure }).collect(),
    };
    (kept, left_out)
}

/// Where figures are that have no room on a page.
pub(crate) fn more_figures(run: &Run, left_out: usize) -> Node {
    let said = format!("{left_out} more figures would make the page too large: ");
    Node::aside(
        Text::plain(said).and_code(format!("iolens report {} --figures DIR", run.header.id)),
    )
}

/// `4 KiB, 2 threads`: what tells a setting from the others.
pub(crate) fn setting(run: &Run, cell: &Cell) -> String {
    words::subject(&run.header, cell)
}
