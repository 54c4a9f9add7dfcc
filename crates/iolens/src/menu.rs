//! The questions of the menu and what each answer adds to a command line. Every choice is a
//! flag: whoever has seen the command needs the menu no more. What works on this machine is
//! told to it, so that it can be tested anywhere.

mod prompt;

use iolens_engine::stage;
use iolens_model::axes::{Study, Topology};
use iolens_model::command_line;
use iolens_programs::spawn;
use iolens_store::Store;

use self::prompt::{Picked, Prompt};
use crate::axes::Wishes;
use crate::failure::{Failure, unusable};
use crate::{output, places, request, values};

/// Where messages can travel here, or why not.
type Stands = Vec<(Topology, Result<(), String>)>;

/// One question.
#[derive(Debug, Clone)]
struct Question {
    text: &'static str,
    answer: Answer,
}

/// How it is answered.
#[derive(Debug, Clone)]
enum Answer {
    /// By one of these; the first that is not refused is what Enter takes.
    Choice(Vec<Choice>),
    /// By a value that is typed.
    Value(Value),
}

/// One of several answers.
#[derive(Debug, Clone)]
struct Choice {
    label: String,
    /// What it adds to the command line.
    adds: Vec<String>,
    /// Why it cannot be chosen here.
    refused: Option<String>,
}

/// A value of a flag.
#[derive(Debug, Clone, Copy)]
struct Value {
    flag: &'static str,
    /// What Enter alone takes.
    default: &'static str,
    /// What is wrong with it.
    check: fn(&str) -> Result<(), String>,
}

impl Choice {
    fn new(label: impl Into<String>, adds: &[&str]) -> Choice {
        let adds = adds.iter().map(|&word| word.to_owned()).collect();
        Choice { label: label.into(), adds, refused: None }
    }
}

impl Value {
    /// What an answer adds to the command line: the default where nothing was typed.
    ///
    /// Errors: what is wrong with it, in the words of the command line.
    fn adds(&self, typed: &str) -> Result<Vec<String>, String> {
        let value = if typed.trim().is_empty() { self.default } else { typed.trim() };
        (self.check)(value).map(|()| vec![self.flag.to_owned(), value.to_owned()])
    }
}

/// The question behind these answers, each of which is what it adds to the command line; none
/// where the command is whole.
fn next(stands: &Stands, answers: &[Vec<String>]) -> Option<Question> {
    let Some((what, rest)) = answers.split_first() else { return Some(what_to_know()) };
    let words: Vec<&str> = what.iter().map(String::as_str).collect();
    let mut questions = match words.as_slice() {
        ["ask"] => of_a_message(stands),
        ["run", study] => match Study::of_run(study) {
            Some(study @ (Study::Net | Study::Server)) => {
                vec![place(stands, study), how_long(study)]
            }
            Some(study) => vec![how_long(study)],
            None => Vec::new(),
        },
        _ => Vec::new(),
    };
    (rest.len() < questions.len()).then(|| questions.swap_remove(rest.len()))
}

fn what_to_know() -> Question {
    let choices = vec![
        Choice::new("sending over sockets: which way is fastest at each size", &["run", "net"]),
        Choice::new("a message of mine: the cheapest way to send it", &["ask"]),
        Choice::new("reading a file: which way is fastest", &["run", "file"]),
        Choice::new("writing a file: which way, and what fsync costs", &["run", "write"]),
        Choice::new("copying a file: which way, beside dd and cp", &["run", "copy"]),
        Choice::new("servers: which model answers a request cheapest", &["run", "server"]),
        Choice::new("single system calls: what a crossing costs", &["run", "syscall"]),
        Choice::new("what can be measured on this machine at all", &["doctor"]),
    ];
    Question { text: "What do you want to know?", answer: Answer::Choice(choices) }
}

fn of_a_message(stands: &Stands) -> Vec<Question> {
    let value = |text, flag, default, check| Question {
        text,
        answer: Answer::Value(Value { flag, default, check }),
    };
    vec![
        value("How large is a message?", "--size", "1KiB", |text| values::size(text).map(drop)),
        value("How many connections at once?", "--connections", "1", |text| {
            values::asked_connections(text).map(drop)
        }),
        value("How many separate buffers make up the message?", "--fields", "8", |text| {
            values::field_count(text).map(drop)
        }),
        Question {
            text: "One-way stream, or request and response?",
            answer: Answer::Choice(vec![
                Choice::new("one message after another", &["--mode", "stream"]),
                Choice::new("a response to each before the next", &["--mode", "rr"]),
            ]),
        },
        placed("--network", stands, &|topology| topology.has_receiver()),
    ]
}

