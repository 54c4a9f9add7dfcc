//! Trials of programs that speak the loop protocol as they should.

use std::cell::Cell;

use iolens_ab::{
    AbCopies, AbError, AbLayout, AbPlacement, AbPosition, AbProgramLayout, AbSetup, AbTrial,
    AbTurn, calibrate, trial,
};
use iolens_model::ab::AbMode;
use iolens_model::arm::Role;
use iolens_model::cell::{Setting, SyscallSetting};
use iolens_model::outcome::{Counts, SliceOutcome};
use iolens_model::reading::Status;
use iolens_model::units::Bytes;
use iolens_programs::{Around, ProgramFault};
use iolens_sys::{affinity, fork};

use crate::{GOOD, LONG_NS, faults, layout, mark, marked, nothing_is_left_of, script, setup};

/// So many turns of a loop for each operation.
fn busy(turns: u64) -> String {
    format!(
        "echo ready; while read n; do i=0; n=$((n*{turns})); while [ $i -lt $n ]; do i=$((i+1)); \
         done; echo ok; done"
    )
}

/// The middle of the CPU times of an arm's slices, ns, and of its operations.
fn cpu_ns(trial: &AbTrial, arm: usize) -> [f64; 2] {
    let own = || trial.slices.iter().filter(|slice| slice.arm == arm).map(|slice| &slice.tx);
    let middle = |mut times: Vec<f64>| {
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let cpu_ns = |counts: &Counts| counts.task_clock_ns.unwrap() as f64;
    [
        middle(own().map(cpu_ns).collect()),
        middle(own().map(|counts| cpu_ns(counts) / counts.messages as f64).collect()),
    ]
}

/// The second program does twice the work of the first in an operation: it takes twice as long,
/// and slices are alike.
fn reads_twice(trial: &AbTrial, found: &AbLayout) {
    let ([slice_ns, op_ns], [baseline_slice_ns, baseline_op_ns]) =
        (cpu_ns(trial, 2), cpu_ns(trial, 0));
    let (operation, slice) = (op_ns / baseline_op_ns, slice_ns / baseline_slice_ns);
    assert!((1.5..2.5).contains(&operation), "{operation} {found:?}");
    assert!((0.7..1.4).contains(&slice), "{slice} {found:?}");
}

#[test]
fn every_arm_and_copy_takes_its_turn_in_each_round() {
    let mark = mark();
    let setup = setup(AbMode::Loop, vec![script("a", GOOD, &mark), script("b", GOOD, &mark)]);
    let layout = AbLayout { copies: AbCopies::OfAll, rounds: 6, ..layout(&setup, 5) };
    let done = trial(&setup, &layout, AbTurn::of(3), &|| false);
    assert_eq!(faults(&done), vec![None; 4]);
    let labels: Vec<_> = done.arms.iter().map(|one| (&*one.arm.label, one.arm.role)).collect();
    let expect = [
        ("a", Role::Baseline),
        ("a (A/A)", Role::SelfCheck),
        ("b", Role::Compared),
        ("b (A/A)", Role::SelfCheck),
    ];
    assert_eq!(labels, expect);
    let mut orders = Vec::new();
    for (round, slices) in done.slices.chunks(4).enumerate() {
        let order: Vec<usize> = slices.iter().map(|slice| slice.arm).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3]);
        assert!(slices.iter().all(|slice| slice.round as usize == round));
        orders.push(order);
    }
    assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
    assert!(done.slices.iter().enumerate().all(|(at, slice)| slice.seq as usize == at));
    for slice in &done.slices {
        assert!(slice.tx.messages == 5 && slice.tx.time_ns > 0 && slice.rx.is_none());
        assert!(slice.tx.task_clock_ns.is_some() && slice.tx.voluntary_switches.is_some());
        assert!(slice.tx.minor_faults.is_some());
    }
    assert_eq!(done.cpus.len(), 1);
    assert_eq!(done.status(), (Status::Ok, None));
    for one in &done.arms {
        assert!(one.ab.idle_cpu_ns.is_some() && one.ab.ticks.is_some(), "{one:?}");
    }
}

