//! What `iolens ab` was asked for, as a plan.

use std::path::PathBuf;

use iolens_model::ab::{AbAxes, AbBench, AbMode, AbParameter, AbQuantity};
use iolens_model::axes::Study;
use iolens_model::command_line;
use iolens_model::external::External;
use iolens_model::plan::{Axes, Passes, Plan, Probes, Schedule};
use iolens_model::units::Nanos;

use crate::args::Ab;
use crate::axes::Wishes;
use crate::failure::{Failure, usage};
use crate::plan_file::ab::{AbFile, AbFileBench};
use crate::{plan_file, values};

/// How long a slice of the loop protocol is: at equal time short ones give the narrower interval,
/// for a neighbour's burst hits one of many.
const SLICE: Nanos = Nanos(500_000);

/// Smallest difference that matters, where nothing else is said.
const THRESHOLD: f64 = 0.03;

/// How long a run takes at most, where nothing else is said.
const BUDGET: Nanos = Nanos(180_000_000_000);

/// Rounds of a trial.
const ROUNDS: u32 = 60;

/// Why no plan file and no stored plan is of `ab`.
pub(crate) fn elsewhere() -> Failure {
    usage!(
        "programs of yours are compared by a command of its own\n  iolens ab 'COMMAND A' 'COMMAND B'"
    )
}

/// The plan file that a command line names; `None` where it has commands.
///
/// Errors: one that cannot be read, or is no plan.
pub(crate) fn file(asked: &Ab) -> Result<Option<AbFile>, Failure> {
    let is_plan = |path: &&String| path.ends_with(".toml");
    let path = match (&asked.commands[..], asked.commands.iter().find(is_plan)) {
        (_, None) => return Ok(None),
        ([path], Some(_)) => path,
        (_, Some(path)) => {
            return Err(usage!(
                "{path} is a plan, which has the commands in itself\n  name it alone"
            ));
        }
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| usage!("cannot read the plan {path}: {error}"))?;
    plan_file::ab::parse(path, &text).map(Some).map_err(Failure::usage)
}

/// The plan of a command line, or of a plan file with what the command line says in its stead; of
/// a baseline that is kept its name and file. `seed` is taken where none is stated.
pub(crate) fn plan(
    asked: &Ab,
    file: Option<&AbFile>,
    kept: Option<(&str, PathBuf)>,
    seed: u64,
) -> Result<Plan, Failure> {
    let given = Given { asked, file };
    let axes = given.axes(kept)?;
    check_loop(&axes)?;
    given.check_commands(&axes)?;
    let names: Vec<String> = axes.programs.iter().map(|program| program.name.clone()).collect();
    let threshold = given.or(asked.threshold, |file| file.threshold).unwrap_or(THRESHOLD);
    let slice = given.or(asked.slice, |file| file.slice).unwrap_or(SLICE);
    let plan = Plan {
        axes: Axes::Ab(axes),
        baseline: names[0].clone(),
        primitives: names,
        sizes: Vec::new(),
        threads: vec![1],
        schedule: Schedule::Slices { slice, discarded_rounds: 0, rounds: ROUNDS },
        passes: Passes { minimum: 12, maximum: u32::MAX },
        budget: given.or(asked.budget, |file| file.budget).unwrap_or(BUDGET),
        precision: threshold,
        delta: threshold,
        quick: false,
        isolate: false,
        seed: given.or(asked.seed, |file| file.seed).unwrap_or(seed),
        cpus: given.or(asked.cpus.clone(), |file| file.cpus.clone()),
        probes: Probes::default(),
    };
    super::check_cells(&plan).map(|()| plan)
}

/// Notes on names in braces where there are no parameters at all: a `--with` may be forgotten.
pub(crate) fn unfilled(plan: &Plan) -> Vec<String> {
    let without = |axes: &&AbAxes| {
        axes.parameters.is_empty() && axes.benches.iter().all(|bench| bench.parameters.is_empty())
    };
    let Some(axes) = plan.ab().filter(without) else { return Vec::new() };
    let commands = axes.commands();
    let words = commands.iter().flat_map(|command| command.argv);
    let mut names: Vec<&str> = words.flat_map(|word| placeholders(word)).collect();
    names.sort_unstable();
    names.dedup();
    let note = |name| format!("programs get {{{name}}} as it stands: --with {name}=VALUE fills it");
    names.into_iter().map(note).collect()
}

