//! A plan of the study `syscall`.

use iolens_engine::calls::{self, CALLS};
use iolens_model::call::CallKind;
use iolens_model::plan::{Axes, SyscallAxes};

use super::{ALL, Chosen, Request, schedule, stated};
use crate::axes::Wishes;
use crate::failure::Failure;
use crate::values::unknown;

/// The baseline of the study, unless another one is named.
const BASELINE: &str = "getppid";

/// The plan of these wishes.
pub(super) fn plan(asked: Wishes, seed: u64) -> Result<Request, Failure> {
    let (primitives, baseline) = arms(&asked)?;
    let in_a_row = stated(asked.bursts.clone(), "bursts")?;
    let schedule = schedule(&asked);
    if !schedule.is_sliced() && in_a_row.iter().any(Option::is_some) && asked.bursts.is_some() {
        return Err(Failure::usage(
            "--bursts does not apply to --sequential-time and --sequential-messages, which have no \
             slices\n  leave one of them out, or use --bursts full",
        ));
    }
    let axes = Axes::Syscall(SyscallAxes { in_a_row });
    let chosen = Chosen { axes, primitives, baseline, sizes: Vec::new(), schedule };
    Ok(Request { plan: chosen.plan(&asked, seed)?, name: asked.name, notes: Vec::new() })
}

/// What a plan states of these axes.
pub(super) fn wishes(syscall: &SyscallAxes) -> Wishes {
    Wishes { bursts: Some(syscall.in_a_row.clone()), ..Wishes::default() }
}

/// The calls and the baseline, which is always measured.
fn arms(asked: &Wishes) -> Result<(Vec<String>, String), Failure> {
    let listed = selected(&stated(asked.methods.clone(), "calls")?)?;
    let baseline = match (&asked.baseline, &listed[..]) {
        (Some(id), _) => id.clone(),
        (None, [single]) => single.clone(),
        (None, _) => BASELINE.to_owned(),
    };
    let entry = known_call(&baseline).map_err(Failure::usage)?;
    if entry.control && listed.len() > 1 {
        return Err(Failure::usage(format!(
            "`{baseline}` cannot be the baseline: it is a control, which does not enter the \
             kernel\n  name one that does with --baseline, such as {BASELINE}"
        )));
    }
    let others = listed.into_iter().filter(|id| *id != baseline);
    Ok((std::iter::once(baseline.clone()).chain(others).collect(), baseline))
}

/// The calls of a list of ids and kinds, each once; a kind stands for all of
/// it, `all` for every call.
fn selected(words: &[String]) -> Result<Vec<String>, Failure> {
    let mut ids: Vec<String> = Vec::new();
    for word in words {
        let of = |wanted: &dyn Fn(&calls::Entry) -> bool| -> Vec<String> {
            let found = CALLS.iter().filter(|entry| wanted(entry));
            found.map(|entry| entry.id.to_owned()).collect()
        };
        let found = match CallKind::from_word(word) {
            _ if word == ALL => of(&|_| true),
            Some(kind) => of(&|entry| entry.kind == kind),
            None => vec![known_call(word).map_err(Failure::usage)?.id.to_owned()],
        };
        let new: Vec<String> = found.into_iter().filter(|id| !ids.contains(id)).collect();
        ids.extend(new);
    }
    Ok(ids)
}

fn known_call(id: &str) -> Result<&'static calls::Entry, String> {
    calls::find(id).ok_or_else(|| {
        let known: Vec<&str> = CALLS.iter().map(|entry| entry.id).collect();
        let kinds: Vec<&str> = CallKind::ALL.iter().map(|kind| kind.word()).collect();
        let hint = format!(
            "`iolens list calls` shows all of them; --calls takes kinds too: {}, {ALL}",
            kinds.join(", ")
        );
        unknown("call", id, &known, &hint)
    })
}

/// Whether there is such an id under a field.
pub(super) fn known(field: &str, id: &str) -> Result<(), String> {
    match field {
        "methods" if id == ALL || CallKind::from_word(id).is_some() => Ok(()),
        "methods" | "baseline" => known_call(id).map(|_| ()),
        // Said of the key, whatever stands under it.
        _ => Ok(()),
    }
}
