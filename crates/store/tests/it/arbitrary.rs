//! Arbitrary runs: every field takes every kind of value it can have, apart
//! from counts above 2^63, which the store refuses (see `refusal`).

mod axes;
mod entries;
mod files;
mod machine;

use std::net::IpAddr;

use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::axes::{Counting, Direction, Iovec, IpVersion, Mode, Topology, WorkingSet};
use iolens_model::call::{CallFacts, CallKind};
use iolens_model::cell::{Cell, NetSetting, Setting, SyscallSetting};
use iolens_model::data_path::{
    CallsPerMessage, DataPath, End, Hop, Movement, Mover, PrimitiveFacts, ReceiverFacts,
};
use iolens_model::family::{Condition, Family};
use iolens_model::latency::Histogram;
use iolens_model::outcome::{
    ArmFact, Counts, CountsByPmu, EndFacts, Environment, Flows, KernelCounts, MultishotCounts,
    PmuCounts, SliceOutcome, Status, TrialOutcome, ZerocopyCounts,
};
use iolens_model::plan::{Passes, Plan, Probes, Schedule};
use iolens_model::profile::{ProfileEnd, ProfileTrial, Samples, Sampling, Stack, Unsampled};
use iolens_model::reading::{NotMeasured, Reading};
use iolens_model::run::{FarFacts, Run, RunEnd, RunHeader, StoppedBy};
use iolens_model::search::SearchPhase;
use iolens_model::server::{OfferedSlice, ServerArm};
use iolens_model::transport::Transport;
use iolens_model::trial::SliceKind;
use iolens_model::tuning::Tuning;
use iolens_model::units::{Bytes, Nanos};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use self::axes::axes;
use self::entries::{primitive, receiver};
use self::files::{
    copy_setting, engine, file_counts, file_facts, file_setting, program_start, write_setting,
};
use self::machine::{calibration, finding, host};

/// A run with up to four trials, ended or not.
pub(crate) fn run() -> impl Strategy<Value = Run> {
    // Boxed: strategies are as large as all that they hold, and live on the stack.
    let searches = vec(search_phase().boxed(), 0..3);
    (header().boxed(), vec(trial().boxed(), 0..4), vec(profile().boxed(), 0..3), searches)
        .prop_map(|(header, trials, profiles, searches)| Run { header, trials, profiles, searches })
}

prop_compose! {
    /// A phase with what came of any arm and slice.
    fn search_phase()(
        number in any::<u32>(),
        cell in cell().boxed(),
        outcome in arm().boxed(),
        slice in option::of(slice(1).boxed()),
        (step, rate) in (option::of(any::<i32>()), option::of(number())),
        (phase, dropped) in (count(), count()),
        (started_unix_ns, duration_ns) in (count(), count()),
        environment in environment().boxed(),
    ) -> SearchPhase {
        let ArmOutcome { arm, status, reason, latency, server, .. } = outcome;
        SearchPhase {
            number,
            cell,
            arm,
            step,
            rate,
            phase: Nanos(phase),
            dropped: Nanos(dropped),
            started_unix_ns,
            duration_ns,
            status,
            reason,
            latency,
            server,
            slice,
            environment,
        }
    }
}

prop_compose! {
    fn profile()(
        number in any::<u32>(),
        cell in cell().boxed(),
        started_unix_ns in count(),
        status in status(),
        reason in option::of(text()),
        period in count(),
        ends in vec(profile_end(), 0..3),
        missing in vec((text(), text()), 0..2),
        unsampled in option::of((text(), count(), count())),
    ) -> ProfileTrial {
        let sampling = Sampling { period: Nanos(period) };
        let missing = missing.into_iter().map(|(metric, why)| NotMeasured { metric, why });
        let not_measured = missing.collect();
        let unsampled =
            unsampled.map(|(arm, messages, time_ns)| Unsampled { arm, messages, time_ns });
        ProfileTrial {
            number,
            cell,
            started_unix_ns,
            status,
            reason,
            sampling,
            ends,
            unsampled,
            not_measured,
        }
    }
}

prop_compose! {
    fn profile_end()(
        arm in text(),
        primitive in text(),
        [sends, kernel] in any::<[bool; 2]>(),
        counts in counts(),
        lost in count(),
        // Everything but a line break, which no name of a function has.
        stacks in vec(("[^\n]{0,12}", any::<u64>()), 0..4),
    ) -> ProfileEnd {
        let stack = |(folded, samples)| Stack { folded, samples };
        let samples = Samples { stacks: stacks.into_iter().map(stack).collect(), lost };
        ProfileEnd { arm, primitive, sends, kernel, counts, samples }
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,8}", Just("a\nb\0c'\"".to_owned())]
}

/// A count as SQLite can hold it.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![0..=9_u64, 0..=i64::MAX.cast_unsigned()]
}

