//! `iolens` alone on a terminal: from "what do you want to know" to a command line, which is
//! shown, and run if wanted. The questions are in [`crate::menu`].

use iolens_engine::{opened, stage};
use iolens_model::axes::Topology;
use iolens_model::shell;
use iolens_store::Store;

use self::prompt::{Picked, Prompt};
use crate::failure::{Failure, unusable};
use crate::menu::{self, Answer, Choice, Question, Stands};
use crate::{output, places};

mod prompt;

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
        let question = menu::next(&stands, &answers);
        let is_last = question.is_none();
        let line = menu::line(&answers);
        let question = question.unwrap_or_else(|| {
            prompt.say(&format!("\n  iolens {}\n", shell::join(&line)));
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
    let answers = vec![Choice::new("yes", &["yes"]), Choice::new("no, leave it at that", &[])];
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
        opened(&page).map_err(Failure::unusable)?;
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
