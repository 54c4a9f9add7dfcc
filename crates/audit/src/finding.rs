//! What an audit says.

use std::collections::{BTreeMap, BTreeSet};

use iolens_stats::physics::Breach;
use serde::Serialize;

use crate::bounds::StatedBound;

iolens_model::words! {
    /// How sure a finding is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Severity {
        /// The numbers cannot all be right.
        Impossible = "impossible",
        /// They can be, and seldom are.
        Suspicious = "suspicious",
        /// They can be, and a reader should know.
        Remark = "remark",
    }
}

impl Severity {
    pub(crate) fn impossible_if(is_sure: bool) -> Severity {
        if is_sure { Severity::Impossible } else { Severity::Suspicious }
    }

    /// A breach, if there is one, as a finding of this severity.
    pub(crate) fn of(
        self,
        breach: Option<Breach>,
        text: impl FnOnce(Breach) -> String,
    ) -> Option<Found> {
        breach.map(|breach| Found { breach: Some(breach), ..Found::new(self, text(breach)) })
    }
}

/// What a gate found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// How sure it is.
    pub severity: Severity,
    /// Number of the gate in METHOD.md.
    pub gate: u8,
    /// What the gate asks for.
    pub name: &'static str,
    /// Where: the row, or what all rows have in common.
    pub place: String,
    /// Lines of the file, or columns where a metric is a row, from 1.
    pub lines: Vec<usize>,
    /// The numbers.
    pub text: String,
    /// What came out, where it is one number; its unit stands in the text.
    pub value: Option<f64>,
    /// The least that is possible.
    pub low: Option<f64>,
    /// The most that is possible.
    pub high: Option<f64>,
}

/// A column and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnUse {
    /// Its name in the file.
    pub column: String,
    /// Our word for what it holds; `None` where that is not known.
    pub quantity: Option<&'static str>,
    /// Base unit that its values were turned into.
    pub unit: Option<&'static str>,
    /// What a reader should know: a unit that was assumed, why it was not
    /// used.
    pub remark: Option<String>,
}

/// How many rows a gate could look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GateUse {
    /// Number in METHOD.md.
    pub gate: u8,
    /// What it asks for.
    pub name: &'static str,
    /// Rows (or sections, or groups of rows) that had the numbers it needs.
    pub judged: usize,
}

iolens_model::words! {
    /// What a file was taken for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Format {
        /// A table with a row for each measurement.
        Table = "table, a row per measurement",
        /// A table with a column for each measurement.
        TableByColumn = "table, a metric per row",
        /// The text of `perf stat`.
        PerfStat = "perf stat text",
        /// What `perf stat -x` writes.
        PerfStatFields = "perf stat -x fields",
    }
}

/// What was found in one file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    /// The name it was given.
    pub file: String,
    /// What it was taken for.
    pub format: Format,
    /// Rows of the table, or counters in the text of perf.
    pub rows: usize,
    /// Rows in no finding but remarks that at least one gate looked at.
    pub passed: usize,
    /// Rows in a finding that calls something impossible.
    pub impossible: usize,
    /// Other rows in a finding that is no remark.
    pub suspicious: usize,
    /// Rows that no gate could look at.
    pub unchecked: usize,
    /// What was found, the surest first.
    pub findings: Vec<Finding>,
    /// What became of the columns.
    pub columns: Vec<ColumnUse>,
    /// Gates that had what they need.
    pub gates: Vec<GateUse>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

impl Audit {
    /// Whether anything in it is impossible.
    pub fn is_impossible(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Impossible)
    }
}

/// What was found in all files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audits {
    /// File by file.
    pub files: Vec<Audit>,
    /// What the machines were taken to be able to do.
    pub bounds: Vec<StatedBound>,
}

/// What one check says of one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub(crate) severity: Severity,
    pub(crate) text: String,
    pub(crate) breach: Option<Breach>,
}

impl Found {
    pub(crate) fn new(severity: Severity, text: String) -> Found {
        Found { severity, text, breach: None }
    }

    pub(crate) fn impossible(text: String) -> Found {
        Found::new(Severity::Impossible, text)
    }

    pub(crate) fn suspicious(text: String) -> Found {
        Found::new(Severity::Suspicious, text)
    }

    /// The same, no graver than this.
    pub(crate) fn at_most(self, worst: Severity) -> Found {
        Found { severity: self.severity.max(worst), ..self }
    }

    /// As a finding of a gate at a place.
    fn at(self, (gate, name): Gate, place: String, lines: Vec<usize>) -> Finding {
        let finite = |read: fn(&Breach) -> f64| {
            self.breach.as_ref().map(read).filter(|value| value.is_finite())
        };
        Finding {
            severity: self.severity,
            gate,
            name,
            place,
            lines,
            value: finite(|breach| breach.value),
            low: finite(|breach| breach.low),
            high: finite(|breach| breach.high),
            text: self.text,
        }
    }
}

/// What a check can say: `None` where it lacks the numbers it needs, else what
/// it found, which is nothing where all is well.
pub(crate) type Checked = Option<Vec<Found>>;

/// The number of a gate in METHOD.md, and what it asks for.
pub(crate) type Gate = (u8, &'static str);

/// What the checks of a file said so far.
#[derive(Default)]
pub(crate) struct Ledger {
    findings: Vec<Finding>,
    gates: Vec<GateUse>,
    /// Lines that some check could look at.
    pub(crate) looked_at: BTreeSet<usize>,
}

impl Ledger {
    /// Notes how often a gate had the numbers it needs.
    pub(crate) fn judged(&mut self, (gate, name): Gate, times: usize) {
        match self.gates.iter_mut().find(|known| known.name == name) {
            Some(known) => known.judged += times,
            None if times == 0 => {}
            None => self.gates.push(GateUse { gate, name, judged: times }),
        }
    }

    pub(crate) fn find(&mut self, gate: Gate, found: Found, place: String, lines: Vec<usize>) {
        self.findings.push(found.at(gate, place, lines));
    }

    /// The audit of rows or counters that stand on these lines.
    pub(crate) fn audit(
        mut self,
        file: &str,
        format: Format,
        lines: impl Iterator<Item = usize>,
    ) -> Audit {
        self.findings
            .sort_by_key(|finding| (finding.severity, finding.lines.clone(), finding.gate));
        self.gates.sort_by_key(|gate| gate.gate);
        // The gravest come first.
        let mut worst = BTreeMap::new();
        for finding in &self.findings {
            for line in &finding.lines {
                worst.entry(*line).or_insert(finding.severity);
            }
        }
        let mut audit = Audit {
            file: file.to_owned(),
            format,
            rows: 0,
            passed: 0,
            impossible: 0,
            suspicious: 0,
            unchecked: 0,
            findings: self.findings,
            columns: Vec::new(),
            gates: self.gates,
            notes: Vec::new(),
        };
        for line in lines {
            audit.rows += 1;
            match worst.get(&line) {
                Some(Severity::Impossible) => audit.impossible += 1,
                Some(Severity::Suspicious) => audit.suspicious += 1,
                None if !self.looked_at.contains(&line) => audit.unchecked += 1,
                Some(Severity::Remark) | None => audit.passed += 1,
            }
        }
        audit
    }
}
