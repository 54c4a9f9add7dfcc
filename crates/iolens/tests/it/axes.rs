//! Axes that most plans leave alone: each value has its cells, in the file, in
//! what is printed and in what is exported.

use std::collections::BTreeSet;

use crate::harness::{Place, list};

const RUN: &str = "run net --sizes 16KiB --threads 1 --network loopback --quick --passes 2 \
                   --rounds 3 --progress none";

#[test]
fn fields_and_protocols_have_their_cells() {
    let place = Place::new();
    let arms = "--methods send,sendmsg_iov --baseline send --fields 1,8 --ip ipv4,ipv6";
    let done = place.run(&format!("{RUN} {arms} --verbose")).ended(0);
    let settings: BTreeSet<_> =
        place.rows("cells", ["fields", "ip", "mtu_bytes"]).into_iter().collect();
    let expected = [["1", "ipv4"], ["1", "ipv6"], ["8", "ipv4"], ["8", "ipv6"]];
    let expected = expected.map(|[fields, ip]| [fields.to_owned(), ip.to_owned(), String::new()]);
    assert_eq!(settings, expected.into_iter().collect());
    for heading in ["1 field, ipv4", "8 fields, ipv6"] {
        done.prints(heading);
    }
    let json = place.json("show last --json");
    let cells = list(&json["cells"]);
    let ipv6 = cells.iter().filter(|cell| cell["ip"] == "ipv6").count();
    assert_eq!((cells.len(), ipv6), (12, 6), "two arms and the A/A arm in four cells");
    assert_eq!(json["run"]["plan"]["fields"], serde_json::json!([1, 8]));
}

/// A thread of the kernel's sends for a ring with `sqpoll`, and its CPU time is the sender's.
#[test]
fn flags_of_a_ring_have_their_cells() {
    let place = Place::new();
    let arms = "--methods send,uring_send --baseline send --ring-flags none,sqpoll";
    place.run(&format!("{RUN} {arms} --verbose")).ended(0).prints("ring flags sqpoll");
    let columns = ["ring_flags", "primitive", "status", "tx_cpu_ns_per_byte"];
    let rows = place.rows("cells", columns);
    let settings: BTreeSet<&str> = rows.iter().map(|[flags, ..]| &**flags).collect();
    assert_eq!(settings, BTreeSet::from(["none", "sqpoll"]));
    for [flags, id, status, cpu_ns_per_byte] in &rows {
        // A kernel without rings says so in the row of the arm.
        let is_known = status != "ok" || cpu_ns_per_byte.parse().is_ok_and(|ns: f64| ns > 0.0);
        assert!(is_known, "{flags} {id}: {cpu_ns_per_byte}");
    }
    place.fails("run net --ring-flags defer_taskrun", 2, "single_issuer+defer_taskrun");
}

/// Over loopback no device can be polled, which is said; there it makes no cells.
#[test]
fn polling_has_cells_where_a_device_can_be_polled() {
    let place = Place::new();
    let done = place.run(&format!("{RUN} --methods send --busy-poll off,50")).ended(0);
    let said = "--busy-poll has no effect without --network veth or another machine";
    assert!(done.stderr.contains(said), "{}", done.stderr);
    let settings: BTreeSet<_> = place.rows("cells", ["busy_poll_us"]).into_iter().collect();
    assert_eq!(settings, BTreeSet::from([[String::new()]]));
    place.fails("run net --busy-poll long", 2, "write whole microseconds");
}

#[test]
fn a_batch_is_that_many_messages_a_call() {
    let place = Place::new();
    let arms = "--methods send,uring_send --baseline send --uring-batch 1,4";
    place.run(&format!("{RUN} {arms}")).ended(0);
    let columns = ["primitive", "status", "uring_batch", "uring_depth", "tx_messages_per_call"];
    for [id, status, batch, depth, per_call] in place.rows("cells", columns) {
        if id != "uring_send" {
            continue;
        }
        if status != "ok" {
            // A kernel without rings says so in the row of the arm.
            continue;
        }
        assert_eq!(batch, depth);
        let (batch, per_call): (f64, f64) = (batch.parse().unwrap(), per_call.parse().unwrap());
        // A slice ends with what is left of it.
        assert!(per_call <= batch && per_call > 0.5 * batch, "{per_call} of {batch}");
    }
}

