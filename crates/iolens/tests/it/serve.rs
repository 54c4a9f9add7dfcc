//! Servers by hand: every model under the same requests, and under clients that
//! do what clients should not. Each server is a process of its own.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{
    Finished, Place, Running, is_alive, list, number, send_signal, started, started_by,
    wait_until_gone,
};
use crate::skip;

mod limits;

/// How long a test waits for what has to come.
const LIMIT: Duration = Duration::from_secs(20);

/// A server that answers.
struct Serving {
    running: Option<Running>,
    address: String,
}

/// A test that fails leaves nobody.
impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

impl Serving {
    fn start(place: &Place, what: &str) -> Serving {
        Serving::of(place.start(&format!("serve {what} --listen 127.0.0.1:0 --json")))
    }

    fn of(mut running: Running) -> Serving {
        let line = running.wait_for("listening on ");
        let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Serving { running: Some(running), address }
    }

    fn connect(&self) -> Client {
        Client::of(TcpStream::connect(&self.address).unwrap())
    }

    /// Ends it, and what it says it did.
    fn stop(self) -> Value {
        let done = self.stop_with("TERM");
        done.json()
    }

    fn pid(&self) -> u32 {
        self.running.as_ref().unwrap().child.id()
    }

    fn signal(mut self, signal: &str) -> Finished {
        let running = self.running.take().unwrap();
        running.signal(signal);
        running.finish()
    }

    fn stop_with(self, signal: &str) -> Finished {
        self.signal(signal).ended(0)
    }
}

/// One connection.
struct Client {
    stream: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Client {
    fn of(stream: TcpStream) -> Client {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        Client { lines: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    fn send(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).unwrap();
    }

    /// The next reply, without its newline.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.strip_suffix('\n').unwrap_or_else(|| panic!("cut off: {line:?}")).to_owned()
    }

    fn ask(&mut self, request: &str) -> String {
        self.send(&format!("{request}\n"));
        self.line()
    }

    /// Whether there is nothing more: the end, or a reset.
    fn is_over(&mut self) -> bool {
        matches!(self.lines.read(&mut [0; 1]), Ok(0) | Err(_))
    }
}

/// Every model, as the tool lists them.
fn listed_models() -> &'static [Value] {
    static LISTED: OnceLock<Vec<Value>> = OnceLock::new();
    LISTED.get_or_init(|| Place::new().listed("models"))
}

/// Every model that works here.
fn models() -> &'static [String] {
    static MODELS: OnceLock<Vec<String>> = OnceLock::new();
    MODELS.get_or_init(|| {
        assert!(listed_models().len() >= 13, "{:?}", listed_models());
        let here = listed_models().iter().filter(|model| model["available"] == true);
        let names = here.map(|model| model["name"].as_str().unwrap().to_owned());
        let names: Vec<String> = names.collect();
        assert!(names.len() >= 12, "only io_uring may be forbidden: {names:?}");
        names
    })
}

/// Those in which clients do not wait for each other.
fn concurrent_models() -> impl Iterator<Item = &'static str> {
    models().iter().map(String::as_str).filter(|&model| model != "iterative")
}

/// Mishaps that happened, with how often.
fn mishaps(served: &Value) -> Vec<(&str, u64)> {
    let all = served["mishaps"].as_object().unwrap();
    let counts = all.iter().map(|(kind, count)| (kind.as_str(), count.as_u64().unwrap()));
    counts.filter(|(_, count)| *count > 0).collect()
}

/// Panics unless a line is what a service answers to a request.
fn check_reply(service: &str, id: &str, text: &str, line: &str) {
    let body = line.strip_prefix(&format!("{id} "));
    let body = body.unwrap_or_else(|| panic!("{service}: {line:?} for {id:?}"));
    match service {
        "echo" => assert_eq!(body, text),
        "burn:20" => assert_eq!(body, "burned"),
        "payload:20000" => {
            assert_eq!(line.len() + 1, 20_000);
            assert!(body.bytes().all(|byte| byte == b'x'));
        }
        _ => {
            let processes: Vec<&str> = body.split("; ").collect();
            assert!(!processes.is_empty() && processes.len() <= 2, "{line}");
            for process in processes {
                let words: Vec<&str> = process.split(' ').collect();
                assert_eq!(words.len(), 12, "{line}");
                let labels = [0, 3, 6, 9].map(|at| words[at]);
                assert_eq!(labels, ["pid", "user", "kernel", "total"], "{line}");
                let seconds = [4, 7, 10].map(|at| words[at].parse::<f64>());
                assert!(seconds.iter().all(Result::is_ok), "{line}");
                assert!(words[1].parse::<u32>().is_ok() && words[2].ends_with(':'), "{line}");
            }
        }
    }
}