/// Each program starts first and last in turn, and memory is given back last in, first out.
#[test]
fn programs_take_turns_at_starting_first_and_the_last_to_start_ends_first() {
    let (mark, dir) = (mark(), tempfile::tempdir().unwrap());
    let told = dir.path().join("told");
    let program = |name: &str| {
        let told = told.display();
        let text = format!("echo {name} $$ >>{told}; {GOOD}; echo {name} $$ >>{told}");
        script(name, &text, &mark)
    };
    let setup = setup(AbMode::Loop, vec![program("a"), program("b")]);
    let layout = AbLayout { copies: AbCopies::OfAll, ..layout(&setup, 5) };
    for (pass, expect) in [(1, ["b", "a", "a", "b"]), (2, ["a", "b", "b", "a"])] {
        let done = trial(&setup, &layout, AbTurn { pass, ..AbTurn::of(3) }, &|| false);
        assert_eq!(faults(&done), vec![None; 4]);
        let text = std::fs::read_to_string(&told).unwrap();
        let (starts, ends): (Vec<&str>, Vec<&str>) = {
            let lines: Vec<&str> = text.lines().collect();
            (lines[..4].to_vec(), lines[4..].to_vec())
        };
        let names: Vec<&str> = starts.iter().map(|line| &line[..1]).collect();
        assert_eq!(names, expect);
        assert_eq!(ends.iter().rev().collect::<Vec<_>>(), starts.iter().collect::<Vec<_>>());
        std::fs::remove_file(&told).unwrap();
    }
}

#[test]
fn a_trial_past_its_time_has_no_more_rounds_than_it_needs() {
    let mark = mark();
    let setup = setup(AbMode::Loop, vec![script("a", GOOD, &mark), script("b", GOOD, &mark)]);
    let layout = AbLayout { rounds: 50, ..layout(&setup, 5) };
    let turn = AbTurn { deadline_ns: 0, ..AbTurn::of(3) };
    let done = trial(&setup, &layout, turn, &|| false);
    assert_eq!(faults(&done), vec![None; 3]);
    assert_eq!(done.slices.len(), 3 * 5);
}

#[test]
fn twice_the_work_reads_as_twice_the_work() {
    let mark = mark();
    let programs = vec![script("once", &busy(1), &mark), script("twice", &busy(2), &mark)];
    let setup = setup(AbMode::Loop, programs);
    let found = calibrate(&setup, 1, &|| false).unwrap();
    assert!(found.operations > 1 && (5..=120).contains(&found.rounds), "{found:?}");
    assert!(found.warm_slices >= 5 && found.placement == AbPlacement::OneCpu, "{found:?}");
    let done = trial(&setup, &found, AbTurn::of(2), &|| false);
    assert_eq!(faults(&done), vec![None; 4]);
    reads_twice(&done, &found);
    nothing_is_left_of(&mark);
}

#[test]
fn every_process_warms_up_for_as_long_as_is_said() {
    const WARM_UP_NS: u64 = 30_000_000;
    let mark = mark();
    let programs = vec![script("once", &busy(1), &mark), script("twice", &busy(2), &mark)];
    let mut setup = setup(AbMode::Loop, programs);
    setup.warm_up_ns = Some(WARM_UP_NS);
    let mut layout = layout(&setup, 20);
    // It does not count where a time is stated.
    (layout.warm_slices, layout.rounds) = (0, 1);
    let done = trial(&setup, &layout, AbTurn::of(2), &|| false);
    assert_eq!(faults(&done), vec![None; 3]);
    assert!(done.duration_ns > 3 * WARM_UP_NS && done.slices.len() == 3, "{done:?}");
    let asked = Cell::new(0);
    let ends = || {
        asked.set(asked.get() + 1);
        asked.get() > 9
    };
    setup.warm_up_ns = Some(u64::MAX);
    assert_eq!(trial(&setup, &layout, AbTurn::of(2), &ends).status().0, Status::Interrupted);
    nothing_is_left_of(&mark);
}

#[test]
fn work_that_does_not_grow_is_refused() {
    let mark = mark();
    let same = "echo ready; while read n; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; \
                echo ok; done";
    let grows =
        "echo ready; while read n; do while [ $n -gt 0 ]; do n=$((n-1)); done; echo ok; done";
    // Whichever it is.
    for programs in [vec![("same", same)], vec![("grows", grows), ("same", same)]] {
        let programs = programs.iter().map(|(name, text)| script(name, text, &mark)).collect();
        let why = calibrate(&setup(AbMode::Loop, programs), 1, &|| false).unwrap_err();
        assert!(matches!(why, AbError::NotProportional { .. }), "{why}");
        let why = why.to_string();
        assert!(why.starts_with("the time of `same` does not grow") && why.contains("optimised"));
    }
}

