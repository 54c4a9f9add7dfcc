//! What `iolens run STUDY -h` and `--help` print, and what refused flags are told, from the table.

use std::fmt::Write;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};
use iolens_model::axes::Study;

use super::{AXES, Axis, Group};
use crate::args::Args;
use crate::axes;
use crate::failure::Failure;
use crate::output;
use crate::studies::StudySpec;

/// Columns of a line at most.
const COLUMNS_MAX: usize = 100;

/// Where what a flag does begins, at most: longer flags have a line of their own.
const COLUMN_MAX: usize = 29;

/// Of the groups, those that `-h` shows.
const GROUPS_SHORT: usize = 2;

const HELP: &str = "  -h, --help";

/// The groups that a study begins with.
pub(crate) fn short_help(study: Study, columns: usize) -> String {
    let all = groups(study).count();
    let mut text = rendered(study, columns, GROUPS_SHORT);
    let flags = AXES.iter().filter(|axis| axis.flag(study).is_some()).count();
    let hidden = all.saturating_sub(GROUPS_SHORT);
    let _ = write!(text, "\n{HELP}  Print help (--help: {flags} flags, {hidden} more groups)");
    text
}

/// Every group of a study.
pub(crate) fn long_help(study: Study, columns: usize) -> String {
    let mut text = rendered(study, columns, usize::MAX);
    text.push_str(&row(HELP, "Print help", column(study), columns.min(COLUMNS_MAX)));
    if let Some(footer) = StudySpec::of(study).and_then(|spec| spec.footer) {
        let _ = write!(text, "\n{footer}");
    }
    text
}

fn groups(study: Study) -> impl Iterator<Item = (Group, Vec<&'static Axis>)> {
    let of = move |group: Group| {
        let own = AXES.iter().filter(move |axis| axis.group == group);
        (group, own.filter(|axis| axis.flag(study).is_some()).collect::<Vec<_>>())
    };
    Group::ALL.iter().copied().map(of).filter(|(_, axes)| !axes.is_empty())
}

/// Headings and flags; writing to a string cannot fail.
fn rendered(study: Study, columns: usize, most: usize) -> String {
    let (column, columns) = (column(study), columns.min(COLUMNS_MAX));
    let mut text = String::new();
    for (index, (group, axes)) in groups(study).take(most).enumerate() {
        let blank = if index > 0 { "\n" } else { "" };
        let _ = writeln!(text, "{blank}{}", group.word());
        for axis in axes {
            let Some(name) = axis.name(study) else { continue };
            text.push_str(&row(&spec(axis, name.flag), name.help, column, columns));
        }
    }
    text
}

/// Where the second column begins.
fn column(study: Study) -> usize {
    let widths = AXES.iter().filter_map(|axis| Some(spec(axis, axis.flag(study)?).len() + 1));
    widths.filter(|&width| width <= COLUMN_MAX).max().unwrap_or(0)
}

/// `      --sizes <LIST|A..B>`.
fn spec(axis: &Axis, flag: &str) -> String {
    let short = axis.short.map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
    let value = if axis.value.is_empty() { String::new() } else { format!(" <{}>", axis.value) };
    format!("  {short}--{flag}{value}")
}

/// A flag and what it does, in two columns.
fn row(spec: &str, help: &str, column: usize, columns: usize) -> String {
    let mut text = spec.to_owned();
    let mut at = spec.len();
    let begin = |text: &mut String, at: &mut usize| {
        if *at + 1 > column {
            text.push('\n');
            *at = 0;
        }
        text.push_str(&" ".repeat(column - *at));
        *at = column;
    };
    begin(&mut text, &mut at);
    for (gap, piece) in pieces(help, columns.saturating_sub(column)) {
        let width = piece.chars().count();
        if at > column && at + gap.len() + width > columns {
            text.push('\n');
            at = 0;
            begin(&mut text, &mut at);
        } else if at > column {
            text.push_str(gap);
            at += gap.len();
        }
        text.push_str(piece);
        at += width;
    }
    text.push('\n');
    text
}

/// What a line can end behind, with what is before it on the same line: words, and a default as
/// a whole, where it has room.
fn pieces(help: &str, room: usize) -> Vec<(&'static str, &str)> {
    let (words, default) = match help.find("[default") {
        Some(at) => help.split_at(at),
        None => (help, ""),
    };
    let mut pieces: Vec<_> = words.split_whitespace().map(|word| (" ", word)).collect();
    if default.chars().count() > room {
        let middle = default.len() / 2;
        let comma = default[middle..].find(',').map_or(0, |at| middle + at + 1);
        let (first, second) = default.split_at(comma);
        pieces.extend([(" ", first), ("", second)]);
    } else if !default.is_empty() {
        pieces.push((" ", default));
    }
    pieces
}