fn number() -> impl Strategy<Value = f64> {
    use prop::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    NORMAL | SUBNORMAL | ZERO | POSITIVE | NEGATIVE
}

fn reading<T: std::fmt::Debug>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Reading<T>> {
    prop_oneof![value.prop_map(Reading::Exact), text().prop_map(|why| Reading::NotMeasured { why })]
}

fn bytes() -> impl Strategy<Value = Bytes> {
    any::<u64>().prop_map(Bytes)
}

prop_compose! {
    fn header()(
        id in "[0-9a-f]{8}",
        name in option::of(text()),
        started_unix_ns in count(),
        build in text(),
        confirms in option::of(text()),
        command in vec(text(), 0..3),
        plan in plan().boxed(),
        (primitives, receivers) in (vec(primitive(), 0..3), vec(receiver(), 0..2)),
        calls in vec(call(), 0..2),
        (engines, file) in (vec(engine(), 0..2), option::of(file_facts())).boxed(),
        (host, far) in (host(), option::of(far())).boxed(),
        calibration in calibration().boxed(),
        end in option::of(end()),
    ) -> RunHeader {
        RunHeader {
            id,
            name,
            started_unix_ns,
            build,
            confirms,
            command,
            plan,
            primitives,
            receivers,
            calls,
            engines,
            file,
            host,
            far,
            calibration,
            end,
            origin: None,
        }
    }
}

prop_compose! {
    fn far()(
        (launcher, build) in (text(), text()),
        direction in select(Direction::ALL),
        (near_address, address) in any::<(IpAddr, IpAddr)>(),
        host in host(),
        findings in vec(finding(), 0..3),
        near_findings in vec(finding(), 0..3),
    ) -> FarFacts {
        FarFacts {
            launcher,
            build,
            direction,
            near_address,
            address,
            host,
            findings,
            near_findings,
        }
    }
}

prop_compose! {
    fn call()(
        (id, summary) in (text(), text()),
        kind in select(CallKind::ALL),
        (calls, bytes, most) in any::<(u32, u32, Option<u32>)>(),
    ) -> CallFacts {
        CallFacts { id, kind, summary, calls, bytes, most }
    }
}

prop_compose! {
    fn end()(
        finished_unix_ns in count(),
        stopped_by in select(vec![
            StoppedBy::Precision,
            StoppedBy::Passes,
            StoppedBy::Budget,
            StoppedBy::Stalled,
            StoppedBy::Interrupted,
            StoppedBy::NothingUsable,
            StoppedBy::Lost,
        ]),
        unmet in vec(text(), 0..3),
    ) -> RunEnd {
        RunEnd { finished_unix_ns, stopped_by, unmet }
    }
}

prop_compose! {
    fn plan()(
        axes in axes(),
        (primitives, baseline) in (vec(text(), 0..3), text()),
        (sizes, threads) in (vec(bytes(), 0..3), vec(any::<u32>(), 0..3)),
        schedule in schedule(),
        (minimum, maximum, budget) in (any::<u32>(), any::<u32>(), any::<u64>()),
        (precision, delta) in (number(), number()),
        (quick, isolate, seed) in any::<(bool, bool, u64)>(),
        cpus in option::of(vec(any::<u32>(), 0..3)),
        (counting, software) in (select(Counting::ALL), any::<bool>()),
    ) -> Plan {
        Plan {
            axes,
            primitives,
            baseline,
            sizes,
            threads,
            schedule,
            passes: Passes { minimum, maximum },
            budget: Nanos(budget),
            precision,
            delta,
            quick,
            isolate,
            seed,
            cpus,
            probes: Probes { counting, software, tracepoints: quick },
        }
    }
}

prop_compose! {
    fn tuning()(
        ip in select(IpVersion::ALL),
        (mtu_bytes, reap_batch) in any::<(Option<u32>, Option<u32>)>(),
        (socket_buffer, receive_size) in (count(), option::of(count())),
        (uring_depth, uring_batch) in (axes::ring_depth(), any::<u32>()),
        ring_flags in axes::ring_flags(),
    ) -> Tuning {
        Tuning {
            ip,
            mtu_bytes,
            socket_buffer_bytes: Bytes(socket_buffer),
            receive_size_bytes: receive_size.map(Bytes),
            reap_batch,
            uring_depth,
            uring_batch,
            ring_flags,
        }
    }
}

fn schedule() -> impl Strategy<Value = Schedule> {
    prop_oneof![
        any::<(u64, u32, u32)>().prop_map(|(slice, discarded_rounds, rounds)| Schedule::Slices {
            slice: Nanos(slice),
            discarded_rounds,
            rounds,
        }),
        any::<u64>().prop_map(|window| Schedule::Window { window: Nanos(window) }),
        any::<u64>().prop_map(|messages| Schedule::Messages { messages }),
    ]
}

