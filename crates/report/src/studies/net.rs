//! The study `net`, and what `iolens show` and a page say of a run of it.

pub(crate) mod figures;
pub(crate) mod screen;

use iolens_document::table::Table;
use iolens_document::{Fact, Fold, Node, Section, Text};
use iolens_model::axes::Topology;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};
use iolens_stats::attribution;

use super::entry::{Ends, OfSetting, StudyColumns, StudyReport, who_wins};
use crate::figure::chart::MESSAGES;
use crate::figure::{self, Figure, Group, metric};
use crate::results::families::{self, Each};
use crate::results::ledger::ledger;
use crate::results::{detail, results};
use crate::sections::{Form, drawn, more_figures, paths, why, within};
use crate::{arms, crossing, explain, number, parts, words};

pub(super) static NET: StudyReport = StudyReport {
    nothing: "message by a method that does nothing",
    common: screen::common,
    screen: screen::fill,
    next: screen::next,
    question: "Which way to send is fastest?",
    claim: who_wins,
    sections,
    last: |run, analysis| Some(last(run, analysis)),
    setting: OfSetting::Arms(|run, _, cell, columns| results(&run.header.plan, &[cell], columns)),
    plates: |run, analysis| metric::by_size(run, analysis, MESSAGES, figures::all, |_| Vec::new()),
    figures,
    after: "path",
    columns: COLUMNS,
};

const COLUMNS: StudyColumns = StudyColumns {
    ends: Ends::Both,
    keys: &[],
    // The columns that scripts may rely on come first, in the order in which they were promised.
    arms: "run pass position study arm primitive receiver fields working_set slices topology mode
        message_bytes threads status reason time_ns rx_bytes tx_bytes messages goodput_bits_per_s
        ns_per_message latency_mean_ns latency_p50_ns latency_p99_ns latency_p999_ns tx_cpu_ns
        rx_cpu_ns context_switches migrations minor_faults retransmits {:pmu} cycles_per_byte
        copies_sender copies_end_to_end zerocopy_sends zerocopy_completions zerocopy_copied_share
        role iovec isolated tx_calls rx_calls cycles voluntary_switches involuntary_switches
        major_faults softirq_ticks latency_samples zerocopy_enobufs {:sums} segments_out
        rx_mapped_bytes zerocopy_notifications_per_send {:tuning} rx_rearms rx_ring_enobufs host",
    whole: ["latency_histogram facts", "latency_histogram"],
    axes: "receiver fields iovec working_set topology mode message_bytes threads",
    // The clock of a slice is the sender's, which has a column by itself.
    slice: "tx_messages tx_bytes tx_calls {tx_:accounts} rx_messages rx_bytes rx_calls rx_time_ns
        {rx_:accounts} tx_zerocopy_sends tx_zerocopy_completions tx_zerocopy_copied
        tx_zerocopy_enobufs {tx_:pmu} {rx_:pmu} tx_cycles rx_cycles {tx_:later} {rx_:later}
        tx_segments_out rx_segments_out rx_mapped_bytes tx_zerocopy_notifications rx_rearms
        rx_ring_enobufs {:tuning}",
    figures: "goodput_bits_per_s goodput_low_bits_per_s goodput_high_bits_per_s
        {ns_per_message:interval} ns_per_byte tx_cpu_ns_per_byte rx_cpu_ns_per_byte
        tx_calls_per_message context_switches_per_message cycles_per_byte tx_cycles_per_byte
        rx_cycles_per_byte l1d_misses_per_kib llc_references_per_kib llc_misses_per_kib
        softirq_ns_per_byte copies_sender copies_end_to_end zerocopy_sends zerocopy_completions
        zerocopy_copied_share zerocopy_enobufs {percentiles} branch_misses_per_kib
        dtlb_misses_per_kib stalled_frontend_per_cycle stalled_backend_per_cycle
        run_delay_ns_per_message tx_messages_per_call tx_segments_per_message
        voluntary_switches_per_message involuntary_switches_per_message rx_mapped_share
        zerocopy_notifications_per_send {:tuning} rx_rearms rx_ring_enobufs {cpu_:ratio}",
    parts: &[("pair_tuning", "{:tuning}")],
};

/// Settings up to which each has a fold with every figure of it; a page of more would be larger
/// than a browser opens at once.
const CELLS_MAX: usize = 120;

/// Curves up to which each has a row for every family.
const CURVES_MAX: usize = 4;

fn sections(run: &Run, analysis: &Analysis, form: Form) -> Vec<Section> {
    let mut out = Vec::new();
    if let Form::Terminal { .. } = form {
        out.push(by_size(run, analysis, form));
    }
    out.extend(crossovers(run, analysis));
    if !arms::is_alone(&analysis.cells) {
        out.push(why::section(run, analysis));
    }
    out.push(path(run, analysis, form));
    if form == Form::Page {
        out.push(by_size(run, analysis, form));
    }
    out
}

