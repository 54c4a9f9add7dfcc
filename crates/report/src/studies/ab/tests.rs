//! What is shown of a run whose numbers are known: `pr` takes 4.9 % more time than `main`, and one
//! call more.

use iolens_document::{Joined, Style};
use iolens_model::ab::{
    AbArm, AbAxes, AbCalls, AbCallsBy, AbLink, AbMode, AbParameter, AbProgramFacts,
};
use iolens_model::arm::{ArmOutcome, Role};
use iolens_model::cell::Cell;
use iolens_model::external::External;
use iolens_model::outcome::{Counts, Status, TrialOutcome};
use iolens_model::plan::Axes;
use iolens_model::reading::NotMeasured;
use iolens_model::run::{Run, StoppedBy};
use iolens_model::units::Nanos;
use iolens_stats::ab::{AbAnalysis, analyse};
use iolens_stats::analysis::Analysis;
use serde_json::Value;

use super::{first, json, markdown, page, text};
use crate::fixture::{self, alone};

const TRIALS: u32 = 12;
const ROUNDS: u32 = 5;

/// Two programs, of which the second takes so much more time per operation.
pub(super) fn run(more: f64, parameters: Vec<AbParameter>) -> Run {
    let program = |name: &str, path: &str| External {
        name: name.to_owned(),
        argv: vec![path.to_owned(), "{rows}".to_owned()],
    };
    let programs = vec![program("main", "../base/bench"), program("pr", "./bench")];
    let axes = AbAxes { parameters, ..AbAxes::of(AbMode::Loop, programs) };
    let mut header = alone::header(Axes::Ab(axes), ["main", "pr"], &[], &[1]);
    let facts = |path: &str, digit: &str| AbProgramFacts {
        path: path.to_owned(),
        sha256: digit.repeat(64),
        is_elf: true,
        links: Vec::new(),
    };
    header.programs = vec![facts("/src/base/bench", "a"), facts("/src/bench", "b")];
    header.end.as_mut().expect("it ended").stopped_by = StoppedBy::Precision;
    let like = fixture::run().0.trials.swap_remove(0);
    let cells = header.plan.cells();
    let of_cell = |cell: &Cell| {
        let timed = (1..=TRIALS).map(|pass| trial(&like, cell, pass, more));
        let counted = [("main", 20), ("pr", 21)].map(|one| counted(&like, cell, one));
        timed.chain(counted).collect::<Vec<_>>()
    };
    let trials = cells.iter().flat_map(of_cell).collect();
    Run { header, trials, profiles: Vec::new(), searches: Vec::new() }
}

/// `pr` takes 4.9 % more.
fn slower() -> Run {
    run(0.049, Vec::new())
}

/// The same with four links of each program, every next of which takes 0.5 % more time.
fn linked() -> Run {
    let mut run = slower();
    axes(&mut run).links = true;
    for (program, digits) in run.header.programs.iter_mut().zip([["0", "1", "2", "3"]; 2]) {
        let link = |digit: &str| AbLink {
            path: format!("{}-{digit}", program.path),
            sha256: digit.repeat(64),
        };
        program.links = digits.map(link).to_vec();
    }
    for trial in timed(&mut run) {
        let at = trial.pass - 1;
        let links = [at % 4, (at + at / 4) % 4];
        let of_arm: Vec<u32> =
            trial.arms.iter().map(|arm| links[usize::from(arm.arm.primitive == "pr")]).collect();
        for (arm, link) in trial.arms.iter_mut().zip(&of_arm) {
            of(arm).link = Some(*link);
        }
        for slice in &mut trial.slices {
            slice.tx.time_ns += slice.tx.time_ns / 200 * u64::from(of_arm[slice.arm]);
            slice.tx.task_clock_ns = Some(slice.tx.time_ns);
        }
    }
    run
}

