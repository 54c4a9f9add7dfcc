//! What asking for a slice costs, and how far it takes away from a change.

use super::{KINDS, built, compared, times};
use crate::prelude::*;

/// What asking for a slice may take, ns.
const ASKING_NS_MAX: f64 = 20_000.0;

/// Five operations more for each hundred.
pub fn cost(bench: &Bench) -> Res {
    built(bench)?;
    // Work that waits for memory shows less of itself in a short slice: see `power`.
    for kind in &KINDS[..2] {
        let mut changes = Vec::new();
        for _ in 0..times() {
            let flags = "--loop --threshold 0.5% --budget 10s";
            let commands = [format!("./work {kind} 100"), format!("./work {kind} 105")];
            let commands = commands.each_ref().map(String::as_str);
            changes.push(compared(bench, flags, commands)?.0[1].change * 100.0);
        }
        changes.sort_by(f64::total_cmp);
        let words: Vec<String> = changes.iter().map(|change| format!("{change:.2}")).collect();
        bench.note(format!("{kind}, changes in CPU time, %"), words.join(", "));
        let middle = changes[changes.len() / 2];
        bench.within(format!("{kind}: 5 % planted read, median, as %"), middle, 4.7..=5.1);
    }
    let shown = bench.json("show last --json")?;
    for arm in [0, 1] {
        let asking = &shown["settings"][0]["arms"][arm]["asking_ns_per_slice"];
        let asking = asking.as_f64().with_context(|| format!("no time of asking in {shown}"))?;
        bench.within(format!("asking for a slice, ns, program {arm}"), asking, ..=ASKING_NS_MAX);
    }
    Ok(())
}
