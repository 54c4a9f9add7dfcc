//! The tables of a run: what each arm cost in each cell, what to choose, how
//! often each byte is copied. Contents only; drawn by [`crate::table`].

use iolens_model::arm::Role;
use iolens_model::axes::Cell;
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Estimate, Verdict};

use crate::number::{self, NONE, copies};
use crate::standing::{Candidate, Standing, standing};
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

/// A column of the table of results. What a narrow terminal has no room for
/// goes in the order of [`Detail::DROPPED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Message size.
    Size,
    /// Arm.
    Arm,
    /// Received payload bits per second.
    Goodput,
    /// Time per message.
    Time,
    /// Ratio with its interval.
    Ratio,
    /// Verdict; full runs only.
    Verdict,
    /// Trials.
    Trials,
    /// Copies at the sender and end to end.
    Copies,
    /// CPU time of both ends per byte.
    Cpu,
}

impl Detail {
    const ALL: [Detail; 9] = [
        Detail::Size,
        Detail::Arm,
        Detail::Goodput,
        Detail::Time,
        Detail::Ratio,
        Detail::Verdict,
        Detail::Trials,
        Detail::Copies,
        Detail::Cpu,
    ];

    /// First to go first; the rest always stays.
    const DROPPED: [Detail; 4] = [Detail::Copies, Detail::Cpu, Detail::Time, Detail::Trials];

    fn column(self) -> Column {
        match self {
            Detail::Size => Column::right("size", ""),
            Detail::Arm => Column::left("arm", ""),
            Detail::Goodput => Column::decimal("goodput", "Gbit/s"),
            Detail::Time => Column::decimal("time", "ns/msg"),
            Detail::Ratio => Column::left("ratio", "[95 %]"),
            Detail::Verdict => Column::left("verdict", ""),
            Detail::Trials => Column::right("n", ""),
            Detail::Copies => Column::left("copies", "tx/end"),
            Detail::Cpu => Column::decimal("CPU", "ns/B"),
        }
    }
}

/// The curves of a run, in the order of its cells, each with its cells.
pub(crate) fn curves(analysis: &Analysis) -> Vec<(Cell, Vec<&CellAnalysis>)> {
    let mut curves: Vec<(Cell, Vec<&CellAnalysis>)> = Vec::new();
    for cell in &analysis.cells {
        let curve = cell.cell.curve();
        match curves.iter_mut().find(|(known, _)| *known == curve) {
            Some((_, cells)) => cells.push(cell),
            None => curves.push((curve, vec![cell])),
        }
    }
    curves
}

/// The table of one curve, as wide as `width` allows.
pub(crate) fn results(plan: &Plan, cells: &[&CellAnalysis], width: usize) -> Table {
    let mut details: Vec<Detail> =
        Detail::ALL.into_iter().filter(|d| !(plan.quick && *d == Detail::Verdict)).collect();
    let mut table = fill(&details, cells);
    for dropped in Detail::DROPPED {
        if table.width() <= width {
            break;
        }
        details.retain(|detail| *detail != dropped);
        table = fill(&details, cells);
    }
    table
}

fn fill(details: &[Detail], cells: &[&CellAnalysis]) -> Table {
    let mut table = Table::new("", details.iter().map(|detail| detail.column()).collect());
    for cell in cells {
        for (i, arm) in cell.arms.iter().enumerate() {
            let note = remark(arm).map(|remark| table.note(&remark));
            let entry = |&detail: &Detail| match detail {
                Detail::Size if i == 0 => cell.cell.message_bytes.to_string().into(),
                Detail::Arm => {
                    Entry { note, ..Entry::toned(label(arm), Tone::Arm(arm.arm.primitive.clone())) }
                }
                other => self::entry(other, arm),
            };
            let entries = details.iter().map(entry).collect();
            if i == 0 { table.push_group(entries) } else { table.push(entries) }
        }
    }
    table
}

/// The arm's name in its own cell's rows, where the baseline stands above.
fn label(arm: &ArmAnalysis) -> &str {
    match arm.arm.role {
        Role::SelfCheck => "A/A copy",
        _ => &arm.arm.label,
    }
}

/// Why a row has no usable numbers.
fn remark(arm: &ArmAnalysis) -> Option<String> {
    let invalid = |c: &&Contrast| c.verdict == Verdict::Invalid;
    match (arm.status, &arm.contrast) {
        (Status::Ok, Some(contrast)) => {
            Some(contrast).filter(invalid).map(|c| format!("INVALID: {}", c.reason))
        }
        (Status::Ok, None) => None,
        (status, _) => {
            let why = arm.reason.as_deref().unwrap_or("no reason was stored");
            Some(format!("{}: {why}", status.word()))
        }
    }
}

