//! Receivers as an axis of a run: each cell once for each, with what became of
//! the bytes.

use crate::harness::Place;

const RUN: &str = "run net --methods send,sendmsg_zerocopy --baseline send --sizes 64KiB \
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
            .run(&format!("{RUN} --mode {mode} --verbose"))
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
    let done = place.run(&format!("{RUN},tcp_zerocopy_receive"));
    if done.code == Some(4) {
        done.says("cannot receive with tcp_zerocopy_receive here: ");
        return;
    }
    done.assert_code(0);
    for [receiver, arm, share] in column(&place, "rx_mapped_share") {
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
            place.run(&format!("{RUN},uring_recv_multishot --recv-size 16KiB --mode {mode}"));
        if done.code == Some(4) {
            done.says("cannot receive with uring_recv_multishot here: ");
            return;
        }
        done.assert_code(0);
        let [rearms, enobufs] = ["rx_rearms", "rx_ring_enobufs"].map(|name| column(&place, name));
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
