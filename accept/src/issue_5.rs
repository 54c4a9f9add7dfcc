//! Issue 5: every way through a socket, with proof of what the kernel did.

use serde_json::Value;

use super::{
    Bench, Judged, Line, Outcome, bare_loops, families, liburing, mapped, results, throttle,
};

pub(crate) const LINES: &[Line] = &[
    Line {
        issue: 5,
        id: "b",
        promise: "`run net --network sink` shows a copied share of 0 for zero-copy sends and a \
                  crossover band, and veth 100 %",
        check: check_sink,
    },
    Line {
        issue: 5,
        id: "c",
        promise: "`tcp_zerocopy_receive` maps over 90 % at 1 MiB on loopback, and where nothing \
                  maps its row says why; a sysctl is touched only with `--allow-sysctl`, and put \
                  back, after a SIGKILL by the next start",
        check: mapped::check,
    },
    Line {
        issue: 5,
        id: "d",
        promise: "a tbf of 100 Mbit/s on the veth reads as that rate less the headers within 1 % \
                  for every stream primitive",
        check: throttle::check_all,
    },
    Line {
        issue: 5,
        id: "e",
        promise: "a run of all families is readable: its families have headings, no figure has \
                  more than seven lines, its page is under 1.5 MiB, its text under 120 lines, \
                  and no arm is lost",
        check: families::check,
    },
    Line {
        issue: 5,
        id: "f",
        promise: "on `sink` at 64 000 B `uring_send_zc_fixed` is at least 1.3 times as fast as a \
                  sendto(2) (lower end of the interval)",
        check: check_fixed,
    },
    Line {
        issue: 5,
        id: "g",
        promise: "each primitive that sends is EQUIVALENT (δ = 3 %) to a bare loop of the same \
                  calls run as an arm",
        check: bare_loops::check,
    },
    Line {
        issue: 5,
        id: "h",
        promise: "on `sink` at 64 000 B `uring_send_zc_fixed` reaches at least the rate of \
                  liburing's own send-zerocopy example with the same settings",
        check: liburing::check,
    },
];

/// A message of one field: several lie on more pages than one datagram's
/// references hold.
const SINK: &str = "run net --network sink,veth --fields 1 --threads 1 --quick --methods \
                    send_staged,sendmsg_iov,sendmsg_zerocopy,uring_send_zc --sizes \
                    1KiB,4KiB,16KiB,32KiB,64000";

fn check_sink(bench: &Bench) -> Judged {
    let run = bench.iolens("sink", &words(SINK))?.limit_minutes(3).run()?.success()?;
    let json = bench.iolens_json("sink", &["show", "last", "--json"], 1)?.json;
    let share_of = |topology: &'static str| {
        let rows = rows(&json).filter(move |row| row["topology"] == topology);
        let shares = rows.filter_map(|row| row["zerocopy_copied_share"].as_f64());
        shares.collect::<Vec<f64>>()
    };
    let complete = rows(&json)
        .filter(|row| !row["zerocopy_sends"].is_null())
        .all(|row| row["zerocopy_sends"] == row["zerocopy_completions"]);
    let (sink, veth) = (share_of("sink"), share_of("veth"));
    let text = run.stdout().replace("\n  ", " ");
    let band = text.lines().find(|line| {
        ["sendmsg_zerocopy", "overtakes send_staged", " between ", "sink"]
            .iter()
            .all(|word| line.contains(word))
    });
    let evidence = format!(
        "copied shares on sink {sink:?}, on veth {veth:?}; completions {} sends\n{}",
        if complete { "=" } else { "≠" },
        band.unwrap_or("no band"),
    );
    let passes = complete
        && sink.len() == 10
        && sink.iter().all(|&share| share == 0.0)
        && veth.len() == 10
        && veth.iter().all(|&share| share == 1.0)
        && band.is_some();
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

const FIXED: &str = "run net --network sink --fields 1 --threads 1 --quick --methods \
                     sendto,uring_send_zc_fixed --baseline sendto --sizes 64000 --json";
const FIXED_MIN: f64 = 1.3;

fn check_fixed(bench: &Bench) -> Judged {
    let json = bench.iolens_json("fixed", &words(FIXED), 3)?.json;
    let row = rows(&json).find(|row| row["arm"] == "uring_send_zc_fixed");
    let row = row.ok_or("no row of uring_send_zc_fixed")?;
    let number = |key: &str| row[key].as_f64().ok_or_else(|| format!("the row has no {key}"));
    let low = number("ratio_low")?;
    let evidence = format!(
        "{}: {:.2} [{low:.2}, {:.2}], copied share {}",
        results::cell_words(row),
        number("ratio")?,
        number("ratio_high")?,
        row["zerocopy_copied_share"],
    );
    Ok(if low >= FIXED_MIN { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

pub(super) fn words(line: &'static str) -> Vec<&'static str> {
    line.split_whitespace().collect()
}

/// The arms of every cell.
pub(super) fn rows(json: &Value) -> impl Iterator<Item = &Value> {
    json["cells"].as_array().into_iter().flatten()
}