fn place(stands: &Stands, study: Study) -> Question {
    placed("--network", stands, &|topology| study == Study::Net || topology.has_receiver())
}

/// Where the ends stand, the first that works being what Enter takes.
fn placed(flag: &str, stands: &Stands, takes: &dyn Fn(Topology) -> bool) -> Question {
    let choice = |(topology, works): &(Topology, Result<(), String>)| {
        let label = match topology {
            Topology::Veth => "veth: two network namespaces, made for it and removed",
            Topology::Loopback => "loopback: this machine alone, no set-up",
            Topology::Sink => {
                "sink: a device that drops everything, where zero-copy copies nothing"
            }
            Topology::Host => "peer: another machine, reached by --peer",
        };
        let mut choice = Choice::new(label, &[flag, topology.word()]);
        if *topology == Topology::Sink {
            // Each message is one datagram, and a zero-copy one may lie on 17 pages.
            let fitting = ["--sizes", "1KiB..64000", "--fields", "1"];
            choice.adds.extend(fitting.map(str::to_owned));
        }
        let first = |why: &String| why.lines().next().unwrap_or_default().to_owned();
        Choice { refused: works.as_ref().err().map(first), ..choice }
    };
    let fits = stands.iter().filter(|(topology, _)| takes(*topology));
    Question { text: "Where?", answer: Answer::Choice(fits.map(choice).collect()) }
}

/// How long, with what each takes at most.
fn how_long(study: Study) -> Question {
    let at_most = |quick: bool| {
        let asked = request::complete(Wishes { study: Some(study), quick, ..Wishes::default() });
        let budget = asked.ok().and_then(|wishes| wishes.budget);
        budget.map_or_else(String::new, |budget| format!(", {budget} at most"))
    };
    let long = match at_most(false).is_empty() {
        // Where no budget is stated, how long it takes is how much there is to do.
        true => Choice::new("long: intervals down to ±1%", &["--precision", "1%"]),
        false => Choice::new(
            "long: intervals down to ±1%, 1 h at most",
            &["--precision", "1%", "--budget", "1h"],
        ),
    };
    let choices = vec![
        Choice::new(format!("quick: a first look, no verdicts{}", at_most(true)), &["--quick"]),
        Choice::new(format!("normal: verdicts with intervals{}", at_most(false)), &[]),
        long,
    ];
    Question { text: "How long?", answer: Answer::Choice(choices) }
}

/// Topologies in the order in which they are offered.
const OFFERED: [Topology; 3] = [Topology::Veth, Topology::Loopback, Topology::Sink];

/// Asks, and returns the command line without the program; none where who was asked left.
///
/// Errors: an exit code of 130 where that was by Ctrl-C.
pub(crate) fn asked() -> Result<Option<Vec<String>>, Failure> {
    let mut prompt = Prompt::on_this_terminal();
    let stands = stands();
    let mut answers: Vec<Vec<String>> = Vec::new();
    loop {
        let question = next(&stands, &answers);
        let is_last = question.is_none();
        let line = answers.concat();
        let question = question.unwrap_or_else(|| {
            prompt.say(&format!("\n  iolens {}\n", command_line::join(&line)));
            run_it()
        });
        match answered(&mut prompt, &question)? {
            Picked::Answer(adds) if is_last => return Ok((!adds.is_empty()).then_some(line)),
            Picked::Answer(adds) => answers.push(adds),
            Picked::Back if answers.pop().is_some() => {
                // The command that was shown, and the answer before it.
                for _ in 0..=usize::from(is_last) {
                    prompt.take_back().map_err(|e| cannot_ask(&e))?;
                }
            }
            Picked::Back | Picked::Leave => return Ok(None),
        }
    }
}

fn run_it() -> Question {
    let answers = vec![Choice::new("yes", &["yes"]), Choice::new("no", &[])];
    Question { text: "Run it?", answer: Answer::Choice(answers) }
}

/// Offers to open the page of the last run, where there is a display to show it on.
pub(crate) fn offer_page(line: &[String]) -> Result<(), Failure> {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if !has_display || line.first().is_none_or(|word| word != "run") {
        return Ok(());
    }
    let database = places::existing_database(None)?;
    let store = Store::open_read_only(&database)?;
    let id = store.find("last")?;
    let page = places::page(&database, &id);
    if page.exists() && output::ask("Open the report?") {
        spawn::opened(&page).map_err(Failure::unusable)?;
    }
    Ok(())
}

