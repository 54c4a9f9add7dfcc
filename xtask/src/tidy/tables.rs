//! A rule: what a table declares is named in its entry and where it is used, and nowhere else.
//! An axis or a metric that many files name has a second list somewhere.

use std::collections::BTreeSet;

use super::Finding;
use super::source::{Line, Source, is_of_word};

/// A table of names, and how its entries begin.
struct Table {
    what: &'static str,
    path: &'static str,
    name: fn(&Line) -> Option<&str>,
}

const TABLES: [Table; 2] = [
    Table { what: "axis", path: "crates/iolens/src/axes/table.rs", name: axis },
    Table { what: "metric", path: "crates/model/src/metrics.rs", name: metric },
];

/// Files that may name an entry: the table, the type of its value, who asks for it and who
/// uses it.
const FILES_MAX: usize = 4;

/// Those with more: names that other things have too, or that gates, figures and tables of
/// servers each still list. None may rise, and what falls to [`FILES_MAX`] is struck.
const MORE: &[(&str, usize)] = &[
    ("in_flight", 22),
    ("drop_caches", 9),
    ("receive_size_bytes", 6),
    ("mtu_bytes", 10),
    ("socket_buffer_bytes", 6),
    ("peer_address", 8),
    ("client_threads", 5),
    ("perf_control", 12),
    ("allow_sysctl", 6),
    ("dry_run", 6),
    ("time_ns", 44),
    ("tx_bytes", 5),
    ("goodput_bits_per_s", 19),
    ("ns_per_message", 19),
    ("voluntary_switches", 17),
    ("involuntary_switches", 20),
    ("context_switches", 5),
    ("minor_faults", 14),
    ("major_faults", 16),
    ("segments_out", 9),
    ("softirq_ticks", 9),
    ("cycles_user", 7),
    ("cycles_kernel", 7),
    ("instructions_user", 7),
    ("instructions_kernel", 7),
    ("l1d_loads", 6),
    ("l1d_misses", 7),
    ("llc_references", 6),
    ("llc_misses", 7),
    ("branch_misses", 7),
    ("dtlb_loads", 5),
    ("dtlb_misses", 5),
    ("stalled_cycles_frontend", 6),
    ("stalled_cycles_backend", 6),
    ("run_delay_ns", 13),
    ("perf_migrations", 6),
    ("cycles_per_byte", 15),
    ("system_calls", 6),
    ("copies_sender", 17),
    ("copies_end_to_end", 17),
];

/// `    Plan name: Type, …`.
fn axis(line: &Line) -> Option<&str> {
    let entry = line.code.strip_prefix("    Plan ").or(line.code.strip_prefix("    Run "))?;
    entry.split_once(':').map(|(name, _)| name)
}

/// `    "name", "unit", …`.
fn metric(line: &Line) -> Option<&str> {
    line.text.strip_prefix("    \"")?.split_once("\", \"").map(|(name, _)| name)
}

/// Findings over all files.
pub(crate) fn check_tables(sources: &[Source]) -> Vec<Finding> {
    let of_crates = sources.iter().filter(|source| source.path.starts_with("crates/"));
    let named: Vec<(&str, BTreeSet<&str>)> = of_crates
        .map(|source| (&*source.path, source.own_lines().flat_map(names).collect()))
        .collect();
    let gone = |path| Finding::new(path, 0, "this table is gone");
    let of_table = |table: &Table| match sources.iter().find(|source| source.path == table.path) {
        Some(source) => check_one(source, table, &named),
        None => vec![gone(table.path)],
    };
    TABLES.iter().flat_map(of_table).collect()
}

fn check_one(source: &Source, table: &Table, named: &[(&str, BTreeSet<&str>)]) -> Vec<Finding> {
    let entries = source.own_lines().filter_map(|line| Some((line.number, (table.name)(line)?)));
    // A name of one word means other things as well.
    let found = entries.filter(|(_, name)| name.contains('_')).filter_map(|(line, name)| {
        let files = named.iter().filter(|(_, names)| names.contains(name)).map(|(path, _)| *path);
        let files: Vec<&str> = files.collect();
        let more = MORE.iter().find(|(other, _)| *other == name).map(|(_, files)| *files);
        let (count, most) = (files.len(), more.unwrap_or(FILES_MAX));
        let said = format!("the {} `{name}` is named in {count} files", table.what);
        if count > most {
            let message = format!("{said}, at most {most}: {}", files.join(" "));
            return Some(source.finding(line, message));
        }
        let is_fewer = more.is_some_and(|more| count < more);
        is_fewer.then(|| source.finding(line, format!("{said}: say so in MORE")))
    });
    found.collect()
}

/// What a line of code names, as a word or as a whole string.
fn names(line: &Line) -> impl Iterator<Item = &str> {
    line.code.split(|c| !is_of_word(c)).chain(line.text.split('"'))
}

// Rules: what is found is data and not prose, and what shows it knows no study. A sentence in a
// finding would be read back by somebody, and a renderer, or a page, with a case for a study
// would be that study's second home.

