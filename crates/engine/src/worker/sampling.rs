//! Samples of a thread's stacks while it is in a slice that counts: only in
//! trials that are made for it, so that no timed slice is ever interrupted by
//! a look at it.

use std::collections::HashMap;

use iolens_model::profile::{KERNEL_MARK, SYSCALL_EXIT, Samples, Sampling, Stack};
use iolens_model::reading::NotMeasured;
use iolens_model::trial::{Slice, SliceKind, Trial};
use iolens_sys::errno::Errno;
use iolens_sys::perf_event::sampling::{Reach, Record, Sampler, Space, Trigger};
use iolens_sys::perf_event::{Event, Kind, Mode, Refusal, Scope};
use iolens_sys::proc::Root;

use super::crew::ThreadSlice;
use super::protocol::EndSamples;
use iolens_harness::counters::not_permitted;
use iolens_harness::symbols::Symbols;

/// Addresses of a stack, innermost first.
type Addresses = Box<[(Space, u64)]>;

/// What one thread of an end sees of itself.
#[derive(Debug, Default)]
pub(crate) struct StackSampler {
    sampler: Option<Sampler>,
    /// Whether it samples now.
    enabled: bool,
    kernel: bool,
    arms: Vec<ArmStacks>,
    missing: Vec<NotMeasured>,
}

#[derive(Debug, Default)]
struct ArmStacks {
    seen: HashMap<Addresses, u64>,
    lost: u64,
    /// CPU time of the thread in the slices that count.
    cpu_ns: u64,
}

impl StackSampler {
    /// Samples of the calling thread, if the trial asks for them: of the
    /// kernel too where that is allowed, else of the program.
    ///
    /// Errors: none; what is refused is in [`merge`]'s reasons.
    pub(crate) fn open(trial: &Trial) -> StackSampler {
        let Some(Sampling { period }) = trial.sampling else { return StackSampler::default() };
        let trigger = Trigger::CpuClock { period_ns: period.0 };
        let open = |reach| Sampler::open(trigger, reach);
        let mut missing = Vec::new();
        let mut note = |metric: &str, what: &str, mode: Mode, errno: Errno| {
            let because = match Refusal::from(errno) {
                Refusal::NotPermitted => {
                    let event = Event { kind: Kind::TaskClock, mode, pmu: None };
                    format!(": {}", not_permitted(&Root::real(), event, Scope::Thread))
                }
                _ => String::new(),
            };
            let why = format!("cannot sample {what}: {errno}{because}");
            missing.push(NotMeasured { metric: metric.to_owned(), why });
        };
        let (sampler, kernel) = match open(Reach::Everything) {
            Ok(sampler) => (Some(sampler), true),
            Err(refused) => {
                note("kernel_stacks", "the kernel", Mode::Kernel, refused);
                match open(Reach::UserOnly) {
                    Ok(sampler) => (Some(sampler), false),
                    Err(refused) => {
                        note("stacks", "this program", Mode::User, refused);
                        (None, false)
                    }
                }
            }
        };
        let arms = trial.arms.iter().map(|_| ArmStacks::default()).collect();
        StackSampler { sampler, enabled: false, kernel, arms, missing }
    }

    /// Samples from here on or does not, outside of every slice's clock.
    ///
    /// Errors: of the event's ioctl.
    pub(crate) fn sample(&mut self, on: bool) -> Result<(), Errno> {
        let Some(sampler) = self.sampler.as_ref().filter(|_| self.enabled != on) else {
            return Ok(());
        };
        self.enabled = on;
        if on { sampler.enable() } else { sampler.disable() }
    }

    /// Takes in what was sampled since the last call: it belongs to `slice` if it lies
    /// between the thread's first call and its end there. Called after every slice,
    /// outside its clock.
    pub(crate) fn collect(&mut self, slice: &Slice, done: &ThreadSlice) {
        let Some(arm) = self.arms.get_mut(slice.arm) else { return };
        let is_measured = slice.kind == SliceKind::Measured;
        arm.cpu_ns += if is_measured { done.own_cpu_ns } else { 0 };
        let Some(sampler) = &mut self.sampler else { return };
        // A thread that never got to do anything has no first call.
        let from_ns = Some(done.span.first_call_ns).filter(|&ns| is_measured && ns > 0);
        sampler.drain(|record| match record {
            Record::Sample { time_ns, stack } => {
                if from_ns.is_some_and(|from_ns| (from_ns..=done.end_ns).contains(&time_ns)) {
                    *arm.seen.entry(stack.frames().collect()).or_default() += 1;
                }
            }
            Record::Lost { samples } => arm.lost += samples,
        });
    }
}

