//! One transfer by hand: both ends as a user starts them, against each other
//! and against programs of others.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use serde_json::Value;

use crate::harness::{Place, Running, list, number};
use crate::limits::run_with_little_locked_memory;
use crate::mistakes::refused;
use crate::skip;

/// A sending end on a free port, and where it listens.
fn sending(place: &Place, what: &str) -> (Running, String) {
    sending_at(place, "127.0.0.1:0", what)
}

fn sending_at(place: &Place, address: &str, what: &str) -> (Running, String) {
    let mut sender = place.start(&format!("net send {what} --listen {address}"));
    let line = sender.wait_for("listening on ");
    (sender, line.trim().strip_prefix("listening on ").unwrap().to_owned())
}

/// Both ends of a transfer as JSON, after checking that they agree.
fn agreeing(place: &Place, send: &str, recv: &str) -> [Value; 2] {
    let (sender, address) = sending(place, &format!("{send} --json"));
    let received = place.run(&format!("net recv {address} {recv} --json"));
    let sent = sender.finish();
    assert_eq!(
        (sent.code, received.code),
        (Some(0), Some(0)),
        "{}{}",
        sent.stderr,
        received.stderr
    );
    let [sent, received] = [sent.json(), received.json()];
    assert_eq!(sent["bytes"], received["bytes"], "{send}, {recv}");
    assert_eq!(sent["address"], received["address"]);
    assert_eq!([&sent["status"], &received["status"]], ["ok", "ok"]);
    assert_eq!([&sent["time_until"], &received["time_until"]], ["receipt", "end_of_stream"]);
    [sent, received]
}

/// What sends and works here.
fn primitives(place: &Place) -> Vec<Value> {
    let listed = place.json("list methods --all --json");
    let all = list(&listed["methods"]).to_vec();
    let sends = |entry: &Value| {
        entry["transport"] == "tcp" && entry["name"] != "memcpy" && entry["name"] != "null"
    };
    all.into_iter().filter(|entry| entry["available"] == true && sends(entry)).collect()
}

#[test]
fn both_ends_agree_for_every_primitive() {
    let place = Place::new();
    let all = primitives(&place);
    assert!(all.len() > 8, "{all:?}");
    for (index, entry) in all.iter().enumerate() {
        let name = entry["name"].as_str().unwrap();
        let size = [1, 4095, 65_536, 100_000][index % 4];
        let send = format!("{name} --size {size} --messages 50");
        let [sent, received] = agreeing(&place, &send, &format!("--size {size}"));
        assert_eq!(number(&sent, "bytes"), 50 * size, "{sent}");
        assert_eq!([number(&sent, "messages"), number(&received, "messages")], [50, 50]);
        assert_eq!(sent["primitive"], name);
        assert!(number(&sent, "calls") > 0 && number(&sent, "time_ns") > 0, "{sent}");
        let is_zerocopy = sent["zerocopy_sends"].is_u64();
        assert_eq!(is_zerocopy, name.contains("zerocopy") || name.contains("_zc"), "{sent}");
        if is_zerocopy {
            assert_eq!(sent["zerocopy_sends"], sent["zerocopy_completions"], "{sent}");
            // Over loopback all is copied, where the kernel tells.
            assert!([Value::Null, 1.0.into()].contains(&sent["zerocopy_copied_share"]), "{sent}");
        }
    }
}

#[test]
fn every_receiver_gets_all_of_it() {
    let place = Place::new();
    for entry in place.listed("receivers") {
        if entry["available"] != true {
            continue;
        }
        let name = entry["name"].as_str().unwrap();
        let send = "sendmsg_zerocopy --size 256KiB --messages 20";
        let recv = format!("--receiver {name} --recv-size 1MiB --fields 4");
        let [_, received] = agreeing(&place, send, &recv);
        assert_eq!(number(&received, "bytes"), 20 << 18, "{received}");
        assert_eq!(
            (received["messages"].is_null(), &received["primitive"]),
            (true, &entry["name"])
        );
        assert_eq!(received["mapped_bytes"].is_u64(), name == "tcp_zerocopy_receive", "{received}");
    }
}

