//! The tool: arguments in, a run or a view of stored runs out. The only
//! crate that prints and exits. It is a library with one function for the
//! binary, and with those that read what users write, for tests that write it.

#![forbid(unsafe_code)]

mod address;
mod args;
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
mod sysctls;
mod values;
mod wishes;

use std::process::ExitCode;

use clap::{Arg, CommandFactory, FromArgMatches, Parser};

use iolens_engine::host;
use iolens_model::plan::Plan;

use crate::args::{Args, Command};
use crate::failure::Failure;

/// The binary's `main`: what the process was started with, and how it ends.
#[must_use]
pub fn main() -> ExitCode {
    // A word that is not UTF-8 is the parser's to judge; here it is for the record.
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let typed: Vec<String> = words.collect();
    let result = match typed.len() <= 1 && output::can_show_a_menu() {
        true => menu(),
        false => carry_out(parsed().command, &typed),
    };
    let lost = || match output::lost() {
        Some(error) => Err(Failure::unusable(format!(
            "cannot write the result to stdout: {error}\n  make room where it goes, or send it \
             elsewhere; what is stored stays, and `iolens show` prints it again"
        ))),
        None => Ok(()),
    };
    match result.and_then(|code| lost().map(|()| code)) {
        Ok(code) => code,
        Err(Failure { code, message }) => {
            output::error(&message);
            ExitCode::from(code)
        }
    }
}

/// The command line; what is wrong with it, or asked for as help, ends the process.
fn parsed() -> Args {
    let command = with_signs(Args::command()).color(output::parser_colour());
    let matches = command.get_matches();
    // The parser has just accepted them as what the derived arguments describe.
    Args::from_arg_matches(&matches).unwrap_or_else(|e| e.exit())
}

/// A command whose flags take `-5` for a value, one that cannot be, and not for another flag; so
/// do those of its subcommands.
fn with_signs(command: clap::Command) -> clap::Command {
    let with_sign = |arg: Arg| match arg.get_long() {
        Some(_) if arg.get_action().takes_values() => arg.allow_negative_numbers(true),
        _ => arg,
    };
    command.mut_args(with_sign).mut_subcommands(with_signs)
}

/// Asks what is wanted, and does it as if it had been typed.
fn menu() -> Result<ExitCode, Failure> {
    let Some(line) = commands::menu::asked()? else { return Ok(ExitCode::SUCCESS) };
    let typed: Vec<String> = [vec!["iolens".to_owned()], line.clone()].concat();
    let args = Args::try_parse_from(&typed).map_err(Failure::usage)?;
    let code = carry_out(args.command, &typed)?;
    commands::menu::offer_page(&line)?;
    Ok(code)
}

/// Does what a command line asks for; `typed` is what a run is stored with.
fn carry_out(command: Command, typed: &[String]) -> Result<ExitCode, Failure> {
    let looks_itself = matches!(
        command,
        Command::Worker(_) | Command::Run(_) | Command::Explain(_) | Command::Doctor(_)
    );
    if !looks_itself {
        // What a killed run left is gone once the next start has looked.
        iolens_engine::lock::sweep();
    }
    // The doctor names it and changes nothing; a worker's runner has looked.
    if !matches!(command, Command::Worker(_) | Command::Doctor(_)) {
        sysctls::sweep();
    }
    match command {
        Command::Run(run) => commands::run::run(&run, typed),
        Command::Ask(ask) => commands::ask::ask(&ask, typed),
        Command::Net(net) => commands::net::net(&net),
        Command::File(file) => commands::file::file(&file),
        Command::Load(load) => commands::load::load(&load),
        Command::Serve(serve) => commands::serve::serve(&serve),
        Command::Tune(tune) => commands::tune::tune(&tune),
        Command::List(list) => commands::list::list(&list),
        Command::Doctor(doctor) => commands::doctor::doctor(&doctor),
        Command::Runs(runs) => commands::stored::runs(&runs),
        Command::Show(show) => commands::stored::show(&show),
        Command::Explain(explain) => commands::explain::explain(&explain),
        Command::Compare(compare) => commands::compare::compare(&compare, typed),
        Command::Confirm(confirm) => commands::confirm::confirm(&confirm, typed),
        Command::Report(report) => commands::report::report(&report),
        Command::Export(export) => commands::export::export(&export),
        Command::Import(import) => commands::import::import(&import),
        Command::Rm(rm) => commands::upkeep::rm(&rm),
        Command::Gc(gc) => commands::upkeep::gc(&gc),
        Command::Audit(audit) => commands::audit::audit(&audit),
        Command::Completions(shell) => Ok(commands::shell::completions(&shell)),
        Command::Man(man) => commands::shell::man(&man),
        Command::Worker(worker) => commands::worker::worker(&worker),
    }
}

/// Whether these words behind the program's name are a command line.
///
/// # Errors
/// What is wrong with them, or what `--help` and `--version` print.
pub fn understands<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let words = std::iter::once("iolens").chain(words);
    Args::try_parse_from(words).map(|_| ()).map_err(|e| e.to_string())
}

/// A plan as it is stored, with the checks that it meets before it is measured again.
///
/// # Errors
/// What is no plan, or why it cannot be measured here.
pub fn stored_plan(text: &str) -> Result<Plan, String> {
    let plan: Plan = serde_json::from_str(text).map_err(|e| e.to_string())?;
    request::check_stored(&plan)
        .and_then(|()| runner::check(&plan, &host::limits(&host::Root::real())))
        .map_err(|failure| failure.message)?;
    Ok(plan)
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
        runner::check(&plan, &host::limits(&host::Root::real()))?;
        Ok(plan)
    };
    of_file().map_err(|failure: Failure| failure.message)
}