prop_compose! {
    fn trial()(
        (pass, position, isolated) in any::<(u32, u32, bool)>(),
        cell in cell().boxed(),
        (started_unix_ns, duration_ns) in (count(), count()),
        (status, reason) in (status(), option::of(text())),
        (arms, slices) in arms().prop_flat_map(|arms| {
            let count = arms.len();
            (Just(arms), slices(count))
        }),
        (environment, far_environment) in (environment(), option::of(environment())),
        (tx, rx) in (option::of(end_facts()), option::of(end_facts())),
    ) -> TrialOutcome {
        TrialOutcome {
            pass,
            position,
            isolated,
            cell,
            started_unix_ns,
            duration_ns,
            status,
            reason,
            arms,
            slices,
            environment,
            far_environment,
            tx,
            rx,
        }
    }
}

prop_compose! {
    fn cell()(
        topology in select(Topology::ALL),
        mode in select(Mode::ALL),
        working_set in select(WorkingSet::ALL),
        iovec in select(Iovec::ALL),
        (fields, threads) in any::<(u32, u32)>(),
        (receiver, tuning) in (text(), tuning()),
        message_bytes in count().prop_map(Bytes),
        in_a_row in option::of(any::<Option<u64>>()),
        file in option::of(file_setting()).boxed(),
        (write, copy) in (option::of(write_setting()), option::of(copy_setting())).boxed(),
    ) -> Cell {
        if let Some(write) = write {
            return Cell { setting: Setting::Write(write), threads, size: message_bytes };
        }
        if let Some(copy) = copy {
            return Cell { setting: Setting::Copy(copy), threads, size: message_bytes };
        }
        if let Some(file) = file {
            return Cell { setting: Setting::File(file), threads, size: message_bytes };
        }
        if let Some(in_a_row) = in_a_row {
            let setting = Setting::Syscall(SyscallSetting { in_a_row });
            return Cell { setting, threads, size: Bytes(0) };
        }
        Cell {
            setting: Setting::Net(NetSetting {
                topology,
                mode,
                working_set,
                fields,
                iovec,
                receiver,
                tuning,
            }),
            threads,
            size: message_bytes,
        }
    }
}

fn status() -> impl Strategy<Value = Status> {
    let words = ["ok", "invalid", "failed", "skipped", "interrupted"];
    select(words.map(|word| Status::from_word(word).expect("a word of the model")).to_vec())
}

fn arms() -> impl Strategy<Value = Vec<ArmOutcome>> {
    vec(arm(), 0..4)
}

prop_compose! {
    fn arm()(
        (label, primitive) in (text(), text()),
        role in select(vec![Role::Baseline, Role::Compared, Role::SelfCheck, Role::Control]),
        status in status(),
        reason in option::of(text()),
        copies_sender in option::of(number()),
        copies_end_to_end in option::of(number()),
        buckets in option::of(vec((any::<u64>(), any::<u64>()), 0..4)),
        rate in option::of(number()),
    ) -> ArmOutcome {
        let arm = Arm { label, primitive, role };
        let latency = buckets.map(|buckets| Histogram { buckets });
        let server = rate.map(|rate| Box::new(ServerArm {
            rate: Some(rate),
            from_sent: latency.clone().unwrap_or_default(),
            offered: vec![OfferedSlice { seq: 3, ..OfferedSlice::default() }],
            ..ServerArm::default()
        }));
        ArmOutcome { arm, status, reason, copies_sender, copies_end_to_end, latency, server }
    }
}

/// Slices of `arms` arms; without arms there are none.
fn slices(arms: usize) -> impl Strategy<Value = Vec<SliceOutcome>> {
    let most = if arms == 0 { 0 } else { 6 };
    vec(slice(arms.max(1)), 0..=most).prop_map(|mut slices| {
        // As positions in a trial: rising, with gaps where slices only warmed.
        for (seq, slice) in (0..).step_by(3).zip(&mut slices) {
            slice.seq = seq;
        }
        slices
    })
}

prop_compose! {
    fn slice(arms: usize)(
        round in any::<u32>(),
        kind in select(vec![SliceKind::Warm, SliceKind::Discarded, SliceKind::Measured]),
        arm in 0..arms,
        all_active_ns in count(),
        tx in counts().boxed(),
        // Only who sends may be a program, whose calls nobody counts.
        rx in option::of((counts().boxed(), count())),
    ) -> SliceOutcome {
        let rx = rx.map(|(rx, calls)| Counts { calls: Some(calls), ..rx });
        SliceOutcome { seq: 0, round, kind, arm, all_active_ns, tx, rx }
    }
}

