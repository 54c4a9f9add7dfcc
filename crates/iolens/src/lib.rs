//! The tool: arguments in, a run or a view of stored runs out. The only
//! crate that prints and exits. It is a library with one function for the
//! binary, and with those that read what users write, for tests that write it.

#![forbid(unsafe_code)]

mod address;
mod args;
mod axes;
mod built_in;
mod commands;
mod failure;
mod menu;
mod output;
mod peer;
mod places;
mod plan_file;
mod progress;
mod request;
mod runner;
mod stored;
mod studies;
mod sysctls;
mod values;
mod writing;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use iolens_harness::host;
use iolens_model::axes::Study;
use iolens_model::plan::Plan;

use crate::args::{Args, Command, Run};
use crate::failure::{Failure, this_hosts_limits};

/// The binary's `main`: what the process was started with, and how it ends.
pub fn main() -> ExitCode {
    // It cannot fail for this signal.
    let _ = iolens_engine::wait_for_children();
    // A word that is not UTF-8 is the parser's to judge; here it is for the record.
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let typed: Vec<String> = words.collect();
    let result = match typed.len() <= 1 && output::can_show_a_menu() {
        true => by_menu(),
        false => parsed(&typed).and_then(|args| carry_out(args.command, &typed)),
    };
    match result.and_then(|code| output::nothing_lost().map(|()| code)) {
        Ok(code) => code,
        Err(Failure { code, message }) => {
            output::error(&message);
            ExitCode::from(code)
        }
    }
}

/// The command line. What asks for help ends the process.
fn parsed(typed: &[String]) -> Result<Args, Failure> {
    let command = args::with_signs(Args::command()).color(output::parser_colour());
    let matches = command.try_get_matches().map_err(|e| axes::help::misread(e, typed))?;
    // The parser has just accepted them as what the derived arguments describe.
    Args::from_arg_matches(&matches).map_err(|e| axes::help::misread(e, typed))
}

/// Asks what is wanted, and does it as if it had been typed.
fn by_menu() -> Result<ExitCode, Failure> {
    let Some(line) = menu::asked()? else { return Ok(ExitCode::SUCCESS) };
    let typed: Vec<String> = [vec!["iolens".to_owned()], line.clone()].concat();
    let args = Args::try_parse_from(&typed).map_err(Failure::usage)?;
    let code = carry_out(args.command, &typed)?;
    menu::offer_page(&line)?;
    Ok(code)
}

/// Does what a command line asks for; `typed` is what a run is stored with.
fn carry_out(command: Command, typed: &[String]) -> Result<ExitCode, Failure> {
    let looks_itself = matches!(
        command,
        Command::Worker(_)
            | Command::Run(_)
            | Command::Resume(_)
            | Command::Explain(_)
            | Command::Doctor(_)
    );
    if !looks_itself {
        // What a killed run left is gone once the next start has looked.
        iolens_harness::lock::sweep();
    }
    // The doctor names it and changes nothing; a worker's runner has looked.
    if !matches!(command, Command::Worker(_) | Command::Doctor(_)) {
        sysctls::sweep();
    }
    match command {
        Command::Run(run) => commands::run::run(run, typed),
        Command::Ab(ab) => commands::ab::ab(&ab, typed),
        Command::Resume(resume) => commands::again::resume(&resume),
        Command::Ask(ask) => commands::ask::ask(&ask, typed),
        Command::Net(net) => commands::by_hand::net(&net),
        Command::File(file) => commands::file::file(&file),
        Command::Load(load) => commands::by_hand::load(&load),
        Command::Serve(serve) => commands::by_hand::serve(&serve),
        Command::Tune(tune) => commands::tune::tune(&tune),
        Command::Keep(keep) => commands::keep::keep(&keep),
        Command::List(list) => Ok(commands::list::list(&list)),
        Command::Doctor(doctor) => commands::doctor(&doctor),
        Command::Runs(runs) => commands::show::runs(&runs),
        Command::Show(show) => commands::show::show(&show),
        Command::Explain(explain) => commands::explain::explain(&explain),
        Command::Compare(compare) => commands::compare::compare(&compare, typed),
        Command::History(history) => commands::history::history(&history),
        Command::Confirm(confirm) => commands::again::confirm(&confirm, typed),
        Command::Report(report) => commands::report::report(&report),
        Command::Export(export) => commands::export::export(&export),
        Command::Import(import) => commands::import::import(&import),
        Command::Rm(rm) => commands::upkeep::rm(&rm),
        Command::Gc(gc) => commands::upkeep::gc(&gc),
        Command::Audit(audit) => commands::audit(&audit),
        Command::Completions(shell) => Ok(commands::shell::completions(&shell)),
        Command::Man(man) => commands::shell::man(&man),
        Command::Worker(worker) => commands::worker(&worker),
    }
}

/// Whether these words behind the program's name are a command line.
///
/// # Errors
/// What is wrong with them, or what `--help` and `--version` print.
pub fn understands<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let words = std::iter::once("iolens").chain(words);
    let args = Args::try_parse_from(words).map_err(|e| e.to_string())?;
    let Command::Run(Run::Plan(name, words)) = args.command else { return Ok(()) };
    // Whose flags they are says the file, which may not be there.
    let of_plan = request::file(&name).ok().map(|plan| plan.study.unwrap_or(Study::Net));
    let studies: Vec<Study> = of_plan.map_or_else(|| Study::OF_RUN.to_vec(), |study| vec![study]);
    let read = |study: &Study| args::flags_of(*study, words.iter().cloned());
    let mut refused = studies.iter().map(read).filter_map(Result::err);
    match (refused.next(), refused.count() + 1 < studies.len()) {
        (Some(why), false) => Err(why.to_string()),
        _ => Ok(()),
    }
}

/// A plan as it is stored, with the checks that it meets before it is measured again.
///
/// # Errors
/// What is no plan, or why it cannot be measured here.
pub fn stored_plan(text: &str) -> Result<Plan, String> {
    let plan: Plan = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let here = host::limits(&host::Root::real())?;
    request::check_stored(&plan)
        .and_then(|()| runner::check(&plan, &here))
        .map_err(|failure| failure.message)?;
    Ok(plan)
}

/// Whether a file with this text is a plan of `iolens ab`, whose programs are not looked for.
///
/// # Errors
/// The message of `iolens ab FILE`, which calls the file `name`.
pub fn ab_plan_of(name: &str, text: &str) -> Result<Plan, String> {
    const SEED: u64 = 1;
    let file = plan_file::ab::parse(name, text)?;
    let args = Args::try_parse_from(["iolens", "ab", name]).map_err(|e| e.to_string())?;
    let Command::Ab(asked) = args.command else { return Err("it is not `ab`".to_owned()) };
    request::ab::plan(&asked, Some(&file), None, SEED).map_err(|failure| failure.message)
}

/// The plan that a file with this text asks for, up to whether this machine has the
/// memory and the descriptors for it. Nothing is measured, and topologies are not tried.
///
/// # Errors
/// The message of `iolens run FILE`, which calls the file `name`.
pub fn plan_of(name: &str, text: &str) -> Result<Plan, String> {
    const SEED: u64 = 1;
    let of_file = || {
        let asked = request::asked_in(name, text)?;
        let plan = request::plan(asked, SEED, &|_| Ok(()))?.plan;
        let here = this_hosts_limits()?;
        runner::check(&plan, &here)?;
        Ok(plan)
    };
    of_file().map_err(|failure: Failure| failure.message)
}