#[test]
fn each_client_has_a_stream_of_its_own() {
    let place = Place::new();
    let (mut sender, address) =
        sending(&place, "sendmsg_iov --size 4KiB --messages 100 --clients 3 --json");
    let two = place.start(&format!("net recv {address} --connections 2 --size 4096 --json"));
    sender.wait_for("2 of 3 connected: 127.0.0.1:");
    let one = place.run(&format!("net recv {address} --size 4096 --json")).json();
    let (two, sent) = (two.finish().json(), sender.finish().json());
    assert_eq!((number(&one, "messages"), number(&two, "messages")), (100, 200));
    assert_eq!((number(&sent, "messages"), number(&sent, "connections")), (300, 3), "{sent}");
    assert_eq!(number(&sent, "bytes"), 300 * 4096);
    place.run(&format!("net recv {address}")).ended(4);
}

#[test]
fn a_window_ends_by_the_clock() {
    let place = Place::new();
    let [sent, received] = agreeing(&place, "send --size 64 --window 30ms", "--size 64");
    assert_eq!(sent["messages"], received["messages"]);
    assert!(number(&sent, "time_ns") >= 30_000_000, "{sent}");
}

#[test]
fn ipv6_stands_in_brackets() {
    if TcpListener::bind("[::1]:0").is_err() {
        return skip::note("net::ipv6_stands_in_brackets", "needs IPv6 on lo");
    }
    let place = Place::new();
    let (sender, address) = sending_at(&place, "[::1]:0", "send --size 1KiB --messages 3");
    assert!(address.starts_with("[::1]:"), "{address}");
    let received = place.run(&format!("net recv {address}"));
    assert_eq!((received.code, sender.finish().code), (Some(0), Some(0)), "{}", received.stderr);
}

/// Reads a stream to its end.
fn read_all(stream: &mut TcpStream) -> usize {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all.len()
}

#[test]
fn anybody_can_receive() {
    let place = Place::new();
    // Closes at the end, as `nc </dev/null` does.
    let (sender, address) = sending(&place, "send --size 1000 --messages 500 --json");
    assert_eq!(read_all(&mut TcpStream::connect(&address).unwrap()), 500_000);
    let sent = sender.finish().json();
    assert_eq!((number(&sent, "bytes"), &sent["time_until"]), (500_000, &"receipt".into()));
    // Stays until it is ended itself.
    let (sender, address) = sending(&place, "send --size 1000 --messages 500");
    let mut stays = TcpStream::connect(&address).unwrap();
    stays.write_all(b"hello?\n").unwrap();
    assert_eq!(read_all(&mut stays), 500_000);
    sender.finish().ended(0).prints("no receipt, since a");
    drop(stays);
    // Ends its own direction before it reads, as `nc -N </dev/null` does.
    let (sender, address) = sending(&place, "send --size 1000 --messages 500 --json");
    let mut silent = TcpStream::connect(&address).unwrap();
    silent.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut silent), 500_000);
    assert_eq!(sender.finish().json()["status"], "ok");
}

#[test]
fn what_cannot_be_is_refused_before_anybody_connects() {
    for (line, expect) in [
        ("sendd --size 1KiB", "unknown method `sendd`, did you mean `send`?"),
        ("memcpy --size 1KiB", "`memcpy` sends nothing: it is a control"),
        ("null --size 1KiB", "`null` sends nothing: it is a control"),
        ("unix_stream --size 1KiB", "`iolens net` uses TCP"),
        ("send --size 0", "a size of zero moves nothing"),
        ("send --size 2GiB", "the largest size is 1 GiB"),
        ("send", "--size <SIZE>"),
        ("send --size 1 --clients 0", "at least 1"),
        ("send --size 1 --messages 1 --window 1s", "cannot be used with"),
        ("send --size 1 --cpus 8000", "cannot use CPU 8000"),
        ("send --size 1 --congestion warp", "the congestion control `warp`: ENOENT"),
        ("send --size 1 --send-memory tepid", "unknown send memory `tepid`"),
    ] {
        refused(&format!("net send {line} --listen :0"), 2, expect);
    }
    for (line, expect) in [
        ("send send --size 1 --listen 5001", "`5001` is not an address: it has no port"),
        ("send send --size 1 --listen ::1:0", "stands in brackets"),
        ("recv localhost", "it has no port"),
        ("recv :1 --receiver rcv", "unknown receiver `rcv`, did you mean `recv`?"),
        ("recv :1 --recv-size 1GiB", "the largest is 64 MiB"),
        ("receive :1", "recv"),
    ] {
        refused(&format!("net {line}"), 2, expect);
    }
    refused("net send send --size 1 --listen 192.0.2.1:0", 4, "no device of this machine");
}

