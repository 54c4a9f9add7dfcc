//! What differs between two runs besides what was measured: the build, the machine, the
//! plan. It is told before any change is.

use iolens_model::host::{Fact, HostFacts};
use iolens_model::reading::Reading;
use iolens_model::run::RunHeader;
use serde::Serialize;

use super::{Side, common_cells};
use crate::analysis::CellAnalysis;

/// Keys of a plan that are no input: the order of trials, and a name.
const NO_INPUT: [&str; 2] = ["seed", "name"];

/// Something that both runs could have had in common. Of lists with `; ` between, such as
/// mitigations, the parts that differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Input {
    /// What it is about: `iolens`, `plan`, `load`, or the heading of a fact of the machine.
    pub group: String,
    /// Its name.
    pub name: String,
    /// In the first run; `None` where that does not say.
    pub a: Option<String>,
    /// In the second.
    pub b: Option<String>,
}

/// Every input that differs, those of the machine first.
pub(super) fn differences(a: &Side<'_>, b: &Side<'_>) -> Vec<Input> {
    let of_load = rates(a, b).filter(|input| input.a != input.b);
    of_runs([a.header, b.header], [a.asked, b.asked]).into_iter().chain(of_load).collect()
}

/// Those that hold for a whole run. `asked` is what its plan asks for, key by key.
pub(crate) fn of_runs(headers: [&RunHeader; 2], asked: [&[(String, String)]; 2]) -> Vec<Input> {
    let of_a = &all(headers[0], asked[0]);
    let of_b = &all(headers[1], asked[1]);
    let find = |all: &[Stated], wanted: &Stated| {
        let same = |one: &&Stated| (&one.group, &one.name) == (&wanted.group, &wanted.name);
        all.iter().find(same).and_then(|one| one.value.clone())
    };
    let only_b = of_b.iter().filter(|one| {
        of_a.iter().all(|other| (&other.group, &other.name) != (&one.group, &one.name))
    });
    let inputs = of_a.iter().chain(only_b).map(|one| Input {
        group: one.group.clone(),
        name: one.name.clone(),
        a: find(of_a, one),
        b: find(of_b, one),
    });
    inputs.map(parts_that_differ).filter(|input| input.a != input.b).collect()
}

/// The rates that servers were offered, of cells of both runs: each run finds its own.
fn rates<'a>(a: &Side<'a>, b: &Side<'a>) -> impl Iterator<Item = Input> {
    let of_cell = |(a, b): (&CellAnalysis, &CellAnalysis)| {
        let server = a.cell.server().filter(|server| server.is_open_loop())?;
        Some(Input {
            group: "load".to_owned(),
            name: format!(
                "{}, {}, {}",
                server.service,
                server.connections_in_words(),
                server.load_in_words()
            ),
            a: asked_rates(a),
            b: asked_rates(b),
        })
    };
    common_cells(a, b).into_iter().filter_map(of_cell)
}

/// Every rate that was asked of a cell's servers, lowest first; `None` without any.
fn asked_rates(cell: &CellAnalysis) -> Option<String> {
    let servers = cell.arms.iter().filter_map(|arm| arm.server.as_ref());
    let mut rates: Vec<f64> = servers.flat_map(|server| server.rates_asked.clone()).collect();
    rates.sort_by(f64::total_cmp);
    let mut words: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
    words.dedup();
    (!words.is_empty()).then(|| format!("{}/s", words.join(" and ")))
}

/// One input of one run; `None` where it was asked for and is not known.
struct Stated {
    group: String,
    name: String,
    value: Option<String>,
}

fn stated(group: &str, name: &str, value: impl Into<String>) -> Stated {
    Stated { group: group.to_owned(), name: name.to_owned(), value: Some(value.into()) }
}

fn all(header: &RunHeader, asked: &[(String, String)]) -> Vec<Stated> {
    let mut all: Vec<Stated> = header.host.facts.iter().map(fact).collect();
    all.push(stated("cpu", "number usable by iolens", header.host.cpus.len().to_string()));
    all.push(stated("kernel", "changed for the run", changed(&header.host)));
    all.push(stated("iolens", "build", header.build.clone()));
    if let Some(file) = &header.file {
        all.push(stated("file", "file system", file.file_system.clone()));
        all.push(stated("file", "size", file.bytes.to_string()));
    }
    let asked = asked.iter().filter(|(key, _)| !NO_INPUT.contains(&key.as_str()));
    all.extend(asked.map(|(key, value)| stated("plan", key, value.clone())));
    all
}

fn fact(fact: &Fact) -> Stated {
    let value = match &fact.value {
        Reading::Exact(value) => Some(value.clone()),
        Reading::NotMeasured { .. } => None,
    };
    Stated { group: fact.group.clone(), name: fact.name.clone(), value }
}

fn changed(host: &HostFacts) -> String {
    match host.changed.is_empty() {
        true => "nothing".to_owned(),
        false => host.changed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    }
}

/// Of two lists the parts that the other has not; a list that is the other's beginning
/// says so.
fn parts_that_differ(input: Input) -> Input {
    let (Some(a), Some(b)) = (&input.a, &input.b) else { return input };
    if !a.contains("; ") || !b.contains("; ") {
        return input;
    }
    let less = |own: &str, other: &str| {
        let others: Vec<&str> = other.split("; ").collect();
        let parts: Vec<&str> = own.split("; ").filter(|part| !others.contains(part)).collect();
        if parts.is_empty() { "nothing else".to_owned() } else { parts.join("; ") }
    };
    let (a, b) = (less(a, b), less(b, a));
    Input { a: Some(a), b: Some(b), ..input }
}
