//! The gates as they apply to one section of `perf stat`.

use iolens_stats::physics::{self, ClockRange, Rounded};

use super::section::{Counter, Section};
use crate::bounds::Bounds;
use crate::checks::{impossible, short, suspicious, too_many};
use crate::finding::{Found, Gate, Ledger, Severity};
use crate::unit::{self, Dimension, Unit};

/// A section, and where it is noted what is said of it.
pub(crate) struct Judge<'a> {
    pub(crate) section: &'a Section,
    pub(crate) bounds: &'a Bounds,
    pub(crate) ledger: &'a mut Ledger,
}

impl Judge<'_> {
    /// Notes that a gate looked at these counters, and what it found of the first.
    fn judged(&mut self, gate: Gate, counters: &[&Counter], found: Option<Found>) {
        self.ledger.judged(gate, 1);
        self.ledger.looked_at.extend(counters.iter().map(|counter| counter.line));
        let (Some(found), Some(first)) = (found, counters.first()) else { return };
        let line = first.line;
        let place = match self.section.title.as_str() {
            "" => format!("line {line}"),
            title => format!("line {line} ({title})"),
        };
        self.ledger.find(gate, found, place, vec![line]);
    }

    /// What perf computed itself agrees to the last digit, but for means of
    /// several runs: the mean of ratios is not the ratio of means.
    fn share(&self) -> f64 {
        if self.section.is_repeated { 0.05 } else { 0.005 }
    }
}

/// Every check.
pub(crate) fn all(judge: &mut Judge<'_>) {
    clock(judge);
    instructions(judge);
    rates(judge);
    use_of_cpus(judge);
    shares(judge);
    times(judge);
    ran(judge);
    kinds_of_core(judge);
}

/// What perf printed beside a count, against what follows from the counts.
fn contradiction(
    judge: &Judge<'_>,
    counter: &Counter,
    printed: Rounded,
    computed: Rounded,
    from: &str,
) -> Option<Found> {
    impossible(physics::agreement(printed, computed, judge.share()), |breach| {
        format!(
            "`{}`: {from} is {}, {} times as much is printed",
            counter.shown,
            short(computed.value),
            short(breach.value)
        )
    })
}

/// Rate × CPU time is the count, for everything with a rate.
fn rates(judge: &mut Judge<'_>) {
    let section = judge.section;
    let Some((clock, clock_ns)) = section.clock() else { return };
    for counter in &section.counters {
        let (Some(count), Some((printed, words))) = (counter.count, &counter.metric) else {
            continue;
        };
        let Some(unit) = rate_unit(words) else { continue };
        let expected = printed.scaled(unit.scale).times(clock_ns).scaled(1e-9);
        let found = impossible(physics::agreement(count, expected, judge.share()), |_| {
            format!(
                "`{}`: at that rate, {} ms of {} hold {}, not {}",
                counter.shown,
                short(clock_ns.value / 1e6),
                clock.event,
                short(expected.value),
                short(count.value)
            )
        });
        judge.judged((6, "rate × task-clock = count"), &[counter, clock], found);
    }
}

/// The unit of a rate: `/sec`, `K/sec`, or `cs/sec` before the name of the
/// metric.
fn rate_unit(words: &str) -> Option<Unit> {
    const EVENTS: [&str; 3] = ["cs", "faults", "migrations"];
    let first = words.split(' ').next()?;
    let bare = first.strip_suffix("/sec").filter(|event| EVENTS.contains(event)).map(|_| "/sec");
    let unit = unit::named(bare.unwrap_or(first)).ok().flatten();
    unit.filter(|unit| unit.dimension == Dimension::Rate)
}

/// Cycles over CPU time, and what is printed of it.
fn clock(judge: &mut Judge<'_>) {
    let section = judge.section;
    let clock = section.clock();
    for counter in section.counters.iter().filter(|counter| counter.name == "cycles") {
        let printed = counter.printed("GHz");
        let range = range(judge, counter, clock.map_or("", |(clock, _)| clock.name));
        if let (Some(count), Some((clock, ns))) = (counter.count, clock) {
            let computed = count.over(ns);
            let from = format!("cycles over {}, in GHz,", clock.event);
            let found = printed.and_then(|ghz| contradiction(judge, counter, ghz, computed, &from));
            let agrees = found.is_none();
            judge.judged((6, "GHz = cycles / task-clock"), &[counter, clock], found);
            let found = too_fast_or_slow(counter, computed.value, range, "cycles over CPU time");
            let is_said = agrees && found.is_some();
            judge.judged((1, "clock"), &[counter, clock], found);
            if is_said {
                continue;
            }
        }
        if let Some(ghz) = printed {
            let found = too_fast_or_slow(counter, ghz.value, range, "what is printed");
            judge.judged((1, "clock"), &[counter], found);
        }
    }
}