#[test]
fn all_programs_prepare_or_none() {
    let mark = mark();
    let work =
        "while read n; do n=${n#prepare }; while [ $n -gt 0 ]; do n=$((n-1)); done; echo ok; done";
    let prepares = script("prepares", &format!("echo ready prepare; {work}"), &mark);
    let plain = script("plain", &format!("echo ready; {work}"), &mark);
    let of = |programs| calibrate(&setup(AbMode::Loop, programs), 1, &|| false);
    let why = of(vec![prepares.clone(), plain]).unwrap_err();
    assert!(matches!(why, AbError::PreparesDiffer { .. }), "{why}");
    assert!(why.to_string().starts_with("`prepares` says `ready prepare` and `plain` does not"));
    assert!(of(vec![prepares.clone(), prepares]).is_ok());
    nothing_is_left_of(&mark);
}

#[test]
fn a_program_that_fails_in_the_probe_is_named() {
    let mark = mark();
    let programs = vec![script("a", &busy(1), &mark), script("b", "exit 1", &mark)];
    let why = calibrate(&setup(AbMode::Loop, programs), 1, &|| false).unwrap_err().to_string();
    assert!(why.starts_with("`b` in its set-up, before `ready`: it exited"), "{why}");
}

#[test]
fn what_a_program_tells_is_kept() {
    let mark = mark();
    let told = "echo hello; echo ready unit=row bytes=4096; \
                while read n; do echo of my own; echo e >&2; echo ok ns=7$n ms=2 sum=A$n; done";
    let other = told.replace("sum=A", "sum=b");
    let programs =
        vec![script("a", told, &mark), script("b", told, &mark), script("c", &other, &mark)];
    let setup = setup(AbMode::Loop, programs);
    let done = trial(&setup, &layout(&setup, 3), AbTurn::of(9), &|| false);
    assert_eq!(faults(&done), vec![None; 4]);
    let [a, copy, b, c] = &done.arms[..] else { panic!("{done:?}") };
    assert_eq!(a.ab.unit.as_deref(), Some("row"));
    assert_eq!((a.ab.stray_lines, a.ab.passed_over.as_deref()), (7, Some("ms=2")));
    assert_eq!(a.ab.own_ns.len(), 4);
    assert_eq!(a.ab.stderr_bytes, 2 * 4, "and not what it wrote as it warmed up");
    assert!(a.ab.own_ns.iter().all(|&(seq, ns)| ns == 73 && done.slices[seq as usize].arm == 0));
    assert!(a.ab.output_sha256.is_some() && a.ab.output_sha256 == copy.ab.output_sha256);
    assert_eq!(a.ab.output_sha256, b.ab.output_sha256);
    assert_ne!(a.ab.output_sha256, c.ab.output_sha256);
    assert_ne!(a.ab.output_start, c.ab.output_start);
    let bytes = done.arm_facts.iter().filter(|fact| fact.name == "bytes per operation");
    assert_eq!(bytes.map(|fact| &*fact.value).collect::<Vec<_>>(), ["4096"; 4]);
}

#[test]
fn a_program_may_speak_apart_and_prepare() {
    let mark = mark();
    let apart = "exec 5<$IOLENS_IN 6>$IOLENS_OUT; echo of my own; \
                 [ $IOLENS_LOOP = 1 ] || exit 1; [ ${#IOLENS_SEED} = 18 ] || exit 1; \
                 echo ready prepare >&6; \
                 while read word n <&5 && [ $word = prepare ] && echo ok >&6 && read m <&5; do \
                   [ $n = $m ] || exit 1; seq 3000; echo ok >&6; \
                 done; exit 0";
    let setup = setup(AbMode::Loop, vec![script("apart", apart, &mark)]);
    let done = trial(&setup, &layout(&setup, 3), AbTurn::of(9), &|| false);
    assert_eq!(faults(&done), vec![None; 2]);
    assert!(done.arms[0].ab.stray_lines >= 3000, "{:?}", done.arms[0].ab);
    assert_eq!(done.slices.len(), 8);
}

