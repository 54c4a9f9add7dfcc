//! What `perf stat` prints: text for people, in any locale, and fields for programs (`-x`).
//! `  305      context-switches     #  520.340 /sec     (83.2%)`.

use iolens_stats::physics::Rounded;

use super::section::{Counter, Section, event};
use crate::number::{self, DecimalMark, Number};
use crate::unit;

/// The sections of a text; none where no line is a counter that is known.
pub(crate) fn sections(text: &str) -> Vec<Section> {
    let numbers = text.lines().flat_map(|line| {
        let (count, metric) = line.split_once('#').unwrap_or((line, ""));
        [count, metric]
    });
    let mark = number::decimal_mark_of(numbers, DecimalMark::Point);
    let mut sections: Vec<Section> = Vec::new();
    let mut open = Section::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(title) = line.strip_prefix("Performance counter stats for") {
            close(&mut sections, std::mem::take(&mut open));
            open.title = title.trim().trim_end_matches(':').to_owned();
            open.is_repeated = title.contains(" runs)");
        } else if let Some(counter) = counter(line, index + 1, mark) {
            open.is_repeated |= line.contains("+-");
            open.counters.push(counter);
        } else {
            read_time(&mut open, line, mark);
        }
    }
    close(&mut sections, open);
    sections
}

fn close(sections: &mut Vec<Section>, section: Section) {
    if !section.counters.is_empty() {
        sections.push(section);
    }
}

/// Takes a time of the command: `6.003 seconds time elapsed`.
fn read_time(section: &mut Section, line: &str, mark: DecimalMark) -> Option<()> {
    let number = number::leading(line, mark)?;
    let (_, what) = number.rest.split_once("seconds ")?;
    let ns = match what.split_whitespace().next()? {
        "time" => &mut section.elapsed_ns,
        "user" => &mut section.user_ns,
        "sys" => &mut section.system_ns,
        _ => return None,
    };
    *ns = Some(number.rounded().scaled(1e9));
    Some(())
}