/// What is asked for besides the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AbBesides {
    /// How long a program may take to get ready; `None` for the usual.
    pub(crate) start_limit: Option<Nanos>,
    /// Whether system calls are not counted.
    pub(crate) no_calls: bool,
    /// The name of the run.
    pub(crate) name: Option<String>,
}

/// What a command line, or a plan file, asks for besides the plan.
pub(crate) fn besides(asked: &Ab, file: Option<&AbFile>) -> AbBesides {
    let given = Given { asked, file };
    AbBesides {
        start_limit: given.or(asked.start_limit, |file| file.start_limit),
        no_calls: given.is_on(asked.no_calls, |file| file.no_calls),
        name: given.or(asked.name.clone(), |file| file.name.clone()),
    }
}

/// The plan file of a plan; `None` where it is no plan of `ab`.
pub(crate) fn as_file(plan: &Plan, besides: AbBesides) -> Option<AbFile> {
    let axes = plan.ab()?;
    let lines =
        |argvs: &mut dyn Iterator<Item = &Vec<String>>| argvs.map(command_line::join).collect();
    let bench = |bench: &AbBench| AbFileBench {
        name: bench.name.clone(),
        commands: lines(&mut bench.commands.iter()),
        with: bench.parameters.clone(),
        input: bench.input.as_ref().map(PathBuf::from),
        prepare: bench.prepare.as_ref().map(command_line::join),
    };
    let is_loop = axes.mode == AbMode::Loop;
    let programs = axes.programs.iter().filter(|_| axes.benches.is_empty());
    Some(AbFile {
        is_loop,
        commands: lines(&mut programs.map(|program| &program.argv)),
        names: Some(plan.primitives.clone()),
        with: axes.parameters.clone(),
        links: axes.links,
        input: axes.input.as_ref().map(PathBuf::from),
        prepare: axes.prepare.as_ref().map(command_line::join),
        in_place: axes.in_place,
        ignore_exit: axes.ignore_exit,
        different_output: axes.different_output,
        cpus: plan.cpus.clone(),
        slice: match plan.schedule {
            Schedule::Slices { slice, .. } => Some(slice).filter(|_| is_loop),
            Schedule::Window { .. } | Schedule::Messages { .. } => None,
        },
        start_limit: besides.start_limit,
        warmup: axes.warm_up,
        no_calls: besides.no_calls,
        judge: Some(axes.judged.clone()),
        threshold: Some(plan.delta),
        budget: Some(plan.budget),
        seed: Some(plan.seed),
        name: besides.name,
        benches: axes.benches.iter().map(bench).collect(),
    })
}

/// What is given, by whom.
struct Given<'a> {
    asked: &'a Ab,
    file: Option<&'a AbFile>,
}