/// Slices of two programs are equally long, and so of another number of operations. What they
/// compute is compared while they warm up, when they do the same.
#[test]
fn sums_are_those_of_the_same_work() {
    let mark = mark();
    let told = "echo ready; while read n; do echo ok sum=$n; done";
    let setup = setup(AbMode::Loop, vec![script("a", told, &mark), script("b", told, &mark)]);
    let mut layout = layout(&setup, 3);
    layout.programs[1].operations = 7;
    let done = trial(&setup, &layout, AbTurn::of(9), &|| false);
    let operations = |arm| {
        let own = done.slices.iter().filter(move |slice| slice.arm == arm);
        own.map(|slice| slice.tx.messages).collect::<Vec<_>>()
    };
    assert_eq!([operations(0), operations(2)], [vec![3; 4], vec![7; 4]]);
    assert_eq!(done.arms[0].ab.output_sha256, done.arms[2].ab.output_sha256);
    assert_eq!(done.arms[0].ab.output_start, b"3\n3\n3\n");
}

/// A trial says how long operations take, and later ones have slices as long as the baseline's.
#[test]
fn a_trial_makes_slices_of_later_ones_alike() {
    let mark = mark();
    let setup = setup(AbMode::Loop, vec![script("a", GOOD, &mark), script("b", GOOD, &mark)]);
    let mut layout = layout(&setup, 100);
    layout.programs[0].times_baseline = vec![1.0];
    layout.programs[1].times_baseline = vec![2.0, 2.0];
    let mut done = trial(&setup, &layout, AbTurn::of(9), &|| false);
    for slice in &mut done.slices {
        slice.tx.task_clock_ns = None;
        slice.tx.time_ns = slice.tx.messages * if slice.arm < 2 { 1000 } else { 4000 };
    }
    let mut operations = || {
        layout.learn(&setup, &done);
        [layout.programs[0].operations, layout.programs[1].operations]
    };
    // In the middle of 2, 2, 4 and of 2, 2, 4, 4, 4.
    assert_eq!(operations(), [100, 50]);
    operations();
    assert_eq!(operations(), [100, 25]);
    done.slices.clear();
    layout.learn(&setup, &done);
    assert_eq!(layout.programs[1].operations, 25, "nothing is known of it");
    // A command is one operation.
    layout.programs[1] = AbProgramLayout { operations: 1, ..AbProgramLayout::default() };
    let done = trial(&setup, &layout, AbTurn::of(9), &|| false);
    layout.learn(&setup, &done);
    assert_eq!(layout.programs[1].operations, 1);
}

#[test]
fn every_process_has_its_own_seed_of_one_width() {
    let mark = mark();
    // No letters, so that it is a sum.
    let seed = "echo ready; while read n; do echo ok sum=$IOLENS_SEED; done";
    let setup = setup(AbMode::Loop, vec![script("a", seed, &mark)]);
    let sums = |seed| {
        let done = trial(&setup, &layout(&setup, 1), AbTurn::of(seed), &|| false);
        done.arms.into_iter().map(|one| one.ab.output_sha256.unwrap()).collect::<Vec<_>>()
    };
    let (first, again, second) = (sums(1), sums(1), sums(2));
    assert_eq!(first, again);
    assert!(first[0] != first[1] && first[0] != second[0], "{first:?} {second:?}");
}

#[test]
fn the_user_ends_a_trial() {
    let mark = mark();
    let programs = vec![script("a", GOOD, &mark), script("b", "read forever", &mark)];
    let setup = setup(AbMode::Loop, programs);
    let asked = Cell::new(0);
    let ends = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let done = trial(&setup, &layout(&setup, 1), AbTurn::of(1), &ends);
    assert_eq!(done.status().0, Status::Interrupted);
    assert!(done.arms.iter().any(|one| one.fault == Some(ProgramFault::Interrupted)));
    nothing_is_left_of(&mark);
}

