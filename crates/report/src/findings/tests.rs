//! What is found is documented, and told once.

use iolens_stats::analysis::Verdict;

use super::*;
use crate::{fixture, fixture_findings};

/// `docs/findings.md` has a row for every kind that a run can have.
#[test]
fn every_finding_is_documented() {
    let page = include_str!("../../../../docs/findings.md");
    let (run, analysis) = fixture_findings::findings();
    let mut all = super::all(&run, &analysis.shown());
    for (run, analysis) in
        [crate::studies::files::tests::run(), crate::studies::files::writes::tests::run()]
    {
        all.extend(super::all(&run, &analysis.shown()));
    }
    all.extend([
        Finding::SharedCpu { cpu: 0 },
        Finding::Confirms { run: "aa000001".to_owned() },
        Finding::Sequential,
        Finding::Dropped,
        Finding::HeldBack { methods: Vec::new() },
        Finding::SendBuffers(SendBuffers::default()),
        Finding::Connections { senders: Vec::new() },
        Finding::ReadByCalls { readers: Vec::new() },
        Finding::Neighbours { correlation: 0.2, widened: 1.2 },
        Finding::Warning { warning: Warning::CountersClosed },
        Finding::GoesWithCost(GoesWithCost {
            setting: analysis.cells[0].cell.clone(),
            one_per_connection: None,
            counter: "branches",
            rank_correlation: 0.9,
            models: 5,
        }),
    ]);
    for finding in all {
        let json = serde_json::to_value(&finding).expect("plain data");
        let kind = json["finding"].as_str().expect("a tag");
        let row = page.lines().find(|line| line.starts_with(&format!("| `{kind}` |")));
        let row = row.unwrap_or_else(|| panic!("no row for {kind}"));
        let is_told = |key: &&String| key.as_str() != "finding" && json["outcome"].is_null();
        for key in json.as_object().expect("an object").keys().filter(is_told) {
            assert!(row.contains(&format!("`{key}`")), "{kind} has no {key}: {row}");
        }
    }
}

#[test]
fn every_kind_of_remark_and_warning_is_documented() {
    let page = include_str!("../../../../docs/findings.md");
    let remarks = crate::remarks::tests::kinds();
    let remarks = remarks.iter().map(|kind| serde_json::to_value(kind).expect("plain data"));
    let warnings = crate::remarks::tests::warnings();
    let warnings = warnings.iter().map(|one| serde_json::to_value(one).expect("plain data"));
    for json in remarks.chain(warnings) {
        let kind = json["kind"].as_str().expect("a tag");
        let below = page.split_once("Kinds of remarks.").expect("their tables").1;
        let row = below.lines().find(|line| line.starts_with(&format!("| `{kind}` |")));
        let row = row.unwrap_or_else(|| panic!("no row for {kind}"));
        let keys = json.as_object().expect("an object").keys();
        for key in keys.filter(|key| *key != "kind") {
            assert!(row.contains(&format!("`{key}`")), "{kind} has no {key}: {row}");
        }
    }
}

/// Who is ahead in the first cell with its contrasts replaced.
fn answer_with(changes: [(usize, f64, f64, Verdict); 3]) -> Outcome {
    let (run, mut analysis) = fixture::run();
    // As if it sent scattered fields, so that three arms are ranked.
    analysis.cells[0].arms[1].condition = None;
    for (index, ratio, half, verdict) in changes {
        let contrast = analysis.cells[0].arms[index].contrast.as_mut().expect("compared");
        let interval = Interval { low: ratio - half, high: ratio + half };
        contrast.ratio = ratio;
        (contrast.pointwise, contrast.simultaneous) = (Some(interval), Some(interval));
        contrast.verdict = verdict;
        contrast.trials_needed = (verdict == Verdict::Inconclusive).then_some(61);
    }
    // What follows for `send` against `sendmsg_iov` where that one is exact.
    let (ratio, half) = (changes[0].1 / changes[2].1, changes[0].2.max(0.01));
    for pair in &mut analysis.cells[0].pairs {
        pair.simultaneous = Some(Interval { low: ratio - half, high: ratio + half });
    }
    rankings(&run, &analysis).remove(0).outcome
}

#[test]
fn ties_and_open_questions_are_told_as_such() {
    let slower = (2, 0.5, 0.01, Verdict::Slower);
    let same = |outcome: &Outcome, names: [&str; 2]| {
        let Outcome::Same { methods } = outcome else { return false };
        methods.len() == 2 && names.iter().all(|name| methods.iter().any(|own| own == name))
    };
    let tie = answer_with([
        (1, 1.30, 0.005, Verdict::Faster),
        slower,
        (3, 1.301, 0.005, Verdict::Faster),
    ]);
    assert!(same(&tie, ["send", "sendmsg_iov"]), "{tie:?}");
    let even = answer_with([
        (1, 1.01, 0.01, Verdict::Equivalent),
        slower,
        (3, 0.9, 0.01, Verdict::Slower),
    ]);
    assert!(same(&even, ["send", "send_staged"]), "{even:?}");
    let open = answer_with([
        (1, 1.05, 0.2, Verdict::Inconclusive),
        slower,
        (3, 0.7, 0.01, Verdict::Slower),
    ]);
    let is_open = matches!(&open, Outcome::Undecided { methods, more_trials: Some(49) }
        if *methods == ["send", "send_staged"]);
    assert!(is_open, "{open:?}");
    let baseline =
        answer_with([(1, 0.9, 0.01, Verdict::Slower), slower, (3, 0.7, 0.01, Verdict::Slower)]);
    let is_it = matches!(&baseline, Outcome::Fastest { method, against: None }
        if method == "send_staged");
    assert!(is_it, "{baseline:?}");
}

/// The trials that an arm needs against the baseline do not decide between it and another arm.
#[test]
fn trials_are_counted_for_the_question_that_is_open() {
    let slower = (2, 0.5, 0.01, Verdict::Slower);
    let wide = |index, ratio| (index, ratio, 0.2, Verdict::Inconclusive);
    let told = |outcome: Outcome| {
        let Outcome::Undecided { methods, more_trials } = &outcome else { panic!("{outcome:?}") };
        (methods.join(", "), *more_trials)
    };
    let pair = told(answer_with([wide(1, 1.05), slower, (3, 1.04, 0.005, Verdict::Faster)]));
    assert_eq!(pair, ("send, sendmsg_iov".to_owned(), None));
    let all = told(answer_with([wide(1, 1.05), slower, wide(3, 1.04)]));
    assert_eq!(all, ("send, sendmsg_iov, send_staged".to_owned(), Some(49)));
}