/// Where findings are declared.
const FINDINGS: &[&str] = &[
    "crates/report/src/findings.rs",
    "crates/report/src/studies/files/findings.rs",
    "crates/stats/src/ab/findings.rs",
    "crates/stats/src/remark.rs",
];

/// Fields of findings that are text: names that users or the kernel gave, and the reasons of
/// failed trials as they were stored.
const NAMES: &str = "arm baseline beside file_system from high_order_alloc_disable lowest method \
                     methods name reason receiver restricted run to";

/// The crate of documents and their renderers, and all that it may use of the model.
const RENDERERS: &str = "document";
const RENDERERS_KNOW: [&str; 2] = ["iolens_model::units", "iolens_model::words!"];

/// Where reports name studies, and the runs that their tests are of.
const STUDIES: [&str; 2] = ["crates/report/src/studies", "crates/report/src/fixture"];

/// Findings in one file.
pub(crate) fn check_prose(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for line in source.own_lines() {
        let mut say = |message: String| found.push(source.finding(line.number, message));
        if FINDINGS.contains(&source.path.as_str()) {
            for name in
                text_fields(&line.code).filter(|name| !NAMES.split(' ').any(|known| known == *name))
            {
                say(format!("`{name}` of a finding is text: make it data, and words of it later"));
            }
        }
        let known = |code: &str| RENDERERS_KNOW.iter().map(|name| code.matches(name).count()).sum();
        let is_model = |code: &str| code.matches("iolens_model").count() > known(code);
        if source.package() == RENDERERS && is_model(&line.code) {
            say(format!("renderers know {} and no study", RENDERERS_KNOW.join(", ")));
        }
        let is_of_studies = STUDIES.iter().any(|place| source.path.starts_with(place));
        if source.package() == "report" && !is_of_studies && line.code.contains("Study::") {
            say(format!("ask the entry of a study, in {}", STUDIES[0]));
        }
    }
    found
}

/// The names of fields of type `String`, or of several, in a line of code.
fn text_fields(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("String").filter_map(|(at, _)| {
        let before = code[..at].trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '<');
        let name = before.trim_end().strip_suffix(':')?;
        let name = &name[name.rfind(|c| !is_of_word(c)).map_or(0, |sign| sign + 1)..];
        (!name.is_empty()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_too_many_files_is_found() {
        let table = "    Plan reap_batch: Option<u32>, x, Messages \"N\" {\n    Plan file: x\n";
        let axes = Source::new(TABLES[0].path, table);
        let metrics = Source::new(TABLES[1].path, "    \"rx_bytes\", \"bytes\", \"what\";\n");
        let use_in = |n: usize, code: &str| Source::new(&format!("crates/a/src/{n}.rs"), code);
        let mut sources = vec![axes, metrics];
        sources.extend((0..3).map(|n| use_in(n, "f(x.reap_batch, file); \"rx_bytes\"; \n")));
        // Comments, tests and parts of words do not count.
        sources.push(use_in(3, "// reap_batch\n#[test]\nfn t() { reap_batch }\nreap_batches();\n"));
        assert!(check_tables(&sources).is_empty());
        sources.push(use_in(4, "x.reap_batch\n"));
        let said = check_tables(&sources).iter().map(Finding::to_string).collect::<Vec<_>>();
        let [said] = &said[..] else { panic!("{said:?}") };
        assert!(
            said.starts_with("crates/iolens/src/axes/table.rs:1: the axis `reap_batch`"),
            "{said}"
        );
    }

    fn said(path: &str, text: &str) -> Vec<String> {
        check_prose(&Source::new(path, text))
            .into_iter()
            .map(|finding| finding.to_string())
            .collect()
    }

    #[test]
    fn a_sentence_in_a_finding_is_found() {
        let text = "enum Finding {\n    Tie { methods: Vec<String>, why: Option<String> },\n}\n\
                    fn words() -> String {\n";
        let why = "crates/stats/src/remark.rs:2: `why` of a finding is text: make it data, and \
                   words of it later";
        assert_eq!(said("crates/stats/src/remark.rs", text), [why]);
        assert!(said("crates/stats/src/other.rs", text).is_empty());
    }

    #[test]
    fn a_renderer_that_knows_a_study_is_found() {
        let text = "use iolens_model::units::Bytes;\nuse iolens_model::plan::Plan;\n";
        let found = ["crates/document/src/html.rs:2: renderers know iolens_model::units, \
                      iolens_model::words! and no study"];
        assert_eq!(said("crates/document/src/html.rs", text), found);
        assert!(said("crates/report/src/html.rs", text).is_empty());
    }

    #[test]
    fn a_page_that_knows_a_study_is_found() {
        let text = "fn unit(study: Study) -> bool {\n    study == Study::Net\n}\n";
        let found = ["crates/report/src/html.rs:2: ask the entry of a study, in \
                      crates/report/src/studies"];
        assert_eq!(said("crates/report/src/html.rs", text), found);
        assert!(said("crates/report/src/studies/net.rs", text).is_empty());
        assert!(said("crates/iolens/src/menu.rs", text).is_empty());
    }

    #[test]
    fn every_place_of_findings_is_there() {
        let root = crate::root();
        assert!(FINDINGS.iter().all(|path| root.join(path).is_file()));
    }
}
