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

pub fn check(bench: &Bench) -> Res {
    let before = sysctl()?;
    if before != "0" {
        bench.missing(format!("{SYSCTL} is {before} on this machine, 0 is needed"));
        return Ok(());
    }
    let json = bench.json(format!("{RUN} {QUICK}"))?;
    bench.judge("without consent untouched", sysctl()? == before && changed(&json) == 0, &before);
    bench.within(
        "sendmsg_zerocopy mapped",
        share(&json, "sendmsg_zerocopy")?,
        SHARE_MIN.next_up()..,
    );
    let said = bench.run("show last 1")?.stdout().replace("\n  ", " ");
    let why = said.lines().find(|line| line.contains("mapped") && line.contains("page"));
    let of_send = share(&json, "send")?;
    let words = format!("{of_send:.3}: {}", why.unwrap_or("no reason").trim());
    bench.judge("send mapped", of_send > SHARE_MIN || why.is_some(), words);
    let rest = consent(bench, &before).and_then(|()| kill(bench, &before));
    // Whatever was found: nothing of it is left on the machine.
    let _ = fs::write(SYSCTL, &before);
    rest
}

/// A run with consent maps what `send` sends, says so, and puts it back.
fn consent(bench: &Bench, before: &str) -> Res {
    let json = bench.json(format!("{RUN} {QUICK} --allow-sysctl"))?;
    bench.within("send mapped with --allow-sysctl", share(&json, "send")?, SHARE_MIN.next_up()..);
    bench.same("the sysctl afterwards", sysctl()?, before);
    bench.same("sysctls changed", changed(&json), 1);
    let said = bench.run("show last")?.stdout().replace("\n  ", " ");
    let beside = said.contains("of the bytes with net.core.high_order_alloc_disable=1");
    bench.holds("it is said beside the rows", beside);
    Ok(())
}

/// A run that is killed leaves it to the next start.
fn kill(bench: &Bench, before: &str) -> Res {
    let run = format!("{RUN} --methods send,write --progress plain --allow-sysctl");
    let mut running = bench.iolens(&run).minutes(1).start()?;
    running.watch(|_| sysctl().is_ok_and(|now| now != before));
    let during = sysctl()?;
    running.kill()?;
    bench.same("while a run goes on", during, "1");
    bench.same("after its SIGKILL", sysctl()?, "1");
    let next = bench.run("runs")?;
    bench.same("after the next start", sysctl()?, before);
    bench.said("which says so", next.noted("again: a run that was"));
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