const SHORT: u64 = 3;
const LONG: u64 = 8;
const PIPELINED: u64 = 12;
const BY_BYTES: u64 = 2;
const CLIENTS: u64 = 3;

/// What one client does, on connections of its own; each request is answered.
fn converse(serving: &Serving, service: &str, client: u64) {
    let text = |n: u64| format!("text {n} of {client} ; \\ ü");
    for n in 0..SHORT {
        let mut connection = serving.connect();
        let id = (client * 1000 + n).to_string();
        check_reply(service, &id, &text(n), &connection.ask(&format!("{id} {}", text(n))));
    }
    let mut long = serving.connect();
    for n in 0..LONG {
        // The largest id, none at all, and no text.
        let (id, text) = match n {
            0 => (u64::MAX.to_string(), text(n)),
            1 => (String::new(), String::new()),
            n => (n.to_string(), text(n)),
        };
        let request = if text.is_empty() { id.clone() } else { format!("{id} {text}") };
        check_reply(service, &id, &text, &long.ask(&request));
    }
    let all: String = (0..PIPELINED).map(|n| format!("{n} {}\n", text(n))).collect();
    long.send(&all);
    // In any order.
    let mut left: BTreeSet<u64> = (0..PIPELINED).collect();
    for _ in 0..PIPELINED {
        let line = long.line();
        let id: u64 = line.split(' ').next().unwrap().parse().unwrap();
        assert!(left.remove(&id), "{service}: {id} twice");
        check_reply(service, &id.to_string(), &text(id), &line);
    }
    for n in 0..BY_BYTES {
        for byte in format!("{n} by bytes\n").chars() {
            long.send(&byte.to_string());
        }
        check_reply(service, &n.to_string(), "by bytes", &long.line());
    }
}

fn conform(service: &str) {
    let place = Place::new();
    for model in models() {
        let serving = Serving::start(&place, &format!("{model} --service {service}"));
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let serving = &serving;
                scope.spawn(move || converse(serving, service, client));
            }
        });
        let served = serving.stop();
        let each = SHORT + LONG + PIPELINED + BY_BYTES;
        assert_eq!(number(&served, "requests"), CLIENTS * each, "{model}: {served}");
        assert_eq!(number(&served, "connections"), CLIENTS * (SHORT + 1), "{model}: {served}");
        assert_eq!(mishaps(&served), [], "{model}");
        let by_task = list(&served["requests_by_task"]);
        let sum: u64 = by_task.iter().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(sum, CLIENTS * each, "{model}: {served}");
        let at_once = number(&served, "tasks_at_once");
        assert!((1..=number(&served, "tasks")).contains(&at_once), "{model}: {served}");
        if model == "thread_per_connection" {
            let made = number(&served, "connections");
            assert_eq!(number(&served, "tasks"), made, "one for each connection: {served}");
        }
    }
}

#[test]
fn every_model_echoes() {
    conform("echo");
}

#[test]
fn every_model_sends_a_payload() {
    conform("payload:20000");
}

#[test]
fn every_model_burns() {
    conform("burn:20");
}

#[test]
fn every_model_finds_two_processes() {
    conform("top2");
}

/// Whatever a server of ours replies is right for both clients of ours.
#[test]
fn every_service_goes_through_load_and_through_a_run() {
    let place = Place::new();
    for service in
        ["burn:20", "echo", "oracle:1us", "payload:64", "top2", "top2:cached:1s", "top2:interval"]
    {
        let serving = Serving::start(&place, &format!("select --service {service}"));
        let load = format!(
            "load {} --connections 3 --requests 30 --service {service} --json",
            serving.address
        );
        let value = place.json(&load);
        assert_eq!(value["outcomes"]["ok"], 30, "{service}: {value}");
        serving.stop();
    }
    let run = "run server --service top2:interval --models epoll_lt --network loopback \
               --connections 2 --load closed --quick --passes 2 --rounds 2 --slice 10ms \
               --progress none";
    place.run(run).assert_ended();
    for arm in place.exported("arms") {
        assert_eq!(number(&arm, "requests_invalid"), 0, "{arm}");
        assert!(number(&arm, "requests_ok") > 0, "{arm}");
    }
}

