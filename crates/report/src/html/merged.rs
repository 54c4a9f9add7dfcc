//! One page of several runs, whichever machines measured them: every row says whose it is, and
//! none is judged against a row of another run.

use std::collections::BTreeSet;

use iolens_model::cell::Cell;
use iolens_model::run::{Run, RunHeader};
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis};
use maud::{Markup, html};

use super::answers::prose;
use super::{block, document, question};
use crate::answers::{Kind, Sentence, sentences};
use crate::number::{self, NONE};
use crate::results;
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

/// A run with its analysis.
type Analysed = (Run, Analysis);

/// What the intervals of the page hold for.
const SCOPE: &str = "Every interval and every verdict is of one machine and one run: the arms of \
                     a row took turns with the baseline of the same run. Differences between \
                     machines are not judged here; iolens compare RUN RUN judges two runs.";

/// Sections by id and heading.
const CONTENTS: [(&str, &str); 3] =
    [("runs", "Runs"), ("contrasts", "All contrasts"), ("validity", "Validity")];

/// The page of runs of one study, in the order given.
#[must_use]
pub fn merged(runs: &[Analysed]) -> String {
    let Some((first, _)) = runs.first() else { return String::new() };
    let main = html! {
        (block("runs", "Runs", html! { @for run in runs { (one(run)) } }))
        (block("contrasts", "All contrasts", contrasts(runs)))
        (block("validity", "Validity", html! {
            p { (SCOPE) }
            @for run in runs { (validity(run)) }
        }))
    };
    let ids: Vec<&str> = runs.iter().map(|(run, _)| run.header.id.as_str()).collect();
    let title = format!("{} · iolens {}", extent(runs), first.header.plan.study());
    let footer = format!("runs {}", ids.join(", "));
    document(&first.header.build, &title, &header(first, runs), &main, &footer)
}

/// `3 runs of 2 hosts`.
fn extent(runs: &[Analysed]) -> String {
    let hosts: BTreeSet<&str> = runs.iter().map(|(run, _)| host(&run.header)).collect();
    format!(
        "{} of {}",
        number::count(runs.len() as u64, "run"),
        number::count(hosts.len() as u64, "host")
    )
}

/// The label of the machine that measured a run.
fn host(header: &RunHeader) -> &str {
    header.host_label().unwrap_or("not recorded")
}

fn header(first: &Run, runs: &[Analysed]) -> Markup {
    let hosts: BTreeSet<&str> = runs.iter().map(|(run, _)| host(&run.header)).collect();
    let hosts: Vec<&str> = hosts.into_iter().collect();
    html! {
        header {
            p.mark { b { "iolens" } " " (first.header.plan.study()) ", " (extent(runs)) }
            h1 { (question(first)) }
            p.meta { "on " (hosts.join(", ")) }
            p.flag { (SCOPE) }
            nav aria-label="Contents" {
                @for (id, name) in CONTENTS { a href={ "#" (id) } { (name) } }
            }
        }
    }
}

/// A run: where it is from, and what it answers.
fn one((run, analysis): &Analysed) -> Markup {
    let header = &run.header;
    let all = sentences(run, analysis);
    let of = |kind: Kind| all.iter().filter(move |sentence| sentence.kind == kind);
    let says = |sentence: &Sentence| html! { li { (prose(run, &sentence.text)) } };
    let answers: Vec<&Sentence> = of(Kind::Answer).chain(of(Kind::Search)).collect();
    html! {
        h3 { (host(header)) " · run " (header.id) }
        dl.facts {
            @for (name, value) in origin(header) { dt { (name) } dd { (value) } }
        }
        @for sentence in of(Kind::Alarm) { p.alarm { (prose(run, &sentence.text)) } }
        @if of(Kind::Headline).next().is_some() {
            ul.remarks { @for sentence in of(Kind::Headline) { (says(sentence)) } }
        }
        @if !answers.is_empty() {
            details open[answers.len() <= 4] {
                summary { "Cell by cell" }
                ul.remarks { @for sentence in answers { (says(sentence)) } }
            }
        }
    }
}

/// Which machine measured a run, and when.
fn origin(header: &RunHeader) -> Vec<(&'static str, String)> {
    let fact = |group, name| header.host.fact(group, name);
    let mut rows = vec![
        ("host", host(header).to_owned()),
        ("CPU model", fact("cpu", "model")),
        ("kernel", fact("kernel", "release")),
        ("measured", iolens_model::moment::utc(header.started_unix_ns)),
        ("build", header.build.clone()),
    ];
    rows.extend(header.name.clone().map(|name| ("name", name)));
    rows.extend(header.origin.as_ref().map(|from| {
        let when = iolens_model::moment::utc(from.imported_unix_ns);
        ("imported", format!("from {} on {when}", from.path))
    }));
    rows
}