prop_compose! {
    fn counts()(
        (messages, bytes, calls, time_ns) in (count(), count(), option::of(count()), count()),
        segments_out in option::of(count()),
        measured in prop::array::uniform10(option::of(count())),
        zerocopy in option::of((
            (count(), count(), count()),
            (count(), option::of(count())),
        )),
        multishot in option::of((count(), count())),
        // On the heap: as arrays these trees of values overflow a test's stack.
        pmu in vec(option::of(count()), PmuCounts::COUNT),
        kernel in vec(option::of(count()), KernelCounts::COUNT),
        file in option::of(file_counts()).boxed(),
    ) -> Counts {
        let [
            task,
            voluntary,
            involuntary,
            migrations,
            minor,
            major,
            retransmits,
            softirq,
            delay,
            mapped,
        ] = measured;
        Counts {
            messages,
            bytes,
            calls,
            time_ns,
            task_clock_ns: task,
            voluntary_switches: voluntary,
            involuntary_switches: involuntary,
            migrations,
            minor_faults: minor,
            major_faults: major,
            retransmits,
            segments_out,
            softirq_ticks: softirq,
            run_delay_ns: delay,
            mapped_bytes: mapped,
            multishot: multishot.map(|(rearms, enobufs)| MultishotCounts { rearms, enobufs }),
            zerocopy: zerocopy.map(|((sends, completions, enobufs), (notifications, copied))| {
                ZerocopyCounts { sends, completions, notifications, copied, enobufs }
            }),
            pmu: PmuCounts::from_values(std::array::from_fn(|i| pmu[i])),
            kernel: KernelCounts::from_values(std::array::from_fn(|i| kernel[i])),
            file,
        }
    }
}

prop_compose! {
    fn environment()(
        cpu_ticks in reading(any::<u64>()),
        steal_ticks in reading(any::<u64>()),
        softirq_ticks in reading(any::<u64>()),
        psi_cpu_some_us in reading(any::<u64>()),
        procs_running_before in reading(any::<u64>()),
        procs_running_after in reading(any::<u64>()),
        loop_before_ns in reading(any::<u64>()),
        loop_after_ns in reading(any::<u64>()),
    ) -> Environment {
        Environment {
            cpu_ticks,
            steal_ticks,
            softirq_ticks,
            psi_cpu_some_us,
            procs_running_before,
            procs_running_after,
            loop_before_ns,
            loop_after_ns,
        }
    }
}

prop_compose! {
    fn counts_by_pmu()(
        pmu in text(),
        (arm, threads) in any::<(usize, u32)>(),
        task_clock_ns in option::of(count()),
        counts in vec(option::of(count()), PmuCounts::COUNT),
    ) -> CountsByPmu {
        let counts = PmuCounts::from_values(std::array::from_fn(|i| counts[i]));
        CountsByPmu { pmu, arm, threads, task_clock_ns, counts }
    }
}

prop_compose! {
    fn end_facts()(
        (build, congestion) in (text(), option::of(text())),
        (message_bytes, threads) in any::<(u64, u32)>(),
        thread_cpus in vec(vec(any::<u32>(), 0..3), 0..3),
        (send_buffer_bytes, receive_buffer_bytes) in any::<(Option<u64>, Option<u64>)>(),
        (nodelay, mss_bytes, bracket_ns) in any::<(Option<bool>, Option<u64>, u64)>(),
        not_measured in vec((text(), text()), 0..3),
        by_pmu in vec(counts_by_pmu(), 0..3),
        arm_facts in vec((any::<usize>(), text(), text()), 0..3),
        starts in vec(program_start(), 0..3),
    ) -> EndFacts {
        let arm_fact = |(arm, name, value)| ArmFact { arm, name, value };
        let missing = |(metric, why)| NotMeasured { metric, why };
        EndFacts {
            build,
            message_bytes,
            threads,
            thread_cpus,
            congestion,
            send_buffer_bytes,
            receive_buffer_bytes,
            nodelay,
            mss_bytes,
            ring_bytes: mss_bytes,
            mtu_bytes: mss_bytes,
            packet_taps: send_buffer_bytes,
            bracket_ns,
            thread_pmus: by_pmu.iter().map(|counts| counts.pmu.clone()).collect(),
            by_pmu,
            arm_facts: arm_facts.into_iter().map(arm_fact).collect(),
            starts,
            strangers: receive_buffer_bytes,
            strange_datagrams: send_buffer_bytes,
            flows: match nodelay {
                Some(true) => {
                    let incoming_cpus = vec![None, Some(threads)];
                    vec![Flows { arm: 1, incoming_cpus, cpus: vec![0] }]
                }
                _ => Vec::new(),
            },
            min_round_trip_ns: mss_bytes,
            not_measured: not_measured.into_iter().map(missing).collect(),
        }
    }
}
