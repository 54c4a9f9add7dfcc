//! Issue 3: the classic three with everything around them.

use std::time::Duration;

use super::results::{self, ArmResult};
use super::{Bench, Judged, Line, Outcome, kill, throttle};

pub(crate) const LINES: &[Line] = &[
    Line {
        issue: 3,
        id: "a",
        promise: "`run net --quick` names the cheapest of the classic three at each size within \
                  60 s, on veth where permitted",
        check: check_quick,
    },
    Line {
        issue: 3,
        id: "b",
        promise: "`run plans/classic-48.toml` gives all 48 arm-cells or the reason within 5 \
                  minutes, every zero-copy row copied with completions equal to sends, the \
                  crossover of one-copy and two-copy as a band, and of 48 contrasts at least 40 \
                  within ±3 % and none beyond ±8 %",
        check: check_classic_48,
    },
    Line {
        issue: 3,
        id: "c",
        promise: "over 20 cells of one full run the A/A arm is FASTER or SLOWER in none and \
                  excludes 1 pointwise in at most 4",
        check: check_self_check,
    },
    Line {
        issue: 3,
        id: "d",
        promise: "a tbf of 100 Mbit/s on the veth reads as that rate less the headers within 1 % \
                  with `--sequential-time 4s`",
        check: throttle::check,
    },
    Line {
        issue: 3,
        id: "e",
        promise: "ten SIGKILLs during veth runs leave no namespace, device, process or file and \
                  lose no committed trial",
        check: kill::check_veth,
    },
    Line {
        issue: 3,
        id: "f",
        promise: "`run plans/classic-72.toml` keeps to the time it states within a quarter",
        check: check_classic_72,
    },
];

const CLASSIC: [&str; 3] = ["send_staged", "sendmsg_iov", "sendmsg_zerocopy"];

/// A plan of this repository.
fn plan(name: &str) -> String {
    crate::root().join("plans").join(name).display().to_string()
}

const QUICK_LIMIT: Duration = Duration::from_secs(60);

