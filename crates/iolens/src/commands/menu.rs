//! `iolens` alone on a terminal: from "what do you want to know" to a command line, which is
//! shown, and run if wanted. The questions are in [`crate::menu`].

use iolens_engine::{opened, stage};
use iolens_model::axes::Topology;
use iolens_store::Store;

use self::prompt::{Picked, Prompt};
use crate::failure::{Failure, INTERRUPTED};
use crate::menu::{self, Answer, Choice, Question, Stands};
use crate::{output, places};

mod prompt;

/// Topologies in the order in which they are offered.
const OFFERED: [Topology; 3] = [Topology::Veth, Topology::Loopback, Topology::Sink];

/// Asks, and returns the command line without the program; none where who was asked left.
///
/// Errors: an exit code of 130 where that was by Ctrl-C.
pub(crate) fn asked() -> Result<Option<Vec<String>>, Failure> {
    let prompt = Prompt::on_this_terminal();
    let stands = stands();
    let mut answers: Vec<Vec<String>> = Vec::new();
    while let Some(question) = menu::next(&stands, &answers) {
        match answered(&prompt, &question)? {
            Picked::Answer(adds) => answers.push(adds),
            Picked::Back if answers.pop().is_some() => {}
            Picked::Back | Picked::Leave => return Ok(None),
        }
    }
    let line = menu::line(&answers);
    let words = line.iter().map(String::as_str);
    let command = shlex::try_join(words).unwrap_or_else(|_| line.join(" "));
    prompt.say(&format!("\n  iolens {command}\n"));
    let answers = vec![Choice::new("yes", &["yes"]), Choice::new("no, leave it at that", &[])];
    let run = Question { text: "Run it?", answer: Answer::Choice(answers) };
    match answered(&prompt, &run)? {
        Picked::Answer(adds) if !adds.is_empty() => Ok(Some(line)),
        _ => Ok(None),
    }
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
    let store = Store::open_read_only(&database).map_err(Failure::unusable)?;
    let id = store.find("last").map_err(Failure::unusable)?;
    let page = places::page(&database, &id);
    if page.exists() && output::ask("Open the report?") {
        opened(&page).map_err(Failure::unusable)?;
    }
    Ok(())
}

fn stands() -> Stands {
    OFFERED.into_iter().map(|topology| (topology, stage::available(topology))).collect()
}

fn answered(prompt: &Prompt, question: &Question) -> Result<Picked, Failure> {
    let asked = match &question.answer {
        Answer::Choice(choices) => prompt.choose(question.text, choices),
        Answer::Value(value) => prompt.value(question.text, value),
    };
    asked.map_err(|e| match e.kind() {
        std::io::ErrorKind::Interrupted => {
            Failure { code: INTERRUPTED, message: "interrupted".to_owned() }
        }
        _ => Failure::unusable(format!("cannot ask on this terminal: {e}")),
    })
}
