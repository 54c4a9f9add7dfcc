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
