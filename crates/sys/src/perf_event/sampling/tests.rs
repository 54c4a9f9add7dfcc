//! Records as the kernel writes them, and samples of this very thread.

use proptest::prelude::*;

use super::*;
use crate::clock;
use crate::perf_event::Refusal;
use crate::skip;

const MILLISECOND: Trigger = Trigger::CpuClock { period_ns: 1_000_000 };

fn header(kind: u32, bytes: usize) -> u64 {
    u64::from(kind) | (bytes as u64) << 48
}

#[test]
fn a_sample_is_its_time_and_its_stack() {
    let words = [
        header(abi::PERF_RECORD_SAMPLE, 64),
        77,
        4,
        CONTEXT_KERNEL,
        0xffff_ffff_8100_0000,
        CONTEXT_USER,
        0x1000,
    ];
    let Some(Record::Sample { time_ns, stack }) = parse(&words) else { panic!("no sample") };
    assert_eq!(time_ns, 77);
    let frames: Vec<_> = stack.frames().collect();
    assert_eq!(frames, [(Space::Kernel, 0xffff_ffff_8100_0000), (Space::User, 0x1000)]);
}

#[test]
fn what_was_lost_is_told() {
    let lost = [header(abi::PERF_RECORD_LOST, 24), 1, 5];
    assert_eq!(parse(&lost), Some(Record::Lost { samples: 5 }));
    assert_eq!(parse(&[header(abi::PERF_RECORD_COMM, 8)]), None);
}

proptest! {
    #[test]
    fn no_record_panics_the_reader(
        kind in 0u32..20,
        words in prop::collection::vec(any::<u64>(), 0..40),
    ) {
        let mut record = vec![header(kind, 8 * (words.len() + 1))];
        record.extend(&words);
        if let Some(Record::Sample { stack, .. }) = parse(&record) {
            prop_assert!(stack.frames().count() <= words.len());
        }
    }
}

/// Spends `cpu_ns`, seldom looking at the clock: reading it is a system call, and
/// what is in the kernel when its sample is due is not sampled here.
fn stay_in_user_code(cpu_ns: u64) {
    let begin_ns = clock::thread_cpu_ns();
    while clock::thread_cpu_ns() - begin_ns < cpu_ns {
        (0..100_000u64).for_each(|round| {
            std::hint::black_box(round);
        });
    }
}

/// A kernel that allows it samples a busy thread about as often as asked,
/// within the time it was busy. User code needs no right at paranoid 2.
#[test]
fn a_busy_thread_is_sampled_while_it_is_busy() {
    let mut sampler = match Sampler::open(MILLISECOND, Reach::UserOnly) {
        Err(errno) if Refusal::from(errno) == Refusal::NotPermitted => {
            let test = "perf_event::sampling::tests::a_busy_thread_is_sampled_while_it_is_busy";
            return skip::note(test, "may not sample at all");
        }
        other => other.unwrap(),
    };
    sampler.enable().unwrap();
    let begin_ns = clock::monotonic_ns();
    let begin_cpu_ns = clock::thread_cpu_ns();
    let (mut samples, mut inside) = (0, true);
    // A machine whose timers are late gives fewer than one in a millisecond,
    // but every one it gives lies in time that the thread was busy.
    while samples == 0 && clock::thread_cpu_ns() - begin_cpu_ns < 2_000_000_000 {
        stay_in_user_code(50_000_000);
        let end_ns = clock::monotonic_ns();
        sampler.drain(|record| {
            if let Record::Sample { time_ns, stack } = record {
                samples += 1;
                inside &= (begin_ns..=end_ns).contains(&time_ns);
                assert!(stack.frames().all(|(space, _)| space == Space::User));
            }
        });
    }
    let cpu_ms = (clock::thread_cpu_ns() - begin_cpu_ns) / 1_000_000;
    assert!(inside, "a sample is outside of the time it was asked for");
    assert!((1..=cpu_ms + 10).contains(&samples), "{samples} samples in {cpu_ms} ms of CPU time");
    let mut again = 0;
    sampler.drain(|_| again += 1);
    assert!(again <= 1, "records are handed over once");
}
