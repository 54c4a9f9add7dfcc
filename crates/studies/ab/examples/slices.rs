//! What a slice costs, and what a planted slowdown reads as:
//! `cargo run --release -p iolens-ab --example slices [TRIALS [PROGRAM WORD…]]`
//!
//! The arms are this same program, which speaks the loop protocol when it is told how many per
//! cent more to do: no more (a second file of the same bytes), 5 more. Or they are another
//! program, with these words behind its own; or, behind `--whole`, these whole commands.

use std::io::{BufRead, Write};

use iolens_ab::{AB_SLICE_NS, AbExit, AbSetup, AbTrial, AbTurn, calibrate, trial};
use iolens_model::ab::{AbMode, AbQuantity};
use iolens_programs::{ProgramFile, ProgramLimits, ProgramPlace, UserProgram};
use iolens_sys::{affinity, clock};

/// Turns of the loop for one operation, at 100 per cent.
const TURNS: u64 = 1000;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [word, percent] if word == "work" => work(percent.parse()?),
        [] => measure(24, &[]),
        [trials, program @ ..] => measure(trials.parse()?, program),
    }
}

fn work(more_percent: u64) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lock().lines() {
        let turns = line?.parse::<u64>()? * TURNS * (100 + more_percent) / 100;
        let begin_ns = clock::monotonic_ns();
        let mut state = 1u64;
        for _ in 0..turns {
            state = std::hint::black_box(state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1));
        }
        writeln!(out, "ok ns={}", clock::monotonic_ns() - begin_ns)?;
    }
    Ok(())
}

fn measure(trials: u64, program: &[String]) -> Result<(), Failure> {
    let own = std::env::current_exe()?.display().to_string();
    let copy = tempfile::NamedTempFile::new()?.into_temp_path();
    std::fs::copy(&own, &copy)?;
    let copy = copy.display().to_string();
    let arm = |name: &str, argv: Vec<String>| -> Result<UserProgram, Failure> {
        Ok(UserProgram { name: name.to_owned(), file: ProgramFile::of(&argv)?, argv })
    };
    let words = |file: &str, more: &str| vec![file.to_owned(), "work".to_owned(), more.to_owned()];
    let programs = match program {
        [] => vec![
            arm("base", words(&own, "0"))?,
            arm("same bytes", words(&copy, "0"))?,
            arm("5 % more", words(&own, "5"))?,
        ],
        [whole, rest @ ..] if whole == "--whole" => {
            let words = |line: &String| shlex::split(line).ok_or("a quote is not closed");
            rest.iter().map(|line| arm(line, words(line)?)).collect::<Result<_, _>>()?
        }
        [_, rest @ ..] => {
            let with = |word: &String| vec![program[0].clone(), word.clone()];
            rest.iter().map(|word| arm(word, with(word))).collect::<Result<_, _>>()?
        }
    };
    let setup = AbSetup {
        mode: match program.first() {
            Some(whole) if whole == "--whole" => AbMode::Command,
            _ => AbMode::Loop,
        },
        programs,
        place: ProgramPlace::FreshCopy,
        exit: AbExit::MustBeZero,
        input: None,
        prepare: None,
        cpus: affinity::thread_cpus()?,
        slice_ns: AB_SLICE_NS,
        warm_up_ns: None,
        anew_ns: u64::MAX,
        limits: ProgramLimits::USUAL,
    };
    let mut out = std::io::stdout().lock();
    let begin_ns = clock::monotonic_ns();
    let seconds = || (clock::monotonic_ns() - begin_ns) as f64 / 1e9;
    let mut layout = calibrate(&setup, 1, &|| false)?;
    writeln!(out, "{:.2} s: {layout:?}", seconds())?;
    let mut done = Vec::new();
    for (pass, seed) in (1..).zip(0..trials) {
        let turn = AbTurn { pass, ..AbTurn::of(seed) };
        let one = trial(&setup, &layout, turn, &|| false);
        for arm in &one.arms {
            if let Some(fault) = &arm.fault {
                writeln!(out, "`{}` {fault}", arm.arm.label)?;
            }
        }
        layout.learn(&setup, &one);
        done.push(one);
    }
    writeln!(out, "{:.2} s: {trials} trials", seconds())?;
    let operations: Vec<u64> = layout.programs.iter().map(|own| own.operations).collect();
    writeln!(out, "operations of a slice by now: {operations:?}")?;
    for own in &layout.programs {
        writeln!(out, "times the baseline: {:.3?}", own.times_baseline)?;
    }
    tell(&mut out, &setup, &done)
}

fn tell(out: &mut impl Write, setup: &AbSetup, done: &[AbTrial]) -> Result<(), Failure> {
    let costs = done.iter().flat_map(|trial| {
        let own = trial.arms.iter().flat_map(|arm| &arm.ab.own_ns);
        own.map(|&(seq, own_ns)| {
            let slice = &trial.slices[seq as usize];
            slice.tx.judged(AbQuantity::Time).unwrap_or(0) as f64 - own_ns as f64
        })
    });
    let between = done.iter().map(|trial| {
        let slices: u64 =
            trial.slices.iter().filter_map(|slice| slice.tx.judged(AbQuantity::Time)).sum();
        trial.duration_ns as f64 / slices as f64
    });
    let idle: u64 =
        done.iter().flat_map(|t| t.arms.iter().filter_map(|arm| arm.ab.idle_cpu_ns)).sum();
    let cpu: u64 = done
        .iter()
        .flat_map(|t| t.slices.iter().filter_map(|slice| slice.tx.judged(AbQuantity::Cpu)))
        .sum();
    writeln!(
        out,
        "between slices {:.2} % of the CPU time in them",
        idle as f64 / cpu as f64 * 100.0
    )?;
    let cost_us = median(costs.collect()) / 1000.0;
    writeln!(out, "cost of a slice {cost_us:.1} µs; a trial is {:.2} × its slices", {
        median(between.collect())
    })?;
    for (program, own) in setup.programs.iter().enumerate().skip(1) {
        for (quantity, of) in [("time", AbQuantity::Time), ("CPU", AbQuantity::Cpu)] {
            let values: Vec<f64> = done.iter().map(|trial| ratio(trial, program, of)).collect();
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let half = 2.07 * (variance / n).sqrt();
            let (name, mean, half) = (&own.name, mean * 100.0, half * 100.0);
            writeln!(out, "{name}: {quantity} {mean:+.2} ± {half:.2} (100 ln)")?;
        }
    }
    Ok(())
}

/// The mean over both copies of each side of the median over rounds of the ln of the ratio.
fn ratio(trial: &AbTrial, program: usize, quantity: AbQuantity) -> f64 {
    let values = |arm: usize| -> Vec<f64> {
        let own = trial.slices.iter().filter(|slice| slice.arm == arm);
        own.filter_map(|slice| Some(slice.tx.judged(quantity)? as f64 / slice.tx.messages as f64))
            .collect()
    };
    let mut sum = 0.0;
    for base in [0, 1] {
        for arm in [2 * program, 2 * program + 1] {
            let pairs = values(arm).into_iter().zip(values(base)).map(|(b, a)| (b / a).ln());
            sum += median(pairs.collect());
        }
    }
    sum / 4.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