#[test]
fn a_client_that_sends_no_more_gets_all_its_replies_and_the_end() {
    let place = Place::new();
    for model in models() {
        let serving = Serving::start(&place, &format!("{model} --service payload:100000"));
        let mut client = serving.connect();
        client.send("1\n2\n3\n");
        client.stream.shutdown(Shutdown::Write).unwrap();
        for id in 1..=3 {
            let line = client.line();
            assert!(line.starts_with(&format!("{id} x")) && line.len() == 99_999, "{model}");
        }
        assert!(client.is_over(), "{model}");
        assert_eq!(number(&serving.stop(), "requests"), 3, "{model}");
    }
}

#[test]
fn a_server_that_closes_does_so_behind_its_first_reply() {
    let place = Place::new();
    for model in models() {
        let serving = Serving::start(&place, &format!("{model} --close server"));
        for n in 0..3 {
            let mut client = serving.connect();
            assert_eq!(client.ask(&format!("{n} a")), format!("{n} a"), "{model}");
            assert!(client.is_over(), "{model}");
        }
        let served = serving.stop();
        assert_eq!((number(&served, "requests"), mishaps(&served)), (3, vec![]), "{model}");
    }
}

#[test]
fn garbage_is_answered_with_an_error_and_the_others_are_served_on() {
    let place = Place::new();
    let long = "9".repeat(10) + " " + &"x".repeat(66_000);
    let endless = "7 ".to_owned() + &"y".repeat(3_000_000);
    for model in models() {
        let serving = Serving::start(&place, model);
        // Where others wait, a client has to go before the next one is served.
        let mut other = (model != "iterative").then(|| serving.connect());
        for (garbage, id) in [("GET / HTTP/1.1\n", ""), (&long, "9999999999"), (&endless, "7")] {
            let mut client = serving.connect();
            client.send("5 before\n");
            client.send(garbage);
            assert_eq!(client.line(), "5 before", "{model}");
            let line = client.line();
            assert!(line.starts_with(&format!("{id} error a request ")), "{model}: {line}");
            assert!(client.is_over(), "{model}");
            if let Some(other) = &mut other {
                assert_eq!(other.ask("1 still"), "1 still", "{model}");
            }
        }
        // A line of the largest size is none too long.
        let most = format!("1 {}", "z".repeat(65_534));
        drop(other);
        assert_eq!(serving.connect().ask(&most), most, "{model}");
        let served = serving.stop();
        assert_eq!(mishaps(&served), [("not_a_number", 1), ("too_long", 2)], "{model}");
    }
}

#[test]
fn a_client_that_dies_is_counted_and_the_others_are_served_on() {
    let place = Place::new();
    for model in models() {
        let mut serving = Serving::start(&place, &format!("{model} --service payload:1MiB"));
        let mut dying = serving.connect();
        dying.send("1\n2 half a requ");
        // It was read as far as it went.
        dying.line();
        drop(dying);
        // Closed with replies that were not read, which resets the connection.
        let mut resetting = serving.connect();
        resetting.send("1\n2\n3\n4\n5\n6\n7\n8\n");
        resetting.stream.read_exact(&mut [0; 1]).unwrap();
        drop(resetting);
        // Both were noticed, in whatever order.
        let running = serving.running.as_mut().unwrap();
        running.wait_for("counted from now on: ");
        running.wait_for("counted from now on: ");
        let mut other = serving.connect();
        assert!(other.ask("1").starts_with("1 x"), "{model}");
        drop(other);
        let served = serving.stop();
        let counts = mishaps(&served);
        assert_eq!(counts[0], ("cut_off", 1), "{model}: {served}");
        assert!(matches!(counts[1..], [("reset", 1)]), "{model}: {served}");
    }
}

/// Asks for far more than the sockets hold, and reads nothing yet.
fn slow(serving: &Serving, requests: u64) -> Client {
    let mut client = serving.connect();
    let all: String = (0..requests).map(|n| format!("{n}\n")).collect();
    client.send(&all);
    client
}

