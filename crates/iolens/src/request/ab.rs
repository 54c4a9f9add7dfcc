//! What `iolens ab` was asked for, as a plan.

use std::path::PathBuf;

use iolens_model::ab::{AbAxes, AbMode};
use iolens_model::copy::External;
use iolens_model::plan::{Axes, Passes, Plan, Probes, Schedule};
use iolens_model::units::Nanos;

use crate::args::Ab;
use crate::failure::{Failure, usage};
use crate::values;

/// How long a slice of the loop protocol is: at equal time short ones give the narrower interval,
/// for a neighbour's burst hits one of many.
const SLICE: Nanos = Nanos(500_000);

/// Rounds of a trial.
const ROUNDS: u32 = 60;

/// Why no plan file and no stored plan is of `ab`.
pub(crate) fn elsewhere() -> Failure {
    usage!(
        "programs of yours are compared by a command of its own\n  iolens ab 'COMMAND A' 'COMMAND B'"
    )
}

/// The plan of a command line; of a baseline that is kept its name and file. `seed` is taken where
/// none is stated.
pub(crate) fn plan(asked: &Ab, kept: Option<(&str, PathBuf)>, seed: u64) -> Result<Plan, Failure> {
    let commands = names(asked, kept.is_some())?.into_iter().zip(&asked.commands);
    let programs = commands.map(|(name, line)| Ok(External { name, argv: split(line)? }));
    let mut programs = programs.collect::<Result<Vec<External>, Failure>>()?;
    if let Some((name, path)) = kept {
        let mut argv = programs[0].argv.clone();
        argv[0] = path.display().to_string();
        programs.insert(0, External { name: name.to_owned(), argv });
    }
    let names: Vec<String> = programs.iter().map(|program| program.name.clone()).collect();
    if let Some(twice) = names.iter().find(|name| names.iter().filter(|n| n == name).count() > 1) {
        return Err(usage!(
            "two programs are called {twice}\n  give each a name of its own: --names"
        ));
    }
    let axes = AbAxes {
        mode: if asked.is_loop { AbMode::Loop } else { AbMode::Command },
        programs,
        parameters: asked.with.clone(),
        judged: asked.judge.clone(),
        links: asked.links,
        in_place: asked.in_place,
        different_output: asked.different_output,
        ignore_exit: asked.ignore_exit,
        input: asked.input.as_ref().map(|path| path.display().to_string()),
        prepare: asked.prepare.as_deref().map(split).transpose()?,
    };
    check_parameters(&axes)?;
    Ok(Plan {
        axes: Axes::Ab(axes),
        baseline: names[0].clone(),
        primitives: names,
        sizes: Vec::new(),
        threads: vec![1],
        schedule: Schedule::Slices { slice: SLICE, discarded_rounds: 0, rounds: ROUNDS },
        passes: Passes { minimum: 12, maximum: u32::MAX },
        budget: asked.budget,
        precision: asked.threshold,
        delta: asked.threshold,
        quick: false,
        isolate: false,
        seed: asked.seed.unwrap_or(seed),
        cpus: None,
        probes: Probes::default(),
    })
}

/// A name for each command: those that are given, else letters, of which a baseline that is kept
/// has the first.
fn names(asked: &Ab, is_kept: bool) -> Result<Vec<String>, Failure> {
    let n = asked.commands.len();
    if n + usize::from(is_kept) < 2 {
        return Err(Failure::usage(
            "there is nothing to compare this command with\n  name two commands, or a kept program: \
             --against NAME",
        ));
    }
    let Some(names) = &asked.names else {
        let letter = |nth| char::from_u32('A' as u32 + nth).map(String::from);
        let letters: Option<Vec<String>> = (u32::from(is_kept)..26).take(n).map(letter).collect();
        return letters
            .filter(|letters| letters.len() == n)
            .ok_or_else(|| usage!("{n} commands are too many to compare\n  name at most 26"));
    };
    if names.len() != n {
        return Err(usage!(
            "--names has {} of them for {n} commands\n  give each command a name, in their order",
            names.len()
        ));
    }
    names.iter().try_for_each(|name| values::server::program_name(name)).map_err(Failure::usage)?;
    Ok(names.clone())
}

/// The words of a command, as a shell would split it, of which there is none.
fn split(line: &str) -> Result<Vec<String>, Failure> {
    let words = shlex::split(line)
        .ok_or_else(|| usage!("`{line}` has a quotation mark that is not closed"))?;
    match words.is_empty() {
        true => Err(Failure::usage("a command is empty: it names no program")),
        false => Ok(words),
    }
}

/// Refuses a parameter that no command takes, or that is named twice.
fn check_parameters(axes: &AbAxes) -> Result<(), Failure> {
    for (nth, parameter) in axes.parameters.iter().enumerate() {
        let name = &parameter.name;
        if axes.parameters[..nth].iter().any(|before| before.name == *name) {
            return Err(usage!("--with {name} is given twice\n  list all its values in one"));
        }
        let key = format!("{{{name}}}");
        let takes = |program: &External| program.argv.iter().any(|word| word.contains(&key));
        if !axes.programs.iter().any(takes) {
            return Err(usage!(
                "--with {name}: no command contains {key}\n  write {key} where its value belongs"
            ));
        }
    }
    Ok(())
}
