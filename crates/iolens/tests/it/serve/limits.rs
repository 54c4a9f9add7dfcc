//! Servers at the limits of the machine: what is beyond is closed and counted,
//! and the others are served on.

use super::*;
use crate::harness::is_root;

/// A server under `prlimit` with these limits.
fn limited(place: &Place, limits: &str, what: &str) -> Serving {
    let serve = place.command(&format!("serve {what} --listen 127.0.0.1:0 --json"));
    Serving::of(started(started_by(&["prlimit", limits], &serve)))
}

/// Connects so often, and keeps those that answer.
fn connect_many(serving: &Serving, connections: usize) -> Vec<Client> {
    let answers = |_: usize| {
        let mut client = serving.connect();
        // One that was closed may be reset already.
        let sent = client.stream.write_all(b"1 a\n").is_ok();
        let mut line = String::new();
        let answered = sent && client.lines.read_line(&mut line).is_ok() && line == "1 a\n";
        answered.then_some(client)
    };
    (0..connections).filter_map(answers).collect()
}

#[test]
fn without_a_descriptor_connections_are_closed_and_the_others_served_on() {
    let place = Place::new();
    const ASKED: usize = 60;
    // Those that keep descriptors of all connections in one process.
    for model in concurrent_models().filter(|model| !model.contains("fork")) {
        let serving = limited(&place, "--nofile=48:48", model);
        let mut kept = connect_many(&serving, ASKED);
        assert!((5..46).contains(&kept.len()), "{model}: {}", kept.len());
        for client in &mut kept {
            assert_eq!(client.ask("2 b"), "2 b", "{model}");
        }
        let closed = (ASKED - kept.len()) as u64;
        // When some go there is room again.
        drop(kept.drain(..3));
        let mut again = Vec::new();
        while again.is_empty() {
            again = connect_many(&serving, 1);
        }
        drop((kept, again));
        let served = serving.stop();
        let [("no_descriptor", counted)] = mishaps(&served)[..] else {
            panic!("{model}: {served}");
        };
        assert!(counted >= closed, "{model}: {served}, and {closed} were closed");
    }
}

#[test]
fn select_closes_what_is_beyond_its_sets_and_the_large_one_does_not() {
    const ASKED: usize = 1100;
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft: usize = open_files.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX);
    // A connection of a test has two.
    if soft < 3 * ASKED {
        return skip::note(
            "serve::limits::select_closes_what_is_beyond_its_sets_and_the_large_one_does_not",
            &format!("needs {} descriptors (ulimit -n)", 3 * ASKED),
        );
    }
    let place = Place::new();
    for model in ["select", "select_large"] {
        let serving = Serving::start(&place, model);
        let kept = connect_many(&serving, ASKED);
        let closed = (ASKED - kept.len()) as u64;
        assert_eq!(closed > 0, model == "select");
        assert!(kept.len() > 1000, "{model}: {}", kept.len());
        drop(kept);
        let done = serving.stop_with("TERM");
        let served: Value = done.json();
        assert_eq!(number(&served["mishaps"], "beyond_select"), closed, "{served}");
        assert_eq!(done.stderr.contains("FD_SETSIZE, 1024"), closed > 0, "{}", done.stderr);
    }
}

/// A user that has no process, for whom a limit on processes is his alone.
const NOBODY_ELSE: &str = "54321";

#[test]
fn without_a_thread_or_process_connections_are_closed() {
    if !is_root() {
        return skip::note(
            "serve::limits::without_a_thread_or_process_connections_are_closed",
            "only root can become a user that has no other process",
        );
    }
    const ASKED: usize = 20;
    let place = Place::new();
    let tool = place.path("tool");
    let of_tool = place.command("list");
    std::fs::copy(of_tool.get_program(), &tool).unwrap();
    let open_to_all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.folder.path(), open_to_all).unwrap();
    for (model, user) in [("thread_per_connection", 0), ("fork", 1)] {
        let user = (NOBODY_ELSE.parse::<u32>().unwrap() + user).to_string();
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={user}"), "--clear-groups", "--inh-caps=-all"]);
        command.args(["--bounding-set=-all", "prlimit", "--nproc=10:10"]);
        command.arg(&tool).args(["serve", model, "--listen", "127.0.0.1:0", "--json"]);
        command.env("IOLENS_LOCK_DIR", place.folder.path()).stdin(Stdio::null());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let serving = Serving::of(Running::of(command.spawn().unwrap()));
        let mut kept = connect_many(&serving, ASKED);
        assert!((1..10).contains(&kept.len()), "{model}: {}", kept.len());
        for client in &mut kept {
            assert_eq!(client.ask("2 b"), "2 b", "{model}");
        }
        let closed = (ASKED - kept.len()) as u64;
        drop(kept.pop());
        let mut again = Vec::new();
        while again.is_empty() {
            again = connect_many(&serving, 1);
        }
        drop((kept, again));
        let done = serving.stop_with("INT");
        let served: Value = done.json();
        assert!(number(&served["mishaps"], "no_task") >= closed, "{model}: {served}");
        done.says("RLIMIT_NPROC");
    }
}
