//! Receivers as an axis of a run: each cell once for each, with what became of
//! the bytes.

use crate::harness::Place;

const RUN: &str = "run net --methods send,sendmsg_zerocopy --baseline send --sizes 64KiB \
                   --threads 2 --network loopback --quick --passes 2 --rounds 3 \
                   --progress none --receivers recv,recv_trunc,recvmsg_iov,splice_rx";

/// A column of the rows of cells, with the receiver and the arm of each.
fn column(place: &Place, name: &str) -> Vec<(String, String, String)> {
    let csv = place.run("export last --rows cells --format csv").stdout;
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let at = |name: &str| header.iter().position(|column| *column == name).expect("a column");
    let [receiver, arm, value] = ["receiver", "primitive", name].map(at);
    lines
        .map(|row| (row[receiver].to_owned(), row[arm].to_owned(), row[value].to_owned()))
        .collect()
}

#[test]
fn every_receiver_has_its_cells_and_its_copies() {
    let place = Place::new();
    for mode in ["stream", "rr"] {
        let done = place.run(&format!("{RUN} --mode {mode} --verbose"));
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert!(done.stdout.contains("Receivers beside each other"), "{}", done.stdout);
        let copies = |receiver: &str| {
            let rows = column(&place, "copies_end_to_end");
            let of = |row: &&(String, String, String)| row.0 == receiver && row.1 == "send";
            rows.iter().find(of).map(|row| row.2.parse::<f64>().unwrap())
        };
        for (receiver, expect) in
            [("recv", 2.0), ("recvmsg_iov", 2.0), ("recv_trunc", 1.0), ("splice_rx", 1.0)]
        {
            assert_eq!(copies(receiver), Some(expect), "{receiver}, {mode}");
        }
        let mapped = column(&place, "rx_mapped_share");
        assert!(mapped.iter().all(|(_, _, share)| share.is_empty()), "none of them maps");
    }
}

#[test]
fn what_maps_counts_it_and_what_cannot_is_refused_before_the_start() {
    let place = Place::new();
    let done = place.run(&format!("{RUN},tcp_zerocopy_receive"));
    if done.code == Some(4) {
        let why = "cannot receive with tcp_zerocopy_receive here: ";
        assert!(done.stderr.contains(why), "{}", done.stderr);
        return;
    }
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    for (receiver, arm, share) in column(&place, "rx_mapped_share") {
        if receiver == "tcp_zerocopy_receive" {
            let share: f64 = share.parse().unwrap();
            assert!((0.0..=1.0).contains(&share), "{arm}: {share}");
        } else {
            assert!(share.is_empty(), "{receiver}: {share}");
        }
    }
    let listed = place.json("list receivers --json");
    let known = listed["receivers"].as_array().expect("a list");
    assert!(known.iter().all(|receiver| receiver["since_linux"].is_string()), "{listed}");
}

#[test]
fn what_stays_armed_counts_its_re_arms() {
    let place = Place::new();
    // A receive size less than a message: buffers run out, and a message is
    // several takes.
    for mode in ["stream", "rr"] {
        let done =
            place.run(&format!("{RUN},uring_recv_multishot --recv-size 16KiB --mode {mode}"));
        if done.code == Some(4) {
            let why = "cannot receive with uring_recv_multishot here: ";
            assert!(done.stderr.contains(why), "{}", done.stderr);
            return;
        }
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let [rearms, enobufs] = ["rx_rearms", "rx_ring_enobufs"].map(|name| column(&place, name));
        for ((receiver, arm, rearms), (_, _, enobufs)) in rearms.into_iter().zip(enobufs) {
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