#[test]
fn an_address_that_is_taken_and_one_where_nobody_listens_are_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let said = format!("cannot bind to {address}: EADDRINUSE");
    refused(&format!("net send send --size 1 --listen {address}"), 4, &said);
    drop(taken);
    let said = format!("iolens net send METHOD --listen {address}");
    refused(&format!("net recv {address}"), 4, &said);
}

#[test]
fn locked_memory_that_is_too_little_is_refused_with_the_arithmetic() {
    let place = Place::new();
    let line = "net send sendmsg_zerocopy --size 1MiB --listen :0";
    let done = run_with_little_locked_memory(&place, line).ended(4);
    let said = "cannot send with sendmsg_zerocopy here: message needs 1.01 MiB of locked memory, \
                RLIMIT_MEMLOCK is 64 KiB";
    done.says(said);
}

/// A client that has read this much of a stream, in the middle of it.
fn client_in_the_middle(address: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    client.read_exact(&mut vec![0; 4 << 20]).unwrap();
    client
}

#[test]
fn a_receiver_that_goes_away_is_told_with_what_had_gone() {
    let place = Place::new();
    let (sender, address) = sending(&place, "sendmsg_iov --size 64KiB --window 1h");
    drop(client_in_the_middle(&address));
    let sent = sender.finish().ended(4);
    sent.says("the receiver went away after ");
    sent.says(" bytes) in ").prints("; failed\n");
    // One of ours that is killed.
    let (mut sender, address) = sending(&place, "sendmsg_iov --size 64KiB --window 1h");
    let receiver = place.start(&format!("net recv {address}"));
    sender.wait_for("1 of 1 connected");
    receiver.killed();
    sender.finish().ended(4).says("the receiver went away after ");
}

#[test]
fn a_sender_that_is_killed_does_not_look_like_the_end() {
    let place = Place::new();
    let (mut sender, address) = sending(&place, "send --size 64KiB --window 1h");
    let receiver = place.start(&format!("net recv {address} --json"));
    sender.wait_for("1 of 1 connected");
    sender.killed();
    let received = receiver.finish().ended(4);
    received.says("the sender went away after ");
    assert_eq!(received.json()["status"], "failed");
}

#[test]
fn whoever_does_not_move_is_given_up() {
    let place = Place::new();
    let (sender, address) = sending(&place, "send --size 64KiB --window 1h --stall-limit 50ms");
    let sleeps = TcpStream::connect(&address).unwrap();
    sender.finish().ended(4).says("the receiver did not move for 50.0 ms (--stall-limit) after ");
    drop(sleeps);
    let ours = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = ours.local_addr().unwrap();
    let receiver = place.start(&format!("net recv {address} --stall-limit 50ms"));
    let (mut silent, _) = ours.accept().unwrap();
    silent.write_all(&[1; 100]).unwrap();
    receiver
        .finish()
        .ended(4)
        .says("the sender did not move for 50.0 ms (--stall-limit) after 100 B");
}

#[test]
fn a_message_that_was_cut_off_is_told() {
    let place = Place::new();
    let ours = TcpListener::bind("127.0.0.1:0").unwrap();
    let receiver =
        place.start(&format!("net recv {} --size 64 --json", ours.local_addr().unwrap()));
    let (mut stranger, _) = ours.accept().unwrap();
    stranger.write_all(&[1; 100]).unwrap();
    drop(stranger);
    let received = receiver.finish().ended(4);
    received.says("36 bytes into a message of 64 B");
    assert_eq!((number(&received.json(), "messages"), number(&received.json(), "bytes")), (1, 100));
}

#[test]
fn an_interrupted_sender_ends_its_stream_and_says_what_it_did() {
    let place = Place::new();
    let (sender, address) = sending(&place, "send --size 64KiB --window 1h --json");
    let mut client = client_in_the_middle(&address);
    sender.signal("INT");
    let received = read_all(&mut client) + (4 << 20);
    drop(client);
    let sent = sender.finish().ended(130);
    let sent = sent.json();
    assert_eq!((number(&sent, "bytes"), &sent["status"]), (received as u64, &"interrupted".into()));
}