/// A trial in which the machine's speed wanders, the same for all arms.
fn trial(like: &TrialOutcome, cell: &Cell, pass: u32, more: f64) -> TrialOutcome {
    let roles = [
        ("main", Role::Baseline),
        ("main", Role::SelfCheck),
        ("pr", Role::Compared),
        ("pr", Role::SelfCheck),
    ];
    let arms = roles.map(|(name, role)| ArmOutcome {
        ab: Some(Box::new(AbArm { ticks: Some([12, 88]), ..AbArm::default() })),
        ..alone::arm(name, role)
    });
    let mut slices = Vec::new();
    for round in 0..ROUNDS {
        for (arm, (name, _)) in roles.iter().enumerate() {
            let wander = 1.0 + 0.01 * f64::from((pass + round) % 3);
            let own = 1.0 + 0.001 * f64::from((pass + u32::try_from(arm).unwrap_or(0)) % 4);
            let factor = if *name == "pr" { 1.0 + more } else { 1.0 };
            let time_ns = alone::whole(20.0 * 26_140.0 * wander * own * factor);
            let tx = Counts { calls: None, ..alone::counts(20, 0, time_ns) };
            slices.push(alone::slice(&slices, round, arm, tx));
        }
    }
    alone::trial(like, cell, pass, arms.into(), slices)
}

/// Calls of a name per operation, and their bytes.
fn calls(name: &str, n: u64, bytes: Option<u64>) -> AbCalls {
    AbCalls {
        name: name.to_owned(),
        calls: [n, 11 * n],
        operations: [1, 11],
        bytes: bytes.map(|bytes| [bytes, 11 * bytes]),
    }
}

fn counted(like: &TrialOutcome, cell: &Cell, (name, n): (&str, u64)) -> TrialOutcome {
    let calls = calls("pread64", n, Some(512 * n));
    let ab = AbArm { calls: vec![calls], ..AbArm::default() };
    let arm = ArmOutcome { ab: Some(Box::new(ab)), ..alone::arm(name, Role::Compared) };
    alone::trial(like, cell, 0, vec![arm], Vec::new())
}

/// A run with the analysis that other studies have, for what is of all of them.
pub(crate) fn analysed_run() -> (Run, Analysis) {
    let run = slower();
    let analysis = iolens_stats::analyse(&run);
    (run, analysis)
}

fn analysed(run: &Run) -> AbAnalysis {
    analyse(run).expect("it is a run of `ab`")
}

/// The first screen.
fn shown(run: &Run) -> String {
    shown_in(run, 100)
}

fn shown_in(run: &Run, width: usize) -> String {
    first(run, &analysed(run), None, &Style::plain(width))
}

/// What stands below the first screen.
fn below(run: &Run) -> String {
    text(run, &analysed(run), &Style::plain(100))
}

fn marked_down(run: &Run) -> String {
    markdown(run, &analysed(run))
}

fn result(run: &Run) -> Value {
    parsed(&json(run, &analysed(run)))
}

pub(super) fn parsed(json: &str) -> Value {
    serde_json::from_str(json).expect("JSON")
}

pub(super) fn axes(run: &mut Run) -> &mut AbAxes {
    let Axes::Ab(axes) = &mut run.header.plan.axes else { panic!("it is a plan of `ab`") };
    axes
}

/// The trials that measure times.
fn timed(run: &mut Run) -> impl Iterator<Item = &mut TrialOutcome> {
    run.trials.iter_mut().filter(|trial| trial.pass > 0)
}

/// The trials that count calls.
fn counting(run: &mut Run) -> impl Iterator<Item = &mut TrialOutcome> {
    run.trials.iter_mut().filter(|trial| trial.pass == 0)
}

/// What arms of trials have of `ab`, each with whether it is of `pr`.
fn of_arms<'a>(
    trials: impl IntoIterator<Item = &'a mut TrialOutcome>,
) -> impl Iterator<Item = (bool, &'a mut AbArm)> {
    let arms = trials.into_iter().flat_map(|trial| &mut trial.arms);
    arms.map(|arm| (arm.arm.primitive == "pr", of(arm)))
}

fn of(arm: &mut ArmOutcome) -> &mut AbArm {
    arm.ab.as_mut().expect("it is one of `ab`")
}

