//! What reports have of a study: its entry, of which there is a list in [`studies`](super).

use std::cmp::Reverse;

use iolens_document::table::Table;
use iolens_document::{Node, Screen, Section, Text};
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis, Quantity};

use crate::figure::{Figure, Plate};
use crate::findings::{Outcome, Ranking};
use crate::groups::grouped;
use crate::screen;
use crate::sections::Form;

/// A study on screens, on pages, in figures and in exports.
pub(crate) struct StudyReport {
    /// What an arm that does nothing does once.
    pub(crate) nothing: &'static str,
    /// What settings may have in common, in the words of a screen.
    pub(crate) common: fn(&Cell) -> Vec<String>,
    /// Fills in what its screens have.
    pub(crate) screen: fn(&mut Screen, &Run, &Analysis),
    /// What to type next, of a run that was cut short or was not.
    pub(crate) next: fn(&Analysis, bool) -> Vec<Text>,
    /// What its page asks.
    pub(crate) question: &'static str,
    /// What a run answers, in a few words; `None` where that takes more.
    pub(crate) claim: fn(&Analysis, &[Ranking]) -> Option<String>,
    pub(crate) sections: fn(&Run, &Analysis, Form) -> Vec<Section>,
    /// What its page ends with.
    pub(crate) last: fn(&Run, &Analysis) -> Option<Section>,
    /// A setting by itself.
    pub(crate) setting: OfSetting,
    /// Its figures, before they are drawn.
    pub(crate) plates: fn(&Run, &Analysis) -> Vec<Plate>,
    /// The figures in their order on a page, as many as have room in so many bytes.
    pub(crate) figures: fn(&Run, &Analysis, Vec<Figure>, usize) -> Vec<Node>,
    /// After which section they stand.
    pub(crate) after: &'static str,
    pub(crate) columns: StudyColumns,
}

/// How a setting is shown by itself.
pub(crate) enum OfSetting {
    /// As a table of its arms, above all trials of each.
    Arms(fn(&Run, &Analysis, &CellAnalysis, usize) -> Table),
    /// As a section, which has all of it.
    Section(fn(&Run, &Analysis, &CellAnalysis) -> Section),
}

/// The columns of a study's exports, as templates.
pub(crate) struct StudyColumns {
    pub(crate) ends: Ends,
    /// Columns, each with what it is called in what it is made from.
    pub(crate) keys: &'static [(&'static str, &'static str)],
    pub(crate) arms: &'static str,
    /// What only JSON has: of arms, and of cells.
    pub(crate) whole: [&'static str; 2],
    /// What tells its cells apart.
    pub(crate) axes: &'static str,
    /// What is counted in a slice.
    pub(crate) slice: &'static str,
    /// The figures of an arm in a cell.
    pub(crate) figures: &'static str,
    /// Parts of templates that others lack or have as something else.
    pub(crate) parts: &'static [(&'static str, &'static str)],
}

/// The ends of which there are counts, which are stored as `tx_` and `rx_`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Called so in columns.
    Both,
    /// Called `server_` and `client_`.
    ServerAndClient,
    /// The first only, without a prefix; what is stored as messages has the study's own unit.
    One,
}

/// Arms of a study with one end.
pub(crate) const ARMS_OF_ONE_END: &str = "{arm} {units} system_calls bytes ns_per_{unit} {rate}
    {file} cpu_ns context_switches migrations minor_faults {:pmu} {per_byte} cycles
    voluntary_switches involuntary_switches major_faults softirq_ticks {:sums} {start} {starts}
    host";

/// Slices of a study with one end.
pub(crate) const SLICE_OF_ONE_END: &str = "{file} {units} bytes system_calls cpu_ns
    voluntary_switches involuntary_switches migrations minor_faults major_faults softirq_ticks
    {:pmu} cycles {:later}";

/// The longest claim that is a heading.
const CLAIM_MAX: usize = 70;

/// Who wins at which sizes, or in how many settings, in a few words; `None` where that takes more
/// words, or nobody does.
pub(crate) fn who_wins(_: &Analysis, rankings: &[Ranking]) -> Option<String> {
    let is_by_cpu = rankings.iter().any(|ranking| ranking.quantity != Quantity::Time);
    let verb = if is_by_cpu { "needs least CPU per request" } else { "wins" };
    let claims = [by_size(rankings), Some(by_settings(rankings))];
    let worded = claims.into_iter().flatten().filter_map(|won| {
        let ((first, place), rest) = won.split_first()?;
        let rest: String = rest.iter().map(|(name, place)| format!(", {name} {place}")).collect();
        Some(format!("{first} {verb} {place}{rest}").trim_end().to_owned())
    });
    worded.into_iter().find(|claim| claim.chars().count() <= CLAIM_MAX)
}

/// Who wins in a ranking.
fn winner(ranking: &Ranking) -> Option<&str> {
    match &ranking.outcome {
        Outcome::Fastest { method, .. } => Some(method),
        _ => None,
    }
}

/// Winners, each with the sizes of its stretch; `None` of several curves.
fn by_size(rankings: &[Ranking]) -> Option<Vec<(&str, String)>> {
    let first = rankings.first()?;
    if rankings.iter().any(|own| own.setting.curve() != first.setting.curve()) {
        return None;
    }
    let stretches = rankings.chunk_by(|a, b| winner(a) == winner(b));
    let won = stretches.filter_map(|own| {
        let (first, last) = (own.first()?, own.last()?);
        let place = match (own.len(), first.setting.own_size()) {
            (_, None) => String::new(),
            (1, Some(size)) => format!("at {size}"),
            (n, _) if n == rankings.len() => "at every size".to_owned(),
            _ => format!("from {}", screen::span_of(first.setting.size, last.setting.size)),
        };
        Some((winner(first)?, place))
    });
    Some(won.collect())
}

/// Winners, the most frequent first, each with the number of settings.
pub(crate) fn by_settings(rankings: &[Ranking]) -> Vec<(&str, String)> {
    let all = rankings.len();
    let mut won = grouped(rankings.iter().filter_map(winner).map(|name| (name, ())));
    won.sort_by_key(|(_, settings)| Reverse(settings.len()));
    let place = |(nth, (name, own)): (usize, (_, Vec<()>))| {
        let place = match own.len() {
            n if n == all => format!("in all {all} settings"),
            n if nth == 0 => format!("in {n} of {all} settings"),
            n => format!("in {n}"),
        };
        (name, place)
    };
    won.into_iter().enumerate().map(place).collect()
}