/// One counter.
fn counter(line: &str, at: usize, mark: DecimalMark) -> Option<Counter> {
    let (before, after) = line.split_once('#').unwrap_or((line, ""));
    let missing = ["<not supported>", "<not counted>"];
    let number = number::leading(before, mark);
    let rest = match (&number, missing.iter().find_map(|word| before.strip_prefix(word))) {
        (_, Some(rest)) => rest,
        (Some(number), None) => number.rest,
        (None, None) => return None,
    };
    let mut words = rest.split_whitespace().peekable();
    let unit_ns = words.peek().and_then(|word| match *word {
        "msec" | "ms" => Some(1e6),
        "ns" => Some(1.0),
        _ => None,
    });
    if unit_ns.is_some() {
        words.next();
    }
    let written = words.next()?;
    let (name, pmu, modifier) = event(written)?;
    // Some versions write `task-clock (msec)`; no clock is in anything else.
    let is_clock = matches!(name, "task-clock" | "cpu-clock");
    let unit_ns = unit_ns.or(is_clock.then_some(1e6));
    // What follows the event is a variance or a share of time in brackets.
    if words.next().is_some_and(|word| !word.starts_with('(')) {
        return None;
    }
    let metric = number::leading(after, mark).map(|metric| (metric.rounded(), words_of(&metric)));
    Some(Counter {
        line: at,
        event: written.to_owned(),
        name,
        pmu: pmu.map(str::to_owned),
        modifier: modifier.to_owned(),
        count: number.map(|number| count(&number, unit_ns)),
        metric,
        running: running(line),
        shown: line.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

/// A count, or a clock in ns.
pub(crate) fn count(number: &Number<'_>, unit_ns: Option<f64>) -> Rounded {
    match unit_ns {
        Some(ns) => number.rounded().scaled(ns),
        None if number.is_whole => Rounded::exact(number.value),
        None => number.rounded(),
    }
}

/// The unit of a metric in perf's words, without what follows in brackets.
fn words_of(metric: &Number<'_>) -> String {
    let end = metric.rest.find('(').unwrap_or(metric.rest.len());
    metric.rest[..end].split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `(83.2%)` at the end, as a share.
fn running(line: &str) -> Option<f64> {
    let (_, last) = line.trim_end().strip_suffix(')')?.rsplit_once('(')?;
    let number = number::leading(last, DecimalMark::Point)?;
    let is_share = matches!(unit::named(number.rest), Ok(Some(unit)) if unit.scale == 0.01);
    (is_share && !last.contains("+-")).then_some(number.value / 100.0)
}

// What `perf stat -x` writes: `305,,context-switches,21140000,100.00,520.3,/sec`,
// with the time or the CPU before it for intervals and for each CPU.

/// The sections of a text, one for each time or CPU; none where no line is a
/// counter that is known.
pub(crate) fn sections_of_fields(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let read =
            [',', ';', '\t'].into_iter().find_map(|by| counter_of_fields(line, by, index + 1));
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
fn counter_of_fields(line: &str, separator: char, at: usize) -> Option<(String, Counter, bool)> {
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

    const TEXT: &str = "
     Performance counter stats for './server 8080':

             21.14 msec task-clock                #    0.004 CPUs utilized
               305      context-switches          #  520.340 /sec
     <not supported>      cpu_atom/cycles/
         2,770,123      cpu_core/cycles/          #    0.131 GHz                         (83.2%)

       6.003420000 seconds time elapsed
       0.001000000 seconds user
    ";

    #[test]
    fn a_text_is_read_with_its_metrics() {
        let sections = sections(TEXT);
        assert_eq!(sections.len(), 1);
        let section = &sections[0];
        assert_eq!(section.title, "'./server 8080'");
        assert_eq!(section.elapsed_ns.map(|ns| ns.value), Some(6_003_420_000.0));
        assert_eq!(section.user_ns.map(|ns| ns.value), Some(1e6));
        let [clock, switches, atom, core] = section.counters.as_slice() else { panic!() };
        assert_eq!(clock.count.map(|ns| ns.value), Some(21.14e6));
        assert_eq!(switches.metric.as_ref().map(|m| m.1.as_str()), Some("/sec"));
        assert_eq!((atom.count, atom.pmu.as_deref()), (None, Some("cpu_atom")));
        assert!(core.running.is_some_and(|share| (share - 0.832).abs() < 1e-9));
        assert_eq!(core.metric.as_ref().map(|m| (m.0.value, m.1.as_str())), Some((0.131, "GHz")));
        assert_eq!((core.name, core.line), ("cycles", 7));
    }

    #[test]
    fn other_locales_and_repeated_runs_are_read() {
        let text = " Performance counter stats for 'x' (5 runs):\n\
                    21,14 msec task-clock:u  #  0,992 CPUs utilized  ( +-  0,52% )\n\
                    2.770.123      cycles:u  #  0,131 GHz   ( +-  0,1% )  (49,9%)\n\
                    1 234 567      instructions:u\n";
        let section = &sections(text)[0];
        let counts: Vec<f64> =
            section.counters.iter().filter_map(|c| Some(c.count?.value)).collect();
        assert_eq!(counts, [21.14e6, 2_770_123.0, 1_234_567.0]);
        assert!(section.is_repeated);
        assert!(section.counters[1].running.is_some_and(|share| (share - 0.499).abs() < 1e-9));
        assert_eq!(section.counters[0].modifier, "u");
    }

    #[test]
    fn tables_are_no_text_of_perf() {
        assert!(sections("size,cycles\n64,100\n").is_empty());
        assert!(sections("64 cycles of bliss\n").is_empty());
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[\\PC\n]{0,120}") {
            let _ = sections(&text);
        }

        #[test]
        fn perf_like_lines_do_not_panic(
            lines in proptest::collection::vec(
                "[0-9.,]{0,6} ?(msec|ns|<not counted>)? ?(cycles|task-clock|seconds time) ?#? ?[0-9.,%]{0,5} ?(GHz|/sec|\\()",
                0..6,
            ),
        ) {
            let _ = sections(&lines.join("\n"));
        }
    }

    #[test]
    fn fields_are_read_with_their_metrics() {
        let text = "# started on Sat Nov 21\n\n21.14,msec,task-clock,21140000,100.00,0.004,CPUs utilized\n\
                    305,,context-switches,21140000,100.00,520.340,/sec\n\
                    <not supported>,,cycles:u,0,100.00,,\n";
        let sections = sections_of_fields(text);
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
        let titles: Vec<String> = sections_of_fields(text).into_iter().map(|s| s.title).collect();
        assert_eq!(titles, ["1.000", "2.000", "CPU0"]);
        let repeated = &sections_of_fields("5,,cs,0.52%,10,50.00,3.1,K/sec\n")[0];
        assert!(repeated.is_repeated);
        assert_eq!(repeated.counters[0].running, Some(0.5));
    }

    #[test]
    fn a_table_is_not_that() {
        assert!(sections_of_fields("metric,unit,cycles\nx,y,5\n").is_empty());
        assert!(sections_of_fields("size,threads,cycles\n64,1,100\n").is_empty());
    }

    proptest! {
        #[test]
        fn nothing_panics_on_fields(text in "[\\PC\n\t]{0,120}") {
            let _ = sections_of_fields(&text);
        }

        #[test]
        fn field_like_lines_do_not_panic(
            lines in proptest::collection::vec(
                "[0-9.]{0,5},(msec)?,(cs|cycles|task-clock)(,[0-9.%]{0,5}){0,4}", 0..6,
            ),
        ) {
            let _ = sections_of_fields(&lines.join("\n"));
        }
    }
}