#[test]
fn a_slower_program_with_a_call_more() {
    let run = slower();
    insta::assert_snapshot!(shown(&run));
    insta::assert_snapshot!("below", below(&run));
    insta::assert_snapshot!("markdown", marked_down(&run));
    let page = page(&run, &analysed(&run));
    assert!(page.contains("<h1>pr is SLOWER than main by more than 3%</h1>"), "{page}");
    assert!(page.contains("../base/bench {rows}") && !page.contains("&quot;axes&quot;"), "{page}");
}

/// With nine digits: the last ones are the compiler's.
pub(super) fn rounded(value: Value) -> Value {
    match value {
        Value::Number(n) if n.is_f64() => {
            let nine: f64 = format!("{:.8e}", n.as_f64().unwrap_or(0.0)).parse().unwrap_or(0.0);
            nine.into()
        }
        Value::Array(all) => all.into_iter().map(rounded).collect(),
        Value::Object(all) => all.into_iter().map(|(key, value)| (key, rounded(value))).collect(),
        other => other,
    }
}

#[test]
fn links_are_told_with_how_far_they_lie_apart() {
    let run = linked();
    insta::assert_snapshot!(shown(&run));
    insta::assert_snapshot!("links_below", below(&run));
    insta::assert_snapshot!("links_markdown", marked_down(&run));
    let result = rounded(result(&run));
    let links = &result["settings"][0]["contrasts"][0]["links"];
    insta::assert_snapshot!("links_json", format!("{links:#}"));
    assert_eq!(result["programs"][1]["links"][3]["path"], "/src/bench-3");
    assert_eq!(result["settings"][0]["arms"][1]["links"], 4);
    assert!(page(&run, &analysed(&run)).contains("/src/bench-3"));
}

#[test]
fn too_few_links_are_no_verdict() {
    let mut run = linked();
    run.trials.retain(|trial| {
        let link = trial.arms[0].ab.as_ref().and_then(|ab| ab.link);
        link != Some(0)
    });
    let screen = shown(&run);
    assert!(screen.contains("9 of the 12 trials"), "{screen}");
    for (pass, trial) in (1..).zip(run.trials.clone()) {
        run.trials.push(TrialOutcome { pass: 100 + pass, ..trial });
    }
    let screen = shown(&run);
    assert!(screen.contains("3 and 4 of the 4 links a verdict needs"), "{screen}");
}

#[test]
fn a_time_in_another_unit_is_passed_over_once() {
    let mut run = slower();
    for (is_of_pr, ab) in of_arms(&mut run.trials) {
        ab.passed_over = is_of_pr.then(|| "ms=3".to_owned());
    }
    let screen = shown(&run);
    assert_eq!(screen.matches("pr says ms=3, which is passed over: write ns=").count(), 1);
    assert!(!screen.contains("main says"), "{screen}");
}

#[test]
fn a_page_says_how_long_programs_warmed_up_where_that_was_asked_for() {
    let mut run = slower();
    let shown = |run: &Run| page(run, &analysed(run));
    assert!(!shown(&run).contains("warm-up"));
    axes(&mut run).warm_up = Some(Nanos(300_000_000));
    let page = shown(&run);
    assert!(page.contains("300\u{a0}ms of each process in each trial"), "{page}");
}

/// Slices are of 20 operations of 26.4 µs here.
#[test]
fn what_a_slice_takes_besides_its_work_is_told_below() {
    let mut run = slower();
    for (_, own) in of_arms(&mut run.trials) {
        (own.asking_ns, own.fixed_ppm) = (Some(10_000), Some(41_000));
    }
    let below = below(&run);
    assert!(below.contains("Asking takes  10.0 µs, 1.9% of a slice (main)"), "{below}");
    assert!(below.contains("Fixed part    4% (main)"), "{below}");
}

#[test]
fn a_screen_says_whose_copy_memory_had_no_room_for() {
    let mut run = slower();
    assert!(!shown(&run).contains("memory"));
    for trial in timed(&mut run) {
        trial.arms.truncate(3);
        trial.slices.retain(|slice| slice.arm < 3);
    }
    let screen = shown(&run);
    assert!(screen.contains("memory had no room for a second copy of pr"), "{screen}");
}