/// Every arm of every cell of every run; the same cell of all runs stands together.
fn contrasts(runs: &[Analysed]) -> Markup {
    let mut cells: Vec<&Cell> = Vec::new();
    for cell in runs.iter().flat_map(|(_, analysis)| &analysis.cells) {
        if !cells.contains(&&cell.cell) {
            cells.push(&cell.cell);
        }
    }
    let unit = runs.first().map_or("", |(run, _)| run.header.plan.study().unit());
    let mut table = Table::new(
        "",
        vec![
            Column::left("host", ""),
            Column::left("run", ""),
            Column::left("cell", ""),
            Column::left("arm", ""),
            Column::decimal("time", &format!("ns/{unit}")),
            Column::left("ratio", "[95 %]"),
            Column::right("n", ""),
            Column::left("verdict", ""),
        ],
    );
    for cell in cells {
        let mut begins = true;
        for (run, analysis) in runs {
            for found in analysis.cells.iter().filter(|found| found.cell == *cell) {
                for arm in &found.arms {
                    let row = row(&mut table, run, found, arm);
                    match std::mem::take(&mut begins) {
                        true => table.push_group(row),
                        false => table.push(row),
                    }
                }
            }
        }
    }
    html! {
        p.aside {
            "Ratio: time per " (unit) " of the baseline over the arm’s in the same run; above 1 "
            "the arm is faster. Intervals are pointwise; verdicts use simultaneous ones over all "
            "contrasts of their run."
        }
        (table.html())
    }
}

fn row(table: &mut Table, run: &Run, cell: &CellAnalysis, arm: &ArmAnalysis) -> Vec<Entry> {
    let plan = &run.header.plan;
    let note = results::remark(arm).map(|remark| table.note(&remark));
    let contrast = arm.contrast.as_ref();
    let is_baseline = arm.arm.label == plan.baseline;
    let time = arm.figures.as_ref().map(|figures| figures.ns_per_message.value);
    let ratio = match contrast {
        Some(contrast) => number::contrast(contrast),
        None if is_baseline => "baseline".to_owned(),
        None => NONE.to_owned(),
    };
    let verdict = contrast.map(|contrast| match plan.quick {
        true => "indicative".to_owned(),
        false => contrast.verdict.word().to_owned(),
    });
    let n = contrast.map(|contrast| contrast.n.to_string());
    let label = Tone::Arm(arm.arm.primitive.clone());
    vec![
        host(&run.header).into(),
        run.header.id.as_str().into(),
        words::subject(&run.header, &cell.cell).into(),
        Entry { note, ..Entry::toned(arm.shown_label(), label) },
        number::optional(time).into(),
        ratio.into(),
        n.unwrap_or_default().into(),
        Entry::toned(verdict.unwrap_or_default(), Tone::Verdict(None)),
    ]
}

/// What to know of the numbers of a run: one line, and what else was said of it.
fn validity((run, analysis): &Analysed) -> Markup {
    let all = sentences(run, analysis);
    let of = |kind: Kind| all.iter().filter(move |sentence| sentence.kind == kind);
    let rejected = number::count(analysis.rejected.len() as u64, "trial");
    html! {
        h3 { (host(&run.header)) " · run " (run.header.id) ", validity" }
        p {
            (number::count(analysis.passes, "complete pass")) "; "
            (rejected) " rejected or skipped. "
            @for sentence in of(Kind::NoiseFloor) { (prose(run, &sentence.text)) }
        }
        @if of(Kind::Caution).next().is_some() {
            ul.remarks {
                @for sentence in of(Kind::Caution) { li { (prose(run, &sentence.text)) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::origin::Origin;

    use super::*;
    use crate::{fixture, lint};

    /// The same run as of three hosts.
    fn three() -> Vec<Analysed> {
        let of = |(index, host): (usize, &str)| {
            let (mut run, analysis) = fixture::run();
            run.header.id = format!("0000000{index}");
            run.header.origin = Some(Origin {
                host: host.to_owned(),
                path: format!("/media/{host}.db"),
                imported_unix_ns: 1_790_000_000_000_000_000,
            });
            (run, analysis)
        };
        ["alpha", "beta", "<gamma>"].into_iter().enumerate().map(of).collect()
    }

    #[test]
    fn every_row_says_whose_it_is() {
        let runs = three();
        let page = merged(&runs);
        let start = page.find("<h2 id=\"contrasts\"").expect("a section of contrasts");
        let table = page[start..].split("</table>").next().expect("it ends");
        let body = table.split("<tbody").nth(1).expect("it has rows");
        let rows: Vec<&str> = body.split("<tr").skip(1).collect();
        let arms: usize = runs.iter().flat_map(|(_, a)| &a.cells).map(|cell| cell.arms.len()).sum();
        assert_eq!(rows.len(), arms);
        for (host, id) in
            [("alpha", "00000000"), ("beta", "00000001"), ("&lt;gamma&gt;", "00000002")]
        {
            let own = rows.iter().filter(|row| row.contains(host) && row.contains(id)).count();
            assert_eq!(own, arms / 3, "{host}");
            assert!(page.contains(&format!("{host} · run {id}")));
        }
        assert!(page.contains("Differences between machines are not judged here"));
        assert!(page.contains("from /media/alpha.db on 2026-"));
        assert!(page.contains("3 runs of 3 hosts"));
    }

    #[test]
    fn the_page_keeps_to_the_rules_of_all_pages() {
        let page = merged(&three());
        assert_eq!(lint::faults(&page), Vec::<String>::new());
        assert!(!page.contains("<gamma>"), "what machines write is escaped");
        super::super::tests::check_ids_are_unique(&page);
    }

    #[test]
    fn one_run_of_an_imported_file_says_where_it_is_from() {
        let (run, analysis) = &three()[1];
        let page = super::super::page(run, analysis);
        assert!(page.contains(" on beta</title>") && page.contains(" · on beta"));
        assert!(page.contains("/media/beta.db"));
    }
}
