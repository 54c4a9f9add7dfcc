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

/// Lines of ratios up to which they are shown.
const LINES: usize = 64;

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
    let ratios = ratios(run, analysis, style);
    let shows_ratios = ratios.lines().count() <= LINES;
    if shows_ratios {
        out.push('\n');
        out.push_str(&ratios);
    }
    out.push('\n');
    sentences.iter().filter(|s| is_remark(s)).for_each(|s| push_sentence(&mut out, s, style));
    let ratios = if shows_ratios { "" } else { "the ratio of every arm, " };
    let more = format!(
        "Not shown here: {ratios}goodput, times, CPU and copies of every arm, and each size in a \
         sentence: `iolens show {} --all`; figures by family stand in the report.",
        run.header.id
    );
    out.push_str(&wrap::hanging(&more, style.columns(), 2));
    out.push('\n');
    out
}

/// What stands below the tables.
fn is_remark(sentence: &Sentence) -> bool {
    !matches!(sentence.kind, Kind::Alarm | Kind::Headline | Kind::Crossover | Kind::Answer)
}

fn ratios(run: &Run, analysis: &Analysis, style: &Style) -> String {
    let plan = &run.header.plan;
    let mut out = String::new();
    for (curve, cells) in results::curves(analysis) {
        for table in results::ratios(plan, &cells, style.columns()) {
            let caption = results::heading(plan, &curve);
            push_table(&mut out, &Table { caption, ..table }, style);
        }
    }
    out.push_str(
        &style.paint(DIM, &wrap::hanging(&results::ratios_read(plan), style.columns(), 0)),
    );
    out.push('\n');
    out
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