#[test]
fn a_screen_says_why_cpu_time_is_not_known_and_in_how_many_trials() {
    let mut run = slower();
    let why = "`pr` started or ended child processes in slices, whose CPU time is not known";
    for trial in run.trials.iter_mut().filter(|trial| trial.pass < 4) {
        let missing = NotMeasured { metric: "task_clock".to_owned(), why: why.to_owned() };
        trial.tx.as_mut().expect("an end").not_measured.push(missing);
    }
    let screen = shown(&run).split_whitespace().joined(" ");
    assert_eq!(screen.matches(&format!("{why} (in 3 of 12 trials)")).count(), 1, "{screen}");
}

#[test]
fn the_first_screen_fits() {
    let sizes =
        AbParameter { name: "rows".to_owned(), values: ["1", "10"].map(str::to_owned).to_vec() };
    for (width, lines) in [(100, 30), (80, 34)] {
        let screen = shown_in(&run(0.049, vec![sizes.clone()]), width);
        assert!(screen.lines().count() <= lines, "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= width), "{screen}");
    }
}

#[test]
fn what_is_the_same_is_said_to_be() {
    let screen = shown(&run(0.001, Vec::new()));
    assert!(screen.contains("pr is EQUIVALENT to main within 3%"), "{screen}");
}

#[test]
fn programs_get_numbers() {
    let run = slower();
    let result = result(&run);
    let time = &result["settings"][0]["contrasts"][0];
    assert_eq!((&time["arm"], &time["quantity"]), (&"pr".into(), &"time".into()));
    let change = time["change"].as_f64().expect("a number");
    assert!((change - 0.049).abs() < 0.003, "{change}");
    let calls = &result["settings"][0]["arms"][1]["calls"][0];
    assert_eq!((&calls["per_operation"], &calls["is_exact"]), (&21.0.into(), &true.into()));
    let bytes = (&calls["bytes_per_operation"], &calls["bytes_are_exact"]);
    assert_eq!(bytes, (&10_752.0.into(), &true.into()));
}

#[test]
fn a_program_that_works_between_its_turns_has_no_verdict() {
    let mut run = slower();
    for trial in timed(&mut run) {
        for (nth, arm) in trial.arms.iter_mut().enumerate() {
            let own = trial.slices.iter().filter(|slice| slice.arm == nth);
            let cpu_ns: u64 = own.filter_map(|slice| slice.tx.task_clock_ns).sum();
            let is_of_pr = arm.arm.primitive == "pr";
            of(arm).idle_cpu_ns = Some(if is_of_pr { cpu_ns / 10 } else { 0 });
        }
    }
    let text = shown(&run);
    assert!(text.contains("pr is INVALID, because pr works between its turns"), "{text}");
    assert!(text.contains("counting it, CPU time changes by +15.4% (pr)"), "{text}");
}

#[test]
fn what_programs_print_in_their_slices_is_said_to_be_in_the_time() {
    let mut run = slower();
    for (is_of_pr, ab) in of_arms(timed(&mut run)) {
        ab.stderr_bytes = 300;
        ab.stray_lines = if is_of_pr { 200 } else { 0 };
    }
    let text = marked_down(&run);
    assert!(text.contains("pr prints between answers, and that is in the time"), "{text}");
    let both = "main and pr print to stderr in slices, and that is in the time";
    assert!(text.contains(both), "{text}");
}

/// What is said of these calls of `main` and of `pr`, and what the table shows of them.
fn said_of_calls(main: &[AbCalls], pr: &[AbCalls]) -> (String, Vec<String>) {
    let mut run = slower();
    for (is_of_pr, ab) in of_arms(counting(&mut run)) {
        ab.calls = if is_of_pr { pr } else { main }.to_vec();
    }
    let markdown = marked_down(&run);
    let why = markdown.lines().find_map(|line| line.strip_prefix("- Why: ")).expect("a reason");
    let said = why.strip_suffix("; 88% of the CPU time of pr is in the kernel").expect("both");
    let below = below(&run);
    let rows = below.lines().skip_while(|line| !line.starts_with("SYSTEM CALLS")).skip(1);
    let rows = rows.take_while(|line| !line.is_empty()).map(str::to_owned);
    (said.to_owned(), rows.collect())
}

#[test]
fn calls_that_vary_are_told_roughly_where_nothing_held_the_program_up() {
    let said = |by, keeps_exact: bool| {
        let mut run = slower();
        let twice: Vec<TrialOutcome> = counting(&mut run).map(|trial| trial.clone()).collect();
        run.trials.extend(twice);
        for (n, (_, arm)) in (2..).zip(of_arms(counting(&mut run))) {
            arm.calls.retain(|_| keeps_exact);
            arm.calls.push(calls("futex", n, None));
            arm.calls_by = Some(by);
        }
        let markdown = marked_down(&run);
        let why = markdown.lines().find(|line| line.starts_with("- Why: ")).unwrap();
        let why = why.split("; 88%").next().unwrap().to_owned();
        let screen = shown(&run);
        let row = screen.lines().find(|line| line.starts_with("pr ")).unwrap();
        (why, row.split_whitespace().last().unwrap().to_owned())
    };
    let exact = "- Why: pr makes exactly 1 system call more per operation: pread64 20 → 21; \
                 it reads 512 bytes more";
    let (why, calls) = said(AbCallsBy::Tracepoints, true);
    assert_eq!(why, format!("{exact}; it makes others that vary per operation: futex ~3.0 → ~4.0"));
    assert_eq!(calls, "~25");
    let (why, calls) = said(AbCallsBy::Ptrace, true);
    assert_eq!(why, format!("{exact}; it makes others now and then (futex)"));
    assert_eq!(calls, "21+");
    let (why, calls) = said(AbCallsBy::Ptrace, false);
    assert_eq!((&*why, &*calls), ("- Why: pr makes calls now and then (futex)", "varies"));
    let (why, _) = said(AbCallsBy::Tracepoints, false);
    assert_eq!(why, "- Why: pr makes calls that vary per operation: futex ~3.0 → ~4.0");
}

#[test]
fn calls_and_bytes_are_one_sentence() {
    let check = |main: &[AbCalls], pr: &[AbCalls], expect: &str| {
        assert_eq!(said_of_calls(main, pr).0, expect);
    };
    let pread = |n, bytes| calls("pread64", n, Some(bytes));
    let write = |n, bytes| calls("write", n, Some(bytes));
    let same = "pr makes the same system calls as main";
    check(&[pread(20, 81_920)], &[pread(20, 81_920)], same);
    let ring = "; what the kernel does for it in an io_uring is not among them";
    let enter = calls("io_uring_enter", 1, None);
    check(std::slice::from_ref(&enter), std::slice::from_ref(&enter), &format!("{same}{ring}"));
    // As in runs that were stored before bytes were counted.
    check(&[calls("futex", 1, None)], &[calls("futex", 1, None)], same);
    check(
        &[calls("read", 8, None)],
        &[calls("read", 4, None)],
        "pr makes exactly 4 system calls fewer per operation: read 8 → 4",
    );
    check(
        &[pread(20, 81_920)],
        &[pread(20, 86_016)],
        "pr makes the same system calls as main, but reads exactly 4096 bytes more per operation: \
         pread64 81920 → 86016",
    );
    // Those that differ most, and how many more.
    let many = ["a", "b", "c", "d", "e", "f", "g"];
    let many: Vec<AbCalls> = (1..).zip(many).map(|(n, name)| calls(name, n, None)).collect();
    check(
        &[],
        &many,
        "pr makes exactly 28 system calls more per operation: g 0 → 7, f 0 → 6, e 0 → 5, d 0 → 4, \
         c 0 → 3, 2 others",
    );
    check(
        &[pread(20, 81_920), write(1, 11)],
        &[pread(20, 86_016), write(1, 10)],
        "pr makes the same system calls as main, but reads exactly 4096 bytes more and writes \
         exactly 1 byte less per operation: pread64 81920 → 86016, write 11 → 10",
    );
    check(
        &[pread(1, 10), calls("read", 1, Some(20))],
        &[pread(1, 20), calls("read", 1, Some(10))],
        "pr makes the same system calls as main, but splits its bytes between them differently: \
         pread64 10 → 20, read 20 → 10",
    );
    check(
        &[pread(20, 1280), write(2, 20)],
        &[pread(10, 1280), write(2, 20)],
        "pr makes exactly 10 system calls fewer per operation: pread64 20 → 10; it reads as many \
         bytes as main",
    );
    check(
        &[calls("read", 1, Some(4096)), write(1, 4096)],
        &[calls("copy_file_range", 1, Some(4096))],
        "pr makes exactly 1 system call fewer per operation: copy_file_range 0 → 1, read 1 → 0, \
         write 1 → 0; it reads 4096 bytes less, writes 4096 bytes less and moves 4096 bytes more \
         within the kernel",
    );
}

#[test]
fn bytes_that_vary_are_in_no_sentence() {
    let mut half = calls("pread64", 20, Some(81_920));
    half.bytes = Some([0, 10 * 1344 + 5]);
    let (said, rows) = said_of_calls(&[calls("pread64", 10, Some(640))], &[half.clone()]);
    let expect = "pread64 10 → 20; it reads 704.5 bytes more";
    assert!(said.ends_with(expect), "{said}");
    let expect = ["call      main     pr   main      pr", "         calls  calls  bytes   bytes"];
    assert_eq!(rows[..2], expect);
    // Second trials of `pr` that agree on calls alone.
    let mut run = slower();
    let mut again = run.trials.last().cloned().expect("a trial that counts");
    of(&mut again.arms[0]).calls[0].bytes = half.bytes;
    run.trials.push(again);
    let screen = shown(&run);
    assert!(screen.contains("pread64 20 → 21\n"), "{screen}");
    assert!(below(&run).contains("varies"));
    let result = result(&run);
    let calls = &result["settings"][0]["arms"][1]["calls"][0];
    assert_eq!((&calls["is_exact"], &calls["bytes_are_exact"]), (&true.into(), &false.into()));
}

#[test]
fn a_program_that_failed_is_no_number() {
    let mut run = slower();
    for trial in &mut run.trials {
        for arm in trial.arms.iter_mut().filter(|arm| arm.arm.primitive == "pr") {
            (arm.status, arm.reason) = (Status::Failed, Some("died of SIGSEGV".to_owned()));
        }
    }
    let screen = shown(&run);
    assert!(screen.contains("pr failed in 12 trials: died of SIGSEGV"), "{screen}");
    assert!(!screen.contains("SLOWER") && !screen.contains("no time of"), "{screen}");
    assert!(screen.contains("there is nothing to compare: pr failed"), "{screen}");
}

#[test]
fn a_run_of_a_stranger_is_shown_or_not_and_never_panics() {
    let all = |run: &Run| {
        let analysis = analysed(run);
        let (style, after) = (Style::plain(40), None);
        let texts = [first(run, &analysis, after, &style), text(run, &analysis, &style)];
        texts.concat() + &json(run, &analysis) + &markdown(run, &analysis) + &page(run, &analysis)
    };
    let mut strange = slower();
    strange.header.programs[0].sha256 = "ß".repeat(40);
    for slice in strange.trials.iter_mut().flat_map(|trial| &mut trial.slices) {
        (slice.tx.messages, slice.tx.time_ns) = (u64::MAX, u64::MAX);
        (slice.tx.minor_faults, slice.tx.major_faults) = (Some(u64::MAX), Some(u64::MAX));
    }
    for (_, ab) in of_arms(&mut strange.trials) {
        (ab.ticks, ab.stray_lines) = (Some([u64::MAX; 2]), u64::MAX);
        for calls in &mut ab.calls {
            (calls.operations, calls.bytes) = ([7, 7], Some([u64::MAX, 0]));
        }
    }
    assert!(all(&strange).contains("pr"));
    let mut strange = linked();
    for (nth, trial) in (0u32..).zip(&mut strange.trials) {
        for arm in &mut trial.arms {
            of(arm).link = Some(u32::MAX - nth % 4);
        }
    }
    assert!(all(&strange).contains("4294967295"));
    let mut empty = slower();
    empty.trials.clear();
    all(&empty);
    axes(&mut empty).programs.clear();
    empty.header.plan.primitives.clear();
    empty.header.programs.clear();
    all(&empty);
}
