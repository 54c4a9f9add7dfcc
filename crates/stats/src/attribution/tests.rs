//! Known answers: stacks whose shares are known.

use iolens_model::axes::{Iovec, Mode, Topology, WorkingSet};

use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::outcome::Counts;
use iolens_model::profile::{Samples, Sampling, Stack, Unsampled};
use iolens_model::reading::NotMeasured;
use iolens_model::tuning::Tuning;
use iolens_model::units::{Bytes, Nanos};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;

fn cell() -> Cell {
    Cell {
        setting: Setting::Net(NetSetting {
            topology: Topology::Veth,
            mode: Mode::Stream,
            working_set: WorkingSet::Hot,
            fields: 8,
            iovec: Iovec::PerMessage,
            receiver: "recv".to_owned(),
            tuning: Tuning::DEFAULT,
        }),
        threads: 1,
        size: Bytes(4096),
    }
}

const COPY: &str = "send;do_syscall_64_[k];tcp_sendmsg_[k];_copy_from_iter_[k]";
const LATE: &str = "send;do_syscall_64_[k];net_rx_action_[k];skb_copy_ubufs_[k]";
const USER: &str = "run";

fn end(arm: &str, sends: bool, stacks: &[(&str, u64)]) -> ProfileEnd {
    let stacks: Vec<Stack> = stacks
        .iter()
        .map(|(folded, samples)| Stack { folded: (*folded).to_owned(), samples: *samples })
        .collect();
    let mut samples = Samples { stacks, lost: 0, cpu_ns: None };
    samples.cpu_ns = Some(1_000_000 * samples.total());
    let counts = Counts {
        messages: 1000,
        time_ns: 2_000_000 * samples.total(),
        // A sample stands for a millisecond.
        task_clock_ns: samples.cpu_ns,
        run_delay_ns: Some(250_000 * samples.total()),
        ..Counts::default()
    };
    ProfileEnd {
        arm: arm.to_owned(),
        primitive: arm.to_owned(),
        sends,
        kernel: true,
        counts,
        samples,
    }
}

fn trial(number: u32, ends: Vec<ProfileEnd>) -> ProfileTrial {
    ProfileTrial {
        number,
        cell: cell(),
        started_unix_ns: 0,
        status: Status::Ok,
        reason: None,
        sampling: Sampling { period: Nanos(1_000_000) },
        ends,
        unsampled: None,
        not_measured: Vec::new(),
    }
}

/// `send` copies at once, `zerocopy` late; 100 samples each at the sender.
fn trials() -> Vec<ProfileTrial> {
    let late = [38, 40, 42, 40, 40];
    late.iter()
        .zip(1..)
        .map(|(&late, number)| {
            trial(
                number,
                vec![
                    end("send", true, &[(USER, 80), (COPY, 20)]),
                    end("send", false, &[(USER, 50)]),
                    end("zerocopy", true, &[(USER, 100 - late), (LATE, late)]),
                    end("zerocopy", false, &[(USER, 50)]),
                ],
            )
        })
        .collect()
}

fn share(of: &ScopeAttribution, class: Class) -> f64 {
    of.class(class).map_or(0.0, |share| share.share.value)
}

#[test]
fn shares_are_those_of_the_samples() {
    let found = attribute(&trials()).unwrap();
    assert_eq!((found.trials, found.kernel, found.arms.len()), (5, true, 2));
    let sender = found.arms[0].scope(Scope::Sender).unwrap();
    assert!((share(sender, Class::CopyFromUser) - 0.2).abs() < 1e-12);
    assert!((share(sender, Class::User) - 0.8).abs() < 1e-12);
    assert!((sender.coverage - 1.0).abs() < 1e-12);
    assert_eq!(sender.busy_share, Some(0.5), "half of the wall time on a CPU");
    assert_eq!(sender.waiting_share, Some(0.125), "time without a CPU is not idle");
    // 100 ms of CPU time over 1000 messages.
    assert!((sender.cpu_ns_per_message.value - 100_000.0).abs() < 1e-6);
    let copy = sender.class(Class::CopyFromUser).unwrap();
    assert!((copy.ns_per_message.value - 20_000.0).abs() < 1e-6);
    let both = &found.arms[0].both;
    assert!((share(both, Class::CopyFromUser) - 20.0 / 150.0).abs() < 1e-12);
    assert_eq!(both.busy_share, None);
    let total: f64 = both.classes.iter().map(|class| class.share.value).sum();
    assert!((total - 1.0).abs() < 1e-12, "shares are parts of a whole");
}

