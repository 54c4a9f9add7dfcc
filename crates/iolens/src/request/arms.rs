//! The arms of a plan and its baseline: what their words mean in a study.

use iolens_engine::calls::{self, CALLS};
use iolens_engine::files::copy::copiers;
use iolens_engine::files::{read, write};
use iolens_engine::registry;
use iolens_engine::server::models::{self, MODELS};
use iolens_model::axes::Study;
use iolens_model::call::CallKind;
use iolens_model::copy::External;
use iolens_model::family::Family;
use iolens_model::plan::Schedule;

use super::{known_receiver, stated};
use crate::axes::Wishes;
use crate::failure::{Failure, usage};
use crate::values::server::{OF_CALLERS, OF_COPIES, OF_READERS, OF_SENDERS, OF_SERVERS, lacking};
use crate::values::{distinct, unknown};

/// Selects everything that can be compared.
const ALL: &str = "all";

/// Words of textbooks for what has a name of its own here.
const TEXTBOOK: [(Study, &str, &str); 8] = [
    (Study::Net, "two-copy", "send_staged"),
    (Study::Net, "one-copy", "sendmsg_iov"),
    (Study::Net, "zero-copy", "sendmsg_zerocopy"),
    (Study::Net, "a1", "send_staged"),
    (Study::Net, "a2", "sendmsg_iov"),
    (Study::Net, "a3", "sendmsg_zerocopy"),
    (Study::Server, "single", "iterative"),
    (Study::Server, "threaded", "thread_per_connection"),
];

/// What a word of textbooks is called here.
pub(super) fn textbook(study: Study, word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase().replace('_', "-");
    let found = TEXTBOOK.iter().find(|(of, theirs, _)| *of == study && *theirs == word);
    found.map(|(_, _, ours)| *ours)
}

/// The wishes with our words for those of textbooks, and a note for each.
pub(super) fn in_our_words(mut asked: Wishes) -> (Wishes, Vec<String>) {
    let study = asked.study.unwrap_or(Study::Net);
    let mut notes = Vec::new();
    let listed = asked.methods.iter_mut().flatten();
    for word in listed.chain(asked.baseline.iter_mut()) {
        let Some(ours) = textbook(study, word) else { continue };
        let note = format!("{word} is called {ours} here");
        if !notes.contains(&note) {
            notes.push(note);
        }
        ours.clone_into(word);
    }
    (asked, notes)
}

/// What can be an arm of a study.
struct Choice {
    /// What messages call one.
    what: &'static str,
    /// The baseline, unless another one is named.
    baseline: &'static str,
    /// The ids that are shown.
    ids: Vec<&'static str>,
    /// An id, shown or not.
    find: fn(&str) -> Option<&'static str>,
    /// The ids that a word stands for which is none.
    group: fn(&str) -> Option<Vec<&'static str>>,
    /// Why an arm measures nothing that others could be compared with.
    control: fn(&str) -> Option<&'static str>,
    /// Where all of them are, and what else is taken.
    advice: String,
}

