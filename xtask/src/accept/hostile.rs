//! Issue 26: what a stranger plants, all of it at once, and root's commands beside it.

use super::process::Job;
use super::{Bench, Judged, Outcome};

/// The stranger, and root.
const SCRIPT: &str = include_str!("hostile.py");

/// Mounts and sockets are seen by nobody else, and end with the script.
const APART: [&str; 7] =
    ["--mount", "--net", "--propagation", "private", "--kill-child", "--fork", "python3"];

pub(crate) fn check(bench: &Bench) -> Judged {
    if crate::testing::own_user() != Ok(0) {
        return Ok(Outcome::Skip("the commands are root's, and need root".to_owned()));
    }
    let home = bench.home("hostile")?;
    // The stranger must reach his part of it.
    let arena = tempfile::Builder::new()
        .prefix("iolens-hostile-")
        .tempdir()
        .map_err(|e| format!("cannot make a folder: {e}"))?;
    let tool = arena.path().join("iolens");
    std::fs::copy(&bench.tool, &tool).map_err(|e| format!("cannot copy the tool: {e}"))?;
    let script = home.join("hostile.py");
    std::fs::write(&script, SCRIPT).map_err(|e| format!("cannot write {script:?}: {e}"))?;
    let words: Vec<String> = APART
        .iter()
        .map(|&word| word.to_owned())
        .chain([&script, &tool, &arena.path().to_owned()].map(|path| path.display().to_string()))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = Job::new("unshare").args(&words).limit_minutes(5).run()?;
    let (said, why) = (done.stdout(), done.stderr());
    let commands = said.lines().filter(|line| line.starts_with("ok ")).count();
    let others = said.lines().filter(|line| !line.starts_with("ok ") && !line.starts_with("-- "));
    let mut evidence = vec![format!("{commands} commands of root's ended as they should")];
    evidence.extend(others.map(str::to_owned));
    evidence.extend((!why.is_empty()).then_some(why));
    let evidence = evidence.join("\n");
    let passes = done.status.success() && commands > 0;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}
