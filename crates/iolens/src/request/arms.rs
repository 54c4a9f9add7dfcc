//! The arms of a plan and its baseline: what their words mean in a study.

use iolens_model::axes::Study;
use iolens_model::external::External;

use crate::axes::Wishes;
use crate::failure::{Failure, usage};
use crate::studies::net::known_receiver;
use crate::studies::{ArmChoice, StudySpec, stated};
use crate::values::server::lacking;
use crate::values::{distinct, unknown};

/// Selects everything that can be compared.
const ALL: &str = "all";

/// What a word of textbooks is called here.
fn textbook(spec: &StudySpec, word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase().replace('_', "-");
    let found = spec.textbook.iter().find(|(theirs, _)| *theirs == word);
    found.map(|(_, ours)| *ours)
}

/// The wishes with our words for those of textbooks, and a note for each.
pub(super) fn in_our_words(spec: &StudySpec, mut asked: Wishes) -> (Wishes, Vec<String>) {
    let mut notes = Vec::new();
    let listed = asked.methods.iter_mut().flatten();
    for word in listed.chain(asked.baseline.iter_mut()) {
        let Some(ours) = textbook(spec, word) else { continue };
        let note = format!("{word} is called {ours} here");
        if !notes.contains(&note) {
            notes.push(note);
        }
        ours.clone_into(word);
    }
    (asked, notes)
}

impl ArmChoice {
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

/// Whether there is such an id under a field of a plan file.
pub(super) fn known(study: Study, field: &str, id: &str) -> Result<(), String> {
    let Some(spec) = StudySpec::of(study) else { return Ok(()) };
    // What is none of ours may stand under `external`, which is known when all of the plan is.
    let may_be_program =
        spec.programs.as_ref().is_some_and(|own| own.are_listed || field == "baseline");
    if textbook(spec, id).is_some() || may_be_program {
        return Ok(());
    }
    let choice = (spec.arms)();
    match field {
        "receivers" => known_receiver(id).map(drop),
        "methods" if choice.group(id).is_some() => Ok(()),
        _ => choice.arm(id, &[]).map(drop),
    }
}

/// The ids that the words of the methods stand for.
pub(super) fn listed(choice: &ArmChoice, asked: &Wishes) -> Result<Vec<String>, Failure> {
    let mut listed = Vec::new();
    for word in stated(&asked.methods, "methods")? {
        match choice.group(&word) {
            Some(ids) => listed.extend(ids),
            None => listed.push(choice.arm(&word, &asked.external).map_err(Failure::usage)?),
        }
    }
    Ok(listed)
}

/// The arms and the baseline, which is always measured and comes first; so is every program that
/// is given with `--external`. A single arm is its own baseline.
pub(super) fn of(spec: &StudySpec, asked: &Wishes) -> Result<(Vec<String>, String), Failure> {
    let choice = (spec.arms)();
    check_external(spec, asked, &choice)?;
    let arm = |id: &str| choice.arm(id, &asked.external).map_err(Failure::usage);
    let mut listed = listed(&choice, asked)?;
    listed.extend(asked.external.iter().map(|program| program.name.clone()));
    let listed = distinct(listed);
    let baseline = match (&asked.baseline, &listed[..]) {
        (Some(id), _) => arm(id)?,
        (None, [single]) => single.clone(),
        (None, _) => choice.baseline.to_owned(),
    };
    let arms = distinct([vec![baseline.clone()], listed].concat());
    match (choice.control)(&baseline).filter(|_| !choice.is_alone || arms.len() > 1) {
        None => Ok((arms, baseline)),
        Some(why) => Err(usage!(
            "`{baseline}` cannot be the baseline: it {why}\n  name one that {} with --baseline, \
             such as {}",
            choice.does,
            choice.baseline
        )),
    }
}

/// Refuses programs that a study cannot have as arms: of a name that is one already, or
/// that are not told what they must be.
fn check_external(spec: &StudySpec, asked: &Wishes, choice: &ArmChoice) -> Result<(), Failure> {
    let external = &asked.external[..];
    let placeholders = spec.programs.as_ref().map_or(&[][..], |programs| (programs.told)(asked));
    for (index, External { name, argv }) in external.iter().enumerate() {
        if (choice.find)(name).is_some() {
            return Err(usage!(
                "a program cannot be named {name}: that is an arm already\n  take another name"
            ));
        }
        if external[..index].iter().any(|other| other.name == *name) {
            return Err(usage!("two programs are named {name}\n  give each a name of its own"));
        }
        if let Some(key) = lacking(argv, placeholders) {
            return Err(usage!(
                "the command of {name} lacks {key}\n  write it where the program takes it, as in 'prog {}'",
                placeholders.join(" ")
            ));
        }
    }
    Ok(())
}
