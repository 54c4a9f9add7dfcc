//! Calls that poll the device before they sleep.

use iolens_model::axes::{Mode, Topology};
use iolens_model::outcome::Status;
use iolens_model::plan::NetworkOptions;
use iolens_model::trial::Work;
use iolens_model::tuning::BusyPoll;
use iolens_model::units::Nanos;
use iolens_net::entry::Entry;
use iolens_sys::affinity;

use crate::{conduct, say_duration, skip, trial_of};

const NAME: &str = "what_polls_the_device_finds_packets";

/// None without polling, none in devices that are only made so, some where it is asked for.
pub(crate) fn what_polls_the_device_finds_packets() {
    let cpus = affinity::thread_cpus().unwrap();
    let [tx, rx, ..] = cpus[..] else {
        return skip::note(NAME, "one processor: the sender does not run while a receiver polls");
    };
    for (asked, found) in [(None, None), (Some(0), Some(false)), (Some(500), Some(true))] {
        let plain = |entry: &&Entry| entry.id == "send";
        let network = NetworkOptions::default();
        let mut trial = trial_of(plain, Topology::Veth, network, 64, Mode::Rr);
        trial.cell.threads = 1;
        trial.cell.net_mut().unwrap().tuning.busy_poll_us = BusyPoll(asked);
        (trial.tx_cpus, trial.rx_cpus) = (vec![tx], vec![rx]);
        trial.slices[0].work = Work::Window(Nanos(100_000_000));
        let outcome = conduct(&trial);
        say_duration(&outcome, &format!("busy poll {}", BusyPoll(asked)));
        if let Some(why) = outcome.reason.as_ref().filter(|why| why.contains("SO_BUSY_POLL")) {
            return skip::note(NAME, why);
        }
        assert_eq!((outcome.status, &outcome.reason), (Status::Ok, &None));
        let packets = outcome.rx.unwrap().busy_polled_packets;
        assert_eq!(packets.map(|packets| packets > 0), found, "{asked:?}: {packets:?}");
    }
}
