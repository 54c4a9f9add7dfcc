//! One page of several runs, whichever machines measured them: every row says whose it is, and
//! none is judged against a row of another run.

use std::collections::BTreeSet;

use iolens_document::table::{Entry, Filled, Table, Tone, decimal, left, right};
use iolens_document::{Fact, Node, Page, Section, Text};
use iolens_model::run::{Run, RunHeader};
use iolens_model::units;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis};

use crate::figure::{page_style, style};
use crate::groups::distinct;
use crate::number::{self, NONE};
use crate::{results, screen, sections, words};

/// A run with its analysis.
type Analysed = (Run, Analysis);

/// What the intervals of the page hold for.
const SCOPE: &str = "Intervals and verdicts hold within one run on one machine. Differences \
                     between machines are not judged here; iolens compare A B judges two runs.";

/// The page of runs of one study, in the order given.
#[must_use]
pub fn merged(runs: &[Analysed]) -> String {
    let Some((first, _)) = runs.first() else { return String::new() };
    let study = first.header.plan.study();
    let hosts: BTreeSet<&str> = runs.iter().map(|(run, _)| host(&run.header)).collect();
    let extent =
        format!("{} of {}", number::count(runs.len(), "run"), number::count(hosts.len(), "host"));
    let hosts: Vec<&str> = hosts.into_iter().collect();
    let ids: Vec<&str> = runs.iter().map(|(run, _)| run.header.id.as_str()).collect();
    let trust = runs.iter().flat_map(trust).collect();
    iolens_document::html::page(&Page {
        generator: first.header.build.clone(),
        title: format!("{extent} · iolens {study}"),
        mark: vec![Text::strong("iolens").and(format!(" {study}, {extent}"))],
        heading: sections::question(first).to_owned(),
        meta: vec![format!("on {}", hosts.join(", ")).into(), SCOPE.into()],
        style: page_style(),
        sections: vec![
            Section::new("runs", "Runs", runs.iter().flat_map(one).collect()),
            Section::new("numbers", "All numbers", contrasts(runs)),
            Section::new("trust", "Can I trust it?", trust),
        ],
        footer: format!("runs {}", ids.join(", ")),
    })
}

/// The label of the machine that measured a run.
fn host(header: &RunHeader) -> &str {
    header.host_label().unwrap_or("not recorded")
}

/// A run: where it is from, and what it answers.
fn one((run, analysis): &Analysed) -> Vec<Node> {
    let header = &run.header;
    let fact = |group, name| header.host.fact(group, name);
    let mut facts = vec![
        Fact::new("host", host(header)),
        Fact::new("CPU model", fact("cpu", "model")),
        Fact::new("kernel", fact("kernel", "release")),
        Fact::new("measured", units::utc(header.started_unix_ns)),
        Fact::new("build", header.build.clone()),
    ];
    facts.extend(header.name.clone().map(|name| Fact::new("name", name)));
    facts.extend(header.origin.as_ref().map(|from| {
        let when = units::utc(from.imported_unix_ns);
        Fact::new("imported", format!("from {} on {when}", from.path))
    }));
    vec![
        Node::Heading(format!("{} · run {}", host(header), header.id)),
        Node::Facts(facts),
        Node::Screen(Box::new(screen::screen(run, analysis, None))),
    ]
}

/// Every arm of every cell of every run; the same cell of all runs stands together.
fn contrasts(runs: &[Analysed]) -> Vec<Node> {
    let cells = distinct(runs.iter().flat_map(|(_, analysis)| &analysis.cells).map(|c| &c.cell));
    let unit = runs.first().map_or("", |(run, _)| run.header.plan.study().unit());
    let mut table = Table::default();
    for cell in cells {
        let mut begins = true;
        for (run, analysis) in runs {
            for found in analysis.cells.iter().filter(|found| found.cell == *cell) {
                for arm in &found.arms {
                    let row = row(&mut table, run, found, arm);
                    table.fill(std::mem::take(&mut begins), row);
                }
            }
        }
    }
    let reading = format!(
        "Ratio: time per {unit} of the baseline over the method's in the same run; above 1 the \
         method is faster. Each interval holds by itself; verdicts use those that hold for all \
         comparisons of their run together."
    );
    vec![Node::aside(reading), Node::Table(table)]
}

fn row(table: &mut Table, run: &Run, cell: &CellAnalysis, arm: &ArmAnalysis) -> Vec<Filled> {
    let plan = &run.header.plan;
    let note = results::remark(arm).map(|remark| table.note(&remark));
    let contrast = arm.contrast.as_ref();
    let is_baseline = arm.arm.label == plan.baseline;
    let time = arm.time().map(|e| e.value);
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
    let label = style::tone(&arm.arm.primitive);
    vec![
        left("host", "", host(&run.header)),
        left("run", "", run.header.id.as_str()),
        left("setting", "", words::subject(&run.header, &cell.cell)),
        left("method", "", Entry { note, ..Entry::toned(arm.shown_label(), label) }),
        decimal("time", &format!("ns/{}", plan.study().unit()), number::optional(time)),
        left("ratio", "[95%]", ratio),
        right("n", "", n.unwrap_or_default()),
        left("verdict", "", Entry::toned(verdict.unwrap_or_default(), Tone::Verdict(None))),
    ]
}

/// What to know of the numbers of a run.
fn trust((run, analysis): &Analysed) -> Vec<Node> {
    let [trust, _] = sections::common(run, analysis, sections::Form::Page);
    let mut nodes = vec![Node::Heading(format!("{} · run {}", host(&run.header), run.header.id))];
    nodes.extend(trust.nodes);
    nodes
}

#[cfg(test)]
mod tests {
    use iolens_model::origin::Origin;

    use super::*;
    use crate::{fixture, tests::lint};

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
        let start = page.find("<h2 id=\"numbers\"").expect("a section of contrasts");
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
