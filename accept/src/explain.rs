//! Where the CPU time goes, by classes that are known beforehand.

use serde_json::Value;

use super::{Bench, Judged, Outcome};

const RUN: &str = "run net --methods send,sendmsg_zerocopy,memcpy --baseline send --sizes 64KiB \
                   --threads 1 --network veth --quick --json";
const EXPLAIN: &str = "explain last 1 --arms send,sendmsg_zerocopy,memcpy --json";

/// Classes that only a zero-copy send has.
const OF_ZEROCOPY: [&str; 2] = ["late_copy", "page_pinning"];
/// What a share has to reach to be shown, and what one may have by accident.
const SHOWN_MIN: f64 = 0.02;
const NONE_MAX: f64 = 0.002;
const USER_MIN: f64 = 0.95;

/// The late copy and the pinning of a zero-copy send, and neither elsewhere.
pub(crate) fn check(bench: &Bench) -> Judged {
    let words = |line: &'static str| line.split_whitespace().collect::<Vec<_>>();
    bench.iolens("explain", &words(RUN))?.limit_minutes(3).run()?.success()?;
    let explained = bench.iolens_json("explain", &words(EXPLAIN), 5)?.json;
    if explained["attribution"]["kernel"] != Value::Bool(true) {
        return Ok(Outcome::Skip("this user may not sample the kernel".to_owned()));
    }
    let share = |arm: &str, class: &str| share(&explained, arm, class);
    let mut evidence: Vec<String> = Vec::new();
    let mut passes = true;
    for class in OF_ZEROCOPY {
        let (of_zerocopy, of_send) = (share("sendmsg_zerocopy", class), share("send", class));
        passes &= of_zerocopy >= SHOWN_MIN && of_send <= NONE_MAX;
        evidence.push(format!(
            "{class}: {:.1} % of sendmsg_zerocopy, {:.1} % of send",
            100.0 * of_zerocopy,
            100.0 * of_send
        ));
    }
    let user = share("memcpy", "user");
    passes &= user >= USER_MIN;
    evidence.push(format!("memcpy: {:.1} % user code", 100.0 * user));
    let sentences = explained["sentences"].as_array().into_iter().flatten();
    evidence.extend(sentences.filter_map(Value::as_str).map(str::to_owned));
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// The share of a class in the CPU time of an arm's both ends.
fn share(explained: &Value, arm: &str, class: &str) -> f64 {
    let arms = explained["attribution"]["arms"].as_array().into_iter().flatten();
    let of_arm = arms.filter(|found| found["arm"] == arm);
    let classes = of_arm.flat_map(|found| found["both"]["classes"].as_array()).flatten();
    let mut of_class = classes.filter(|found| found["class"] == class);
    of_class.find_map(|found| found["share"]["value"].as_f64()).unwrap_or(0.0)
}