#[test]
fn the_interval_is_that_of_the_trials() {
    let found = attribute(&trials()).unwrap();
    let sender = found.arms[1].scope(Scope::Sender).unwrap();
    let late = sender.class(Class::LateCopy).unwrap().share;
    // Shares of equal trials: 0.38, 0.40, 0.42, 0.40, 0.40; sd 0.01414, t(4) = 2.776.
    let half = 2.776 * 0.014_142 / 5f64.sqrt();
    let interval = late.interval.unwrap();
    assert!((late.value - 0.4).abs() < 1e-12);
    assert!((interval.high - (0.4 + half)).abs() < 1e-4, "{interval:?}");
}

#[test]
fn what_only_one_arm_has_is_found() {
    let explained = explain(&trials(), "send");
    let against = &explained[0].against[0];
    assert_eq!((against.arm.as_str(), against.other.as_str()), ("zerocopy", "send"));
    let only = against.only.as_ref().unwrap();
    assert_eq!(only.classes, [Class::LateCopy]);
    assert!((only.share.value - 40.0 / 150.0).abs() < 1e-12);
    assert_eq!(against.classes[0].class, Class::LateCopy, "the largest difference first");
    assert!((against.classes[0].ns_per_message.value - 40_000.0).abs() < 1e-6);
    let sum: f64 = against.classes.iter().map(|class| class.ns_per_message.value).sum();
    assert!((sum - against.cpu_ns_per_message.value).abs() < 1e-6, "the parts are the whole");
}

/// Nine classes, each of which is looked at.
#[test]
fn equal_arms_seldom_differ_surely_in_any_class() {
    const RUNS: u32 = 400;
    const LEAVES: [&str; 9] = [
        "user",
        "do_syscall_64_[k]",
        "_copy_from_iter_[k]",
        "tcp_sendmsg_[k]",
        "net_rx_action_[k]",
        "_copy_to_iter_[k]",
        "__alloc_skb_[k]",
        "schedule_[k]",
        "filemap_read_[k]",
    ];
    let mut rng = Pcg64Mcg::seed_from_u64(9);
    let mut drawn = |arm: &str| {
        let mut stacks = LEAVES.map(|leaf| (leaf, 0));
        (0..270).for_each(|_| stacks[rng.random_range(0..LEAVES.len())].1 += 1);
        end(arm, true, &stacks)
    };
    let mut differs = || {
        let trials = (1..=5).map(|number| trial(number, vec![drawn("send"), drawn("twin")]));
        let trials: Vec<ProfileTrial> = trials.collect();
        let found = against(&trials, "twin", "send", 1).unwrap();
        assert_eq!(found.classes.len(), LEAVES.len());
        let mut intervals = found.classes.iter().map(|class| class.ns_per_message.interval);
        intervals.any(|interval| !interval.unwrap().contains(0.0))
    };
    let share = (0..RUNS).filter(|_| differs()).count() as f64 / f64::from(RUNS);
    // By chance three standard errors more.
    assert!(share <= 0.05 + 3.0 * (0.05 * 0.95 / f64::from(RUNS)).sqrt(), "{share}");
}

/// The more arms are compared, the wider each interval.
#[test]
fn intervals_hold_for_all_arms_together() {
    let width = |arms| {
        let found = against(&trials(), "zerocopy", "send", arms).unwrap();
        let interval = found.classes[0].ns_per_message.interval.unwrap();
        interval.high - interval.low
    };
    // Three classes; t(4) at 1 - 0.025/3 is 3.961, at 1 - 0.025/6 it is 4.851.
    assert!((width(2) / width(1) - 4.851 / 3.961).abs() < 1e-3, "{}", width(2) / width(1));
}

#[test]
fn without_kernel_stacks_it_is_user_time() {
    let mut one = trial(1, vec![end("send", true, &[(USER, 10)])]);
    one.ends[0].kernel = false;
    let why = "kernel.perf_event_paranoid is 2".to_owned();
    one.not_measured = vec![NotMeasured { metric: "kernel_stacks".to_owned(), why: why.clone() }];
    let found = attribute(&[one.clone(), one]).unwrap();
    assert!(!found.kernel);
    assert_eq!(found.missing, [why]);
    assert!((share(&found.arms[0].both, Class::User) - 1.0).abs() < 1e-12);
}

/// Ten samples of user time in a second of CPU time are ten milliseconds, not
/// a second.
#[test]
fn user_time_is_not_taken_for_all_cpu_time() {
    let mut one = trial(1, vec![end("send", true, &[(USER, 10)])]);
    one.ends[0].kernel = false;
    one.ends[0].counts.task_clock_ns = Some(1_000_000_000);
    one.ends[0].samples.cpu_ns = Some(1_000_000_000);
    let found = attribute(&[one.clone(), one]).unwrap();
    let both = &found.arms[0].both;
    assert!((both.cpu_ns_per_message.value - 10_000.0).abs() < 1e-6, "10 ms over 1000 messages");
    assert!((both.coverage - 0.01).abs() < 1e-12);
}