/// Adds up the threads of an end; `None` where no samples were asked for.
pub(crate) fn merge<'a>(
    threads: impl Iterator<Item = &'a StackSampler> + Clone,
) -> Option<EndSamples> {
    let arms = threads.clone().map(|thread| thread.arms.len()).max().unwrap_or(0);
    if arms == 0 {
        return None;
    }
    let symbols = Symbols::here(&Root::real());
    let kernel = threads.clone().all(|thread| thread.kernel);
    let mut missing: Vec<NotMeasured> = Vec::new();
    for entry in threads.clone().flat_map(|thread| &thread.missing) {
        if !missing.contains(entry) {
            missing.push(entry.clone());
        }
    }
    if let Some(why) = symbols.kernel_hidden().filter(|_| kernel) {
        missing.push(NotMeasured { metric: "kernel_symbols".to_owned(), why });
    }
    missing.extend(symbols.code_hidden().map(|why| {
        let metric = "syscall_exit".to_owned();
        NotMeasured { metric, why }
    }));
    let of_arm = |arm: usize| {
        let parts = threads.clone().filter_map(|thread| thread.arms.get(arm));
        let mut named: HashMap<String, u64> = HashMap::new();
        for (stack, samples) in parts.clone().flat_map(|part| &part.seen) {
            *named.entry(symbols.fold(stack)).or_default() += samples;
        }
        named.retain(|folded, _| kernel || !is_exit(folded));
        let mut stacks: Vec<Stack> =
            named.into_iter().map(|(folded, samples)| Stack { folded, samples }).collect();
        stacks.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.folded.cmp(&b.folded)));
        Samples {
            stacks,
            lost: parts.clone().map(|part| part.lost).sum(),
            cpu_ns: Some(parts.map(|part| part.cpu_ns).sum()),
        }
    };
    Some(EndSamples { arms: (0..arms).map(of_arm).collect(), kernel, missing })
}

/// Whether a stack ends in the kernel's way back to the program, which is no user time.
fn is_exit(folded: &str) -> bool {
    folded.strip_suffix(KERNEL_MARK).is_some_and(|folded| folded.ends_with(SYSCALL_EXIT))
}

#[cfg(test)]
mod tests {
    use iolens_harness::op::Span;
    use iolens_model::outcome::Counts;
    use iolens_model::trial::Work;

    use super::*;

    /// What helpers and children spent is in the counts, and not in the samples.
    #[test]
    fn samples_have_the_cpu_time_of_their_threads_in_measured_slices() {
        let mut sampler = StackSampler { arms: vec![ArmStacks::default()], ..Default::default() };
        let done = |own_cpu_ns| ThreadSlice {
            span: Span { first_call_ns: 0, last_call_ns: 0 },
            end_ns: 0,
            counts: Counts { task_clock_ns: Some(1000), ..Counts::default() },
            own_cpu_ns,
        };
        for (kind, own_cpu_ns) in
            [(SliceKind::Warm, 1), (SliceKind::Measured, 20), (SliceKind::Measured, 300)]
        {
            let slice = Slice { arm: 0, kind, round: 0, work: Work::Messages(1) };
            sampler.collect(&slice, &done(own_cpu_ns));
        }
        let merged = merge([&sampler, &sampler].into_iter()).unwrap();
        assert_eq!(merged.arms[0].cpu_ns, Some(640));
    }

    #[test]
    fn the_way_back_from_a_system_call_is_no_user_time() {
        assert!(is_exit(&format!("run;getppid;{SYSCALL_EXIT}{KERNEL_MARK}")));
        assert!(!is_exit("run;getppid") && !is_exit("run;do_syscall_64_[k]"));
    }
}
