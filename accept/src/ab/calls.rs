//! System calls per operation: exact, in several languages and as an ordinary user.

use crate::prelude::*;
use crate::user::users;

/// An example of the guide: its language, file, how it is built, and how it starts.
const EXAMPLES: [(&str, &str, &str, &str, &str); 3] = [
    ("C", "bench.c", include_str!("../../../docs/ab/bench.c"), "cc -O2 -o c bench.c", "./c"),
    (
        "Rust",
        "bench.rs",
        include_str!("../../../docs/ab/bench.rs"),
        "rustc -O -o r bench.rs",
        "./r",
    ),
    ("Python", "bench.py", include_str!("../../../docs/ab/bench.py"), "true", "python3 bench.py"),
];

/// Twenty reads of a block against twenty-one.
pub fn calls(bench: &Bench) -> Res {
    for user in users(bench)? {
        let (id, room) = (user.id, &user.bench);
        for (language, file, source, build, start) in EXAMPLES {
            room.write(file, source)?;
            room.at_home(Job::of(build)).env("TMPDIR", "/tmp").success()?;
            let words = "ab --loop --budget 4s --progress none --wait --json";
            let job = user.job(&room.tool, words).minutes(5);
            let done = job.args([20, 21].map(|reads| format!("{start} {reads}"))).run()?;
            let result = done.json().with_context(|| done.stderr())?;
            counted(bench, &format!("{language}, user {id}"), &result)?;
        }
    }
    for (language, .., start) in EXAMPLES {
        by_tracepoints(bench, language, start)?;
    }
    Ok(())
}

/// By the tracepoints, where tracefs is mounted, here for one command alone.
fn by_tracepoints(bench: &Bench, language: &str, start: &str) -> Res {
    const SCRIPT: &str = "[ -e /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing; \
         exec \"$@\"";
    let Some(root) = users(bench)?.into_iter().find(|user| user.id == 0) else {
        bail!("needs root");
    };
    let job = Job::of("unshare -m sh -c").arg(SCRIPT).arg("sh").arg(&root.bench.tool);
    let job = job.words("ab --loop --budget 4s --progress none --wait --json").minutes(5);
    let job = job.env("HOME", root.bench.path("")).directory(&root.bench.path(""));
    let done = job.args([20, 21].map(|reads| format!("{start} {reads}"))).run()?;
    let result = done.json().with_context(|| done.stderr())?;
    counted(bench, &format!("{language}, by tracepoints"), &result)?;
    let by = |arm: usize| result["settings"][0]["arms"][arm]["calls_by"].as_str();
    bench.same("counted by", [by(0), by(1)], [Some("tracepoints"); 2]);
    Ok(())
}

/// Twenty reads of an operation, and twenty-one.
fn counted(bench: &Bench, who: &str, result: &Value) -> Res {
    for (arm, expected) in [(0, 20.0), (1, 21.0)] {
        let all = result["settings"][0]["arms"][arm]["calls"].as_array();
        let all = all.with_context(|| format!("no calls in {result}"))?;
        let own = all.iter().find(|one| one["name"] == "pread64").context("no pread64")?;
        let what = format!("{who}: pread64 per operation");
        bench.same(what, own["per_operation"].as_f64(), Some(expected));
        bench.same("exactly", own["is_exact"].as_bool(), Some(true));
        let more = all.iter().filter(|one| one["per_operation"] != 0.0).count() - 1;
        bench.note("other calls of each operation", more);
    }
    Ok(())
}