#[test]
fn slow_readers_and_silent_clients_hold_nobody_up() {
    let place = Place::new();
    const REPLIES: u64 = 12;
    for model in concurrent_models() {
        let what = format!("{model} --service payload:2MiB --workers 2");
        let what = if has_workers(model) { what } else { what.replace(" --workers 2", "") };
        let serving = Serving::start(&place, &what);
        let mut readers: Vec<Client> = (0..4).map(|_| slow(&serving, REPLIES)).collect();
        let mut silent: Vec<Client> = (0..4).map(|_| serving.connect()).collect();
        silent.iter_mut().for_each(|client| client.send("12"));
        let mut other = serving.connect();
        assert!(other.ask("1").starts_with("1 x"), "{model}");
        for reader in &mut readers {
            let mut left: BTreeSet<u64> = (0..REPLIES).collect();
            for _ in 0..REPLIES {
                let line = reader.line();
                assert_eq!(line.len() + 1, 2 << 20, "{model}");
                left.remove(&line.split(' ').next().unwrap().parse().unwrap());
            }
            assert!(left.is_empty(), "{model}: {left:?}");
        }
        for client in &mut silent {
            assert!(client.ask("3").starts_with("123 x"), "{model}");
        }
        drop((readers, silent, other));
        let served = serving.stop();
        assert_eq!(number(&served, "requests"), 4 * REPLIES + 5, "{model}: {served}");
        assert_eq!(mishaps(&served), [], "{model}");
    }
}

#[test]
fn where_others_wait_a_client_that_does_not_move_is_given_up() {
    let place = Place::new();
    let what = "iterative --service payload:16MiB --stall-limit 1s";
    let serving = Serving::start(&place, what);
    let slow = slow(&serving, 4);
    let silent = serving.connect();
    let mut half = serving.connect();
    half.send("12");
    let mut other = serving.connect();
    assert!(other.ask("1").starts_with("1 x"));
    drop((slow, silent, half, other));
    let served = serving.stop();
    assert_eq!(mishaps(&served), [("timed_out", 3)], "{served}");
}

fn has_workers(model: &str) -> bool {
    let own = listed_models().iter().find(|listed| listed["name"] == model);
    own.is_some_and(|listed| !listed["workers"].is_null())
}

#[test]
fn a_port_that_is_taken_is_said_to_be() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for model in models() {
        place
            .run(&format!("serve {model} --listen {address}"))
            .ended(4)
            .says("EADDRINUSE")
            .says("another program listens there");
    }
    // Nor do two share a port because both could.
    let serving = Serving::start(&place, "epoll_reuseport");
    place.run(&format!("serve epoll_reuseport --listen {}", serving.address)).ended(4);
    serving.stop();
}

#[test]
fn it_ends_in_order_and_leaves_nobody() {
    let place = Place::new();
    for (model, signal) in models().iter().zip(["INT", "TERM"].into_iter().cycle()) {
        let serving = Serving::start(&place, model);
        let address = serving.address.clone();
        // Connections that are open, one of them within a request.
        let mut clients: Vec<Client> = (0..2).map(|_| serving.connect()).collect();
        assert_eq!(clients[0].ask("1 a"), "1 a", "{model}");
        clients[0].send("2 hal");
        let family = family(serving.pid());
        serving.stop_with(signal);
        assert!(TcpStream::connect(&address).is_err(), "{model} listens on");
        assert!(clients.iter_mut().all(Client::is_over), "{model}");
        assert!(!family.into_iter().any(is_alive), "{model}");
    }
}

/// A shell without job control ignores SIGINT for what it starts with `&`.
#[test]
fn an_interrupt_ends_it_also_where_a_script_started_it() {
    let place = Place::new();
    let serve = place.command("serve epoll_lt --listen 127.0.0.1:0 --json");
    let shell = started_by(&["sh", "-c", "trap '' INT; exec \"$@\"", "sh"], &serve);
    let serving = Serving::of(started(shell));
    assert_eq!(serving.connect().ask("1 a"), "1 a");
    serving.stop_with("INT");
}

/// Ids of all processes that a process forked, by any of its threads.
fn family(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists = threads.map(|thread| std::fs::read_to_string(thread.path().join("children")));
    let lists: Vec<String> = lists.map(Result::unwrap_or_default).collect();
    lists.iter().flat_map(|l| l.split_whitespace()).map(|pid| pid.parse().unwrap()).collect()
}

