//! The answer of a run with many arms, in about two screens: who is cheapest,
//! of all and of each family, where one way overtakes another, and every ratio.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::{BOLD, DIM, Style, push_sentence};
use crate::answers::{self, Kind, Sentence};
use crate::results::{self, Each};
use crate::table::Table;
use crate::wrap;

/// Curves up to which each has its sentence, and a row for every family.
const CURVES: usize = 4;

/// Lines of an answer up to which ratios are shown: two screens, about.
const LINES: usize = 118;

/// Lines that say what is left out.
const CLOSING: usize = 4;

/// The answer, and what it leaves out.
pub(super) fn run(run: &Run, analysis: &Analysis, style: &Style) -> String {
    let plan = &run.header.plan;
    let curves = results::curves(analysis);
    let few = curves.len() <= CURVES;
    let sentences = answers::sentences(run, analysis);
    let of = |kind: Kind| sentences.iter().filter(move |sentence| sentence.kind == kind);
    let mut out = String::new();
    of(Kind::Alarm).for_each(|sentence| push_sentence(&mut out, sentence, style));
    if few {
        of(Kind::Headline).for_each(|sentence| push_sentence(&mut out, sentence, style));
    }
    let each = if few { Each::Family } else { Each::Message };
    push_table(&mut out, &results::cheapest(plan, analysis, each), style);
    let crossovers = results::crossovers(run, analysis, false);
    if !crossovers.rows.is_empty() {
        push_table(&mut out, &crossovers, style);
    }
    let mut remarks = String::new();
    let below = sentences.iter().filter(|sentence| is_remark(sentence));
    below.for_each(|sentence| push_sentence(&mut remarks, sentence, style));
    let room = LINES.saturating_sub(out.lines().count() + remarks.lines().count() + CLOSING);
    let missing = push_ratios(&mut out, room, run, analysis, style);
    out.push('\n');
    out.push_str(&remarks);
    out.push_str(&closing(run, missing, style));
    out
}

/// What is left out, and where it is.
fn closing(run: &Run, missing: usize, style: &Style) -> String {
    let ratios = match missing {
        0 => String::new(),
        1 => "the ratios of one more curve, ".to_owned(),
        more => format!("the ratios of {more} more curves, "),
    };
    let more = format!(
        "Not shown here: {ratios}goodput, times, CPU and copies of every arm, and each size in a \
         sentence: `iolens show {} --all`; figures by family stand in the report.",
        run.header.id
    );
    wrap::hanging(&more, style.columns(), 2) + "\n"
}

/// What stands below the tables.
fn is_remark(sentence: &Sentence) -> bool {
    !matches!(sentence.kind, Kind::Alarm | Kind::Headline | Kind::Crossover | Kind::Answer)
}

/// The ratios of as many curves as have room; how many have none.
fn push_ratios(
    out: &mut String,
    room: usize,
    run: &Run,
    analysis: &Analysis,
    style: &Style,
) -> usize {
    let plan = &run.header.plan;
    let curves = results::curves(analysis);
    let reading = wrap::hanging(&results::ratios_read(plan), style.columns(), 0);
    let mut used = reading.lines().count();
    let mut shown = 0;
    for (curve, cells) in &curves {
        let mut text = String::new();
        for table in results::ratios(plan, cells, style.columns()) {
            let caption = results::heading(plan, curve);
            push_table(&mut text, &Table { caption, ..table }, style);
        }
        used += text.lines().count() + 1;
        if used > room {
            break;
        }
        out.push('\n');
        out.push_str(&text);
        shown += 1;
    }
    if shown > 0 {
        out.push_str(&style.paint(DIM, &reading));
        out.push('\n');
    }
    curves.len() - shown
}

fn push_table(out: &mut String, table: &Table, style: &Style) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(&style.paint(BOLD, &table.caption));
    out.push('\n');
    out.push_str(&table.text(style.columns()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use iolens_model::arm::Role;

    const PLAIN: Style = Style { colour: false, width: 100 };

    #[test]
    fn a_run_of_all_families_is_two_screens() {
        let (run, mut analysis) = fixture::families();
        // One mode and one thread count: every arm has its ratios.
        let first = analysis.cells[0].cell.curve();
        analysis.cells.retain(|cell| cell.cell.curve() == first);
        analysis.crossovers.retain(|crossover| crossover.curve == first);
        let text = super::run(&run, &analysis, &PLAIN);
        assert!(text.lines().count() < 100, "{} lines", text.lines().count());
        for arm in analysis.cells[0].arms.iter().filter(|arm| arm.arm.role == Role::Compared) {
            assert!(text.lines().any(|l| l.trim_start().starts_with(&arm.arm.label)), "{text}");
        }
        insta::assert_snapshot!(text, @"");
    }

    #[test]
    fn many_curves_are_two_screens_too_and_say_what_is_left_out() {
        let (run, analysis) = fixture::families();
        let text = super::run(&run, &analysis, &PLAIN);
        assert!(text.lines().count() < 110, "{} lines", text.lines().count());
        assert!(text.contains("--all`"), "{text}");
        assert!(super::super::whole(&run, &analysis, &PLAIN).lines().count() > 300);
    }
}