fn check_quick(bench: &Bench) -> Judged {
    let run = bench.iolens("quick-3", &["run", "net", "--quick"])?.limit_minutes(3);
    let run = run.run()?.success()?;
    let stdout = run.stdout();
    let sizes: [u64; 3] = [1 << 10, 16 << 10, 256 << 10];
    let json = bench.iolens_json("quick-3", &["show", "last", "--json"], 1)?.json;
    let rankings = results::rankings(&json);
    let names_one = |size: &u64| {
        let mut own = rankings.iter().filter(|ranking| ranking.message_bytes == *size);
        own.any(|ranking| ranking.methods.iter().any(|one| CLASSIC.contains(&one.as_str())))
    };
    let named = sizes.iter().copied().filter(names_one).count();
    let topology = if stdout.contains(" · veth · ") { "veth" } else { "no veth" };
    let seconds = run.elapsed.as_secs_f64();
    let evidence = format!(
        "{seconds:.1} s, {topology}, {named} of 3 sizes named\n{}",
        stdout.lines().skip_while(|line| !line.starts_with("Use")).collect::<Vec<_>>().join("\n")
    );
    let passes = run.elapsed <= QUICK_LIMIT && named == sizes.len() && topology == "veth";
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

const CLASSIC_48_SECONDS: f64 = 300.0;
const NARROW: f64 = 0.03;
const NARROW_MIN: usize = 40;
const WIDEST: f64 = 0.08;

fn check_classic_48(bench: &Bench) -> Judged {
    let plan = plan("classic-48.toml");
    let run = bench.iolens("classic-48", &["run", &plan, "--progress", "plain"])?;
    let run = run.limit_minutes(8).run()?.success()?;
    let seconds = run.elapsed.as_secs_f64();
    let json = bench.iolens_json("classic-48", &["show", "last", "--json"], 1)?.json;
    let arms = results::arms(&json);
    let classic: Vec<&ArmResult> = arms
        .iter()
        .filter(|arm| CLASSIC.contains(&arm.primitive.as_str()) && arm.role != "self_check")
        .collect();
    let explained = |arm: &&&ArmResult| arm.goodput_bits_per_s.is_some() || arm.reason.is_some();
    let given = classic.iter().filter(explained).count();
    let zerocopy: Vec<_> = classic.iter().filter(|arm| arm.primitive == CLASSIC[2]).collect();
    let copied = zerocopy.iter().filter(|arm| arm.is_copied_and_complete()).count();
    let widths: Vec<f64> = arms
        .iter()
        .filter(|arm| arm.role == "compared" || arm.role == "self_check")
        .filter_map(|arm| arm.half_width)
        .collect();
    let narrow = widths.iter().filter(|&&width| width <= NARROW).count();
    let widest = widths.iter().copied().fold(0.0, f64::max);
    let floor = run.stdout().lines().find(|line| line.contains("Noise floor")).map(str::to_owned);
    let text = run.stdout().replace("\n  ", " ");
    let bands: Vec<&str> =
        text.lines().filter(|l| l.contains("sendmsg_iov") && l.contains("overtake")).collect();
    let evidence = format!(
        "{seconds:.0} s; {given} of {} arm-cells given or explained; {copied} of {} zero-copy rows \
         copied with completions = sends; {narrow} of {} contrasts within ±3 %, widest ±{:.1} %\n\
         {}\n{}",
        classic.len(),
        zerocopy.len(),
        widths.len(),
        100.0 * widest,
        floor.unwrap_or_default().trim(),
        bands.join("\n"),
    );
    let passes = seconds <= CLASSIC_48_SECONDS
        && (given, classic.len()) == (48, 48)
        && (copied, zerocopy.len()) == (16, 16)
        && !bands.is_empty()
        && widths.len() == 48
        && narrow >= NARROW_MIN
        && widest <= WIDEST;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

const SELF_CHECK_CELLS: usize = 20;
const EXCLUDING_MAX: usize = 4;

fn check_self_check(bench: &Bench) -> Judged {
    let args = "run net --methods send_staged,sendmsg_iov,sendmsg_zerocopy --threads 1,2,4,8 \
                --sizes 256,1KiB,4KiB,16KiB,64KiB --network veth --budget 5m --json";
    let args: Vec<&str> = args.split_whitespace().collect();
    let json = bench.iolens_json("self-check", &args, 10)?.json;
    let mut arms = results::arms(&json);
    arms.retain(|arm| arm.role == "self_check");
    let judged = arms.iter().filter(|arm| matches!(arm.verdict.as_str(), "FASTER" | "SLOWER"));
    let judged = judged.count();
    let excluding = arms.iter().filter(|arm| arm.excludes_one).count();
    let evidence = format!(
        "{} cells: {judged} A/A arms FASTER or SLOWER, {excluding} exclude 1 pointwise",
        arms.len()
    );
    let passes = arms.len() == SELF_CHECK_CELLS && judged == 0 && excluding <= EXCLUDING_MAX;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

const TIME_SHARE: f64 = 0.25;

fn check_classic_72(bench: &Bench) -> Judged {
    let plan = plan("classic-72.toml");
    let run = bench.iolens("classic-72", &["run", &plan, "--progress", "plain"])?;
    let run = run.limit_minutes(40).run()?.success()?;
    let stated = run.stderr_lines().iter().find_map(|(_, line)| stated_seconds(line));
    let stated = stated.ok_or("the run did not say how long it would take")?;
    let seconds = run.elapsed.as_secs_f64();
    let ratio = seconds / stated;
    let evidence = format!("stated {stated:.0} s, took {seconds:.0} s: {ratio:.2}");
    let passes = (1.0 - TIME_SHARE..=1.0 + TIME_SHARE).contains(&ratio);
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Seconds in a line that says `expected time: about 4.5 min`.
fn stated_seconds(line: &str) -> Option<f64> {
    let words = line.split("expected time: about ").nth(1)?.split([';', ',', '(']).next()?;
    let number = |part: &str| {
        let at = part.find(|c: char| c.is_alphabetic())?;
        let value: f64 = part[..at].trim().parse().ok()?;
        let unit = match part[at..].trim_end_matches('.') {
            "h" => 3600.0,
            "m" | "min" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            _ => return None,
        };
        Some(value * unit)
    };
    // `4m 30s` and `270 s`: a number and its unit may stand apart.
    let mut parts: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match parts.last_mut() {
            Some(last) if last.chars().all(|c| c.is_ascii_digit() || c == '.') => {
                last.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
    }
    parts.iter().map(|part| number(part)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_time_is_read() {
        let seconds = |text: &str| stated_seconds(&format!("expected time: about {text}; more"));
        assert_eq!(seconds("4m 30s"), Some(270.0));
        assert_eq!(seconds("8.34 min"), Some(500.4));
        assert_eq!(seconds("1h 2m"), Some(3720.0));
        assert_eq!(seconds("38.5 s"), Some(38.5));
        assert_eq!(seconds("soon"), None);
        assert_eq!(stated_seconds("nothing is said"), None);
    }
}