#[test]
fn killed_it_leaves_nobody_either() {
    let place = Place::new();
    for model in ["fork", "prefork"] {
        let serving = Serving::start(&place, model);
        let mut client = serving.connect();
        assert_eq!(client.ask("1 a"), "1 a");
        let family = family(serving.pid());
        assert!(!family.is_empty(), "{model}");
        assert_eq!(serving.signal("KILL").code, None, "{model}");
        // The kernel ends them one after the other.
        wait_until_gone(&family);
        assert!(client.is_over());
    }
}

#[test]
fn prefork_makes_more_when_all_are_busy() {
    let place = Place::new();
    let serving = Serving::start(&place, "prefork --workers 2");
    let mut clients: Vec<Client> = (0..9).map(|_| serving.connect()).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.ask(&format!("{index} a")), format!("{index} a"));
    }
    assert!(family(serving.pid()).len() >= 9);
    drop(clients);
    let served = serving.stop();
    assert_eq!((number(&served, "requests"), mishaps(&served)), (9, vec![]));
}

/// Those that wait may be killed by others, and tell nobody.
#[test]
fn prefork_makes_more_when_those_that_wait_were_killed() {
    let place = Place::new();
    let serving = Serving::start(&place, "prefork --workers 2");
    let mut killed = Vec::new();
    for round in 0..2 {
        for pid in family(serving.pid()) {
            killed.push(pid);
            send_signal(pid, "KILL");
            wait_until_gone(&[pid]);
        }
        let mut client = serving.connect();
        assert_eq!(client.ask("1 a"), "1 a", "{round}");
    }
    // The parent looks once a second; the dead whom it has not buried yet are still in /proc.
    let is_unburied = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    while killed.iter().any(is_unburied) {
        std::thread::yield_now();
    }
    assert_eq!(mishaps(&serving.stop()), [("child_died", killed.len() as u64)]);
}

#[test]
fn an_oracle_says_how_long_it_took() {
    let place = Place::new();
    let serving = Serving::start(&place, "thread_pool --service oracle:2ms,stall=30ms@3");
    let mut client = serving.connect();
    let mut times = Vec::new();
    for id in 0..4 {
        let line = client.ask(&id.to_string());
        let fields: Vec<u64> = line.split(' ').map(|field| field.parse().unwrap()).collect();
        assert_eq!((fields[0], fields.len()), (id, 3), "{line}");
        times.push(fields[2] - fields[1]);
    }
    let least = [2, 2, 30, 2].map(|ms: u64| ms * 1_000_000);
    assert!(times.iter().zip(least).all(|(time, least)| *time >= least), "{times:?}");
    drop(client);
    serving.stop();
}

#[test]
fn what_cannot_be_served_is_refused_with_what_can() {
    Place::new().fail_each(
        2,
        [
            ("serve epol_lt --listen :0", "did you mean `epoll_lt`?"),
            ("serve epoll_lt --listen :0 --service ech", "choose from: burn:MICROSECONDS, echo"),
            ("serve epoll_lt --listen :0 --workers 2", "--workers is for epoll_reuseport, prefork"),
            ("serve epoll_lt --listen :0 --cpus 8000", "cannot use CPU 8000"),
            ("serve epoll_lt --listen :0 --close both", "choose from: client, server"),
            ("serve epoll_lt", "--listen"),
        ],
    );
}

#[test]
fn processors_are_those_that_were_named() {
    let place = Place::new();
    for model in ["epoll_reuseport", "prefork", "tokio"] {
        let serving = Serving::start(&place, &format!("{model} --workers 2 --cpus 0"));
        assert_eq!(serving.connect().ask("1 a"), "1 a");
        let pid = serving.pid();
        let status = |process| std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let mut statuses: Vec<String> = family(pid).into_iter().map(status).collect();
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
            let name = std::fs::read_to_string(thread.path().join("comm")).unwrap();
            if name.starts_with("serve-") {
                statuses.push(std::fs::read_to_string(thread.path().join("status")).unwrap());
            }
        }
        assert!(statuses.len() >= 2, "{model}");
        for status in statuses {
            assert!(status.contains("Cpus_allowed_list:\t0\n"), "{model}: {status}");
        }
        serving.stop();
    }
}