#[test]
fn a_sender_that_nobody_reads_from_can_be_interrupted() {
    let place = Place::new();
    let (mut sender, address) = sending(&place, "sendmsg_zerocopy --size 1MiB --window 1h");
    let sleeps = TcpStream::connect(&address).unwrap();
    sender.wait_for("1 of 1 connected");
    sender.interrupted().prints("; interrupted\n");
    drop(sleeps);
    // Before anybody has come.
    let (sender, _) = sending(&place, "send --size 1KiB --clients 2");
    sender.interrupted().says("interrupted before anything moved: 0 of 2");
}

#[test]
fn an_interrupted_receiver_gives_no_receipt() {
    let place = Place::new();
    let ours = TcpListener::bind("127.0.0.1:0").unwrap();
    let receiver = place.start(&format!("net recv {} --json", ours.local_addr().unwrap()));
    let (mut stranger, _) = ours.accept().unwrap();
    // More than all buffers between hold.
    stranger.write_all(&vec![1; 64 << 20]).unwrap();
    receiver.signal("INT");
    let broken = std::iter::repeat_with(|| stranger.write_all(&[1; 4096])).find_map(Result::err);
    let kinds = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::BrokenPipe];
    assert!(broken.is_some_and(|error| kinds.contains(&error.kind())));
    let received = receiver.finish().ended(130);
    let received = received.json();
    assert_eq!(received["status"], "interrupted");
    assert!(number(&received, "bytes") > 1 << 20, "{received}");
}

#[test]
fn an_affinity_from_outside_stays_and_one_that_is_asked_for_is_set() {
    let place = Place::new();
    let allowed = |running: &Running| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", running.child.id()));
        let status = status.unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"));
        line.unwrap().to_owned()
    };
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    for (cpus, pinned) in [("", false), ("--cpus 0", true)] {
        let (mut sender, address) =
            sending(&place, &format!("send --size 64KiB --window 1h {cpus}"));
        let client = client_in_the_middle(&address);
        sender.wait_for("connected");
        let list = allowed(&sender);
        match pinned {
            true => assert_eq!(list, "0"),
            false => assert!(own.contains(&format!("Cpus_allowed_list:\t{list}\n")), "{list}"),
        }
        drop(client);
        sender.finish().ended(4);
    }
}

/// Numbers and the units that follow their size, and folded lines, as one.
fn normalised(text: &str) -> String {
    let mut out = String::new();
    for c in text.replace("\n              ", " ").chars() {
        match c {
            '0'..='9' | '.' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            c => out.push(c),
        }
    }
    for unit in ["ns", "µs", "ms", "s"] {
        out = out
            .replace(&format!("# {unit} ("), "# T (")
            .replace(&format!("# {unit} per"), "# T per")
            .replace(&format!("# {unit}\n"), "# T\n");
    }
    out
}

