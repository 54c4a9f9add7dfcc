//! Questions about the messages of made-up runs.

use iolens_document::Joined;
use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Part;
use iolens_stats::analysis::{Interval, Verdict};
use proptest::prelude::*;

use super::*;
use crate::fixture;

const PLAIN: Style = Style::plain(100);

/// A run whose arms have CPU times that were compared: what a message costs by time, and for
/// a scattered one more.
fn counted((run, mut analysis): (Run, Analysis)) -> (Run, Analysis) {
    for cell in &mut analysis.cells {
        for arm in &mut cell.arms {
            arm.cpu_contrast = arm.contrast.clone();
            let Some(contrast) = arm.cpu_contrast.as_mut() else { continue };
            if arm.arm.label == "sendmsg_iov" {
                contrast.ratio /= 1.5;
                let scaled = |i: Interval| Interval { low: i.low / 1.5, high: i.high / 1.5 };
                contrast.pointwise = contrast.pointwise.map(scaled);
                contrast.simultaneous = contrast.simultaneous.map(scaled);
                contrast.verdict = Verdict::Slower;
            }
        }
        cell.cpu_pairs = cell.pairs.clone();
    }
    (run, analysis)
}

fn shown((run, analysis): &(Run, Analysis), cell: usize, source: &Source) -> String {
    text(&Answer { run, analysis, cell: &analysis.cells[cell], source }, &PLAIN)
}

fn object((run, analysis): &(Run, Analysis), cell: usize, source: &Source) -> Value {
    let answer = Answer { run, analysis, cell: &analysis.cells[cell], source };
    serde_json::from_str(&json(&answer)).expect("our own JSON parses")
}

#[test]
fn one_sentence_and_one_table_answer() {
    insta::assert_snapshot!(shown(&counted(fixture::run()), 1, &Source::Measured));
}