fn stands() -> Stands {
    OFFERED.into_iter().map(|topology| (topology, stage::available(topology))).collect()
}

fn answered(prompt: &mut Prompt, question: &Question) -> Result<Picked, Failure> {
    let asked = match &question.answer {
        Answer::Choice(choices) => prompt.choose(question.text, choices),
        Answer::Value(value) => prompt.value(question.text, value),
    };
    asked.map_err(|e| match e.kind() {
        std::io::ErrorKind::Interrupted => Failure::interrupted("interrupted"),
        _ => cannot_ask(&e),
    })
}

fn cannot_ask(error: &std::io::Error) -> Failure {
    unusable!("cannot ask on this terminal: {error}")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command, Run};

    fn stands(veth: Result<(), &str>) -> Stands {
        let veth = veth.map_err(str::to_owned);
        vec![(Topology::Veth, veth.clone()), (Topology::Loopback, Ok(())), (Topology::Sink, veth)]
    }

    /// Every command line that the menu can end with, and how many answers it took.
    fn paths(stands: &Stands, answers: &[Vec<String>], found: &mut Vec<Vec<Vec<String>>>) {
        let Some(question) = next(stands, answers) else {
            found.push(answers.to_vec());
            return;
        };
        let adds: Vec<Vec<String>> = match question.answer {
            Answer::Choice(choices) => {
                assert!(choices.iter().any(|choice| choice.refused.is_none()));
                let can = choices.into_iter().filter(|choice| choice.refused.is_none());
                can.map(|choice| choice.adds).collect()
            }
            Answer::Value(value) => vec![value.adds("").unwrap()],
        };
        for adds in adds {
            paths(stands, &[answers, &[adds]].concat(), found);
        }
    }

    #[test]
    fn every_path_ends_in_a_command_that_the_parser_takes_and_that_can_be_planned() {
        for veth in [Ok(()), Err("not permitted\n  advice")] {
            let stands = stands(veth);
            let mut found = Vec::new();
            paths(&stands, &[], &mut found);
            assert!(found.len() > 15, "{found:?}");
            let mut planned_paths = 0;
            for answers in found {
                // One key each, the last to say go.
                assert!(answers.len() + 1 < 10, "{answers:?}");
                let line = answers.concat();
                let words = std::iter::once("iolens".to_owned()).chain(line.iter().cloned());
                let args = Args::try_parse_from(words).unwrap_or_else(|e| panic!("{line:?}: {e}"));
                if let Command::Run(Run::Study(run)) = args.command {
                    let asked = request::complete(*run).unwrap();
                    let available = |topology| {
                        let known = stands.iter().find(|(known, _)| *known == topology);
                        known.map_or(Ok(()), |(_, works)| works.clone())
                    };
                    let planned = request::plan(asked, 1, &available);
                    assert!(planned.is_ok(), "{line:?}: {planned:?}");
                    planned_paths += 1;
                }
            }
            assert!(planned_paths > 0);
        }
    }

    #[test]
    fn what_does_not_work_here_is_shown_with_the_reason_and_not_taken() {
        let answers = [vec!["run".to_owned(), "net".to_owned()]];
        let Some(Question { answer: Answer::Choice(choices), .. }) =
            next(&stands(Err("not permitted\n  advice")), &answers)
        else {
            panic!("no choice");
        };
        assert_eq!(choices[0].refused.as_deref(), Some("not permitted"));
        assert_eq!((choices[1].refused.as_deref(), choices.len()), (None, 3));
        assert!(next(&stands(Ok(())), &[vec!["doctor".to_owned()]]).is_none());
    }

    #[test]
    fn a_value_that_cannot_be_is_answered_as_on_the_command_line() {
        let Some(Question { answer: Answer::Value(value), .. }) =
            next(&stands(Ok(())), &[vec!["ask".to_owned()]])
        else {
            panic!("no value");
        };
        assert_eq!(value.adds(" 12KiB ").unwrap(), ["--size", "12KiB"]);
        assert!(value.adds("12 parsecs").unwrap_err().contains("is not a size"));
    }

    #[test]
    fn every_study_can_be_asked_for() {
        let Answer::Choice(choices) = what_to_know().answer else { panic!("a choice") };
        for study in Study::OF_RUN {
            let words = ["run".to_owned(), study.word().to_owned()];
            assert!(choices.iter().any(|choice| choice.adds == words), "{study}");
        }
    }
}