// Command lines that the parser refuses: what the table of axes knows of a flag is said instead
// of what the parser would.

/// Words of commands that were renamed.
const RENAMED: [(&str, &str); 2] = [("primitives", "methods"), ("topologies", "networks")];

/// What is wrong with the words that were typed. What is no mistake (help), or one that the
/// parser knows best, is printed by it and ends the process.
pub(crate) fn misread(error: Error, typed: &[String]) -> Failure {
    let words: Vec<&str> = typed.iter().skip(1).map(String::as_str).collect();
    match known(&error, &words) {
        Some(message) => Failure::usage(message),
        None => printed(&error),
    }
}

/// The same behind the name of a plan of a study.
pub(crate) fn misread_plan(error: Error, study: Study) -> Failure {
    match known(&error, &["run", study.word()]) {
        Some(message) => Failure::usage(message),
        None => printed(&error),
    }
}

/// Has the parser print, and ends the process unless help could not be written.
#[expect(clippy::disallowed_methods, reason = "as the parser's own exit, which prints once more")]
fn printed(error: &Error) -> Failure {
    let written = error.print();
    if !error.use_stderr() {
        output::written_to_stdout(written);
    }
    match output::nothing_lost() {
        Err(lost) => lost,
        Ok(()) => std::process::exit(error.exit_code()),
    }
}

fn known(error: &Error, words: &[&str]) -> Option<String> {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match (error.kind(), words) {
        (ErrorKind::UnknownArgument, _) => {
            let flag = said(ContextKind::InvalidArg)?.strip_prefix("--")?;
            of_flag(flag.split('=').next().unwrap_or(flag), words)
        }
        (ErrorKind::MissingSubcommand, ["run", ..]) => Some(
            "run what? Name a study (net, file, write, copy, syscall, server), a plan or a \
             file.toml\n  start with: iolens run net --quick"
                .to_owned(),
        ),
        (ErrorKind::InvalidValue, ["list", ..]) => {
            let word = said(ContextKind::InvalidValue)?;
            let (_, now) = RENAMED.into_iter().find(|(old, _)| *old == word)?;
            Some(format!("`list {word}` is now `list {now}`"))
        }
        _ => None,
    }
}