/// Every method at every size, a table for each setting of the others.
fn by_size(run: &Run, analysis: &Analysis, form: Form) -> Section {
    let plan = &run.header.plan;
    let curves = arms::curves(analysis);
    let is_grouped = parts::is_grouped(analysis);
    let mut nodes: Vec<Node> = Vec::new();
    if is_grouped {
        let each = if curves.len() > CURVES_MAX { Each::Message } else { Each::Family };
        nodes.push(Node::Table(families::cheapest(plan, analysis, each)));
    }
    let is_short = is_grouped && form.is_short();
    let reading = if is_short { families::reading(plan) } else { reading(run, analysis) };
    nodes.push(Node::aside(reading));
    for (curve, cells) in &curves {
        let title = words::curve(&run.header, curve);
        let mut inside: Vec<Node> = match is_short {
            true => families::ratios(plan, cells, form.columns()).into_iter().map(bare).collect(),
            false => vec![Node::Table(results(plan, cells, form.columns()))],
        };
        inside.extend(detail::in_flight(cells, &analysis.told).map(Node::aside));
        if form == Form::Page && analysis.cells.len() <= CELLS_MAX {
            inside.extend(cells.iter().map(|cell| every_figure(run, analysis, cell)));
        }
        match (curves.len(), form) {
            (1, _) | (_, Form::Terminal { .. }) => {
                nodes.extend((curves.len() > 1).then_some(Node::Heading(title)));
                nodes.extend(inside);
            }
            _ => nodes.push(Node::Fold(Fold {
                summary: title.into(),
                is_open: curves.len() <= 2,
                nodes: inside,
            })),
        }
    }
    if is_short {
        nodes.push(Node::aside(
            Text::plain("Throughput, times, CPU and copies of every method: ")
                .and_code(format!("iolens show {} --all", run.header.id)),
        ));
    }
    let records = figure::extremes::table(run, analysis).map(bare).into_iter();
    let records = records.chain(figure::extremes::by_method(run, analysis).map(Node::Table));
    let records: Vec<Node> = records.collect();
    nodes.extend((!records.is_empty()).then(|| Node::fold("Records", records)));
    let heading = if form == Form::Page { "All numbers" } else { "By size" };
    Section::new("numbers", heading, nodes)
}

/// How the tables are read.
fn reading(run: &Run, analysis: &Analysis) -> String {
    if arms::is_alone(&analysis.cells) {
        return "Intervals are 95%, over trials. Copies of each byte: by the sender / in total."
            .to_owned();
    }
    let marks = match run.header.plan.quick {
        true => String::new(),
        false => format!(
            " = tie within {} (90% interval), ? undecided.",
            number::percent(analysis.delta)
        ),
    };
    format!(
        "Speed: median slice against {}, 95% intervals for all {} comparisons together.{marks} \
         Throughput, time and CPU are the baseline's and that change; exports have totals, which \
         include rare stalls. Copies of each byte: by the sender / in total.",
        run.header.plan.baseline, analysis.contrasts
    )
}

/// Everything that was measured of one setting.
fn every_figure(run: &Run, analysis: &Analysis, cell: &CellAnalysis) -> Node {
    let mut nodes = vec![Node::Table(detail::cell(cell, run.header.plan.quick))];
    nodes.extend(detail::latency(cell).map(Node::Table));
    let said = detail::decided(cell, &analysis.told);
    nodes.extend(said.into_iter().map(Node::aside));
    let summary = Text::strong(cell.cell.size.to_string()).and(" every figure");
    Node::fold(summary, nodes)
}

/// A table of which something else says what it shows.
fn bare(table: Table) -> Node {
    Node::Table(table.without_caption())
}

/// Where one method overtakes another.
fn crossovers(run: &Run, analysis: &Analysis) -> Option<Section> {
    let main = crossing::table(run, analysis, false).with_rows()?;
    let all = crossing::table(run, analysis, true);
    let has_more = all.rows.len() > main.rows.len();
    let more = has_more.then(|| Node::fold("Every pair", vec![bare(all)]));
    let nodes = std::iter::once(bare(main)).chain(more).collect();
    Some(Section::new("crossovers", "Crossovers", nodes))
}