impl Choice {
    fn of(study: Study) -> Choice {
        let ungrouped = Choice {
            what: "",
            baseline: "",
            ids: Vec::new(),
            find: |_| None,
            group: |_| None,
            control: |_| None,
            advice: format!("`iolens list engines` shows all of them; --engines takes {ALL} too"),
        };
        match study {
            Study::Net => Choice {
                what: "method",
                baseline: "send_staged",
                ids: shown_methods(),
                find: |id| registry::find(id).map(|entry| entry.id),
                group: |word| Family::find(word).map(of_family),
                control: |id| {
                    registry::find(id).filter(|entry| entry.control).map(|_| "sends nothing")
                },
                advice: families(),
            },
            Study::Ab => ungrouped,
            Study::Syscall => Choice {
                what: "call",
                baseline: "getppid",
                ids: CALLS.iter().map(|entry| entry.id).collect(),
                find: |id| calls::find(id).map(|entry| entry.id),
                group: |word| CallKind::from_word(word).map(of_kind),
                control: |id| {
                    calls::find(id).filter(|call| call.control).map(|_| "does not enter the kernel")
                },
                advice: kinds(),
            },
            Study::File => Choice {
                what: "engine that reads",
                baseline: "read",
                ids: read::engines::ENGINES.iter().map(|entry| entry.id).collect(),
                find: |id| read::engines::find(id).map(|entry| entry.id),
                ..ungrouped
            },
            Study::Write => Choice {
                what: "engine that writes",
                baseline: "write",
                ids: write::engines::ENGINES.iter().map(|entry| entry.id).collect(),
                find: |id| write::engines::find(id).map(|entry| entry.id),
                ..ungrouped
            },
            Study::Copy => Choice {
                what: "engine or program",
                // One of ours, so that starting a program is in no ratio of engines.
                baseline: "read_write",
                ids: copiers::built_in_ids().collect(),
                find: |id| copiers::built_in_ids().find(|known| *known == id),
                control: |id| copiers::is_control(id).then_some("moves no bytes"),
                advice: format!("{}, and --external adds a program", ungrouped.advice),
                ..ungrouped
            },
            Study::Server => Choice {
                what: "model",
                baseline: "epoll_lt",
                ids: MODELS.iter().map(|entry| entry.id).collect(),
                find: |id| models::find(id).map(|entry| entry.id),
                advice: format!(
                    "{LISTED_MODELS}; --models takes all of them too, and --external adds a program"
                ),
                ..ungrouped
            },
        }
    }

    /// An arm, or the words that say what there is.
    fn arm(&self, id: &str, external: &[External]) -> Result<String, String> {
        let is_external = external.iter().any(|program| program.name == id);
        match (self.find)(id) {
            None if !is_external => Err(unknown(self.what, id, &self.ids, &self.advice)),
            _ => Ok(id.to_owned()),
        }
    }

    /// The ids that a word stands for.
    fn group(&self, word: &str) -> Option<Vec<String>> {
        let ids = if word == ALL { self.ids.clone() } else { (self.group)(word)? };
        Some(ids.into_iter().map(str::to_owned).collect())
    }
}

/// Those that are shown, by family.
fn shown_methods() -> Vec<&'static str> {
    Family::ALL.into_iter().flat_map(of_family).collect()
}

fn of_family(family: Family) -> Vec<&'static str> {
    registry::of_family(family).map(|entry| entry.id).collect()
}

fn of_kind(kind: CallKind) -> Vec<&'static str> {
    CALLS.iter().filter(|entry| entry.kind == kind).map(|entry| entry.id).collect()
}

/// Where all of them are.
const LISTED: &str = "`iolens list methods` shows all of them";
const LISTED_MODELS: &str = "`iolens list models` shows all of them";

fn families() -> String {
    let filled = Family::ALL.into_iter().filter(|&family| !of_family(family).is_empty());
    let words: Vec<&str> = filled.map(Family::id).collect();
    format!("{LISTED}; --methods takes families too: {}, {ALL}", words.join(", "))
}

fn kinds() -> String {
    let words: Vec<&str> = CallKind::ALL.iter().map(|kind| kind.word()).collect();
    format!(
        "`iolens list calls` shows all of them; --calls takes kinds too: {}, {ALL}",
        words.join(", ")
    )
}

/// The method of an id, where a command takes one.
pub(crate) fn one_primitive(id: &str) -> Result<&'static registry::Entry, String> {
    registry::find(id).ok_or_else(|| unknown("method", id, &shown_methods(), LISTED))
}

/// The model of an id, where a command takes one.
pub(crate) fn known_model(id: &str) -> Result<&'static models::Entry, String> {
    let known = || Choice::of(Study::Server).ids;
    models::find(id).ok_or_else(|| unknown("model", id, &known(), LISTED_MODELS))
}