#[test]
fn a_first_look_is_indicative_and_many_connections_are_explained() {
    let stored = Source::Stored(vec![Part::Build, Part::Boot]);
    let text = shown(&counted(fixture::quick()), 4, &stored);
    let verdicts = ["FASTER", "SLOWER", "EQUIVALENT", "SMALL", "INCONCLUSIVE"];
    assert!(verdicts.iter().all(|verdict| !text.contains(verdict)), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn what_spoils_the_answer_is_said_first() {
    let (run, mut analysis) = counted(fixture::run());
    analysis.self_check.excluding_one = 5;
    let text = shown(&(run.clone(), analysis), 0, &Source::Measured);
    let (alarm, table) = (text.find("Do not use these numbers: 5 of 6"), text.find("throughput"));
    assert!(alarm.is_some() && alarm < table && !text.contains("Use "), "{text}");
    let (_, mut analysis) = counted(fixture::run());
    analysis.cells[0].arms[0].status = Status::Failed;
    analysis.cells[0].arms[0].reason = Some("ECONNREFUSED".to_owned());
    let text = shown(&(run, analysis), 0, &Source::Measured);
    assert!(text.contains("✗ send_staged failed: ECONNREFUSED"), "{text}");
    assert!(text.contains("Use        no answer"), "{text}");
}

#[test]
fn without_counted_cpu_time_nothing_is_said_of_it() {
    let run = fixture::run();
    let text = shown(&run, 1, &Source::Measured);
    assert!(text.contains("least CPU: no answer"), "{text}");
    let value = object(&run, 1, &Source::Measured);
    assert_eq!(value["answer"]["by_cpu"]["standing"], "no_answer");
    assert!(value["by_cpu"][1]["cpu_ratio"].is_null());
}

#[test]
fn a_message_of_one_field_is_in_one_piece_and_send_is_ranked() {
    let (run, mut analysis) = counted(fixture::run());
    let restricted = "only if the message is in one piece already";
    let scattered = shown(&(run.clone(), analysis.clone()), 0, &Source::Measured);
    assert!(scattered.contains(restricted), "{scattered}");
    for cell in &mut analysis.cells {
        if let Some(net) = cell.cell.net_mut() {
            net.fields = 1;
        }
    }
    let text = shown(&(run, analysis), 0, &Source::Measured);
    assert!(text.starts_with("ask · 64 B · 1 field · 1 connection · "), "{text}");
    assert!(!text.contains(restricted), "{text}");
}

#[test]
fn a_program_reads_who_is_cheapest_and_where() {
    let run = counted(fixture::run());
    let cell = &run.1.cells[1];
    let value = object(&run, 1, &Source::Stored(Vec::new()));
    assert_eq!(
        (&value["schema"], &value["run"], &value["stored"]),
        (&"iolens/2".into(), &"4f1c09ab".into(), &true.into())
    );
    let by_time = &value["answer"]["by_time"];
    assert_eq!(
        (&by_time["standing"], &by_time["best"]),
        (&"cheapest".into(), &"sendmsg_iov".into())
    );
    assert_eq!(value["answer"]["by_cpu"]["best"], "send_staged");
    assert_eq!(value["beside"].as_array().map(Vec::len), Some(2), "the other two sizes");
    assert_eq!(value["arms"].as_array().map(Vec::len), Some(cell.arms.len()));
    let cpu = &value["by_cpu"][0];
    assert!(cpu["cpu_ns_per_message"]["value"].is_number() && cpu["cpu_ratio"].is_null());
    let findings = value["findings"].as_array().expect("findings");
    assert!(findings.iter().any(|finding| finding["finding"] == "ranking"), "{findings:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the numbers are, nobody is called cheapest who is not surely ahead, the table
    /// and the object are whole, and nothing panics.
    #[test]
    fn nobody_is_cheapest_who_is_not_ahead(
        ratios in proptest::collection::vec((0.3f64..3.0, 0.0f64..0.5, any::<bool>()), 5),
        width in 40usize..140,
    ) {
        let (run, mut analysis) = fixture::run();
        let cell = &mut analysis.cells[1];
        cell.pairs.clear();
        for (arm, (ratio, half, counted)) in cell.arms.iter_mut().zip(ratios) {
            let Some(contrast) = arm.contrast.as_mut() else { continue };
            contrast.ratio = ratio;
            let interval = Interval { low: ratio * (1.0 - half), high: ratio * (1.0 + half) };
            (contrast.pointwise, contrast.simultaneous) = (Some(interval), Some(interval));
            contrast.verdict = match interval {
                i if i.low > 1.03 => Verdict::Faster,
                i if i.high < 0.97 => Verdict::Slower,
                _ => Verdict::Inconclusive,
            };
            arm.cpu_contrast = arm.contrast.clone().filter(|_| counted);
        }
        let cell = &analysis.cells[1];
        let answer = Answer { run: &run, analysis: &analysis, cell, source: &Source::Measured };
        let text = text(&answer, &Style::plain(width));
        let is_sure = |cell: &CellAnalysis| {
            matches!(standing(cell, analysis.delta, false), Standing::Cheapest { .. })
        };
        let open = ["undecided", "same within", "no answer", "no interval"];
        let said = text.split("\nUse ").nth(1).unwrap_or_default();
        let said = said.split("\nNearby").next().unwrap_or_default();
        let said = said.split_whitespace().joined(" ");
        let (by_time, by_cpu) = said.split_once("least CPU:").unwrap_or((&said, ""));
        for (said, is_sure) in [(by_time, is_sure(cell)), (by_cpu, is_sure(&cell.by_cpu()))] {
            prop_assert!(is_sure || open.iter().any(|word| said.contains(word)), "{text}");
        }
        for arm in &cell.arms {
            let is_told = matches!(arm.arm.role, Role::Baseline | Role::Compared);
            prop_assert!(!is_told || text.contains(&arm.arm.label), "{text}");
        }
        prop_assert!(serde_json::from_str::<Value>(&json(&answer)).is_ok());
    }
}
