//! Servers and what loads them, each on its own and in runs.

use crate::prelude::*;
use crate::process::own_user;

mod crowd;
mod oracle;
mod rivals;
mod search;
pub mod serving;

pub const FUNCTIONS: Functions = &[
    ("crowd", crowd::check),
    ("top2", top2),
    ("oracle", oracle::check),
    ("wrk", rivals::wrk),
    ("echo-in-c", rivals::echo_in_c),
    ("limits", crowd::limits),
    ("search", search::check),
];

/// The other reading, and the processes that have the names.
const SCRIPT: &str = include_str!("servers/top2.py");

/// `top2` beside an independent reading of /proc, with hostile names running.
fn top2(bench: &Bench) -> Res {
    let models = serving::models(bench)?;
    // Who is not root gets the same with a user namespace, where the machine allows it.
    let user = if own_user()? == 0 { "" } else { "--user --map-root-user" };
    let apart = format!("unshare {user} --pid --fork --kill-child --mount-proc python3 -c");
    for (place, command) in [("in a pid namespace", apart.as_str()), ("anywhere", "python3 -c")] {
        let job = Job::of(command).arg(SCRIPT).arg(&bench.tool).args(&models);
        let json = bench.at_home(job).minutes(4).json()?;
        bench.note("where", place);
        if place != "anywhere" {
            bench.ask("hostile names", &json, &Value::Null);
        }
        bench.ask("an independent reading", &json, &json!(models));
    }
    Ok(())
}
