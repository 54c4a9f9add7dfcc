//! `iolens run`: a command for each study, and one for a plan, whose study says what its flags
//! are.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command};
use iolens_model::axes::Study;

use super::Peer;
use crate::axes::{self, Wishes};
use crate::output;
use crate::studies::{self, StudySpec};

/// Without subcommands and options, which the page of a study has.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n{before-help}";

/// What `iolens run --help` says before the studies, and after them.
const HELP: [&str; 2] = [
    "\
Compare methods: which is fastest, at which sizes, and how sure that is

Usage: iolens run <STUDY> [OPTIONS]
       iolens run <PLAN|FILE.toml> [OPTIONS]

Studies (each has its own help, such as: iolens run net --help)
",
    "
Options all studies share
      --quick            A first look in under two minutes; no verdicts
      --budget <TIME>    Stop after this long [default: 5m to 30m, by study]
      --precision <PCT>  Stop early once every interval is within ± this [default: 3%]
      --threshold <PCT>  Smallest difference that matters to you [default: 3%]
      --cpus <LIST>      CPUs to use [default: all available]
      --name <NAME>      Name the run; the name then works like its ID
      --dry-run          Print settings and expected time; measure nothing
      --print-plan       Print the run as a plan file; measure nothing
      --wait             Wait while another run is measuring, instead of failing
      --strict           Exit 1 if anything stays undecided or invalid
      --progress <HOW>   bar (on a terminal), passes (elsewhere), plain (every trial) or none
      --db <FILE>        Results database [default: ~/.local/share/iolens/iolens.db]
      --json             Print the result as JSON
  -v, --verbose          Print everything, as iolens show does
  -h, --help             Print help

Plans: classic-48, classic-72, classic-small, net-rr, copy-vs-dd, … (iolens list plans)
Exit codes: 0 done · 1 --strict failed · 2 bad usage · 4 nothing usable · 130 interrupted",
];

fn help() -> String {
    let rows = studies::ALL.map(|spec| format!("  {:<9}{}\n", spec.study.word(), spec.summary));
    let [before, after] = HELP;
    [before, &rows.concat(), after].concat()
}

/// What is to be run.
#[derive(Debug)]
pub(crate) enum Run {
    /// A study, with its flags.
    Study(Box<Wishes>),
    /// A plan by its name or path, and words that are flags of its study.
    Plan(String, Vec<OsString>),
}

/// What flags of a study ask for.
fn asked(study: Study, matches: &ArgMatches) -> Result<Wishes, clap::Error> {
    Wishes::of_matches(study, matches)
        .map_err(|why| clap::Error::raw(ErrorKind::ValueValidation, format!("{why}\n")))
}

/// What words behind the name of a plan of this study ask for.
pub(crate) fn flags_of<W: Into<OsString> + Clone>(
    study: Study,
    words: impl IntoIterator<Item = W>,
) -> Result<Wishes, clap::Error> {
    let command = super::with_signs(command(study))
        .color(output::parser_colour())
        .styles(super::STYLES)
        .no_binary_name(true)
        .bin_name(format!("iolens run {study}"));
    asked(study, &command.try_get_matches_from(words)?)
}

impl Wishes {
    /// How the other machine is reached.
    pub(crate) fn peer(&self) -> Peer {
        Peer {
            peer: self.peer.clone(),
            peer_binary: self.peer_binary.clone(),
            peer_address: self.peer_address,
            peer_any_build: self.peer_any_build,
        }
    }
}

/// The command of a study.
pub(crate) fn command(study: Study) -> Command {
    let columns = output::stdout_columns();
    let (about, examples) =
        StudySpec::of(study).map_or(("", ""), |spec| (spec.about, spec.examples));
    let command = Command::new(study.word())
        .about(about)
        .after_help(examples)
        .before_help(axes::short_help(study, columns))
        .before_long_help(axes::long_help(study, columns))
        .help_template(TEMPLATE);
    axes::arguments(study, command)
}

impl clap::FromArgMatches for Run {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Run, clap::Error> {
        let Some((word, below)) = matches.subcommand() else {
            return Err(clap::Error::new(ErrorKind::MissingSubcommand));
        };
        if let Some(study) = Study::of_run(word) {
            return asked(study, below).map(|asked| Run::Study(Box::new(asked)));
        }
        let words = below.get_many::<OsString>("").unwrap_or_default().cloned().collect();
        Ok(Run::Plan(word.to_owned(), words))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Run::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Run {
    fn augment_args(command: Command) -> Command {
        command
            .override_help(help())
            .subcommand_required(true)
            .disable_help_subcommand(true)
            .allow_external_subcommands(true)
            .subcommands(Study::OF_RUN.iter().map(|&study| self::command(study)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Run::augment_args(command)
    }
}
