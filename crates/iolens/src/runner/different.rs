//! Programs that print or compute different things: they are not compared, and the first
//! difference is shown.

use iolens_model::ab::{AB_OUTPUT_START_BYTES, AbArm, AbAxes, AbMode};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_programs::protocol::quoted;

use crate::failure::{Failure, unusable};

/// What an arm printed, by the name of its program.
type Output<'a> = (&'a str, &'a AbArm);

/// Why a trial is no comparison; `None` where all of its programs did the same.
pub(super) fn different(axes: &AbAxes, trial: &TrialOutcome) -> Option<Failure> {
    let ended = trial.arms.iter().filter(|outcome| outcome.status == Status::Ok);
    let outputs = ended.filter_map(|outcome| {
        let own = outcome.ab.as_deref()?;
        Some((outcome.arm.primitive.as_str(), own.output_sha256.as_ref().and(Some(own))?))
    });
    let outputs: Vec<Output<'_>> = outputs.collect();
    let first = outputs.first()?;
    let other = outputs.iter().find(|(_, own)| own.output_sha256 != first.1.output_sha256)?;
    let what = match axes.mode {
        AbMode::Loop => "answer with different sums",
        AbMode::Command => "print different bytes",
    };
    let who = match first.0 == other.0 {
        true => format!("two runs of {}", first.0),
        false => format!("{} and {}", first.0, other.0),
    };
    Some(unusable!(
        "{who} {what}: faster and wrong is not faster\n  {}\n  accept that with --different-output",
        first_difference(axes.mode, first, other)
    ))
}

/// Where two outputs differ first.
fn first_difference(mode: AbMode, a: &Output<'_>, b: &Output<'_>) -> String {
    let lines = |output: &Output<'_>| -> Vec<Vec<u8>> {
        output.1.output_start.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    };
    let (of_a, of_b) = (lines(a), lines(b));
    let unit = match mode {
        AbMode::Loop => "slice",
        AbMode::Command => "line",
    };
    let said = |line: Option<&Vec<u8>>| match line {
        Some(line) if !line.is_empty() => format!("`{}`", quoted(line)),
        _ => "nothing".to_owned(),
    };
    let places = 0..of_a.len().max(of_b.len());
    match places.into_iter().find(|&at| of_a.get(at) != of_b.get(at)) {
        Some(at) => {
            let (of_a, of_b) = (said(of_a.get(at)), said(of_b.get(at)));
            format!("{unit} {}: {of_a} ({}), {of_b} ({})", at + 1, a.0, b.0)
        }
        None => format!("they agree in their first {} KiB", AB_OUTPUT_START_BYTES >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &[u8]) -> AbArm {
        AbArm { output_start: text.to_vec(), ..AbArm::default() }
    }

    #[test]
    fn the_first_line_that_differs_is_shown() {
        let said = |mode, a: &[u8], b: &[u8]| {
            first_difference(mode, &("main", &printed(a)), &("pr", &printed(b)))
        };
        let command = AbMode::Command;
        assert_eq!(said(command, b"a\nb\n", b"a\nc\n"), "line 2: `b` (main), `c` (pr)");
        assert_eq!(said(command, b"a\n", b"a\nc"), "line 2: nothing (main), `c` (pr)");
        assert_eq!(said(command, b"\x1b[2J", b""), "line 1: `\\u{1b}[2J` (main), nothing (pr)");
        assert_eq!(said(command, b"a\n", b"a"), "line 2: nothing (main), nothing (pr)");
        assert_eq!(said(command, b"same", b"same"), "they agree in their first 64 KiB");
        assert_eq!(said(AbMode::Loop, b"9f\n3c\n", b"9f\n3d\n"), "slice 2: `3c` (main), `3d` (pr)");
    }
}
