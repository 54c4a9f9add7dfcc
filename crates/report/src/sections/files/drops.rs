//! What dropping caches of the whole system is worth, where the user had it tried.

use iolens_document::Node;
use iolens_document::table::{Column, Table};
use iolens_model::file::AfterDrop;
use iolens_model::run::Run;
use iolens_stats::after_drop::{Worth, worth};

use super::{time, times};
use crate::number::{NONE, OrDash};

/// What was timed, the time, and whether pages of the file were read.
type Timed = (&'static str, fn(&AfterDrop) -> f64, bool);

const TIMED: [Timed; 3] = [
    ("First read of a page of the file", |one| one.page.0 as f64, true),
    ("First read of a MiB of the file", |one| one.mib.0 as f64, true),
    ("open, fstat and close of 10,000 files", |one| one.names.0 as f64, false),
];

pub(super) fn nodes(run: &Run) -> Vec<Node> {
    let found = run.header.file.as_ref().map_or(&[][..], |file| &file.dropped);
    if found.is_empty() {
        return Vec::new();
    }
    let said = "After the caches of the whole system were dropped (/proc/sys/vm/drop_caches), in \
                random order before the first pass. Cached: of what was read, after the drop. \
                Dentries: unused ones that were left.";
    let tables = TIMED.iter().map(|timed| Node::Table(table(found, timed)));
    std::iter::once(Node::aside(said)).chain(tables).collect()
}

/// Every mode with what came after it.
fn table(found: &[AfterDrop], (what, of, reads): &Timed) -> Table {
    let columns = vec![
        Column::left("dropped", ""),
        Column::left("time", "[95%]"),
        Column::left("over nothing", "[95%]"),
        Column::right("cached", "%"),
        Column::right("dentries", "%"),
    ];
    let mut table = Table::new(*what, columns);
    let pages = found.iter().filter_map(|one| one.resident_bytes).max();
    for one in worth(found, of) {
        let percent = |of: &dyn Fn(&AfterDrop) -> Option<f64>| -> String {
            let own = found.iter().filter(|drop| drop.mode == one.mode);
            let shares: Option<Vec<f64>> = own.map(of).collect();
            let median = shares.and_then(|mut shares| {
                shares.sort_unstable_by(f64::total_cmp);
                shares.get(shares.len() / 2).copied()
            });
            median.or_dash(|share| format!("{:.0}", 100.0 * share))
        };
        let resident = |drop: &AfterDrop| {
            let (now, all) = drop.resident_bytes.zip(pages)?;
            Some(now as f64 / all.max(1) as f64)
        };
        let unused = |drop: &AfterDrop| Some(drop.unused_dentries_permille? as f64 / 1000.0);
        table.push(vec![
            mode(&one).into(),
            time(&one.time_ns).into(),
            one.ratio.as_ref().or_dash(times).into(),
            if *reads { percent(&resident) } else { NONE.to_owned() }.into(),
            percent(&unused).into(),
        ]);
    }
    table
}

/// `1 (pages)`.
fn mode(worth: &Worth) -> String {
    worth.mode.map_or_else(|| "nothing".to_owned(), |mode| format!("{mode} ({})", mode.what()))
}
