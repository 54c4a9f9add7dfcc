//! What a receiver maps, without a setting of the machine touched and with one
//! changed by consent, and that it is put back.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::issue_5::{rows, words};
use super::{Bench, Judged, Outcome};

const SYSCTL: &str = "/proc/sys/net/core/high_order_alloc_disable";

const RUN: &str = "run net --network loopback --threads 1 --quick --methods \
                   send,sendmsg_zerocopy --baseline send --sizes 1MiB --receivers \
                   tcp_zerocopy_receive --json";
const CONSENT: &str = "run net --network loopback --threads 1 --quick --methods \
                       send,sendmsg_zerocopy --baseline send --sizes 1MiB --receivers \
                       tcp_zerocopy_receive --json --allow-sysctl";
const KILLED: &str = "run net --network loopback --threads 1 --methods send,write \
                      --baseline send --sizes 1MiB --receivers tcp_zerocopy_receive \
                      --progress plain --allow-sysctl";
const SHARE_MIN: f64 = 0.9;

/// No run takes longer to begin.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

pub(super) fn check(bench: &Bench) -> Judged {
    let before = sysctl()?;
    if before != "0" {
        return Ok(Outcome::Skip(format!("{SYSCTL} is {before} on this machine, 0 is needed")));
    }
    let json = bench.iolens_json("mapped", &words(RUN), 3)?.json;
    let (of_zerocopy, of_send) = (share(&json, "sendmsg_zerocopy")?, share(&json, "send")?);
    let untouched = sysctl()? == before && changed(&json) == 0;
    let said = bench.iolens("mapped", &["show", "last", "1"])?.run()?.success()?.stdout();
    let why = said.replace("\n  ", " ");
    let why = why.lines().find(|line| line.contains("mapped") && line.contains("page"));
    let mut evidence = vec![format!(
        "without consent: sysctl {}; sendmsg_zerocopy {of_zerocopy:.3} mapped, send \
         {of_send:.3}: {}",
        if untouched { "untouched" } else { "TOUCHED" },
        why.unwrap_or("no reason").trim()
    )];
    let mut passes = untouched && of_zerocopy > SHARE_MIN && (of_send > SHARE_MIN || why.is_some());
    if super::process::own_user()? != 0 {
        evidence.push("only root may set sysctls: the rest was not tried".to_owned());
        return Ok(Outcome::Skip(evidence.join("\n")));
    }
    let with_consent = consent(bench, &before);
    let killed = with_consent.and_then(|first| Ok([first, kill(bench, &before)?]));
    // Whatever was found: nothing of it is left on the machine.
    let _ = fs::write(SYSCTL, &before);
    for (good, words) in killed? {
        passes &= good;
        evidence.push(words);
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// A run with consent maps what `send` sends, says so, and puts it back.
fn consent(bench: &Bench, before: &str) -> Result<(bool, String), String> {
    let json = bench.iolens_json("mapped", &words(CONSENT), 3)?.json;
    let (of_send, after) = (share(&json, "send")?, sysctl()?);
    let said = bench.iolens("mapped", &["show", "last"])?.run()?.success()?.stdout();
    let beside = said.replace("\n  ", " ");
    let beside = beside.contains("of the bytes with net.core.high_order_alloc_disable=1");
    let good = of_send > SHARE_MIN && after == before && changed(&json) == 1 && beside;
    let words = format!(
        "with --allow-sysctl: send {of_send:.3} mapped, {} beside the rows; {after} afterwards",
        if beside { "said" } else { "NOT said" }
    );
    Ok((good, words))
}

/// A run that is killed leaves it to the next start.
fn kill(bench: &Bench, before: &str) -> Result<(bool, String), String> {
    let mut running = bench.iolens("mapped", &words(KILLED))?.start()?;
    let begin = Instant::now();
    while sysctl()? == before && running.is_running() && begin.elapsed() < LIMIT {
        std::thread::sleep(POLL);
    }
    let during = sysctl()?;
    running.kill()?;
    let left = sysctl()?;
    let next = bench.iolens("mapped", &["runs"])?.run()?.success()?;
    let after = sysctl()?;
    let said = next.stderr_lines().iter().any(|(_, line)| line.contains("again: a run that was"));
    let good = [during.as_str(), &left] == ["1", "1"] && after == before && said;
    let said = if said { "said" } else { "NOT said" };
    Ok((
        good,
        format!(
            "{during} while a run went on, {left} after its SIGKILL, {after} after the next start, {said}"
        ),
    ))
}

fn sysctl() -> Result<String, String> {
    let text = fs::read_to_string(SYSCTL).map_err(|e| format!("cannot read {SYSCTL}: {e}"))?;
    Ok(text.trim().to_owned())
}

/// Sysctls that the run says were changed for it.
fn changed(json: &Value) -> usize {
    json["run"]["host"]["changed"].as_array().map_or(0, Vec::len)
}

/// Share of an arm's bytes that was mapped.
fn share(json: &Value, arm: &str) -> Result<f64, String> {
    let row = rows(json).find(|row| row["arm"] == arm).ok_or_else(|| format!("no row of {arm}"))?;
    row["rx_mapped_share"].as_f64().ok_or_else(|| format!("{arm} has no mapped share"))
}
