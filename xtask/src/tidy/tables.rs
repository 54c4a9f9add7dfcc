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
    ("in_flight", 23),
    ("drop_caches", 9),
    ("receive_size_bytes", 6),
    ("mtu_bytes", 10),
    ("socket_buffer_bytes", 6),
    ("peer_address", 8),
    ("client_threads", 5),
    ("perf_control", 12),
    ("allow_sysctl", 7),
    ("dry_run", 6),
    ("time_ns", 45),
    ("tx_bytes", 5),
    ("goodput_bits_per_s", 20),
    ("ns_per_message", 19),
    ("voluntary_switches", 17),
    ("involuntary_switches", 20),
    ("context_switches", 5),
    ("minor_faults", 15),
    ("major_faults", 17),
    ("segments_out", 10),
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
    ("run_delay_ns", 14),
    ("perf_migrations", 6),
    ("cycles_per_byte", 16),
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
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
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
