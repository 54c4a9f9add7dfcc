//! Servers and what loads them, each on its own and in runs.

mod crowd;
mod oracle;
mod rivals;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::prelude::*;
use crate::process::{Finished, Running, own_user, process};

pub const FUNCTIONS: Functions = &[
    ("crowd", crowd::check),
    ("top2", top2),
    ("oracle", oracle::oracle),
    ("wrk", rivals::wrk),
    ("echo-in-c", rivals::echo_in_c),
    ("limits", crowd::limits),
    ("search", oracle::search),
];

/// The other reading, and the processes that have the names.
const SCRIPT: &str = include_str!("servers/top2.py");

/// `top2` beside an independent reading of /proc, with hostile names running.
fn top2(bench: &Bench) -> Res {
    let models = models(bench)?;
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

// Servers that lines start, ask and end: `iolens serve`, or a program that says where it listens
// in the same words.

/// How long a server may take to listen, and to answer one request, s.
const PATIENCE: u64 = 15;

/// What a server says once it listens.
const LISTENING: &str = "listening on ";

/// Models that hold very many connections in one process.
pub const CROWD: [&str; 3] = ["epoll_lt", "epoll_et", "uring"];

/// A server that listens. One that is dropped is killed.
pub struct Serving {
    pub running: Running,
    pub address: String,
}

impl Serving {
    /// `iolens serve WORDS`, on a free port of 127.0.0.1, whose end is told as JSON.
    pub fn ours(bench: &Bench, words: &str) -> Res<Serving> {
        Serving::of(bench.iolens(serve_line(words)))
    }

    /// The same, started by another command.
    pub fn under(bench: &Bench, job: Job, words: &str) -> Res<Serving> {
        Serving::of(bench.under(job, serve_line(words)))
    }

    /// A command that says where it listens.
    pub fn of(job: Job) -> Res<Serving> {
        let mut running = job.start()?;
        let line = running.wait_for(LISTENING, PATIENCE)?;
        Ok(Serving { running, address: line.trim().trim_start_matches(LISTENING).to_owned() })
    }

    /// One request over a connection of its own: whether it was answered.
    pub fn answers(&self) -> bool {
        let asked = TcpStream::connect(&self.address).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(PATIENCE)))?;
            stream.write_all(b"7 still there\n")?;
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line)?;
            Ok(line)
        });
        asked.is_ok_and(|line| line.starts_with("7 ") && line.ends_with('\n'))
    }

    /// Ends it with SIGTERM, which all of them take for the end of their work.
    pub fn stop(self) -> Res<Finished> {
        self.running.signal("TERM")?;
        self.running.finish()?.success()
    }

    /// What one of ours says that it did.
    pub fn served(self) -> Res<Value> {
        self.stop()?.json()
    }
}

fn serve_line(words: &str) -> String {
    format!("serve {words} --listen 127.0.0.1:0 --json")
}

/// The words of a load on a server, and its JSON.
pub fn load_line(server: &Serving, words: &str) -> String {
    format!("load {} {words} --json", server.address)
}

pub fn load(bench: &Bench, server: &Serving, words: &str) -> Res<Value> {
    bench.json(load_line(server, words))
}

/// The ids of every model that works here, as `iolens list` says.
pub fn models(bench: &Bench) -> Res<Vec<String>> {
    let listed = bench.json("list models --json")?;
    let here = listed.names("models", |model| model["available"] == true);
    Ok(here.into_iter().map(str::to_owned).collect())
}

/// CPU time of all threads of a process in ns, as the scheduler counts it.
pub fn cpu_ns(id: u32) -> f64 {
    let threads = process(id).and_then(|process| process.tasks().ok()).into_iter().flatten();
    threads
        .flatten()
        .filter_map(|thread| Some(thread.schedstat().ok()?.sum_exec_runtime as f64))
        .sum()
}