impl Given<'_> {
    /// What is typed comes before what stands in the file.
    fn or<T>(&self, typed: Option<T>, of_file: impl FnOnce(&AbFile) -> Option<T>) -> Option<T> {
        typed.or_else(|| self.file.and_then(of_file))
    }

    fn is_on(&self, typed: bool, of_file: impl FnOnce(&AbFile) -> bool) -> bool {
        typed || self.file.is_some_and(of_file)
    }

    /// The command lines of the plan; of a suite those of its first bench.
    fn commands(&self) -> &[String] {
        match self.file {
            Some(AbFile { commands, .. }) if !commands.is_empty() => commands,
            Some(file) => file.benches.first().map_or(&[], |bench| &bench.commands),
            None => &self.asked.commands,
        }
    }

    fn benches(&self) -> &[AbFileBench] {
        self.file.map_or(&[], |file| &file.benches)
    }

    /// Those of the command line and those of the file that are not among them.
    fn parameters(&self) -> Vec<AbParameter> {
        let of_file = self.file.map_or(&[][..], |file| &file.with);
        let is_typed =
            |one: &&AbParameter| self.asked.with.iter().any(|typed| typed.name == one.name);
        let of_file = of_file.iter().filter(|one| !is_typed(one));
        self.asked.with.iter().chain(of_file).cloned().collect()
    }

    fn axes(&self, kept: Option<(&str, PathBuf)>) -> Result<AbAxes, Failure> {
        let Given { asked, .. } = self;
        let names = self.names(self.commands().len(), kept.as_ref().map(|(name, _)| *name))?;
        let kept = kept.map(|(_, path)| path.display().to_string());
        let of_bench = |bench| self.bench(bench, &names, kept.as_deref());
        let benches = self.benches().iter().map(of_bench);
        let benches = benches.collect::<Result<Vec<AbBench>, Failure>>()?;
        let argvs = with_kept(self.commands(), kept.as_deref())?;
        let programs = names.into_iter().zip(argvs);
        let programs: Vec<_> = programs.map(|(name, argv)| External { name, argv }).collect();
        let links = self.is_on(asked.links, |file| file.links);
        self.check_words(&programs, &benches, links)?;
        let own = |path: PathBuf| path.display().to_string();
        let prepare = self.or(asked.prepare.clone(), |file| file.prepare.clone());
        let judge = self.or(asked.judge.clone(), |file| file.judge.clone());
        Ok(AbAxes {
            mode: match self.is_on(asked.is_loop, |file| file.is_loop) {
                true => AbMode::Loop,
                false => AbMode::Command,
            },
            programs,
            parameters: if benches.is_empty() { self.parameters() } else { Vec::new() },
            benches,
            judged: judge.unwrap_or_else(|| AbQuantity::ALL.to_vec()),
            links,
            warm_up: self.or(asked.warmup, |file| file.warmup),
            in_place: self.is_on(asked.in_place, |file| file.in_place),
            different_output: self.is_on(asked.different_output, |file| file.different_output),
            ignore_exit: self.is_on(asked.ignore_exit, |file| file.ignore_exit),
            input: self.or(asked.input.clone(), |file| file.input.clone()).map(own),
            prepare: prepare.as_deref().map(split).transpose()?,
        })
    }

    /// Refuses parameters and links that the commands do not go with.
    fn check_words(
        &self,
        programs: &[External],
        benches: &[AbBench],
        links: bool,
    ) -> Result<(), Failure> {
        let of_benches = benches.iter().flat_map(|bench| &bench.commands);
        let commands = programs.iter().map(|program| &program.argv).chain(of_benches);
        check_parameters(&self.asked.with, commands.clone())?;
        if benches.is_empty() {
            check_placeholders(&self.parameters(), commands.clone())?;
        } else if links {
            return Err(Failure::usage(
                "--links is not for a plan of several benches\n  name the commands of one on the \
                 command line",
            ));
        }
        check_parameters(self.file.map_or(&[][..], |file| &file.with), commands)
    }

    /// What only loops have. A plan file may say that they are loops, so the parser cannot tell.
    fn check_commands(&self, axes: &AbAxes) -> Result<(), Failure> {
        if axes.mode == AbMode::Loop {
            return Ok(());
        }
        let in_file =
            |key: fn(&AbFile) -> &Option<Nanos>| self.file.is_some_and(|file| key(file).is_some());
        let fresh = ": each run of a command is a fresh process";
        let stated = [
            ("slice", self.asked.slice, in_file(|file| &file.slice), ""),
            ("start-limit", self.asked.start_limit, in_file(|file| &file.start_limit), ""),
            ("warmup", self.asked.warmup, in_file(|file| &file.warmup), fresh),
        ];
        for (flag, typed, is_in_file, why) in stated {
            let what = "is for loops, not for whole commands";
            if typed.is_some() {
                return Err(usage!("--{flag} {what}{why}\n  leave it out, or add --loop"));
            }
            if is_in_file {
                let key = flag.replace('-', "_");
                return Err(usage!("`{key}` {what}{why}\n  leave it out, or write `loop = true`"));
            }
        }
        Ok(())
    }

    /// The names of all arms.
    fn names(&self, commands: usize, kept: Option<&str>) -> Result<Vec<String>, Failure> {
        let stated = self.or(self.asked.names.clone(), |file| file.names.clone());
        let mut names = names(stated.as_ref(), commands, kept.is_some())?;
        if let Some(kept) = kept {
            names.insert(0, kept.to_owned());
        }
        let is_twice = |name: &&String| names.iter().filter(|other| other == name).count() > 1;
        match names.iter().find(is_twice) {
            Some(twice) => Err(usage!(
                "two programs are called {twice}\n  give each a name of its own: --names"
            )),
            None => Ok(names),
        }
    }

    fn bench(
        &self,
        bench: &AbFileBench,
        names: &[String],
        kept: Option<&str>,
    ) -> Result<AbBench, Failure> {
        let of = |failure: Failure| Failure {
            message: format!("bench {}: {}", bench.name, failure.message),
            ..failure
        };
        let commands = with_kept(&bench.commands, kept).map_err(of)?;
        if commands.len() != names.len() {
            return Err(of(usage!(
                "it has {} commands for {} programs ({})\n  write one for each, in their order",
                bench.commands.len(),
                names.len() - usize::from(kept.is_some()),
                names[usize::from(kept.is_some())..].join(", ")
            )));
        }
        let (common, asked) = (self.parameters(), self.asked);
        let takes = |parameter: &&AbParameter| {
            let key = format!("{{{}}}", parameter.name);
            commands.iter().flatten().any(|word| word.contains(&key))
        };
        let common = common.iter().filter(takes);
        let named = |all: &'_ [AbParameter], name: &str| {
            all.iter().find(|parameter| parameter.name == name).cloned()
        };
        let mut parameters: Vec<AbParameter> = Vec::new();
        for parameter in common.chain(&bench.with) {
            let name = &parameter.name;
            if named(&parameters, name).is_none() {
                // What is typed comes before what the bench has, and that before what all have.
                let first = named(&asked.with, name).or_else(|| named(&bench.with, name));
                parameters.push(first.unwrap_or_else(|| parameter.clone()));
            }
        }
        check_parameters(&bench.with, commands.iter()).map_err(of)?;
        let input = bench.input.as_ref().filter(|_| asked.input.is_none());
        let prepare = bench.prepare.as_deref().filter(|_| asked.prepare.is_none());
        Ok(AbBench {
            name: bench.name.clone(),
            commands,
            parameters,
            input: input.map(|path| path.display().to_string()),
            prepare: prepare.map(split).transpose().map_err(of)?,
        })
    }
}

