//! One self-contained page: no network, no script, light and dark, printable.
//! Sections in the order in which a reader needs them, one file each.

use std::collections::BTreeSet;

use iolens_document::table::{Entry, Filled, Table, Tone, decimal, left, right};
use iolens_document::{Fact, Joined, Node, Page, Screen, Section, Text};
use iolens_model::cell::{Cell, Setting};
use iolens_model::run::{Run, RunHeader};
use iolens_model::server::ServerSetting;
use iolens_model::units;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, EndMetric, Estimate, Quantity};

use crate::figure::{Figure, Group, page_style, style};
use crate::groups::distinct;
use crate::number::{self, InWords, NONE};
use crate::sections::{self, Form};
use crate::studies::entry::by_settings;
use crate::{findings, results, studies, words};

/// The page.
pub fn page(run: &Run, analysis: &Analysis) -> String {
    let analysis = &analysis.shown();
    let mut first = studies::screen(run, analysis, None);
    let rankings = findings::rankings(run, &findings::ranked(run, analysis));
    let own = studies::of(run.header.plan.study());
    let claim = (own.claim)(analysis, &rankings).filter(|_| first.alarm.is_none());
    let mut figures = studies::figures(run, analysis);
    let best = by_settings(&rankings).first().map(|(name, _)| *name);
    first.figure = main_figure(run, analysis, best, &mut figures);
    let meta = meta(run, &first);
    let answer = Section::new("answer", "Answer", vec![Node::Screen(Box::new(first))]);
    let mut sections = vec![answer];
    sections.extend(studies::sections(run, analysis, Form::Page));
    let room = FIGURES_BYTES.min(BYTES_MAX.saturating_sub(bytes(&sections)));
    if !figures.is_empty() {
        let nodes = (own.figures)(run, analysis, figures, room);
        let before = sections.iter().position(|section| section.id == own.after);
        let at = before.map_or(1, |at| at + 1);
        sections.insert(at, Section::new("figures", "Figures", nodes));
    }
    let heading = claim.unwrap_or_else(|| own.question.to_owned());
    of_run(run, title(run), heading, meta, sections)
}

/// When and where a run was measured, and what its first screen begins with.
pub(crate) fn meta(run: &Run, first: &Screen) -> Vec<Text> {
    let mut meta = vec![units::utc(run.header.started_unix_ns).into()];
    meta.extend(run.header.host_label().map(|host| Text::plain(format!("on {host}"))));
    meta.extend(first.header.iter().chain(&first.effort).cloned());
    meta
}

/// The page of a run of any study.
pub(crate) fn of_run(
    Run { header, .. }: &Run,
    title: String,
    heading: String,
    meta: Vec<Text>,
    sections: Vec<Section>,
) -> String {
    let study = format!(" {} run ", header.plan.study());
    let mut mark = vec![Text::strong("iolens").and(study).and_code(&header.id)];
    mark.extend(header.name.as_deref().map(Text::from));
    iolens_document::html::page(&Page {
        generator: header.build.clone(),
        title,
        mark,
        heading,
        meta,
        style: page_style(),
        sections,
        footer: format!("{} · run {}", header.build, header.id),
    })
}

/// The figure that shows the answer, with the best method in it: of a run of one curve it is taken
/// from the others, of more the first curve has one of its own.
fn main_figure(
    run: &Run,
    analysis: &Analysis,
    best: Option<&str>,
    figures: &mut Vec<Figure>,
) -> Option<iolens_document::Figure> {
    let curve = |cell: &Cell| match cell.curve() {
        Cell { setting: Setting::Server(own), threads, size } => {
            let setting = Setting::Server(ServerSetting { connections: 0, ..own });
            Cell { setting, threads, size }
        }
        other => other,
    };
    let first = curve(&analysis.cells.first()?.cell);
    let mut own = analysis.clone();
    own.cells.retain(|cell| curve(&cell.cell) == first);
    let is_whole = own.cells.len() == analysis.cells.len();
    let shows = |figure: &Figure| {
        let is_ratio = figure.file_stem.contains("-ratio-by-");
        let has_best = figure.table.columns.iter().any(|column| Some(&*column.name) == best);
        (!is_ratio, figure.group != Group::Main, !has_best)
    };
    let main = match is_whole {
        true => figures.iter().min_by_key(|figure| shows(figure))?.clone(),
        false => studies::figures(run, &own).into_iter().min_by_key(shows)?,
    };
    let before = figures.len();
    figures.retain(|figure| figure.inline != main.inline);
    let mut figure = sections::shown(main);
    if figures.len() == before {
        figure.id = format!("main-{}", figure.id);
    }
    Some(figure)
}

