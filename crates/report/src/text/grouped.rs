//! The answer of a run with many arms, in about two screens: who is cheapest,
//! of all and of each family, where one way overtakes another, and every ratio.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::{DIM, Style, push_sentence};
use crate::answers::{self, Kind, Sentence};
use crate::results::{self, Each};
use crate::table::Table;
use iolens_document::fold;

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
    fold::hanging(&more, style.columns(), 2) + "\n"
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
    let reading = fold::hanging(&results::ratios_read(plan), style.columns(), 0);
    let mut used = reading.lines().count();
    let mut shown = 0;
    for (curve, cells) in &curves {
        let mut text = String::new();
        for table in results::ratios(plan, cells, style.columns()) {
            let caption = results::heading(plan, curve);
            push_table(&mut text, &Table { caption, ..table }, style);
        }
        super::push_in_flight(&mut text, cells, analysis, style);
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
    out.push_str(&super::heading(&table.caption, style));
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
        let tables: Vec<&str> = text
            .lines()
            .skip_while(|line| !line.starts_with("Fastest of each"))
            .take_while(|line| !line.starts_with("Speed against"))
            .collect();
        insta::assert_snapshot!(tables.join("\n"), @"
        Fastest of each family, by the kind of message that it can send
         curve             family             message         fastest in this run      against send_staged
                                                              at so many of the sizes  ratio, over the sizes
         ───────────────────────────────────────────────────────────────────────────────────────────────────
         1 thread, stream  the classic three  any             sendmsg_iov  5 of 8      1.00 to 1.45
                           plain              any             writev  8 of 8           0.89 to 1.43
                                              contiguous      send  8 of 8             1.06 to 1.42
                           page moving        in a file       sendfile_file  5 of 8    0.85 to 2.59
                                              left unchanged  splice  8 of 8           0.53 to 2.30
                           io_uring           any             uring_later  8 of 8      1.10 to 1.65
                                              contiguous      uring_send  8 of 8       0.96 to 1.41

        Where one way overtakes another (by more than δ)
         from         to                         where the second is ahead      curves
         ───────────────────────────────────────────────────────────────────────────────────────
         send_staged  sendmsg_iov                between 256 B and 4 KiB        1 thread, stream

         send_staged  sendmsg_zerocopy (copied)  between 16 KiB and 256 KiB     1 thread, stream

         sendmsg_iov  sendmsg_zerocopy (copied)  nowhere: behind at every size  1 thread, stream

        1 thread, net, veth, stream, hot working set, 8 fields, received with recv
         arm                         64 B     256 B    1 KiB    4 KiB   16 KiB  64 KiB   256 KiB   1 MiB
         ──────────────────────────────────────────────────────────────────────────────────────────────────
         the classic three
          send_staged                1        1        1        1       1       1        1         1
          sendmsg_iov                0.90     0.92     0.96     1.07*   1.26*   1.38*    1.44*     1.45*
          sendmsg_zerocopy (copied)  0.285    0.291    0.324    0.425   0.68    1.02     1.23      1.29
          A/A copy                   1.00=    1.00=    1.01=    0.99=   1.00=   1.00=    1.00=     1.00=
         plain
          send                       1.06*    1.07*    1.11*    1.19*   1.31*   1.38*    1.41      1.42
          send_per_field             0.173    0.178    0.201    0.274   0.498   0.88     1.20      1.32
          write                      1.05     1.06     1.10     1.17    1.29    1.36     1.40      1.40
          writev                     0.89     0.90     0.95     1.05    1.24    1.37     1.42*     1.43*
         page moving
          sendfile                   0.85*    0.87*    0.96*    1.17    1.68    2.16     2.41      2.49
          sendfile_file              0.84     0.86     0.94     1.17*   1.72*   2.25*    2.52*     2.59*
          splice                     0.53     0.54     0.60     0.78    1.25    1.85     2.20      2.30
         io_uring
          uring_send                 0.96     0.97     1.02=    1.11    1.26    1.36     1.41      1.41
          uring_send_zc              0.55     0.56     0.60     0.70    0.88    1.02=    1.09      1.10
          uring_send_zc_fixed        0.58     0.59     0.63     0.72    0.91    1.03     1.11      1.11
          uring_sendmsg              0.82     0.83     0.88     1.00=   1.20    1.35     1.42      1.42
          uring_sendmsg_zc           0.382    0.391    0.425    0.53    0.75    0.95     1.06      1.09
          uring_later                1.10*    1.11*    1.17*    1.28*   1.48*   1.60*    1.65*     1.65*
         controls
          memcpy                     26.3 ns  36.7 ns  78.1 ns  247 ns  913 ns  3651 ns  14811 ns  57907 ns
          null                       26.3 ns  36.9 ns  78.8 ns  247 ns  914 ns  3679 ns  14789 ns  58099 ns
        Zero-copy arms have at most so many messages under way in each thread: 1024 of 64 B, 256 of 256 B,
        64 of 1 KiB, 16 of 4 KiB, 4 of 16 KiB, 2 of 64 KiB, 2 of 256 KiB, 2 of 1 MiB.
        ");
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