#[test]
fn nothing_is_left_when_iolens_is_killed() {
    let hangs = "sh -c 'tail -f /dev/null; exit' $0 & ";
    let of_loop = format!("{hangs} echo ready; read n; tail -f /dev/null");
    for (mode, text) in [(AbMode::Loop, of_loop), (AbMode::Command, format!("{hangs} wait"))] {
        let mark = mark();
        let setup = setup(mode, vec![script("hangs", &text, &mark)]);
        let layout = layout(&setup, 1);
        let iolens = fork::start(|| {
            let _ = trial(&setup, &layout, AbTurn::of(1), &|| false);
            0
        });
        let iolens = iolens.unwrap();
        // It and its child.
        while marked(&mark).len() < 2 {
            std::thread::yield_now();
        }
        fork::kill(iolens).unwrap();
        while !matches!(fork::ended(fork::Patience::Waits), Ok(Some(_))) {}
        nothing_is_left_of(&mark);
    }
}

/// As [`busy`], where the work is a child's, which reads from one pipe and writes to another.
fn busy_child(turns: u64) -> String {
    let work = busy(turns).replace("echo ready; ", "");
    format!(
        "d=$(mktemp -d); mkfifo $d/in $d/out; \
         sh -c '{work}' $0 <$d/in >$d/out & exec 8>$d/in 9<$d/out; rm -r $d; echo ready; \
         while read n; do echo $n >&8; read ok <&9; echo ok; done; exec 8>&-; wait"
    )
}

/// A process that wants a processor all the time.
struct Rival(std::process::Child);