fn entry(detail: Detail, arm: &ArmAnalysis) -> Entry {
    let figures = arm.figures.as_ref();
    let value = |estimate: Option<Estimate>, scale: f64| {
        number::narrow(estimate.map(|estimate| estimate.value / scale)).into()
    };
    match detail {
        Detail::Size | Detail::Arm => Entry::default(),
        Detail::Goodput => value(figures.and_then(|f| f.goodput_bits_per_s), 1e9),
        Detail::Time => value(figures.map(|f| f.ns_per_message), 1.0),
        Detail::Ratio => match (&arm.contrast, arm.arm.role) {
            (Some(contrast), _) => number::contrast(contrast).into(),
            (None, Role::Baseline) => Entry::toned("baseline", Tone::Faint),
            (None, _) => Entry::toned(NONE, Tone::Faint),
        },
        Detail::Verdict => verdict(arm),
        Detail::Trials => {
            let n = figures.map(|f| f.ns_per_message.n);
            n.map_or_else(|| NONE.to_owned(), |n| n.to_string()).into()
        }
        Detail::Copies => {
            format!("{}/{}", copies(arm.copies_sender), copies(arm.copies_end_to_end)).into()
        }
        Detail::Cpu => number::narrow(cpu(arm)).into(),
    }
}

fn verdict(arm: &ArmAnalysis) -> Entry {
    if arm.status != Status::Ok {
        return Entry::toned(arm.status.word(), Tone::Verdict);
    }
    match (&arm.contrast, arm.arm.role) {
        (Some(contrast), Role::Compared | Role::SelfCheck) => {
            Entry::toned(contrast.verdict.word(), Tone::Verdict)
        }
        (_, Role::Control) => Entry::toned("control", Tone::Faint),
        _ => Entry::default(),
    }
}

/// CPU time per byte of both ends; of the sender alone where there is no
/// other end.
fn cpu(arm: &ArmAnalysis) -> Option<f64> {
    let figures = arm.figures.as_ref()?;
    let tx = figures.tx_cpu_ns_per_byte?.value;
    match figures.goodput_bits_per_s {
        Some(_) => Some(tx + figures.rx_cpu_ns_per_byte?.value),
        None => Some(tx),
    }
}

/// Which arm at which size: one row per size, one column per curve.
pub(crate) fn decision(run: &Run, analysis: &Analysis) -> Table {
    let plan = &run.header.plan;
    let curves = curves(analysis);
    let mut columns = vec![Column::right("size", "")];
    columns.extend(curves.iter().map(|(curve, _)| Column::left(&words::curve(plan, curve), "")));
    let caption =
        format!("Cheapest arm by message size, with its speed relative to {}", plan.baseline);
    let mut table = Table::new(caption, columns);
    let mut sizes: Vec<_> = analysis.cells.iter().map(|c| c.cell.message_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let mut entries: Vec<Entry> = vec![size.to_string().into()];
        for (_, cells) in &curves {
            let cell = cells.iter().find(|cell| cell.cell.message_bytes == size);
            entries.push(cell.map_or_else(|| NONE.into(), |cell| choice(cell, analysis.delta)));
        }
        table.push(entries);
    }
    table
}

fn choice(cell: &CellAnalysis, delta: f64) -> Entry {
    let with_ratio = |best: &Candidate| match best.contrast {
        Some(contrast) => format!("{}  {}", best.label, number::contrast(contrast)),
        None => best.label.to_owned(),
    };
    let labels = |all: &[Candidate]| all.iter().map(|c| c.label).collect::<Vec<_>>().join(", ");
    let (text, arm) = match standing(cell, delta) {
        Standing::Cheapest { best, .. } => (with_ratio(&best), Some(best)),
        Standing::Tie { best, others } => {
            (format!("{}  tie with {}", with_ratio(&best), labels(&others)), Some(best))
        }
        Standing::Unseparated { best, others } => {
            (format!("{}  or {}", with_ratio(&best), labels(&others)), Some(best))
        }
        Standing::NoInterval { best, .. } => {
            (format!("{}  (no interval)", with_ratio(&best)), Some(best))
        }
        Standing::Nothing(why) => (format!("no comparison: {why}"), None),
    };
    match arm {
        Some(best) => Entry::toned(text, Tone::Arm(best.primitive.to_owned())),
        None => Entry::toned(text, Tone::Faint),
    }
}

/// The copy ledger: one row per arm. Copies that differ between cells are
/// given as a range.
pub(crate) fn ledger(run: &Run, analysis: &Analysis) -> Table {
    let mut table = Table::new("CPU copies of each payload byte", Vec::new());
    let Some(largest) = largest(analysis) else { return table };
    let at = words::subject(&run.header.plan, &largest.cell);
    table.columns = vec![
        Column::left("arm", ""),
        Column::right("at the sender", "copies/byte"),
        Column::right("end to end", "copies/byte"),
        Column::left(&format!("time at {at}"), "ns/byte [95 %]"),
    ];
    for arm in largest.arms.iter().filter(|arm| arm.arm.role != Role::SelfCheck) {
        let all = || {
            let arms = analysis.cells.iter().flat_map(|cell| &cell.arms);
            arms.filter(|other| other.arm.label == arm.arm.label)
        };
        table.push(vec![
            Entry::toned(&arm.arm.label, Tone::Arm(arm.arm.primitive.clone())),
            span(all().map(|arm| arm.copies_sender)).into(),
            span(all().map(|arm| arm.copies_end_to_end)).into(),
            interval_text(arm.figures.as_ref().map(|f| f.ns_per_byte), 1.0).into(),
        ]);
    }
    table
}

