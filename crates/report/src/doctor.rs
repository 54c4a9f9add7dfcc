//! What `iolens doctor` shows: findings by area, each in one line where it
//! limits nothing, and what remains possible of each study.

use std::fmt::Write;

use iolens_model::doctor::{Area, Diagnosis, Finding, NONE, Outlook, State};
use serde_json::json;

use crate::json;
use crate::text::{BOLD, DIM, RED, Style, YELLOW};
use iolens_document::sentence;

/// Columns that are used: this is read in a terminal beside a shell.
const COLUMNS_MAX: usize = 80;
/// Where what was found begins: after the mark and the name.
const INDENT: usize = 20;

/// A diagnosis for a terminal.
pub fn text(diagnosis: &Diagnosis, style: &Style) -> String {
    let columns = style.width.clamp(40, COLUMNS_MAX);
    let page = Page { style: *style, columns };
    let mut out = style.paint(BOLD, &sentence::hanging(&headline(diagnosis), columns, 0));
    out.push('\n');
    for &area in Area::ALL {
        let all = diagnosis.findings.iter().enumerate();
        let of_area = all.filter(|(_, finding)| finding.area == area);
        for (position, (index, finding)) in of_area.enumerate() {
            if position == 0 {
                page.heading(&mut out, area.word());
            }
            page.finding(&mut out, finding, &diagnosis.findings[..index]);
        }
    }
    page.heading(&mut out, "what remains possible");
    diagnosis.studies.iter().for_each(|outlook| page.outlook(&mut out, outlook));
    out
}

/// A diagnosis for programs.
pub fn json(diagnosis: &Diagnosis) -> String {
    let Diagnosis { user, machine, findings, studies, stored } = diagnosis;
    json::print(&json!({
        "schema": json::SCHEMA,
        "user": user,
        "machine": machine,
        "findings": findings,
        "studies": studies,
        "stored": stored,
    }))
}

fn headline(diagnosis: &Diagnosis) -> String {
    let count = |state| diagnosis.findings.iter().filter(|f| f.state == state).count();
    format!(
        "{}, {}: {} ok, {} limited, {} missing",
        diagnosis.user,
        diagnosis.machine,
        count(State::Ok),
        count(State::Limited),
        count(State::Missing),
    )
}

/// The mark of a state, and its colour.
fn mark(state: State) -> (&'static str, &'static str) {
    match state {
        State::Ok => ("✓", "32"),
        State::Limited => ("~", YELLOW),
        State::Missing => ("✗", RED),
    }
}

struct Page {
    style: Style,
    columns: usize,
}

