//! `iolens completions` and `iolens man`: both made from the table of arguments,
//! so that they say what `--help` says.

use std::process::ExitCode;

use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_complete::generate;
use clap_complete::shells::{Bash, Fish, Zsh};
use clap_mangen::Man;
use iolens_engine::worker::protocol::BUILD;

use crate::args::{self, Args, Shell};
use crate::failure::{Failure, unusable};
use crate::output;
use crate::writing::{cannot_write, write_new};

/// Prints what a shell is to source.
pub(crate) fn completions(args: &args::Completions) -> ExitCode {
    output::result(&String::from_utf8_lossy(&completion(args.shell)));
    ExitCode::SUCCESS
}

/// Writes a page for each command, and says where.
pub(crate) fn man(args: &args::Man) -> Result<ExitCode, Failure> {
    let pages = pages().map_err(|e| unusable!("cannot create the pages: {e}"))?;
    std::fs::create_dir_all(&args.folder).map_err(|e| cannot_write(&args.folder, &e))?;
    for (name, page) in pages {
        let path = args.folder.join(name);
        write_new(&path, &page, args.overwrite)?;
        output::result(&path.display().to_string());
    }
    Ok(ExitCode::SUCCESS)
}

/// The command line without what only iolens itself starts, which completions
/// would offer though it is hidden.
fn shown() -> Command {
    let all = Args::command();
    let of_users = all.get_subcommands().filter(|below| !below.is_hide_set()).cloned();
    let mut command = Command::new("iolens")
        .version(BUILD)
        .about(Resettable::from(all.get_about().cloned()))
        .after_help(Resettable::from(all.get_after_help().cloned()))
        .disable_help_subcommand(true)
        .subcommands(of_users);
    command.build();
    command
}

fn completion(shell: Shell) -> Vec<u8> {
    let (mut script, mut command) = (Vec::new(), shown());
    match shell {
        Shell::Bash => generate(Bash, &mut command, "iolens", &mut script),
        Shell::Zsh => generate(Zsh, &mut command, "iolens", &mut script),
        Shell::Fish => generate(Fish, &mut command, "iolens", &mut script),
    }
    script
}

/// Every page with the name of its file.
fn pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    with_those_below(shown()).into_iter().map(page).collect()
}

/// A command and all below it.
fn with_those_below(command: Command) -> Vec<Command> {
    let below: Vec<Command> =
        command.get_subcommands().cloned().flat_map(with_those_below).collect();
    [vec![command], below].concat()
}

/// A page with the name of its file.
fn page(command: Command) -> std::io::Result<(String, Vec<u8>)> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.after_help(Resettable::Reset));
    let mut page = Vec::new();
    man.render(&mut page)?;
    if !after.is_empty() {
        page.extend(format!(".SH NOTES\n.nf\n{}.fi\n", as_it_stands(&after)).bytes());
    }
    Ok((man.get_filename(), page))
}

/// Lines that troff is to leave as they are: examples and tables, of which the
/// crate would make one paragraph.
fn as_it_stands(text: &str) -> String {
    let line = |line: &str| {
        let plain = line.replace('\\', "\\e").replace('-', "\\-");
        let guard = if plain.starts_with(['.', '\'']) { "\\&" } else { "" };
        format!("{guard}{plain}\n")
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

    #[test]
    fn every_argument_says_what_it_is() {
        for command in with_those_below(shown()) {
            let name = command.get_display_name().unwrap_or_default().to_owned();
            assert!(command.get_about().is_some(), "{name}");
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.trim().is_empty(), "{name}: {}", argument.get_id());
            }
        }
    }

    #[test]
    fn every_command_has_a_page_with_all_its_flags() {
        let pages = pages().unwrap();
        let commands = with_those_below(shown());
        assert_eq!(pages.len(), commands.len());
        for ((file, page), command) in pages.iter().zip(&commands) {
            let page = String::from_utf8(page.clone()).unwrap();
            let name = command.get_display_name().unwrap_or("iolens");
            assert_eq!(*file, format!("{name}.1"));
            assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{file}");
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let Some(long) = argument.get_long() else { continue };
                let written = format!("\\-\\-{}", long.replace('-', "\\-"));
                assert!(page.contains(&written), "{file}: --{long}");
            }
        }
        assert!(pages.iter().any(|(file, _)| file == "iolens-file-read.1"));
        assert!(pages.iter().all(|(file, _)| !file.contains("worker")));
    }

    #[test]
    fn what_stands_after_help_keeps_its_lines() {
        assert_eq!(as_it_stands(".x\n'y --a\n\n\\"), "\\&.x\n\\&'y \\-\\-a\n\n\\e\n");
        let (_, page) = pages().unwrap().into_iter().find(|(f, _)| f == "iolens-gc.1").unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains("\niolens gc \\-\\-dry\\-run\niolens gc"), "{page}");
    }

    #[test]
    fn every_shell_knows_every_command() {
        for shell in SHELLS {
            let script = String::from_utf8(completion(shell)).unwrap();
            for command in with_those_below(shown()) {
                assert!(script.contains(command.get_name()), "{shell:?}: {}", command.get_name());
                for long in command.get_arguments().filter_map(clap::Arg::get_long) {
                    assert!(script.contains(long), "{shell:?}: --{long}");
                }
            }
            assert!(!script.contains("started by iolens itself"), "{shell:?}: worker is offered");
            assert!(!script.contains("subcmd__worker"), "{shell:?}: worker is offered");
        }
    }
}