#[test]
fn completions_are_read_in_batches() {
    let place = Place::new();
    let arms = "--methods send,sendmsg_zerocopy --baseline send --reap-batch needed,1";
    place.run(&format!("{RUN} {arms}")).ended(0);
    let columns = ["primitive", "reap_batch", "zerocopy_sends", "zerocopy_completions"];
    let found = place.rows("cells", columns);
    let zerocopy: Vec<_> = found.iter().filter(|row| row[0] == "sendmsg_zerocopy").collect();
    let batches: Vec<&str> = zerocopy.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(batches, ["", "1"]);
    assert!(zerocopy.iter().all(|row| row[2] == row[3]), "{zerocopy:?}");
}

const RECEIVERS: &str = "run net --methods send,sendmsg_zerocopy --baseline send --sizes 64KiB \
                   --threads 2 --network loopback --quick --passes 2 --rounds 3 \
                   --progress none --receivers recv,recv_trunc,recvmsg_iov,splice_rx";

/// A column of the rows of cells, with the receiver and the arm of each.
fn column(place: &Place, name: &str) -> Vec<[String; 3]> {
    place.rows("cells", ["receiver", "primitive", name])
}

#[test]
fn every_receiver_has_its_cells_and_its_copies() {
    let place = Place::new();
    for mode in ["stream", "rr"] {
        place
            .run(&format!("{RECEIVERS} --mode {mode} --verbose"))
            .ended(0)
            .prints("Receivers beside each other");
        let copies = |receiver: &str| {
            let rows = column(&place, "copies_end_to_end");
            let of = |row: &&[String; 3]| row[0] == receiver && row[1] == "send";
            rows.iter().find(of).map(|row| row[2].parse::<f64>().unwrap())
        };
        for (receiver, expect) in
            [("recv", 2.0), ("recvmsg_iov", 2.0), ("recv_trunc", 1.0), ("splice_rx", 1.0)]
        {
            assert_eq!(copies(receiver), Some(expect), "{receiver}, {mode}");
        }
        let mapped = column(&place, "rx_mapped_share");
        assert!(mapped.iter().all(|[.., share]| share.is_empty()), "none of them maps");
    }
}

#[test]
fn what_maps_counts_it_and_what_cannot_is_refused_before_the_start() {
    let place = Place::new();
    let done = place.run(&format!("{RECEIVERS},tcp_zerocopy_receive"));
    if done.code == Some(4) {
        done.says("cannot receive with tcp_zerocopy_receive here: ");
        return;
    }
    done.assert_code(0);
    let mapped = column(&place, "rx_mapped_share");
    assert!(mapped.iter().any(|[receiver, ..]| receiver == "tcp_zerocopy_receive"), "{mapped:?}");
    for [receiver, arm, share] in mapped {
        if receiver == "tcp_zerocopy_receive" {
            let share: f64 = share.parse().unwrap();
            assert!((0.0..=1.0).contains(&share), "{arm}: {share}");
        } else {
            assert!(share.is_empty(), "{receiver}: {share}");
        }
    }
    let known = place.listed("receivers");
    assert!(known.iter().all(|receiver| receiver["since_linux"].is_string()), "{known:?}");
}

#[test]
fn what_stays_armed_counts_its_re_arms() {
    let place = Place::new();
    // A receive size less than a message: buffers run out, and a message is
    // several takes.
    for mode in ["stream", "rr"] {
        let done =
            place.run(&format!("{RECEIVERS},uring_recv_multishot --recv-size 16KiB --mode {mode}"));
        if done.code == Some(4) {
            done.says("cannot receive with uring_recv_multishot here: ");
            return;
        }
        done.assert_code(0);
        let [rearms, enobufs] = ["rx_rearms", "rx_ring_enobufs"].map(|name| column(&place, name));
        assert!(rearms.iter().any(|[receiver, ..]| receiver == "uring_recv_multishot"));
        for ([receiver, arm, rearms], [.., enobufs]) in rearms.into_iter().zip(enobufs) {
            if receiver == "uring_recv_multishot" {
                let [rearms, enobufs] = [rearms, enobufs].map(|n| n.parse::<u64>().unwrap());
                // The last shortage of a slice may be armed again in the next.
                assert!(enobufs > 0 && rearms > 0, "{arm}, {mode}: {rearms}, {enobufs}");
            } else {
                assert_eq!((rearms, enobufs), Default::default(), "{receiver}, {mode}");
            }
        }
    }
}