/// The clocks that cycles of this counter can show. One that counts some modes
/// or some cores only, or was on the PMU for less than half of the time, says
/// nothing of the lowest, and `cpu-clock` runs while a CPU is idle.
fn range(judge: &Judge<'_>, counter: &Counter, clock: &str) -> ClockRange {
    let range = judge.bounds.clock();
    let is_part = !counter.modifier.is_empty()
        || clock == "cpu-clock"
        || counter.pmu.is_some()
        || counter.running.is_some_and(|share| share < 0.5);
    if is_part { ClockRange { low_ghz: 0.0, ..range } } else { range }
}

fn too_fast_or_slow(counter: &Counter, ghz: f64, range: ClockRange, of: &str) -> Option<Found> {
    impossible(physics::clock_ghz(ghz, 1.0, range), |breach| {
        format!(
            "`{}`: {of} is a clock of {} GHz, possible: {:.2} to {:.2} GHz",
            counter.shown,
            short(breach.value),
            breach.low,
            breach.high
        )
    })
}

/// Instructions over cycles of the same PMU and mode.
fn instructions(judge: &mut Judge<'_>) {
    let section = judge.section;
    let all_cycles = section.firsts("cycles");
    for counter in section.counters.iter().filter(|counter| counter.name == "instructions") {
        let printed =
            counter.printed("insn per cycle").or_else(|| counter.printed("insns per cycle"));
        let cycles = all_cycles.get(&counter.scope()).copied();
        let counts = cycles.and_then(|cycles| {
            Some((cycles, cycles.count.filter(|n| n.value > 0.0)?, counter.count?))
        });
        let computed = counts.map(|(_, cycles, instructions)| instructions.over(cycles));
        if let (Some(printed), Some(computed), Some((cycles, ..))) = (printed, computed, counts) {
            let found =
                contradiction(judge, counter, printed, computed, "instructions over cycles");
            judge.judged((6, "IPC = instructions / cycles"), &[counter, cycles], found);
        }
        if let Some(per_cycle) = computed.or(printed) {
            let found = too_many(&format!("`{}`", counter.shown), per_cycle.value, 1.0);
            judge.judged((1, "instructions per cycle"), &[counter], found);
        }
    }
}

/// CPU time over wall time.
fn use_of_cpus(judge: &mut Judge<'_>) {
    let section = judge.section;
    let Some((clock, clock_ns)) = section.clock() else { return };
    let printed = clock.printed("CPUs");
    let computed = section.elapsed_ns.filter(|ns| ns.value > 0.0).map(|ns| clock_ns.over(ns));
    if let (Some(printed), Some(computed)) = (printed, computed) {
        let found = contradiction(judge, clock, printed, computed, "CPU time over elapsed time");
        judge.judged((6, "CPUs utilized = task-clock / elapsed"), &[clock], found);
    }
    let Some(cpus) = computed.or(printed).map(|cpus| cpus.value) else { return };
    let found = suspicious(physics::mostly_waiting(cpus, 1.0), |_| {
        format!(
            "`{}`: {:.2}% of the time at work; if traffic was measured, the counting lasted much \
             longer than it, or is of another process",
            clock.shown,
            cpus * 100.0
        )
    });
    judge.judged((9, "counters cover the work"), &[clock], found);
    if let Some(most) = judge.bounds.cpus.map(f64::from) {
        let found = impossible(physics::part_of(cpus, most, 0.05), |_| {
            format!("`{}`: {} of {most} CPUs busy", clock.shown, short(cpus))
        });
        judge.judged((6, "CPU time ≤ wall × CPUs"), &[clock], found);
    }
}