/// Whether there is such an id under a field of a plan file.
pub(super) fn known(study: Study, field: &str, id: &str) -> Result<(), String> {
    // What is none of ours may stand under `external`, which is known when all of the plan is.
    let may_be_program = match study {
        Study::Copy | Study::Server => true,
        Study::Net | Study::File | Study::Syscall => field == "baseline",
        Study::Write | Study::Ab => false,
    };
    if textbook(study, id).is_some() || may_be_program {
        return Ok(());
    }
    let choice = Choice::of(study);
    match field {
        "receivers" => known_receiver(id).map(drop),
        "methods" if choice.group(id).is_some() => Ok(()),
        _ => choice.arm(id, &[]).map(drop),
    }
}

/// The arms and the baseline, which is always measured and comes first; so is every program that
/// is given with `--external`. A single arm is its own baseline.
pub(super) fn of(study: Study, asked: &Wishes) -> Result<(Vec<String>, String), Failure> {
    let choice = Choice::of(study);
    check_external(study, asked, &choice)?;
    let arm = |id: &str| choice.arm(id, &asked.external).map_err(Failure::usage);
    let mut listed = Vec::new();
    for word in stated(&asked.methods, "methods")? {
        match choice.group(&word) {
            Some(ids) => listed.extend(ids),
            None => listed.push(arm(&word)?),
        }
    }
    listed.extend(asked.external.iter().map(|program| program.name.clone()));
    let listed = distinct(listed);
    let baseline = match (&asked.baseline, &listed[..]) {
        (Some(id), _) => arm(id)?,
        (None, [single]) => single.clone(),
        (None, _) => choice.baseline.to_owned(),
    };
    let arms = distinct([vec![baseline.clone()], listed].concat());
    // Calls and copies that are measured alone are compared with nothing.
    let why = (choice.control)(&baseline).filter(|_| study == Study::Net || arms.len() > 1);
    match why {
        None => Ok((arms, baseline)),
        Some(why) => Err(Failure::usage(refused_baseline(study, &baseline, why))),
    }
}

fn refused_baseline(study: Study, id: &str, why: &str) -> String {
    let (is, does) = match study {
        Study::Copy => (why.to_owned(), "does"),
        Study::Net => (format!("is a control, which {why}"), "sends"),
        _ => (format!("is a control, which {why}"), "does"),
    };
    format!(
        "`{id}` cannot be the baseline: it {is}\n  name one that {does} with --baseline, such as {}",
        Choice::of(study).baseline
    )
}

/// Refuses programs of the user's where arms do not take turns.
pub(super) fn check_turns(asked: &Wishes, schedule: &Schedule) -> Result<(), Failure> {
    match asked.external.first().filter(|_| !schedule.is_sliced()) {
        None => Ok(()),
        Some(program) => Err(usage!(
            "--external {} does not apply to --sequential-time and --sequential-messages: programs \
             take turns\n  leave them out",
            program.name
        )),
    }
}

/// Refuses programs that a study cannot have as arms: of a name that is one already, or
/// that are not told what they must be.
fn check_external(study: Study, asked: &Wishes, choice: &Choice) -> Result<(), Failure> {
    let external = &asked.external[..];
    let placeholders = match study {
        Study::Copy => OF_COPIES,
        Study::Net => OF_SENDERS,
        Study::File => OF_READERS,
        Study::Syscall if asked.sizes.is_some() => OF_CALLERS,
        Study::Syscall => &[],
        _ => OF_SERVERS,
    };
    for (index, External { name, argv }) in external.iter().enumerate() {
        if (choice.find)(name).is_some() {
            return Err(usage!(
                "--external cannot be named {name}: that is an arm already\n  take another name"
            ));
        }
        if external[..index].iter().any(|other| other.name == *name) {
            return Err(usage!("--external {name} is there twice"));
        }
        if let Some(key) = lacking(argv, placeholders) {
            return Err(usage!(
                "--external {name} lacks {key}, which this study tells its programs\n  write it \
                 into the command, as in {name}='prog {}'",
                placeholders.join(" ")
            ));
        }
    }
    Ok(())
}
