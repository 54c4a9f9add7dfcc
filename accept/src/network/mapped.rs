//! What a receiver maps, without a setting of the machine touched and with one
//! changed by consent, and that it is put back.

use std::fs;

use serde_json::Value;

use crate::bench::read;
use crate::prelude::*;

const SYSCTL: &str = "/proc/sys/net/core/high_order_alloc_disable";

const RUN: &str = "run net --network loopback --threads 1 --baseline send --sizes 1MiB --receivers \
                   tcp_zerocopy_receive";
const QUICK: &str = "--quick --methods send,sendmsg_zerocopy --json";
const SHARE_MIN: f64 = 0.9;

pub fn check(bench: &Bench, check: &mut Check) -> Res {
    let before = sysctl()?;
    if before != "0" {
        check.missing(format!("{SYSCTL} is {before} on this machine, 0 is needed"));
        return Ok(());
    }
    let json = bench.json(format!("{RUN} {QUICK}"))?;
    check.judge("without consent untouched", sysctl()? == before && changed(&json) == 0, &before);
    check.within(
        "sendmsg_zerocopy mapped",
        share(&json, "sendmsg_zerocopy")?,
        SHARE_MIN.next_up()..,
    );
    let said = bench.run("show last 1")?.stdout().replace("\n  ", " ");
    let why = said.lines().find(|line| line.contains("mapped") && line.contains("page"));
    let of_send = share(&json, "send")?;
    let words = format!("{of_send:.3}: {}", why.unwrap_or("no reason").trim());
    check.judge("send mapped", of_send > SHARE_MIN || why.is_some(), words);
    let rest = consent(bench, check, &before).and_then(|()| kill(bench, check, &before));
    // Whatever was found: nothing of it is left on the machine.
    let _ = fs::write(SYSCTL, &before);
    rest
}

/// A run with consent maps what `send` sends, says so, and puts it back.
fn consent(bench: &Bench, check: &mut Check, before: &str) -> Res {
    let json = bench.json(format!("{RUN} {QUICK} --allow-sysctl"))?;
    check.within("send mapped with --allow-sysctl", share(&json, "send")?, SHARE_MIN.next_up()..);
    check.same("the sysctl afterwards", sysctl()?, before);
    check.same("sysctls changed", changed(&json), 1);
    let said = bench.run("show last")?.stdout().replace("\n  ", " ");
    let beside = said.contains("of the bytes with net.core.high_order_alloc_disable=1");
    check.holds("it is said beside the rows", beside);
    Ok(())
}

/// A run that is killed leaves it to the next start.
fn kill(bench: &Bench, check: &mut Check, before: &str) -> Res {
    let run = format!("{RUN} --methods send,write --progress plain --allow-sysctl");
    let mut running = bench.iolens(&run).minutes(1).start()?;
    running.watch(|_| sysctl().is_ok_and(|now| now != before));
    let during = sysctl()?;
    running.kill()?;
    check.same("while a run goes on", during, "1");
    check.same("after its SIGKILL", sysctl()?, "1");
    let next = bench.run("runs")?;
    check.same("after the next start", sysctl()?, before);
    check.said("which says so", next.noted("again: a run that was"));
    Ok(())
}

fn sysctl() -> Res<String> {
    Ok(read(SYSCTL.as_ref())?.trim().to_owned())
}

/// Sysctls that the run says were changed for it.
fn changed(json: &Value) -> usize {
    json.list("run/host/changed").len()
}

/// Share of an arm's bytes that was mapped.
fn share(json: &Value, arm: &str) -> Res<f64> {
    json.row_of(arm)?.need("rx_mapped_share")
}