impl Rival {
    /// It runs where the thread that starts it may run.
    fn start() -> Rival {
        Rival(std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn slices_have_as_many_operations_on_a_busy_processor() {
    let mark = mark();
    let all = affinity::thread_cpus().unwrap();
    let operations = |rivals: usize| {
        affinity::pin_thread(all[0]).unwrap();
        let _rivals: Vec<Rival> = (0..rivals).map(|_| Rival::start()).collect();
        let programs =
            vec![script("alone", &busy(1), &mark), script("child", &busy_child(1), &mark)];
        let setup = AbSetup { cpus: vec![all[0]], ..setup(AbMode::Loop, programs) };
        let found = calibrate(&setup, 1, &|| false).unwrap();
        found.programs.iter().map(|own| own.operations as f64).collect::<Vec<_>>()
    };
    // In turns: what shares the processor with the machine has it half as fast for a while.
    let pairs = [(); 3].map(|()| (operations(0), operations(4)));
    for program in 0..2 {
        let mut ratios = pairs.each_ref().map(|(quiet, busy)| busy[program] / quiet[program]);
        ratios.sort_by(f64::total_cmp);
        assert!((0.5..2.0).contains(&ratios[1]), "{pairs:?}");
    }
    affinity::restrict_thread(&all).unwrap();
    nothing_is_left_of(&mark);
}

#[test]
fn children_that_live_through_the_slice_are_charged_to_it() {
    let mark = mark();
    let programs =
        vec![script("once", &busy_child(1), &mark), script("twice", &busy_child(2), &mark)];
    let setup = setup(AbMode::Loop, programs);
    let found = calibrate(&setup, 1, &|| false).unwrap();
    assert!(
        found.around == Around::Tree && found.programs.iter().all(|own| own.cpu_unknown.is_none()),
        "{found:?}"
    );
    let done = trial(&setup, &found, AbTurn::of(2), &|| false);
    assert_eq!(faults(&done), vec![None; 4]);
    reads_twice(&done, &found);
    for slice in &done.slices {
        // Most of it is the child's work, one CPU for all.
        let (cpu_ns, time_ns) = (slice.tx.task_clock_ns.unwrap(), slice.tx.time_ns);
        assert!(cpu_ns <= time_ns + time_ns / 10, "{slice:?}");
        assert!(slice.tx.minor_faults.is_some() && slice.tx.voluntary_switches.is_none());
    }
    assert!(done.arms.iter().all(|one| one.ab.ticks.is_some()), "{done:?}");
    assert!(done.not_measured.is_empty());
    nothing_is_left_of(&mark);
}

/// Each process of it does half of the work of the one before.
#[test]
fn what_becomes_cheaper_is_found_out_anew_while_there_is_time() {
    let starts = |anew_ns| {
        let (mark, folder) = (mark(), tempfile::tempdir().unwrap());
        let file = folder.path().join("starts");
        let text = format!(
            "echo >> {0}; k=$((4096 >> $(wc -l < {0}))); echo ready; while read n; do \
             i=$((n*(k+1))); while [ $i -gt 0 ]; do i=$((i-1)); done; echo ok; done",
            file.display()
        );
        let setup = setup(AbMode::Loop, vec![script("a", &text, &mark)]);
        calibrate(&AbSetup { anew_ns, ..setup }, 1, &|| false).unwrap();
        std::fs::read_to_string(file).unwrap().lines().count()
    };
    let (once, anew) = (starts(0), starts(LONG_NS));
    assert!(once <= 6 && anew >= once + 3, "{once} and {anew} processes");
}

#[test]
fn the_time_of_children_that_come_and_go_is_not_known() {
    let mark = mark();
    let alone = "echo ready; x=$(echo set up; /bin/true); while read n; do i=0; \
                 while [ $i -lt $n ]; do i=$((i+1)); done; echo ok; done";
    let forks = "echo ready; while read n; do while [ $n -gt 0 ]; do n=$((n-1)); /bin/true; done; \
                 echo ok; done";
    for (text, expect) in [(alone, false), (forks, true)] {
        let setup = setup(AbMode::Loop, vec![script("a", text, &mark)]);
        let found = calibrate(&setup, 1, &|| false).unwrap();
        assert_eq!(found.programs[0].cpu_unknown.is_some(), expect, "{found:?}");
        let done = trial(&setup, &found, AbTurn::of(1), &|| false);
        assert_eq!(faults(&done), vec![None; 2]);
        assert!(done.slices.iter().all(|slice| slice.tx.task_clock_ns.is_none() == expect));
        assert_eq!(done.not_measured.len(), usize::from(expect));
    }
}

#[test]
fn children_that_come_in_some_trials_only_are_told_of_them() {
    let mark = mark();
    let forks = "echo ready; while read n; do /bin/true; echo ok; done";
    let setup = setup(AbMode::Loop, vec![script("a", GOOD, &mark), script("b", forks, &mark)]);
    // As it is where they did nothing of the kind before, of any program or of this one.
    for around in [Around::Process, Around::Tree] {
        let found = AbLayout { around, ..layout(&setup, 3) };
        let done = trial(&setup, &found, AbTurn::of(1), &|| false);
        assert_eq!(faults(&done), vec![None; 3]);
        let is_known = |slice: &SliceOutcome| slice.tx.task_clock_ns.is_some();
        assert!(done.slices.iter().all(|slice| is_known(slice) == (slice.arm < 2)), "{done:?}");
        let [why] = &done.not_measured[..] else { panic!("{done:?}") };
        assert_eq!(why.metric, "task_clock");
        assert!(why.why.starts_with("`b` started or ended child processes"), "{why:?}");
    }
}

#[test]
fn a_trial_is_one_of_the_model() {
    let mark = mark();
    let told = "echo ready unit=row; while read n; do echo ok; done";
    let programs = vec![script("a", told, &mark), script("b", "exit 3", &mark)];
    let setup = setup(AbMode::Loop, programs);
    let done = trial(&setup, &layout(&setup, 3), AbTurn::of(5), &|| false);
    let setting = Setting::Syscall(SyscallSetting { in_a_row: None });
    let cell = iolens_model::cell::Cell { setting, threads: 1, size: Bytes(0) };
    let at = AbPosition { pass: 2, position: 1, cell: cell.clone(), build: "this".to_owned() };
    let (slices, cpus) = (done.slices.clone(), done.cpus.clone());
    let outcome = done.outcome(at);
    assert_eq!((outcome.pass, outcome.position, outcome.cell), (2, 1, cell));
    assert_eq!((outcome.status, outcome.slices), (Status::Failed, slices));
    assert!(outcome.reason.is_some_and(|why| why.starts_with("`b` in its set-up")));
    let statuses: Vec<Status> = outcome.arms.iter().map(|arm| arm.status).collect();
    assert_eq!(statuses, [Status::Ok, Status::Ok, Status::Failed]);
    assert!(outcome.arms[2].reason.as_ref().is_some_and(|why| why.contains("status 3")));
    let tx = outcome.tx.unwrap();
    assert_eq!((tx.build.as_str(), tx.thread_cpus), ("this", vec![cpus]));
    assert!(outcome.environment.loop_before_ns.value().is_some() && outcome.duration_ns > 0);
    let facts = outcome.arms.iter().map(|arm| arm.ab.as_deref().unwrap());
    let units: Vec<Option<&str>> = facts.map(|facts| facts.unit.as_deref()).collect();
    assert_eq!(units, [Some("row"), Some("row"), None]);
}