/// The argument lists of commands, and before them that of a kept baseline, which has the
/// arguments of the first.
fn with_kept(commands: &[String], kept: Option<&str>) -> Result<Vec<Vec<String>>, Failure> {
    let split = commands.iter().map(|line| split(line));
    let mut argvs = split.collect::<Result<Vec<_>, Failure>>()?;
    if let (Some(path), Some(first)) = (kept, argvs.first()) {
        let baseline = [vec![path.to_owned()], first[1..].to_vec()].concat();
        argvs.insert(0, baseline);
    }
    Ok(argvs)
}

/// What only whole commands have; on the command line the parser refuses it.
fn check_loop(axes: &AbAxes) -> Result<(), Failure> {
    let of_bench = |has: fn(&AbBench) -> bool| axes.benches.iter().any(has);
    let stated = [
        ("input", axes.input.is_some() || of_bench(|bench| bench.input.is_some())),
        ("prepare", axes.prepare.is_some() || of_bench(|bench| bench.prepare.is_some())),
        ("ignore_exit", axes.ignore_exit),
    ];
    let wrong = stated.into_iter().find(|(_, is_stated)| *is_stated);
    match wrong.filter(|_| axes.mode == AbMode::Loop) {
        Some((key, _)) => {
            Err(usage!("`{key}` is for whole commands, not for loops\n  leave it or `loop` out"))
        }
        None => Ok(()),
    }
}