/// What to write instead of a flag that a command does not have.
fn of_flag(flag: &str, words: &[&str]) -> Option<String> {
    let mark = |flag: &str| format!("--{flag}");
    match words {
        ["run", "--resume", run, ..] => Some(format!("run --resume is now: iolens resume {run}")),
        ["run", study, ..] if flag == "resume" && Study::of_run(study).is_some() => {
            Some("run --resume is now: iolens resume RUN".to_owned())
        }
        ["run", study, ..] if let Some(study) = Study::of_run(study) => {
            let answer = axes::elsewhere(study, flag, mark)?;
            Some(format!("{answer}\n  iolens run {study} --help"))
        }
        ["resume", ..] if axes::is_flag(flag) => Some(format!(
            "resume has no {}: a run continues with the plan it began with\n  iolens resume --help",
            mark(flag)
        )),
        ["run", ..] if axes::is_flag(flag) => {
            Some(format!("name the study first, then {}\n  iolens run net --{flag}", mark(flag)))
        }
        _ => {
            let mut command = &Args::command();
            for word in words {
                let Some(below) = command.find_subcommand(word) else { break };
                command = below;
            }
            let has = |flag: &str| command.get_arguments().any(|arg| arg.get_long() == Some(flag));
            let now = axes::renamed(flag, has)?;
            Some(format!("{} is now {}", mark(flag), mark(now)))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::{Args, command, flags_of};
    use crate::axes::{Kind, Place, Wishes};
    use crate::request;

    fn spec(study: Study) -> &'static StudySpec {
        StudySpec::of(study).expect("every study of run has an entry")
    }

    /// What a study prints.
    fn printed(study: Study, flag: &str) -> String {
        flags_of(study, [flag]).expect_err("help ends the parser").to_string()
    }

    #[test]
    fn the_help_of_every_study_keeps_to_its_budget() {
        for &study in Study::OF_RUN {
            for (flag, most) in [("-h", 45), ("--help", 100)] {
                let text = printed(study, flag);
                assert!(text.lines().count() <= most, "{study} {flag}: {text}");
                assert!(text.starts_with(spec(study).about), "{study} {flag}: {text}");
                for line in text.lines() {
                    assert!(line.chars().count() <= COLUMNS_MAX, "{study}: {line}");
                    assert!(!line.trim_start().starts_with("Of "), "{study}: {line}");
                }
            }
        }
    }

    #[test]
    fn the_help_of_a_study_has_its_flags_and_no_others() {
        for &study in Study::OF_RUN {
            let text = printed(study, "--help");
            for axis in AXES {
                let shown = |flag: &str| {
                    let behind = |at: usize| text[at..].chars().next();
                    let whole = |at: usize| behind(at).is_none_or(|c| c == ' ' || c == '\n');
                    let spec = format!("--{flag}");
                    text.match_indices(&spec).any(|(at, _)| {
                        let begins = text[..at].ends_with("      ") || text[..at].ends_with(", ");
                        begins && whole(at + spec.len())
                    })
                };
                for name in axis.names {
                    let own = AXES.iter().any(|axis| axis.flag(study) == Some(name.flag));
                    assert_eq!(shown(name.flag), own, "{study} --{}: {text}", name.flag);
                }
            }
            let short = printed(study, "-h");
            assert!(short.lines().all(|line| text.contains(line) || line.contains("Print help")));
        }
    }

    #[test]
    fn the_help_of_run_names_every_study_and_only_what_all_share() {
        let mut run = Args::command();
        let run = run.find_subcommand_mut("run").unwrap();
        let text = run.render_help().to_string();
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS_MAX), "{text}");
        for &study in Study::OF_RUN {
            assert!(text.contains(&format!("\n  {study} ")), "{study}: {text}");
        }
        for line in text.lines().filter(|line| line.contains("--") && line.starts_with("  ")) {
            let flag = line.split("--").nth(1).unwrap().split([' ', ',']).next().unwrap();
            let shared = |study: &&Study| AXES.iter().any(|axis| axis.flag(**study) == Some(flag));
            assert!(flag == "help" || Study::OF_RUN.iter().filter(shared).count() == 6, "{line}");
        }
    }

    /// Where a default in a help text is a value, the plan has it when nothing is stated.
    #[test]
    fn defaults_in_help_are_those_of_the_plans() {
        let stated = |study: Study, quick: bool| {
            let asked = Wishes { study: Some(study), quick, ..Wishes::default() };
            let plan = request::plan(request::complete(asked).unwrap(), 1, &|_| Ok(())).unwrap();
            request::wishes_of(&plan.plan, None)
        };
        let mut found = 0;
        for &study in Study::OF_RUN {
            for (quick, mark) in [(false, "[default: "), (true, "; --quick: ")] {
                let plan = stated(study, quick);
                for axis in AXES.iter().filter(|axis| axis.place == Place::Plan) {
                    let Some(name) = axis.name(study) else { continue };
                    let Some((_, default)) = name.help.split_once(mark) else { continue };
                    let default = default.split([';', ']']).next().unwrap();
                    let mut wishes = Wishes::default();
                    let is_value = (axis.set)(&mut wishes, default).is_ok();
                    let (said, has) = ((axis.stated)(&wishes), (axis.stated)(&plan));
                    // A family, or what is decided here.
                    let decided = ["all", "auto"].contains(&default);
                    if is_value && has.is_some() && !decided && axis.kind != Kind::Switch {
                        assert_eq!(said, has, "{study} --{}", name.flag);
                        found += 1;
                    }
                }
            }
        }
        assert!(found > 90, "{found}");
    }

    #[test]
    fn examples_can_be_planned() {
        for &study in Study::OF_RUN {
            let lines: Vec<&str> = spec(study).examples.lines().skip(1).collect();
            assert!(lines.len() > 1, "{study}");
            for line in lines {
                let words = shlex::split(line).unwrap();
                assert_eq!(words[..3], ["iolens", "run", study.word()]);
                let asked = flags_of(study, &words[3..]).unwrap();
                if !line.contains("--file ") {
                    let complete = request::complete(asked).unwrap();
                    request::plan(complete, 1, &|_| Ok(())).unwrap();
                }
            }
        }
    }

    #[test]
    fn the_commands_of_studies_are_consistent() {
        Study::OF_RUN.iter().for_each(|&study| command(study).debug_assert());
    }
}