/// For the tab of a browser.
fn title(run: &Run) -> String {
    let name = run.header.name.as_deref().unwrap_or(&run.header.id);
    let host = run.header.origin.as_ref().or_empty(|origin| format!(" on {}", origin.host));
    format!("{name} · iolens {}{host}", run.header.plan.study())
}

/// Bytes that a page may have, without its style and headings.
const BYTES_MAX: usize = 1_930_000;

/// Bytes that these sections take.
fn bytes(sections: &[Section]) -> usize {
    sections.iter().map(|section| iolens_document::html::section(section).0.len()).sum()
}

/// Bytes that the figures of a run may have together: more than that nobody scrolls through.
const FIGURES_BYTES: usize = 1_400_000;

// One page of several runs, whichever machines measured them: every row says whose it is, and
// none is judged against a row of another run.

/// A run with its analysis.
type Analysed = (Run, Analysis);

/// What the intervals of the page hold for.
const SCOPE: &str = "Intervals and verdicts hold within one run on one machine. Differences \
                     between machines are not judged here; iolens compare A B judges two runs.";

/// The page of runs of one study, in the order given.
pub fn merged(runs: &[Analysed]) -> String {
    let Some((first, _)) = runs.first() else { return String::new() };
    let study = first.header.plan.study();
    let hosts: BTreeSet<&str> = runs.iter().map(|(run, _)| host(&run.header)).collect();
    let extent =
        format!("{} of {}", number::count(runs.len(), "run"), number::count(hosts.len(), "host"));
    let hosts = hosts.into_iter();
    let ids = runs.iter().map(|(run, _)| run.header.id.as_str());
    let trust = runs.iter().flat_map(trust).collect();
    iolens_document::html::page(&Page {
        generator: first.header.build.clone(),
        title: format!("{extent} · iolens {study}"),
        mark: vec![Text::strong("iolens").and(format!(" {study}, {extent}"))],
        heading: studies::of(study).question.to_owned(),
        meta: vec![format!("on {}", hosts.joined(", ")).into(), SCOPE.into()],
        style: page_style(),
        sections: vec![
            Section::new("runs", "Runs", runs.iter().flat_map(one).collect()),
            Section::new("numbers", "All numbers", contrasts(runs)),
            Section::new("trust", "Can I trust it?", trust),
        ],
        footer: format!("runs {}", ids.joined(", ")),
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
        Node::Screen(Box::new(studies::screen(run, analysis, None))),
    ]
}

/// Every arm of every cell of every run; the same cell of all runs stands together.
fn contrasts(runs: &[Analysed]) -> Vec<Node> {
    let cells = distinct(runs.iter().flat_map(|(_, analysis)| &analysis.cells).map(|c| &c.cell));
    let mut table = Table::default();
    let word = if is_by_cost(runs) { "cost" } else { "time" };
    for cell in cells {
        let mut begins = true;
        for (run, analysis) in runs {
            for found in analysis.cells.iter().filter(|found| found.cell == *cell) {
                for arm in &found.arms {
                    let row = row(&mut table, run, (found, arm), word);
                    table.fill(std::mem::take(&mut begins), row);
                }
            }
        }
    }
    vec![Node::aside(reading(runs)), Node::Table(table)]
}

fn reading(runs: &[Analysed]) -> String {
    let unit = runs.first().map_or("", |(run, _)| run.header.plan.study().unit());
    let better = match is_by_cost(runs) {
        false => format!("time per {unit} of the baseline over the method's"),
        true => format!("the baseline's cost per {unit} over the method's"),
    };
    let more = match is_by_cost(runs) {
        false => "the method is faster",
        true => {
            "the method costs less: server CPU time where a rate is offered, time in a closed loop"
        }
    };
    format!(
        "Ratio: {better} in the same run; above 1 {more}. Each interval holds by itself; verdicts \
         use those that hold for all comparisons of their run together."
    )
}

/// Whether in any cell it is CPU time that is compared.
fn is_by_cost(runs: &[Analysed]) -> bool {
    let mut cells = runs.iter().flat_map(|(_, analysis)| &analysis.cells);
    cells.any(|cell| cell.compared != Quantity::Time)
}

/// What is compared of an arm, ns for each message, request or call.
fn cost(arm: &ArmAnalysis, by: Quantity) -> Option<Estimate> {
    match by {
        Quantity::Time => arm.time(),
        Quantity::Cpu => arm.figures.as_ref()?.cpu_ns_per_message,
        Quantity::ServerCpu => arm.server.as_ref()?.server.value(EndMetric::TaskClock),
    }
}

fn row(
    table: &mut Table,
    run: &Run,
    (cell, arm): (&CellAnalysis, &ArmAnalysis),
    word: &str,
) -> Vec<Filled> {
    let plan = &run.header.plan;
    let note = results::remark(arm).map(|remark| table.note(&remark));
    let contrast = arm.contrast.as_ref();
    let is_baseline = arm.arm.label == plan.baseline;
    let cost = cost(arm, cell.compared).map(|cost| cost.value);
    let ratio = match contrast {
        Some(contrast) => number::contrast(contrast),
        None if is_baseline => "baseline".to_owned(),
        None => NONE.to_owned(),
    };
    let verdict = contrast.or_empty(|contrast| match plan.quick {
        true => "indicative".to_owned(),
        false => contrast.verdict.word().to_owned(),
    });
    let n = contrast.or_empty(|contrast| contrast.n.to_string());
    let label = style::tone(&arm.arm.primitive);
    vec![
        left("host", "", host(&run.header)),
        left("run", "", run.header.id.as_str()),
        left("setting", "", words::subject(&run.header, &cell.cell)),
        left("method", "", Entry { note, ..Entry::toned(arm.shown_label(), label) }),
        decimal(word, &format!("ns/{}", plan.study().unit()), number::optional(cost)),
        left("ratio", "[95%]", ratio),
        right("n", "", n),
        left("verdict", "", Entry::toned(verdict, Tone::Verdict(None))),
    ]
}

/// What to know of the numbers of a run.
fn trust((run, analysis): &Analysed) -> Vec<Node> {
    let nothing = studies::of(run.header.plan.study()).nothing;
    let trust = sections::trust::section(run, analysis, Form::Page, nothing);
    let mut nodes = vec![Node::Heading(format!("{} · run {}", host(&run.header), run.header.id))];
    nodes.extend(trust.nodes);
    nodes
}

#[cfg(test)]
mod tests {
    use iolens_model::origin::Origin;
    use iolens_stats::remark::{Circumstance, Warning};

    use super::*;
    use crate::fixture_findings::{findings, many};
    use crate::{fixture, tests::lint};

    fn pages() -> Vec<String> {
        let runs =
            [fixture::run(), fixture::large(), fixture::quick(), fixture::classic(), findings()];
        runs.iter().map(|(run, analysis)| page(run, analysis)).collect()
    }

    #[test]
    fn a_page_fetches_nothing() {
        for page in pages() {
            // The name of the SVG language is no fetch.
            let page = page.replace(r#"xmlns="http://www.w3.org/2000/svg""#, "");
            for forbidden in ["http:", "https:", "src=", "url(", "@import", "<link", "<script"] {
                assert!(!page.contains(forbidden), "{forbidden}");
            }
            let links = page.split("href=\"").skip(1);
            assert!(links.into_iter().all(|link| link.starts_with('#')));
        }
    }

    /// The part of a page that everybody sees.
    fn first(run: &Run, analysis: &Analysis) -> String {
        let page = page(run, analysis);
        let start = page.find("<h1>").expect("a heading");
        page[start..].split("</section>").next().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_page_begins_with_what_was_found_and_its_picture() {
        let (run, mut one_curve) = fixture::run();
        let curve = one_curve.cells[0].cell.curve();
        one_curve.cells.retain(|cell| cell.cell.curve() == curve);
        let (mut one_size, mut tied) = (one_curve.clone(), one_curve.clone());
        one_size.cells.truncate(1);
        for contrast in tied.cells[0].arms.iter_mut().filter_map(|arm| arm.contrast.as_mut()) {
            contrast.simultaneous = None;
        }
        tied.cells.truncate(1);
        let claims = [
            (first(&run, &one_curve), "send_staged wins at 64 B, sendmsg_iov from 4 to 256 KiB"),
            (first(&run, &one_size), "send_staged wins at 64 B"),
            (first(&run, &tied), "Which way to send is fastest?"),
        ];
        for (first, claim) in claims {
            assert!(first.starts_with(&format!("<h1>{claim}</h1>")), "{}", &first[..200]);
            assert_eq!(first.matches("<figure").count(), 1);
        }
        let (run, analysis) = fixture::classic();
        assert!(first(&run, &analysis).starts_with("<h1>Which way to send is fastest?"));
        let figure = first(&run, &one_curve).split("<figure").nth(1).map(|f| f[..120].to_owned());
        assert!(figure.is_some_and(|figure| figure.contains("-ratio-by-size-")));
    }

    /// Bands are drawn of intervals that hold each by itself, and no word may say more of them.
    #[test]
    fn a_page_says_what_its_intervals_hold_for() {
        let (run, analysis) = findings();
        let page = page(&run, &analysis);
        let words = "those in tables of changes hold for all comparisons together, those of \
                     figures each by itself";
        assert!(page.contains("bands: 95% intervals, each by itself") && page.contains(words));
        assert!(!page.contains("those shown hold"));
    }

    #[test]
    fn five_hundred_cells_leave_room_for_the_figures_in_two_megabytes() {
        let (run, analysis) = many(500);
        assert_eq!(analysis.cells.len(), 500);
        let page = page(&run, &analysis);
        let start = page.find("<section class=\"s-figures\"").expect("a section of figures");
        let figures = page[start..].find("</section>").expect("it ends");
        let rest = page.len() - figures;
        assert!(rest < 1_250_000, "{rest} bytes");
    }

    #[test]
    fn the_default_run_is_a_small_page() {
        assert!(pages().iter().all(|page| page.len() < 1 << 19));
    }

    #[test]
    fn every_figure_has_a_table_twin_and_a_title_with_a_unit() {
        for page in pages() {
            let start = page.find(r#"<h2 id="figures""#).expect("a section of figures");
            let section = page[start..].split("</section>").next().unwrap_or_default();
            let figures: Vec<&str> = section.split("<figure").skip(1).collect();
            assert!(!figures.is_empty());
            for figure in figures {
                let figure = figure.split("</figure>").next().unwrap_or_default();
                assert!(figure.contains("<table"));
                let label = figure.split("aria-label=\"").nth(1).and_then(|l| l.split('"').next());
                assert!(label.is_some_and(|label| label.contains('(') && label.contains(')')));
            }
        }
    }

    #[test]
    fn what_users_and_machines_write_is_escaped() {
        let hostile = "<script>alert(1)</script>\"'&";
        let (mut run, mut analysis) = fixture::run();
        run.header.name = Some(hostile.into());
        run.header.command.push(hostile.into());
        run.header.host.facts[0].value = iolens_model::reading::Reading::Exact(hostile.into());
        let reason = Some(hostile.to_owned());
        let missing = Circumstance::MigrationsNotMeasured { whose: None, reason };
        analysis.warnings.push(Warning::Circumstance(missing));
        analysis.rejected[0].reason = hostile.into();
        analysis.cells[0].arms[1].arm.label = hostile.into();
        let page = page(&run, &analysis);
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(1)"));
    }

    /// What who wrote the file stored; of a program of the user's what it needs.
    #[test]
    fn a_stored_secret_is_on_no_page_and_in_no_json() {
        use iolens_model::external::External;
        use iolens_model::run::FarFacts;

        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (mut run, analysis) = studies::files::copying_tests::run();
        run.header.command = words("iolens run copy --token=hunter2");
        let argv = words("prog --password hunter2 {src} {dst}");
        let iolens_model::plan::Axes::Copy(axes) = &mut run.header.plan.axes else {
            panic!("a run of copies")
        };
        axes.external = vec![External { name: "mine".to_owned(), argv: argv.clone() }];
        let of_program = run.header.engines.iter_mut().find(|engine| engine.program.is_some());
        of_program.expect("the fixture has dd").program = Some(argv);
        run.header.far = Some(FarFacts {
            launcher: "sshpass -p hunter2 ssh far".to_owned(),
            build: String::new(),
            direction: iolens_model::axes::Direction::Tx,
            near_address: std::net::Ipv4Addr::LOCALHOST.into(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            host: run.header.host.clone(),
            findings: Vec::new(),
            near_findings: Vec::new(),
        });
        for text in [page(&run, &analysis), crate::json::run(&run, &analysis)] {
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.contains("***") && text.contains("mine"));
        }
    }

    #[test]
    fn headings_and_contents_lead_to_each_other() {
        for page in pages() {
            let ids = |mark: &str| {
                let all = page.split(mark).skip(1).filter_map(|rest| rest.split('"').next());
                all.map(str::to_owned).collect::<Vec<_>>()
            };
            let headings = ids("<h2 id=\"");
            assert_eq!(headings, ids("<a href=\"#"));
            assert!((8..=9).contains(&headings.len()), "{headings:?}");
        }
    }

    #[test]
    fn ids_are_unique() {
        pages().iter().for_each(|page| check_ids_are_unique(page));
    }

    pub(super) fn check_ids_are_unique(page: &str) {
        let mut ids: Vec<&str> =
            page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn every_table_has_a_caption_a_summary_or_a_heading() {
        for page in pages() {
            for (at, _) in page.match_indices("<table") {
                let before = &page[..at];
                let near = before.len() - before.rfind("</table>").unwrap_or(0);
                let introduced = ["class=\"caption\"", "<summary", "<h3", "<h2"]
                    .iter()
                    .any(|mark| before.rfind(mark).is_some_and(|found| at - found < near));
                assert!(introduced, "{}", &before[at.saturating_sub(300)..]);
            }
        }
    }

    /// Columns of numbers that say their unit in their name or are counts.
    const COUNTS: [&str; 9] = [
        "n",
        "speed",
        "pass",
        "half-width",
        "size",
        "threads",
        "sends",
        "completions",
        "round trips",
    ];

    #[test]
    fn columns_of_numbers_carry_a_unit_or_are_counts() {
        for page in pages() {
            let number_columns = page.split("<th class=\"r\">").skip(1);
            for column in number_columns.filter_map(|rest| rest.split("</th>").next()) {
                let name = column.split('<').next().unwrap_or_default().trim();
                let fine =
                    column.contains("<small") || COUNTS.contains(&name) || name.contains('(');
                assert!(fine, "{column}");
            }
        }
    }

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
        check_ids_are_unique(&page);
    }

    #[test]
    fn one_run_of_an_imported_file_says_where_it_is_from() {
        let (run, analysis) = &three()[1];
        let page = page(run, analysis);
        assert!(page.contains(" on beta</title>") && page.contains(" · on beta"));
        assert!(page.contains("/media/beta.db"));
    }
}