impl Page {
    fn heading(&self, out: &mut String, words: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "\n{}", self.style.paint(BOLD, words));
    }

    fn finding(&self, out: &mut String, finding: &Finding, earlier: &[Finding]) {
        let indent = " ".repeat(INDENT);
        let found = self.folded(&finding.found);
        let source = self.folded(&finding.source);
        let fits = finding.found.chars().count() + 3 + finding.source.chars().count();
        let between = match fits <= self.columns - INDENT {
            true => " ".to_owned(),
            false => format!("\n{indent}"),
        };
        let source = self.style.paint(DIM, &format!("· {source}"));
        self.line(out, finding.state, &finding.name, &format!("{found}{between}{source}"));
        if finding.state == State::Ok {
            return;
        }
        let _ = writeln!(out, "{indent}{}", self.folded(&finding.effect));
        let same = earlier.iter().find(|e| e.state != State::Ok && e.remedy == finding.remedy);
        if let Some(same) = same.filter(|same| !same.remedy.starts_with(NONE)) {
            let _ = writeln!(out, "{indent}→ as for {}", same.name);
            return;
        }
        for (index, way) in finding.remedy.split("; or else").enumerate() {
            let lead = if index == 0 { "→ " } else { "or" };
            let way = format!("{lead}{}", way.trim_start_matches([':', ',']));
            let _ = writeln!(out, "{indent}{}", self.folded(&way));
        }
    }

    fn outlook(&self, out: &mut String, outlook: &Outlook) {
        let name = match outlook.study == outlook.part {
            true => outlook.study.clone(),
            false => format!("{} {}", outlook.study, outlook.part),
        };
        let possible = match outlook.built {
            true => outlook.possible.clone(),
            false => format!("{} (not in this build yet)", outlook.possible),
        };
        self.line(out, outlook.state, &name, &self.folded(&possible));
    }

    fn line(&self, out: &mut String, state: State, name: &str, folded: &str) {
        let (mark, escape) = mark(state);
        let mark = self.style.paint(escape, mark);
        let width = INDENT - 5;
        let _ = writeln!(out, "  {mark} {name:width$} {folded}");
    }

    /// A text in the columns after the name.
    fn folded(&self, text: &str) -> String {
        let folded = sentence::hanging(text, self.columns - INDENT, 0);
        folded.replace('\n', &format!("\n{}", " ".repeat(INDENT)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosis() -> Diagnosis {
        let found =
            |area, name: &str, found: &str, source: &str| Finding::ok(area, name, found, source);
        let outlook = |study: &str, part: &str, state, built| Outlook {
            study: study.to_owned(),
            part: part.to_owned(),
            state,
            built,
            possible: "CPU time and switches".to_owned(),
        };
        Diagnosis {
            user: "uid 1000".to_owned(),
            machine: "Linux 6.18 on a guest of KVM".to_owned(),
            findings: vec![
                found(Area::Machine, "clock", "tsc, 20 ns a reading", "clock_gettime(2)"),
                found(Area::Counters, "PMU", "none", "/sys/bus/event_source/devices")
                    .lacks("no cycles, instructions or cache misses", "none: it is the host's"),
                found(Area::Counters, "whole CPUs", "refused: EACCES", "perf_event_open(2)").limits(
                    "softirq work that ran in other threads is only in /proc/stat",
                    "sudo setcap cap_perfmon,cap_syslog+ep /opt/iolens/bin/iolens; or else: sudo \
                     sysctl kernel.perf_event_paranoid=0",
                ),
                found(Area::Limits, "ulimit", "1", "getrlimit(2)").limits("few", "ulimit -n 9"),
                found(Area::Limits, "frequency", "not told", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                    .limits("figures follow it", "ulimit -n 9"),
            ],
            studies: vec![
                outlook("net", "counters", State::Limited, true),
                outlook("file", "file", State::Ok, false),
            ],
            stored: None,
        }
    }

    #[test]
    fn a_diagnosis_reads_in_eighty_columns() {
        let text = text(&diagnosis(), &Style::plain(100));
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS_MAX), "{text}");
        let expect = "\
uid 1000, Linux 6.18 on a guest of KVM: 1 ok, 3 limited, 1 missing

machine
  ✓ clock           tsc, 20 ns a reading · clock_gettime(2)

counters
  ✗ PMU             none · /sys/bus/event_source/devices
                    no cycles, instructions or cache misses
                    → none: it is the host's
  ~ whole CPUs      refused: EACCES · perf_event_open(2)
                    softirq work that ran in other threads is only in /proc/stat
                    → sudo setcap cap_perfmon,cap_syslog+ep
                    /opt/iolens/bin/iolens
                    or sudo sysctl kernel.perf_event_paranoid=0

limits
  ~ ulimit          1 · getrlimit(2)
                    few
                    → ulimit -n 9
  ~ frequency       not told
                    · /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
                    figures follow it
                    → as for ulimit

what remains possible
  ~ net counters    CPU time and switches
  ✓ file            CPU time and switches (not in this build yet)
";
        assert_eq!(text, expect);
    }

    #[test]
    fn colour_only_repeats_the_marks() {
        let [plain, painted] =
            [false, true].map(|colour| text(&diagnosis(), &Style { colour, ..Style::plain(80) }));
        let mut stripped = painted.clone();
        for escape in [BOLD, DIM, YELLOW, RED, "32", "0"] {
            stripped = stripped.replace(&format!("\x1b[{escape}m"), "");
        }
        assert_ne!(painted, plain);
        assert_eq!(stripped, plain);
    }

    #[test]
    fn programs_get_every_part() {
        let value: serde_json::Value = serde_json::from_str(&json(&diagnosis())).unwrap();
        let first = value["findings"][1].as_object().unwrap();
        let keys: Vec<&str> = first.keys().map(String::as_str).collect();
        for key in ["area", "name", "state", "found", "source", "effect", "remedy"] {
            assert!(keys.contains(&key), "{key}: {keys:?}");
        }
        assert_eq!((&first["area"], &first["state"]), (&"counters".into(), &"missing".into()));
        assert_eq!(value["studies"][1]["built"], false);
    }
}