/// A kernel's thread that works beside the sampled one, for as long.
#[test]
fn what_was_not_sampled_is_a_class_of_its_own() {
    let mut trials = trials();
    for trial in &mut trials {
        let sender = &mut trial.ends[2];
        sender.counts.task_clock_ns = sender.samples.cpu_ns.map(|own_ns| 2 * own_ns);
    }
    let found = attribute(&trials).unwrap();
    let sender = found.arms[1].scope(Scope::Sender).unwrap();
    let ns = |class| sender.class(class).unwrap().ns_per_message.value;
    assert!((ns(Class::LateCopy) - 40_000.0).abs() < 1e-6, "as without it");
    assert!((ns(Class::Unsampled) - 100_000.0).abs() < 1e-6);
    assert!((sender.cpu_ns_per_message.value - 200_000.0).abs() < 1e-6);
    assert!((share(sender, Class::Unsampled) - 0.5).abs() < 1e-12);
    let total: f64 = sender.classes.iter().map(|class| class.share.value).sum();
    assert!((total - 1.0).abs() < 1e-12, "{total}");
    let user = sender.functions.iter().find(|function| function.symbol == USER).unwrap();
    assert!((user.share - 0.3).abs() < 1e-12, "{user:?}");
    assert!((sender.coverage - 1.0).abs() < 1e-12, "the timer kept up");
    assert_eq!(sender.busy_share, Some(0.5), "of the sampled thread");
    let against = &explain(&trials, "send")[0].against[0];
    assert_eq!(against.classes[0].class, Class::Unsampled);
    let sum: f64 = against.classes.iter().map(|class| class.ns_per_message.value).sum();
    assert!((sum - against.cpu_ns_per_message.value).abs() < 1e-6, "the parts are the whole");
}

/// Its messages would count, and its CPU time would not.
#[test]
fn a_trial_without_its_cpu_time_is_left_out() {
    let mut trials = trials();
    trials[0].ends[2].counts.task_clock_ns = None;
    trials[1].ends[3].samples.cpu_ns = None;
    let found = attribute(&trials).unwrap();
    assert_eq!(found.left_out.len(), 1, "{:?}", found.left_out);
    assert!(found.left_out[0].starts_with("2 of 5 sampled trials of zerocopy:"));
    let both = &found.arms[1].both;
    assert!((both.cpu_ns_per_message.value - 150_000.0).abs() < 1e-6, "150 ms over 1000 messages");
    assert_eq!(both.samples, 3 * 150);
    let total: f64 = both.functions.iter().map(|function| function.share).sum();
    assert!((total - 1.0).abs() < 1e-12, "functions are those of the same trials: {total}");
    let against = &explain(&trials, "send")[0].against[0];
    assert_eq!(against.cpu_ns_per_message.n, 3, "pairs that both are known of");
    assert!(against.cpu_ns_per_message.value.abs() < 1e-6);
}

#[test]
fn failed_trials_and_none_are_told() {
    assert_eq!(attribute(&[]), None);
    let mut failed = trial(1, Vec::new());
    (failed.status, failed.reason) = (Status::Failed, Some("it died".to_owned()));
    let found = attribute(&[failed]).unwrap();
    assert_eq!((found.trials, found.arms.len()), (0, 0));
    assert_eq!(found.failed, ["it died"]);
    assert!(!found.kernel);
}

#[test]
fn what_sampling_costs_is_the_baseline_over_its_unsampled_double() {
    // Each message takes 1 % more sampled, whatever the trial's own pace.
    let mut trials = trials();
    for (trial, pace) in trials.iter_mut().zip([1, 2, 3, 2, 1]) {
        let counts = &mut trial.ends[0].counts;
        (counts.messages, counts.time_ns) = (1000, 101_000 * pace);
        let arm = "send".to_owned();
        trial.unsampled = Some(Unsampled { arm, messages: 2000, time_ns: 200_000 * pace });
    }
    let cost = attribute(&trials).unwrap().sampling_cost.unwrap();
    assert_eq!((cost.arm.as_str(), cost.ratio.n), ("send", 5));
    assert!((cost.ratio.value - 1.01).abs() < 1e-9, "{cost:?}");
    let interval = cost.ratio.interval.unwrap();
    assert!((interval.high - interval.low).abs() < 1e-9, "{interval:?}");
    trials.iter_mut().for_each(|trial| trial.unsampled = None);
    assert_eq!(attribute(&trials).unwrap().sampling_cost, None);
}