/// Misses are some of what they are misses of.
fn shares(judge: &mut Judge<'_>) {
    const PAIRS: [(&str, &str); 5] = [
        ("branch-misses", "branches"),
        ("cache-misses", "cache-references"),
        ("L1-dcache-load-misses", "L1-dcache-loads"),
        ("LLC-load-misses", "LLC-loads"),
        ("dTLB-load-misses", "dTLB-loads"),
    ];
    let section = judge.section;
    let parts = PAIRS.iter().flat_map(|(part, whole)| {
        let wholes = section.firsts(whole);
        let parts = section.counters.iter().filter(|counter| counter.name == *part);
        parts.filter_map(move |part| Some((part, *wholes.get(&part.scope())?)))
    });
    for (counter, whole) in parts {
        let (Some(few), Some(all)) = (counter.count, whole.count.filter(|n| n.value > 0.0)) else {
            continue;
        };
        let breach = physics::part_of(few.value, all.value, 0.05);
        let twice = breach.is_some_and(|breach| breach.value > 2.0 * all.value);
        let found = Severity::impossible_if(twice)
            .of(breach, |_| format!("`{}` of `{}`", counter.shown, whole.shown));
        judge.judged((6, "misses ≤ references"), &[counter, whole], found);
        if let Some(percent) = counter.printed("%") {
            let computed = few.over(all).scaled(100.0);
            let from = format!("its share of {}, in %,", whole.event);
            let found = contradiction(judge, counter, percent, computed, &from);
            judge.judged((6, "miss rate = misses / references"), &[counter, whole], found);
        }
    }
}

/// User and kernel are the CPU time, as far as the kernel's ticks and
/// two ways of counting let them.
fn times(judge: &mut Judge<'_>) {
    let section = judge.section;
    let parts = (section.user_ns, section.system_ns, section.clock());
    let (Some(user), Some(system), Some((clock, clock_ns))) = parts else { return };
    const APART: f64 = 1.25;
    const APART_NS: f64 = 20e6;
    let (sum, whole) = (user.value + system.value, clock_ns.value);
    let apart = (sum - whole).abs() > APART_NS && (sum > whole * APART || whole > sum * APART);
    let found = apart.then(|| {
        Found::suspicious(format!(
            "`{}`: user and sys of the command are {} ms together; was another process counted, or \
             the whole system?",
            clock.shown,
            short(sum / 1e6)
        ))
    });
    judge.judged((6, "user + kernel = total"), &[clock], found);
}

/// Counters that stood still, and those that were estimated.
fn ran(judge: &mut Judge<'_>) {
    const GATE: Gate = (10, "counters that ran");
    let section = judge.section;
    for counter in &section.counters {
        let Some(count) = counter.count else { continue };
        let of_the_kernel = matches!(counter.name, "context-switches" | "cpu-migrations")
            && counter.modifier == "u";
        let works = matches!(counter.name, "cycles" | "instructions" | "task-clock" | "cpu-clock");
        let running = counter.running.unwrap_or(1.0);
        let found = if works && count.value <= 0.0 && counter.pmu.is_none() {
            let text = format!("`{}`: no work takes none; it was not counted", counter.shown);
            Some(Found::impossible(text))
        } else if of_the_kernel && count.value <= 0.0 {
            let text = format!(
                "`{}`: these are counted in the kernel, so this is no count",
                counter.shown
            );
            Some(Found::new(Severity::Remark, text))
        } else if running < 0.1 {
            let text = format!(
                "`{}`: counted for {:.2}% of the time, the rest is made up",
                counter.shown,
                running * 100.0
            );
            Some(Found::suspicious(text))
        } else if running < 0.9995 {
            let text =
                format!("`{}`: scaled up from {:.1}% of the time", counter.shown, running * 100.0);
            Some(Found::new(Severity::Remark, text))
        } else {
            None
        };
        // That it counted at all is little to have looked at.
        if found.is_some() {
            judge.judged(GATE, &[counter], found);
        }
    }
}

/// A machine with two kinds of core has counters on both.
fn kinds_of_core(judge: &mut Judge<'_>) {
    let section = judge.section;
    let of = |pmu: &str| {
        let is_of =
            |counter: &&Counter| counter.name == "cycles" && counter.pmu.as_deref() == Some(pmu);
        section.counters.iter().find(is_of)
    };
    let (only, other) = match (of("cpu_core"), of("cpu_atom")) {
        (None, None) => return,
        (Some(core), None) => (core, "cpu_atom"),
        (None, Some(atom)) => (atom, "cpu_core"),
        (Some(core), Some(atom)) => {
            judge.judged((11, "every kind of core counted"), &[core, atom], None);
            return;
        }
    };
    let text = format!("`{}`: without those of {other}, what ran there is missing", only.shown);
    judge.judged((11, "every kind of core counted"), &[only], Some(Found::suspicious(text)));
}