/// Which way the bytes go, and who copies them.
fn path(run: &Run, analysis: &Analysis, form: Form) -> Section {
    let mut nodes: Vec<Node> = Vec::new();
    if form == Form::Page {
        nodes.extend(paths::diagrams(run, analysis));
        nodes.push(Node::aside(
            "Thick arrow: the CPU copies every byte. Thin: only a reference moves. Dashed: a \
             reference that the kernel copied later, or pages that it mapped. Time runs downwards.",
        ));
    }
    nodes.push(Node::Table(ledger(run, analysis)));
    let sink = match run.header.plan.topologies().contains(&Topology::Sink) {
        true => " On sink a path ends at a device that drops everything.",
        false => "",
    };
    nodes.push(Node::aside(format!(
        "The path is declared per method; late-copy and mapped shares are measured, from the \
         kernel's own reports.{sink}"
    )));
    let beside = families::receivers(run, analysis);
    if !beside.is_empty() {
        nodes.push(Node::Heading("Receivers".to_owned()));
        nodes.push(Node::aside(families::READING));
        nodes.extend(beside.into_iter().map(Node::Table));
    }
    Section::new("path", "Path of the bytes", nodes)
}

/// Figures by what they are about, as many as have room in so many bytes.
fn figures(run: &Run, analysis: &Analysis, figures: Vec<Figure>, room: usize) -> Vec<Node> {
    let families = parts::families(analysis);
    let (figures, left_out) = within(room, figures, !families.is_empty());
    let mut nodes: Vec<Node> = Vec::new();
    let host = &run.header.host;
    if [&host.l1d, &host.l2, &host.llc].iter().any(|cache| cache.value().is_some()) {
        nodes.push(Node::aside(
            "Dotted lines: message size = cache size. Buffers add to that, so caches overflow a \
             little earlier.",
        ));
    }
    let (of_family, of_all): (Vec<Figure>, Vec<Figure>) =
        figures.into_iter().partition(|figure| figure.family.is_some());
    for (id, name) in families {
        let own = of_family.iter().filter(|figure| figure.family == Some(id)).cloned();
        let (first, more): (Vec<Figure>, Vec<Figure>) = own.partition(|figure| figure.leads);
        nodes.push(Node::Heading(name.to_owned()));
        nodes.extend(drawn(first));
        if !more.is_empty() {
            let summary = format!("{} more of {name}", number::count(more.len(), "figure"));
            nodes.push(Node::fold(summary, drawn(more)));
        }
    }
    for group in Group::ALL {
        let own: Vec<Figure> =
            of_all.iter().filter(|figure| figure.group == group).cloned().collect();
        if !own.is_empty() && !group.heading().is_empty() {
            nodes.push(Node::Heading(group.heading().to_owned()));
        }
        if group == Group::Time {
            nodes.extend(explained(run, analysis));
        }
        nodes.extend(drawn(own));
    }
    nodes.extend((left_out > 0).then(|| more_figures(run, left_out)));
    nodes
}

/// What the samples say, or how to get some.
fn explained(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let explained = attribution::explain(&run.profiles, &run.header.plan.baseline);
    if explained.is_empty() {
        let how = Text::plain("CPU time by kernel function was not sampled: ")
            .and_code(format!("iolens explain {}", run.header.id));
        return vec![Node::aside(how)];
    }
    let one = |one: &attribution::Explanation| {
        let mut nodes = vec![Node::say(Text::strong(explain::title(one)))];
        let said = explain::sentences(one).into_iter().chain(explain::cautions(one, analysis));
        nodes.push(Node::List(said.map(Text::from).collect()));
        nodes
    };
    explained.iter().flat_map(one).collect()
}

/// What stands at the end of a page: its words.
fn last(run: &Run, analysis: &Analysis) -> Section {
    let baseline = &run.header.plan.baseline;
    let tie = format!(
        "a tie is shown to be within {}; what is too close to call is not ranked by this run",
        number::percent(analysis.delta)
    );
    let here = format!("the method that others are compared with; here {baseline}");
    let words = [
        (
            "95% interval",
            "would contain the true value in 95 of 100 such runs on this machine and boot; those \
             in tables of changes hold for all comparisons together, those of figures each by \
             itself",
        ),
        ("baseline", &here),
        ("copied", "a zero-copy send whose bytes the kernel copied after all, by its own report"),
        ("crossover", "the message size at which one method overtakes another"),
        ("hot, cold", "send buffers fit the L2 cache, or exceed the last-level cache"),
        (
            "loopback, veth, sink, peer",
            "one network namespace; two, joined by a virtual cable; a device that drops \
             everything; another machine",
        ),
        ("noise floor", "the smallest difference that this run can see"),
        ("note", "something that a check noticed and let pass"),
        ("quick look", "a run too short for verdicts"),
        ("self-check", "the baseline measured a second time in hiding; any difference is noise"),
        (
            "stalls",
            "rare slices far slower than the rest; changes are of the median slice, exports have \
             totals, which include stalls",
        ),
        ("stream, rr", "one-way messages, or request and response"),
        ("tie, too close to call", &tie),
        ("trial", "one setting, measured once, in fresh processes; n counts trials"),
    ];
    let facts = words.into_iter().map(|(word, means)| Fact::new(word, means)).collect();
    Section::new("words", "Glossary", vec![Node::Facts(facts)])
}