#[test]
fn both_ends_print_the_same_things() {
    let place = Place::new();
    let (sender, address) = sending(&place, "sendmsg_zerocopy --size 64KiB --messages 200");
    let received = place.run(&format!("net recv {address}"));
    insta::assert_snapshot!(normalised(&sender.finish().stdout), @r#"
    sendmsg_zerocopy (copied): sent messages of # KiB from #:# to # client
      bytes       # (# MiB)
      messages    #
      seconds     #, from the first call to the last receipt
      per message # T
      goodput     # Gbit/s
      calls       #, # messages per call
      zero-copy   # zero-copy sends, # completions read back in # notifications per send, #% of them reported as copied, # sends refused with ENOBUFS or ENOMEM and repeated
      CPU time    # T (# T per message)
      socket      congestion control reno, send buffer # MiB, receive buffer # MiB, TCP_NODELAY on
    "#);
    insta::assert_snapshot!(normalised(&received.stdout), @r#"
    recv: received from #:#, # connection
      bytes       # (# MiB)
      messages    –, a stream has none in it: their size is told with --size
      seconds     #, from the first bytes to the end of the last stream
      goodput     # Gbit/s, without the first receive of each connection
      calls       #, # KiB per call
      CPU time    # T (# ns/B)
      socket      congestion control reno, send buffer # MiB, receive buffer # MiB, TCP_NODELAY on
    "#);
}

#[test]
fn the_help_of_both_ends_has_examples() {
    let help = |line: &str| Place::new().run(line).stdout;
    insta::assert_snapshot!(help("net --help"), @r#"
    Send or receive one transfer, under perf, strace or taskset if you like

    Usage: iolens net <COMMAND>

    Commands:
      send  Listen, send to each client that connects, and print what it cost
      recv  Connect, receive to the end, and print what it cost
      help  Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help

    One terminal:      perf stat iolens net send sendmsg_iov --listen :5001 --size 64KiB
    The other:         iolens net recv :5001 --size 64KiB
    Without iolens:    nc 127.0.0.1 5001 </dev/null | wc -c
    "#);
    insta::assert_snapshot!(help("net send --help"), @r#"
    Listen, send to each client that connects, and print what it cost

    Usage: iolens net send [OPTIONS] --listen <ADDR> --size <SIZE> <METHOD>

    Arguments:
      <METHOD>  How to send (see `iolens list methods`)

    Options:
          --listen <ADDR>      Where to listen: 127.0.0.1:5001, [::1]:5001, NAME:5001, or :5001 for
                               127.0.0.1; port 0 picks a free port and prints it to stderr
          --size <SIZE>        Message size
          --clients <N>        Clients to wait for, each with its own thread and stream [default: 1]
          --messages <N>       Messages to send to each client
          --window <TIME>      Send for this long [default: 5s]
          --fields <N>         Fields per message, 1 to 64 [default: 8]
          --iovec <WHEN>       When to build the iovec: per-message, or prebuilt (once) [default:
                               per-message]
          --send-memory <HOW>  Memory to send from: hot (fits L2) or cold (exceeds the last-level cache)
                               [default: hot]
          --json               Print the result as JSON
      -h, --help               Print help

    The machine and its network:
          --cpus <LIST>           Bind threads to these CPUs, in turn [default: not bound]
          --congestion <NAME>     TCP congestion control [default: reno]
          --socket-buffer <SIZE>  SO_SNDBUF and SO_RCVBUF [default: 512KiB]
          --stall-limit <TIME>    Give up when the other end stalls for this long [default: 10s]

    Any program that connects and reads can be a client, such as
    `nc 127.0.0.1 5001 </dev/null | wc -c`: only messages are sent. The clock stops
    when every client has read to the end and closed its connection. A client that
    does not close (some versions of `nc` wait for their own input first) is not
    waited for: the clock then stops at its kernel's last acknowledgement, and the
    result says so.

    With one client everything runs on the main thread, so `strace -c` works without
    -f. CPUs set with taskset are kept unless --cpus names others.
    "#);
}

#[test]
fn the_help_of_the_receiving_end_says_what_counts_messages() {
    insta::assert_snapshot!(Place::new().run("net recv --help").stdout, @r#"
    Connect, receive to the end, and print what it cost

    Usage: iolens net recv [OPTIONS] <ADDR>

    Arguments:
      <ADDR>  Where `net send` listens: 127.0.0.1:5001, [::1]:5001, NAME:5001, or :5001 for 127.0.0.1

    Options:
          --receiver <ID>     How to receive (see `iolens list receivers`) [default: recv]
          --size <SIZE>       Message size, to count messages
          --connections <N>   Connections to open, each with its own thread [default: 1]
          --recv-size <SIZE>  Bytes to ask for per call, whatever the message size [default: 128KiB]
          --fields <N>        Fields per message for scattering receivers, 1 to 64 [default: 8]
          --json              Print the result as JSON
      -h, --help              Print help

    The machine and its network:
          --cpus <LIST>           Bind threads to these CPUs, in turn [default: not bound]
          --congestion <NAME>     TCP congestion control [default: reno]
          --socket-buffer <SIZE>  SO_SNDBUF and SO_RCVBUF [default: 512KiB]
          --stall-limit <TIME>    Give up when the other end stalls for this long [default: 10s]

    A TCP stream does not mark messages; give --size to count them.
    With one connection everything runs on the main thread, so `strace -c` works
    without -f. CPUs set with taskset are kept unless --cpus names others.
    "#);
}
