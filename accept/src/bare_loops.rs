//! Every sending primitive against the bare loop of the same calls.

use serde_json::Value;

use super::{Bench, Judged, Outcome, results};

/// Of a run with the primitive as baseline. On `sink` there is one process and
/// nothing else to wait for, so that the loop is the largest share it ever is;
/// over loopback there is a stream. A message of several fields that is not
/// copied lies on more pages than one datagram refers to; one that may be a
/// segment or a frame is no larger than the MTU leaves room for. On `sink` alone
/// each arm that sends frames has a queue of the device for itself.
const RUN: &str = "run net --threads 1 --threshold 3% --precision 1.5% --json";
const SINK: &str = "--network sink --sizes 64,4KiB,64000 --budget 30s";
const SEGMENTS: &str = "--network sink --sizes 64,512,1400 --budget 30s";
const LOOPBACK: &str = "--network loopback --sizes 64,4KiB,64KiB --budget 30s";
const CELLS: usize = 3;

/// A primitive with a bare loop.
struct Pair {
    primitive: String,
    /// Whether it goes over UDP wherever it is.
    is_udp: bool,
    datagrams: bool,
    copies_late: bool,
}

/// What became of a pair in a topology.
enum Verdict {
    Equivalent,
    /// FASTER or SLOWER in a cell, or no data.
    Different,
    Undecided,
}

/// All pairs, each in every topology where it can be.
pub(crate) fn check(bench: &Bench) -> Judged {
    let listed = bench.iolens_json("bare", &["list", "methods", "--all", "--json"], 1)?.json;
    let (pairs, missing) = pairs(&listed);
    let mut passes = !pairs.is_empty() && missing.is_empty();
    let mut evidence = missing;
    for pair in &pairs {
        let mut shown = Vec::new();
        if pair.is_udp {
            shown.push(("sink", SEGMENTS.to_owned()));
        } else if pair.datagrams {
            let fields = if pair.copies_late { " --fields 1" } else { "" };
            shown.push(("sink", format!("{SINK}{fields}")));
        }
        // There a datagram may be lost.
        if !pair.is_udp {
            shown.push(("loopback", LOOPBACK.to_owned()));
        }
        for (topology, options) in shown {
            let (equivalent, line) = judge(bench, pair, &options)?;
            eprintln!("   {}, {topology}: {line}", pair.primitive);
            passes &= equivalent;
            evidence.push(format!("{}, {topology}: {line}", pair.primitive));
        }
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// The primitives with a bare loop that works here, and in words those without.
fn pairs(listed: &Value) -> (Vec<Pair>, Vec<String>) {
    let entries = || listed["methods"].as_array().into_iter().flatten();
    let twin = |entry: &Value| {
        let id = format!("bare_{}", entry["name"].as_str().unwrap_or_default());
        entries().any(|other| other["name"] == id.as_str() && other["available"] == true)
    };
    let sends = entries().filter(|entry| entry["control"] == false && entry["hidden"] == false);
    let (with, without): (Vec<&Value>, Vec<&Value>) = sends.partition(|entry| twin(entry));
    let name = |entry: &Value| entry["name"].as_str().unwrap_or_default().to_owned();
    let pair = |entry: &Value| Pair {
        primitive: name(entry),
        is_udp: entry["transport"] == "udp",
        datagrams: entry["datagrams"] == true,
        copies_late: entry["data_path"]["hops"]
            .as_array()
            .is_some_and(|hops| hops.iter().any(|hop| hop["movement"] == "late_copy")),
    };
    let missing = |entry: &Value| match entry["unavailable_reason"].as_str() {
        Some(why) => format!("{}: not here: {why}", name(entry)),
        None => format!("{} has no bare loop", name(entry)),
    };
    (with.into_iter().map(pair).collect(), without.into_iter().map(missing).collect())
}

/// Runs a pair, and once more if that did not decide; whether it is EQUIVALENT
/// in every cell, and the line of evidence.
fn judge(bench: &Bench, pair: &Pair, options: &str) -> Result<(bool, String), String> {
    let (verdict, line) = measure(bench, pair, options)?;
    match verdict {
        Verdict::Equivalent => Ok((true, line)),
        Verdict::Different => Ok((false, line)),
        Verdict::Undecided => {
            let (again, second) = measure(bench, pair, options)?;
            let line = format!("{line}; undecided, judged again: {second}");
            Ok((matches!(again, Verdict::Equivalent), line))
        }
    }
}

fn measure(bench: &Bench, pair: &Pair, options: &str) -> Result<(Verdict, String), String> {
    let (primitive, bare) = (&pair.primitive, format!("bare_{}", pair.primitive));
    let arms = format!("--methods {primitive},{bare} --baseline {primitive}");
    let line = format!("{RUN} {options} {arms}");
    let answer = bench.iolens_json("bare", &line.split(' ').collect::<Vec<_>>(), 3)?;
    let rows = answer.json["cells"].as_array().into_iter().flatten();
    let cells: Vec<&Value> = rows.filter(|row| row["primitive"] == bare.as_str()).collect();
    let words: Vec<String> = cells.iter().map(|row| results::ratio_words(row)).collect();
    Ok((verdict(&cells), words.join(", ")))
}

fn verdict(cells: &[&Value]) -> Verdict {
    let all_of = |words: &[&str]| {
        let is_one = |row: &&Value| words.iter().any(|word| row["verdict"] == *word);
        cells.len() == CELLS && cells.iter().all(is_one)
    };
    if all_of(&["EQUIVALENT"]) {
        Verdict::Equivalent
    } else if all_of(&["EQUIVALENT", "SMALL", "INCONCLUSIVE"]) {
        Verdict::Undecided
    } else {
        Verdict::Different
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_undecided_is_judged_again() {
        let of = |words: [&str; 3]| {
            let rows = words.map(|word| json!({ "verdict": word }));
            match verdict(&rows.iter().collect::<Vec<_>>()) {
                Verdict::Equivalent => "equivalent",
                Verdict::Different => "different",
                Verdict::Undecided => "undecided",
            }
        };
        assert_eq!(of(["EQUIVALENT"; 3]), "equivalent");
        assert_eq!(of(["EQUIVALENT", "INCONCLUSIVE", "SMALL"]), "undecided");
        for word in ["FASTER", "SLOWER", "INVALID"] {
            assert_eq!(of(["EQUIVALENT", "INCONCLUSIVE", word]), "different");
        }
        assert!(matches!(verdict(&[]), Verdict::Different), "no data is no equivalence");
    }

    #[test]
    fn a_primitive_without_its_bare_loop_is_named() {
        let entry = |name: &str, hidden: bool, why: Option<&str>| {
            json!({"name": name, "control": false, "hidden": hidden, "datagrams": true,
                   "available": why.is_none(), "unavailable_reason": why,
                   "data_path": {"hops": [{"movement": "late_copy"}]}})
        };
        let listed = json!({"methods": [
            entry("send", false, None), entry("bare_send", true, None),
            entry("write", false, None), entry("splice", false, Some("no pipe")),
        ]});
        let (pairs, missing) = pairs(&listed);
        let found: Vec<_> =
            pairs.iter().map(|p| (p.primitive.as_str(), p.datagrams, p.copies_late)).collect();
        assert_eq!(found, [("send", true, true)]);
        assert_eq!(missing, ["write has no bare loop", "splice: not here: no pipe"]);
    }
}
