//! Every plain tool and a run on each file system, in a mount namespace of its
//! own, copies that share blocks and that go on where they were interrupted, a device
//! that fails and a quota that is used up.

use crate::prelude::*;

const KINDS: [&str; 8] = ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuse", "failing", "quota"];

/// Mounts, uses the tool, and unmounts.
const SCRIPT: &str = include_str!("file_systems.sh");

pub fn check(bench: &Bench) -> Res {
    let listed = bench.json("list engines --json")?;
    let of_task = |task: &str| listed.names("engines", |engine| engine["task"] == task).join(" ");
    let engines = ["read", "copy", "write"].map(of_task);
    for kind in KINDS {
        let used = on(&bench.room(&format!("file-systems-{kind}"))?, kind, &engines);
        bench.part(kind, used.map(|()| "used"));
    }
    Ok(())
}

/// Uses the tool on one kind.
fn on(bench: &Bench, kind: &str, engines: &[String; 3]) -> Res {
    let content = (0..1_048_579_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8);
    bench.write("source", content.collect::<Vec<u8>>())?;
    let job = Job::of("unshare --mount --propagation private sh -c").args([SCRIPT, "sh", kind]);
    let job = job.arg(bench.path("")).arg(&bench.tool).args(engines);
    let finished = bench.at_home(job).minutes(5).run()?;
    // The script's own codes.
    if let Some(code @ (8 | 9)) = finished.status.code() {
        bail!("it cannot be had ({code}): {}", finished.stderr());
    }
    finished.success()?;
    let said = said(bench);
    let left = bench.read("said/left").unwrap_or_default();
    let beside = json!({"left": left.trim(), "changed": bench.path("said/changed").exists()});
    match kind {
        "failing" => bench.ask("a device that fails", &said, &beside),
        "quota" => bench.ask("a quota that is used up", &said, &beside),
        _ => bench.ask("all works, or says why not", &said, &beside),
    }
    if ["ext4", "xfs", "btrfs"].contains(&kind) {
        bench.ask("a run of copies", &said, &beside);
    }
    Ok(())
}

/// What all commands said, by their names; without a code where one was not started.
fn said(bench: &Bench) -> Value {
    let of = |name: &str| {
        let text = |part: &str| bench.read(&format!("said/{name}.{part}")).unwrap_or_default();
        let code = text("code").trim().parse::<i32>().ok();
        json!({"code": code, "out": text("out"), "err": text("err")})
    };
    let names = names(bench.path("said"));
    let names = names.iter().filter_map(|name| name.strip_suffix(".code"));
    names.map(|name| (name.to_owned(), of(name))).collect()
}
