//! Use of every processor of the machine in a cell: before its servers were started, when they
//! stood and nobody asked, and in the slices of each. Softirq stands apart: on loopback and veth it
//! moves the packets of both ends, whoever is charged for it.

use iolens_document::Joined;
use iolens_document::table::{Table, left, right};
use iolens_model::run::Run;
use iolens_stats::analysis::{CellAnalysis, CpuOf, CpuShares};

use crate::arms::methods as models;
use crate::figure::bars::{Bar, BarPart, Bars, Lengths};
use crate::figure::{Group, Marks, Plate, stem};
use crate::groups::distinct;
use crate::number::percent;
use crate::words;

/// A kind of a processor's time: its word, its hue, and its share.
type KindOfTime = (&'static str, &'static str, fn(&CpuShares) -> f64);

/// The kinds of time that a bar of a processor shows.
pub(crate) const CPU_KINDS: [KindOfTime; 5] = [
    ("user", "blue", |cpu| cpu.user),
    ("kernel", "orange", |cpu| cpu.system),
    ("interrupts", "purple", |cpu| cpu.irq),
    ("softirq", "green", |cpu| cpu.softirq),
    ("steal", "vermilion", |cpu| cpu.steal),
];

/// When processors were watched.
pub(super) struct Watched<'a> {
    /// `before`, `idle`, or the model in whose slices.
    when: String,
    pub(super) cpus: &'a [CpuShares],
}

/// Every time in a cell; none where nothing could be read. What was before any server
/// stood, and idle, is that of the first model: all stand ready at the same time, but for
/// those that are measured by themselves.
pub(super) fn watched(cell: &CellAnalysis) -> Vec<Watched<'_>> {
    let servers = || models(cell).filter_map(|arm| Some((arm, arm.server.as_ref()?)));
    let mut all: Vec<Watched<'_>> = Vec::new();
    if let Some((_, first)) = servers().next() {
        all.push(Watched { when: "before the servers".to_owned(), cpus: &first.cpus_before });
        all.push(Watched { when: "idle, all connected".to_owned(), cpus: &first.cpus_idle });
    }
    all.extend(servers().map(|(arm, server)| Watched {
        when: arm.arm.label.clone(),
        cpus: &server.cpus_in_slices,
    }));
    all.retain(|watched| !watched.cpus.is_empty());
    all
}

/// The processors of one end taken together, in the order of [`CpuOf`].
pub(crate) fn by_end(cpus: &[CpuShares]) -> Vec<(CpuOf, CpuShares)> {
    let mut ends = distinct(cpus.iter().map(|cpu| cpu.of));
    ends.sort_unstable();
    let of_end = |end: CpuOf| {
        let own = || cpus.iter().filter(move |cpu| cpu.of == end);
        let ticks: u64 = own().map(|cpu| cpu.ticks).sum();
        let mean = |kind: fn(&CpuShares) -> f64| {
            own().map(|cpu| kind(cpu) * cpu.ticks as f64).sum::<f64>() / ticks as f64
        };
        let (user, system, irq) = (mean(|c| c.user), mean(|c| c.system), mean(|c| c.irq));
        let (softirq, steal, idle) = (mean(|c| c.softirq), mean(|c| c.steal), mean(|c| c.idle));
        let cpu = own().map(|cpu| cpu.cpu).min().unwrap_or(0);
        (end, CpuShares { cpu, of: end, user, system, irq, softirq, steal, idle, ticks })
    };
    ends.into_iter().map(of_end).collect()
}

/// A row for each processor at each time; `None` where nothing could be read.
pub(super) fn use_of_cpus(cell: &CellAnalysis, caption: &str) -> Option<Table> {
    let mut table = Table::of(caption, []);
    for Watched { when, cpus } in watched(cell) {
        table.fill_group(cpus.iter().map(|cpu| {
            let share = |name, share| right(name, "%", percent(share).trim_end_matches('%'));
            let mut row = vec![
                left("when", "or in whose slices", &when),
                right("CPU", "", cpu.cpu.to_string()),
                left("of", "", cpu.of.word()),
            ];
            row.extend(CPU_KINDS.map(|(name, _, of)| share(name, of(cpu))));
            row.push(share("idle", cpu.idle));
            row.push(right("watched for", "ticks of 10 ms", cpu.ticks.to_string()));
            row
        }));
    }
    table.with_rows()
}

/// The use of the processors in a cell; `None` where nothing could be read.
pub(crate) fn of_processors(run: &Run, cell: &CellAnalysis) -> Option<Plate> {
    let subject = words::subject(&run.header, &cell.cell);
    let title = format!("Use of the processors (% of their time): {subject}");
    let how = "length: the share of the time in which they were not idle, with the number; of \
               everybody on the machine, by /proc/stat; softirq moves the packets of both ends";
    let table = use_of_cpus(cell, &title)?;
    let server = cell.cell.server()?;
    let name = stem(&run.header.plan, &cell.cell, "processors");
    let load = server.load.to_string().replace('%', "-percent");
    let name = format!("{name}-{load}-{}", server.connections);
    let bars = watched(cell).into_iter().flat_map(|Watched { when, cpus }| {
        let ends = by_end(cpus).into_iter();
        ends.map(move |(of, cpus)| bar_of_processors(&when, of, &cpus))
    });
    let marks = Marks::Bars(Bars { lengths: Lengths::Of(1.0), bars: bars.collect() });
    let (place, said) = ((Group::Processors, name), [title, how.to_owned()]);
    Some(Plate::new(run, &cell.cell, place, said, marks, table))
}

fn bar_of_processors(when: &str, of: CpuOf, cpus: &CpuShares) -> Bar {
    // What has a width when it is drawn.
    const SHARE_MIN: f64 = 2e-4;
    let whose = match of {
        CpuOf::Server => "server’s",
        CpuOf::Client => "client’s",
        CpuOf::Both => "both’s",
        CpuOf::Neither => "others",
    };
    let parts = CPU_KINDS.iter().map(|(word, hue, share)| BarPart {
        length: share(cpus),
        class: format!("c-{hue} part"),
        word,
    });
    let parts: Vec<BarPart> = parts.filter(|part| part.length >= SHARE_MIN).collect();
    let words = parts.iter().map(|part| format!("{} {}", part.word, percent(part.length)));
    Bar {
        group: when.to_owned(),
        before: whose.to_owned(),
        behind: percent(1.0 - cpus.idle),
        hover: format!("{when}, {whose}: {}", words.joined(", ")),
        parts,
        interval: None,
    }
}
