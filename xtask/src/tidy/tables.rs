//! A rule: what a table declares is named in its entry and where it is used, and nowhere else.
//! An axis or a metric that many files name has a second list somewhere.

use std::collections::BTreeSet;

use super::Finding;
use super::source::{Line, Source, words};

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
    ("in_flight", 23),
    ("drop_caches", 9),
    ("receive_size_bytes", 6),
    ("mtu_bytes", 12),
    ("socket_buffer_bytes", 6),
    ("peer_address", 8),
    ("client_threads", 5),
    ("perf_control", 12),
    ("allow_sysctl", 7),
    ("dry_run", 6),
    ("time_ns", 46),
    ("tx_bytes", 5),
    ("goodput_bits_per_s", 21),
    ("ns_per_message", 22),
    ("voluntary_switches", 23),
    ("involuntary_switches", 25),
    ("context_switches", 10),
    ("minor_faults", 21),
    ("major_faults", 23),
    ("segments_out", 14),
    ("softirq_ticks", 12),
    ("cycles_user", 10),
    ("cycles_kernel", 9),
    ("instructions_user", 8),
    ("instructions_kernel", 7),
    ("l1d_loads", 9),
    ("l1d_misses", 11),
    ("llc_references", 9),
    ("llc_misses", 11),
    ("branch_misses", 11),
    ("dtlb_loads", 7),
    ("dtlb_misses", 7),
    ("stalled_cycles_frontend", 10),
    ("stalled_cycles_backend", 10),
    ("run_delay_ns", 19),
    ("perf_migrations", 6),
    ("cycles_per_byte", 16),
    ("system_calls", 7),
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
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    TABLES.iter().flat_map(|table| check_one(sources, table)).collect()
}

fn check_one(sources: &[Source], table: &Table) -> Vec<Finding> {
    let Some(source) = sources.iter().find(|source| source.path == table.path) else {
        return vec![Finding::new(
            table.path,
            0,
            format!("the table of each {} is gone", table.what),
        )];
    };
    let entries = source.own_lines().filter_map(|line| Some((line, (table.name)(line)?)));
    // A name of one word means other things as well.
    let entries = entries.filter(|(_, name)| name.contains('_'));
    let mut found = Vec::new();
    for (line, name) in entries {
        let files: BTreeSet<&str> = sources
            .iter()
            .filter(|other| other.path.starts_with("crates/") && names(other, name))
            .map(|other| other.path.as_str())
            .collect();
        let more = MORE.iter().find(|(other, _)| *other == name).map(|(_, files)| *files);
        let most = more.unwrap_or(FILES_MAX);
        if files.len() > most {
            let files: Vec<&str> = files.into_iter().collect();
            found.push(source.finding(
                line.number,
                format!(
                    "the {} `{name}` is named in {} files, at most {most}: {}",
                    table.what,
                    files.len(),
                    files.join(" ")
                ),
            ));
        } else if more.is_some_and(|more| files.len() < more) {
            found.push(source.finding(
                line.number,
                format!("`{name}` is named in {} files: say so in MORE", files.len()),
            ));
        }
    }
    found
}

/// Whether code of a file has the name, as a word or as a whole string.
fn names(source: &Source, name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    source
        .own_lines()
        .any(|line| !words(&line.code, name).is_empty() || line.text.contains(&quoted))
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
        assert!(check(&sources).is_empty());
        sources.push(use_in(4, "x.reap_batch\n"));
        let said = check(&sources).iter().map(Finding::to_string).collect::<Vec<_>>();
        let [said] = &said[..] else { panic!("{said:?}") };
        assert!(
            said.starts_with("crates/iolens/src/axes/table.rs:1: the axis `reap_batch`"),
            "{said}"
        );
    }
}
