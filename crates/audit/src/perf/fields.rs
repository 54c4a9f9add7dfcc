//! What `perf stat -x` writes: `305,,context-switches,21140000,100.00,520.3,/sec`,
//! with the time or the CPU before it for intervals and for each CPU.

use super::human::count;
use super::section::{Counter, Section, event};
use crate::number::{self, DecimalMark};

/// The sections of a text, one for each time or CPU; none where no line is a
/// counter that is known.
pub(crate) fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let read = [',', ';', '\t'].into_iter().find_map(|by| counter(line, by, index + 1));
        let Some((title, counter, is_repeated)) = read else { continue };
        let at = sections.iter().position(|section| section.title == title).unwrap_or_else(|| {
            sections.push(Section { title, ..Section::default() });
            sections.len() - 1
        });
        let section = &mut sections[at];
        section.is_repeated |= is_repeated;
        match (counter.name, counter.count) {
            ("duration_time", Some(ns)) => section.elapsed_ns = Some(ns),
            _ => section.counters.push(counter),
        }
    }
    sections
}

/// A line: what stands before the counter, the counter, and whether it is a
/// mean over several runs.
fn counter(line: &str, separator: char, at: usize) -> Option<(String, Counter, bool)> {
    let fields: Vec<&str> = line.split(separator).map(str::trim).collect();
    // Value, unit, event, [variance], time on the PMU, share, metric, unit.
    let place = (2..fields.len().min(6)).find(|&place| event(fields[place]).is_some())?;
    let (before, rest) = fields.split_at(place - 2);
    let [value, unit, written, rest @ ..] = rest else { return None };
    let (name, pmu, modifier) = event(written)?;
    let mark = DecimalMark::Point;
    let is_missing = value.starts_with("<not");
    let number = number::leading(value, mark).filter(|number| number.rest.is_empty());
    if number.is_none() && !is_missing {
        return None;
    }
    let unit_ns = match (*unit, name) {
        ("msec" | "ms", _) => Some(1e6),
        ("ns", _) => Some(1.0),
        // Clocks are in ms where older versions name no unit.
        ("", "task-clock" | "cpu-clock") => Some(1e6),
        ("", _) => None,
        _ => return None,
    };
    let is_repeated = rest.first().is_some_and(|field| field.ends_with('%'));
    let rest = &rest[usize::from(is_repeated)..];
    let read = |index: usize| number::leading(rest.get(index)?, mark);
    let metric = read(2).and_then(|metric| {
        let unit = *rest.get(3).filter(|unit| !unit.is_empty())?;
        Some((metric.rounded(), unit.to_owned()))
    });
    let counter = Counter {
        line: at,
        event: (*written).to_owned(),
        name,
        pmu: pmu.map(str::to_owned),
        modifier: modifier.to_owned(),
        count: number.map(|number| count(&number, unit_ns)),
        metric,
        running: read(1).map(|share| share.value / 100.0),
        shown: line.trim().to_owned(),
    };
    Some((before.join(" "), counter, is_repeated))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_read_with_their_metrics() {
        let text = "# started on Sat Nov 21\n\n21.14,msec,task-clock,21140000,100.00,0.004,CPUs utilized\n\
                    305,,context-switches,21140000,100.00,520.340,/sec\n\
                    <not supported>,,cycles:u,0,100.00,,\n";
        let sections = sections(text);
        assert_eq!(sections.len(), 1);
        let [clock, switches, cycles] = sections[0].counters.as_slice() else { panic!() };
        assert_eq!(clock.count.map(|ns| ns.value), Some(21.14e6));
        assert_eq!((switches.line, switches.running), (4, Some(1.0)));
        assert_eq!(switches.metric.as_ref().map(|m| m.1.as_str()), Some("/sec"));
        assert_eq!((cycles.count, cycles.modifier.as_str()), (None, "u"));
    }

    #[test]
    fn intervals_cpus_and_repeated_runs_are_read() {
        let text = "1.000,5,,cs,10,100.00,,\n2.000,7,,cs,10,100.00,,\nCPU0;9;;cs;10;100.00;;\n";
        let titles: Vec<String> = sections(text).into_iter().map(|s| s.title).collect();
        assert_eq!(titles, ["1.000", "2.000", "CPU0"]);
        let repeated = &sections("5,,cs,0.52%,10,50.00,3.1,K/sec\n")[0];
        assert!(repeated.is_repeated);
        assert_eq!(repeated.counters[0].running, Some(0.5));
    }

    #[test]
    fn a_table_is_not_that() {
        assert!(sections("metric,unit,cycles\nx,y,5\n").is_empty());
        assert!(sections("size,threads,cycles\n64,1,100\n").is_empty());
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[\\PC\n\t]{0,120}") {
            let _ = sections(&text);
        }

        #[test]
        fn field_like_lines_do_not_panic(
            lines in proptest::collection::vec(
                "[0-9.]{0,5},(msec)?,(cs|cycles|task-clock)(,[0-9.%]{0,5}){0,4}", 0..6,
            ),
        ) {
            let _ = sections(&lines.join("\n"));
        }
    }
}
