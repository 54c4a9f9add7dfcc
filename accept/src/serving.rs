//! Servers that acceptance lines start, ask and end: `iolens serve`, or a program that
//! says where it listens in the same words.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::Bench;
use super::process::{Finished, Job, Running};

/// How long a server may take to listen, and to answer one request.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a server says on stderr, or on stdout, once it listens.
const LISTENING: &str = "listening on ";

/// A server that listens. One that is dropped is killed.
pub(crate) struct Serving {
    running: Option<Running>,
    pub(crate) address: String,
}

impl Serving {
    /// `iolens serve WORDS`, on a free port of 127.0.0.1.
    pub(crate) fn ours(bench: &Bench, words: &str) -> Result<Serving, String> {
        let line = serve_line(words);
        let args: Vec<&str> = line.split_whitespace().collect();
        Serving::of(bench.iolens("serve", &args)?.limit_minutes(10))
    }

    /// A command that says on stderr where it listens, as ours does.
    pub(crate) fn of(job: Job) -> Result<Serving, String> {
        let running = job.start()?;
        let line = running.wait_for_note(LISTENING, PATIENCE)?;
        Ok(Serving::at(running, &line))
    }

    /// A command that says so on stdout.
    pub(crate) fn rival(job: Job) -> Result<Serving, String> {
        let running = job.start()?;
        let line = running.wait_for_line(LISTENING, PATIENCE)?;
        Ok(Serving::at(running, &line))
    }

    fn at(running: Running, line: &str) -> Serving {
        let address = line.trim().trim_start_matches(LISTENING).to_owned();
        Serving { running: Some(running), address }
    }

    pub(crate) fn id(&self) -> u32 {
        self.running.as_ref().map_or(0, Running::id)
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.running.as_mut().is_some_and(Running::is_running)
    }

    /// CPU time of all of its threads in ns, as the scheduler counts it.
    pub(crate) fn cpu_ns(&self) -> Result<u64, String> {
        cpu_ns(self.id())
    }

    /// One request over a connection of its own: whether it was answered.
    pub(crate) fn answers(&self) -> bool {
        let asked = TcpStream::connect(&self.address).and_then(|mut stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(b"7 still there\n")?;
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line)?;
            Ok(line)
        });
        asked.is_ok_and(|line| line.starts_with("7 ") && line.ends_with('\n'))
    }

    /// Ends it with SIGTERM, which all of them take for the end of their work.
    pub(crate) fn stop(mut self) -> Result<Finished, String> {
        signal("TERM", self.id())?;
        self.running.take().ok_or("it was ended before")?.finish()
    }

    /// The same for one of ours: what it says it did.
    pub(crate) fn served(self) -> Result<Value, String> {
        let stdout = self.stop()?.success()?.stdout();
        serde_json::from_str(&stdout).map_err(|e| format!("`iolens serve` printed no JSON: {e}"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // It may have ended by itself.
            let _ = running.kill();
        }
    }
}

/// The words of a server on a free port, whose end is told as JSON.
pub(crate) fn serve_line(words: &str) -> String {
    format!("serve {words} --listen 127.0.0.1:0 --json")
}

/// The JSON of `iolens load WORDS`, which is to succeed.
pub(crate) fn load(bench: &Bench, address: &str, words: &str) -> Result<Value, String> {
    let line = format!("load {address} {words} --json");
    let args: Vec<&str> = line.split_whitespace().collect();
    Ok(bench.iolens_json("load", &args, 5)?.json)
}

/// A number of an object, 0 where there is none.
pub(crate) fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}

/// Things that went wrong in a server, with how often, as `3 × reset`; else `nothing`.
pub(crate) fn mishaps(served: &Value) -> String {
    let all = served["mishaps"].as_object().into_iter().flatten();
    let counts = all.filter(|(_, count)| count.as_u64() != Some(0));
    let words: Vec<String> = counts.map(|(kind, count)| format!("{count} × {kind}")).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

/// The ids of every model that works here, as `iolens list` says.
pub(crate) fn models(bench: &Bench) -> Result<Vec<String>, String> {
    let listed = bench.iolens_json("list", &["list", "models", "--json"], 1)?.json;
    let all = listed["models"].as_array().into_iter().flatten();
    let here = all.filter(|model| model["available"] == true);
    Ok(here.filter_map(|model| model["name"].as_str().map(str::to_owned)).collect())
}

/// Sends a signal to a process.
pub(crate) fn signal(name: &str, process: u32) -> Result<(), String> {
    Job::new("kill").args(&[&format!("-{name}"), &process.to_string()]).run()?.success().map(drop)
}

/// CPU time of all threads of a process in ns: the first number of their schedstat.
pub(crate) fn cpu_ns(process: u32) -> Result<u64, String> {
    let folder = format!("/proc/{process}/task");
    let threads = fs::read_dir(&folder).map_err(|e| format!("cannot read {folder}: {e}"))?;
    let one = |path: std::path::PathBuf| -> Option<u64> {
        fs::read_to_string(path.join("schedstat")).ok()?.split_whitespace().next()?.parse().ok()
    };
    Ok(threads.flatten().filter_map(|thread| one(thread.path())).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_told_without_what_did_not() {
        let served = serde_json::json!({"mishaps": {"reset": 3, "cut_off": 0, "no_task": 1}});
        assert_eq!(mishaps(&served), "1 × no_task, 3 × reset");
        assert_eq!(mishaps(&serde_json::json!({"mishaps": {"reset": 0}})), "nothing");
        assert_eq!(mishaps(&Value::Null), "nothing");
        assert_eq!(number(&serde_json::json!({"a": 2.5}), "a"), 2.5);
        assert!(cpu_ns(std::process::id()).is_ok_and(|ns| ns > 0));
    }
}