/// The cell where bytes cost most and calls least: the largest size, fewest
/// threads.
pub(crate) fn largest(analysis: &Analysis) -> Option<&CellAnalysis> {
    let cells = analysis.cells.iter();
    cells.max_by_key(|cell| (cell.cell.message_bytes, std::cmp::Reverse(cell.cell.threads)))
}

fn span(values: impl Iterator<Item = Option<f64>>) -> String {
    let values: Option<Vec<f64>> = values.collect();
    let Some(values) = values else { return NONE.to_owned() };
    let low = values.iter().copied().reduce(f64::min);
    let high = values.iter().copied().reduce(f64::max);
    if low == high { copies(low) } else { format!("{} to {}", copies(low), copies(high)) }
}

/// What was rejected, and why.
pub(crate) fn rejected(analysis: &Analysis) -> Table {
    let mut columns = ["pass", "cell", "arm", "status"].map(|name| Column::left(name, "")).to_vec();
    columns.push(Column::prose("reason"));
    let mut table = Table::new("Trials that are kept and not used", columns);
    for rejected in &analysis.rejected {
        table.push(vec![
            rejected.pass.to_string().into(),
            rejected.cell.clone().into(),
            rejected.arm.clone().unwrap_or_else(|| "all".to_owned()).into(),
            Entry::toned(rejected.status.word(), Tone::Verdict),
            rejected.reason.clone().into(),
        ]);
    }
    table
}

/// The A/A arm in every cell.
pub(crate) fn self_checks(run: &Run, analysis: &Analysis) -> Table {
    let columns = vec![
        Column::left("cell", ""),
        Column::left("A/A ratio", "[95 %]"),
        Column::right("half-width", ""),
        Column::right("n", ""),
        Column::left("excludes 1", ""),
    ];
    let mut table = Table::new("The baseline against its hidden second copy", columns);
    for cell in &analysis.cells {
        for arm in cell.arms.iter().filter(|arm| arm.arm.role == Role::SelfCheck) {
            let contrast = arm.contrast.as_ref();
            let out = contrast.and_then(|c| c.pointwise).map(|interval| !interval.contains(1.0));
            table.push(vec![
                words::subject(&run.header.plan, &cell.cell).into(),
                contrast.map_or_else(|| NONE.to_owned(), number::contrast).into(),
                contrast
                    .and_then(|c| c.half_width())
                    .map_or_else(|| NONE.to_owned(), |half| format!("±{}", number::percent(half)))
                    .into(),
                contrast.map_or_else(|| NONE.to_owned(), |c| c.n.to_string()).into(),
                match out {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => NONE,
                }
                .into(),
            ]);
        }
    }
    table
}

/// The same ratio from arms that share a process and from isolated trials.
pub(crate) fn isolated(run: &Run, analysis: &Analysis) -> Table {
    let columns = vec![
        Column::left("cell", ""),
        Column::left("arm", ""),
        Column::left("alternating in one process", "ratio [95 %]"),
        Column::left("each in its own", "ratio [95 %]"),
        Column::right("n", "isolated"),
        Column::left("intervals overlap", ""),
    ];
    let mut table = Table::new("Does sharing a process change the ratio?", columns);
    for cell in &analysis.cells {
        for arm in &cell.arms {
            let Some(alone) = &arm.isolated else { continue };
            table.push(vec![
                words::subject(&run.header.plan, &cell.cell).into(),
                Entry::toned(&arm.arm.label, Tone::Arm(arm.arm.primitive.clone())),
                arm.contrast.as_ref().map_or_else(|| NONE.to_owned(), number::contrast).into(),
                number::contrast(alone).into(),
                alone.n.to_string().into(),
                match arm.contrast.as_ref().and_then(|shared| overlap(shared, alone)) {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => NONE,
                }
                .into(),
            ]);
        }
    }
    table
}

/// Whether the pointwise intervals of two contrasts meet; null without both.
pub(crate) fn overlap(a: &Contrast, b: &Contrast) -> Option<bool> {
    let (a, b) = a.pointwise.zip(b.pointwise)?;
    Some(a.low <= b.high && b.low <= a.high)
}

/// A value with its interval, scaled: `39.5 [39.1, 39.9]`.
pub(crate) fn interval_text(estimate: Option<Estimate>, scale: f64) -> String {
    match estimate {
        Some(Estimate { value, interval: Some(interval), .. }) => format!(
            "{} [{}, {}]",
            three_digits(value / scale),
            three_digits(interval.low / scale),
            three_digits(interval.high / scale)
        ),
        Some(estimate) => three_digits(estimate.value / scale),
        None => NONE.to_owned(),
    }
}