/// What `run server` is asked for with servers of the user's, the first as baseline.
///
/// Errors: what is wrong with a command or a name.
pub(crate) fn servers(asked: &Ab) -> Result<Wishes, Failure> {
    let names = names(asked.names.as_ref(), asked.commands.len(), false)?;
    let external = names.iter().zip(&asked.commands).map(|(name, line)| {
        let (name, argv) = (name.clone(), split(line)?);
        Ok(External { name, argv })
    });
    Ok(Wishes {
        study: Some(Study::Server),
        baseline: names.first().cloned(),
        external: external.collect::<Result<_, Failure>>()?,
        methods: Some(names),
        threshold: asked.threshold,
        budget: asked.budget,
        cpus: asked.cpus.clone(),
        seed: asked.seed,
        wait: asked.wait,
        name: asked.name.clone(),
        strict: asked.strict,
        progress: asked.progress,
        db: asked.result.db.clone(),
        json: asked.result.json.is_some(),
        verbose: asked.verbose,
        ..Wishes::default()
    })
}

/// A name for each command: those that are given, else letters, of which a baseline that is kept
/// has the first.
fn names(stated: Option<&Vec<String>>, n: usize, is_kept: bool) -> Result<Vec<String>, Failure> {
    if n + usize::from(is_kept) < 2 {
        return Err(Failure::usage(
            "there is nothing to compare this command with\n  name two commands, or a kept program: \
             --against NAME",
        ));
    }
    let Some(names) = stated else {
        let letter = |nth| char::from_u32('A' as u32 + nth).map(String::from);
        let letters: Option<Vec<String>> = (u32::from(is_kept)..26).take(n).map(letter).collect();
        return letters
            .filter(|letters| letters.len() == n)
            .ok_or_else(|| usage!("{n} commands are too many to compare\n  name at most 26"));
    };
    if names.len() != n {
        return Err(usage!(
            "--names names {} of {n} commands\n  give each a name of its own, in their order, \
             separated by commas",
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
    if words.is_empty() {
        return Err(Failure::usage("a command is empty: it names no program"));
    }
    match words.iter().find(|word| is_of_a_shell(word, line)) {
        Some(word) => Err(usage!(
            "no shell sees `{line}`: {word} would be an argument\n  write sh -c '...', or --input FILE \
             for the standard input; to pass {word} to the program, quote it"
        )),
        None => Ok(words),
    }
}

/// Whether a word means something to a shell, and was not quoted in its line.
fn is_of_a_shell(word: &str, line: &str) -> bool {
    const MEANT: [&str; 8] = ["<", ">", ">>", "|", "||", "&", "&&", ";"];
    let is_quoted = || {
        ["'", "\""].iter().any(|quote| line.contains(&format!("{quote}{word}{quote}")))
            || line.contains(&format!("\\{word}"))
    };
    MEANT.contains(&word) && !is_quoted()
}

/// Refuses a name in braces that no parameter has, where there are parameters at all.
fn check_placeholders<'a>(
    parameters: &[AbParameter],
    commands: impl Iterator<Item = &'a Vec<String>>,
) -> Result<(), Failure> {
    let is_known = |name: &str| parameters.iter().any(|parameter| parameter.name == name);
    for word in commands.flatten().filter(|_| !parameters.is_empty()) {
        if let Some(name) = placeholders(word).find(|name| !is_known(name)) {
            let known: Vec<&str> = parameters.iter().map(|one| one.name.as_str()).collect();
            return Err(usage!(
                "{{{name}}} has no values: --with names {}\n  --with {name}=VALUE,VALUE gives it some",
                known.join(", ")
            ));
        }
    }
    Ok(())
}

/// Names in braces in a word.
fn placeholders(word: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let inner = word.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    inner.filter(move |name| !name.is_empty() && name.chars().all(is_of_name))
}

/// Refuses a parameter that no command takes, or that is named twice.
fn check_parameters<'a>(
    parameters: &[AbParameter],
    commands: impl Iterator<Item = &'a Vec<String>> + Clone,
) -> Result<(), Failure> {
    for (nth, parameter) in parameters.iter().enumerate() {
        let name = &parameter.name;
        if parameters[..nth].iter().any(|before| before.name == *name) {
            return Err(usage!("--with {name} is given twice\n  list all its values in one"));
        }
        let key = format!("{{{name}}}");
        if !commands.clone().flatten().any(|word| word.contains(&key)) {
            return Err(usage!(
                "--with {name}: no command contains {key}\n  write {key} where its value belongs"
            ));
        }
    }
    Ok(())
}
