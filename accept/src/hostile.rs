//! Issue 26: what a stranger plants, all of it at once, and root's commands beside it.

use super::process::Job;
use super::{Bench, Judged, Outcome};

/// The stranger, and root.
const SCRIPT: &str = include_str!("hostile.py");

/// Mounts and sockets are seen by nobody else, and end with the script.
const APART: [&str; 6] = ["--mount", "--net", "--propagation", "private", "--kill-child", "--fork"];

pub(crate) fn check(bench: &Bench) -> Judged {
    if super::process::own_user() != Ok(0) {
        return Ok(Outcome::Skip("the commands are root's, and need root".to_owned()));
    }
    // The stranger uses it too, and the build directory may be closed to him.
    let arena = bench.home("hostile")?;
    let tool = arena.join("iolens");
    std::fs::copy(&bench.tool, &tool).map_err(|e| format!("cannot copy the tool: {e}"))?;
    let paths = [tool.display().to_string(), arena.display().to_string()];
    let words = [&APART[..], &["python3", "-c", SCRIPT], &[&paths[0], &paths[1]]].concat();
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
