//! Issue 8: an arm that is known to be slower, by how much is known too.
//!
//! Servers that work for a fixed time on each request are the one place where a user can
//! set the cost of an arm to the microsecond, and `--external` makes any program an arm: so
//! iolens itself serves beside the model it is compared with, once with as much work for
//! each request and once with 20 % more. No arm is changed for the sake of the test.

use serde_json::Value;

use super::{Bench, Judged, Outcome};

/// Work on each request, µs: so long that what else a request costs, some ten of them, is
/// nothing beside it.
const WORK_US: u32 = 4000;

/// The same with the handicap.
const HANDICAPPED_US: u32 = WORK_US * 12 / 10;

pub(crate) fn check(bench: &Bench) -> Judged {
    let program = |name: &str, work_us: u32| {
        let tool = bench.tool.display();
        format!("{name}='{tool} serve epoll_lt --service burn:{work_us} --listen :{{port}}'")
    };
    let (same, slow) = (program("same", WORK_US), program("slow", HANDICAPPED_US));
    let service = format!("burn:{WORK_US}");
    let line = "run server --primitives epoll_lt --connections 1 --length long --load closed \
                --topologies loopback --budget 4m --progress none --json";
    let mut args: Vec<&str> = line.split_whitespace().collect();
    args.extend(["--services", &service, "--external", &same, "--external", &slow]);
    let json = bench.iolens_json("handicap", &args, 8)?.json;
    let rows: Vec<&Value> = json["cells"].as_array().into_iter().flatten().collect();
    let of = |name: &str| rows.iter().find(|row| row["primitive"] == name).copied();
    let (same, slow) = of("same").zip(of("slow")).ok_or("the programs are not among the rows")?;
    let right = f64::from(WORK_US) / f64::from(HANDICAPPED_US);
    let bounds = slow["ratio_low"].as_f64().zip(slow["ratio_high"].as_f64());
    let covers = bounds.is_some_and(|(low, high)| (low..=high).contains(&right));
    let others = rows.iter().filter(|row| row["primitive"] != "slow");
    let is_alone = others.clone().all(|row| row["verdict"] != "SLOWER");
    let words = |name: &str, row: &Value| format!("{name}: {}", super::results::ratio_words(row));
    let evidence = format!(
        "{}\n{}\nby right {right:.3}; SLOWER besides: {}",
        words("slow, +20 %", slow),
        words("same work", same),
        others.filter(|row| row["verdict"] == "SLOWER").count()
    );
    let passes = slow["verdict"] == "SLOWER" && covers && is_alone;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}
