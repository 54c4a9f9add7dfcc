//! What dropping caches of the whole system is worth, where the user had it tried.

use iolens_model::file::AfterDrop;
use iolens_model::run::Run;
use iolens_stats::after_drop::{Worth, worth};

use crate::answers::{Kind, Sentence};
use crate::number::NONE;
use crate::table::{Column, Table};
use crate::writes::time;

/// What was timed: its words, and the time.
type Timed = (&'static str, &'static str, fn(&AfterDrop) -> f64);

const TIMED: [Timed; 3] = [
    ("the first read of a page of the file", "a page", |one| one.page.0 as f64),
    ("the first read of a MiB of it", "a MiB", |one| one.mib.0 as f64),
    ("open, fstat and close of 10 000 files", "10 000 files", |one| one.names.0 as f64),
];

fn found(run: &Run) -> Option<&[AfterDrop]> {
    let found = &run.header.file.as_ref()?.dropped;
    (!found.is_empty()).then_some(found)
}

/// The mode in words: `1 (pages)`.
fn mode(worth: &Worth) -> String {
    worth.mode.map_or_else(|| "nothing".to_owned(), |mode| format!("{mode} ({})", mode.what()))
}

/// A sentence for each of what was timed.
pub(super) fn sentences(run: &Run) -> Vec<Sentence> {
    let Some(found) = found(run) else { return Vec::new() };
    let sentence = |(what, _, of): &Timed| {
        let all = worth(found, of);
        let (nothing, modes) = all.split_first()?;
        let part = |one: &Worth| {
            Some(format!("{} times after mode {}", super::times(one.ratio.as_ref()?), mode(one)))
        };
        let parts: Vec<String> = modes.iter().filter_map(part).collect();
        let text = format!(
            "Dropping caches of the whole system: {what} took {} with nothing dropped, and {} (95 % \
             intervals, n = {}).",
            time(&nothing.time_ns),
            parts.join(", "),
            nothing.time_ns.n
        );
        Some(Sentence::plain(Kind::Crossover, text))
    };
    TIMED.iter().filter_map(sentence).collect()
}

/// Every mode with what came after it.
pub(crate) fn table(run: &Run) -> Option<Table> {
    let found = found(run)?;
    let columns = vec![
        Column::left("dropped", ""),
        Column::left("timed", ""),
        Column::left("time", "[95 %]"),
        Column::left("over nothing", "times [95 %]"),
        Column::right("cached", "%"),
        Column::right("dentries", "%"),
    ];
    let caption = "What came after caches of the whole system were dropped \
                   (/proc/sys/vm/drop_caches), in random order before the passes; cached: of what \
                   was read, after the drop; dentries: unused ones that were left";
    let mut table = Table::new(caption, columns);
    let pages = found.iter().filter_map(|one| one.resident_bytes).max();
    for (index, (_, what, of)) in TIMED.iter().enumerate() {
        for (place, one) in worth(found, of).iter().enumerate() {
            let own = || found.iter().filter(|drop| drop.mode == one.mode);
            let percent = |of: &dyn Fn(&AfterDrop) -> Option<f64>| -> String {
                let shares: Option<Vec<f64>> = own().map(of).collect();
                let median = shares.and_then(|mut shares| {
                    shares.sort_unstable_by(f64::total_cmp);
                    shares.get(shares.len() / 2).copied()
                });
                median.map_or_else(|| NONE.to_owned(), |share| format!("{:.0}", 100.0 * share))
            };
            let permille = |value: Option<u64>| value.map(|value| value as f64 / 1000.0);
            let resident = |drop: &AfterDrop| {
                let (now, all) = drop.resident_bytes.zip(pages)?;
                Some(now as f64 / all.max(1) as f64)
            };
            let names_only = index == 2;
            let row = vec![
                mode(one).into(),
                (*what).into(),
                time(&one.time_ns).into(),
                one.ratio.as_ref().map_or_else(|| NONE.to_owned(), super::times).into(),
                if names_only { NONE.to_owned() } else { percent(&resident) }.into(),
                percent(&|drop| permille(drop.unused_dentries_permille)).into(),
            ];
            if place == 0 { table.push_group(row) } else { table.push(row) }
        }
    }
    Some(table)
}
