//! Links of one source: SQLite, relinked behind as many bytes of padding.

use std::path::PathBuf;

use super::{Contrast, KINDS, built, compared, times};
use crate::prelude::*;

const QUERY: &str = include_str!("query.c");

/// Links of each of two sides.
const LINKS: u32 = 8;

/// Where cargo keeps the source of SQLite that iolens itself is built with.
fn amalgamation() -> Res<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let registries = fs::read_dir(home.context("no HOME")?.join("registry/src"))?;
    let found = registries.flatten().filter_map(|registry| {
        let crates = fs::read_dir(registry.path()).ok()?.flatten();
        let mut all = crates.map(|one| one.path().join("sqlite3/sqlite3.c"));
        all.find(|path| path.is_file())
    });
    found.last().context("cargo has no libsqlite3-sys with its source")
}

/// Compiles the query, and SQLite from the source that this is.
pub fn compiled(bench: &Bench) -> Res<PathBuf> {
    let source = amalgamation()?;
    let folder = source.parent().context("no folder")?.display().to_string();
    bench.write("query.c", QUERY)?;
    let flags = "-O2 -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION";
    let compile = format!("cc {flags} -I {folder} -c query.c {}", source.display());
    bench.at_home(Job::of(compile)).minutes(10).success()?;
    Ok(source)
}

/// Sixteen links of the same objects, eight called `a-…` and eight `b-…`; the names of the first.
fn linked(bench: &Bench) -> Res<Vec<String>> {
    compiled(bench)?;
    let mut ours = Vec::new();
    for link in 0..2 * LINKS {
        let padding = 16 * (1 + link * 37 % 256);
        bench.write("pad.s", format!(".text\n.skip {padding}, 0x90\n"))?;
        // Each side has as many of either parity: code behind an odd number of 16 bytes differs.
        let side = if matches!(link % 4, 0 | 3) { "a" } else { "b" };
        let name = format!("{side}-{link}");
        bench.at_home(Job::of(format!("cc -o {name} pad.s query.o sqlite3.o -lm"))).success()?;
        ours.extend((side == "a").then_some(name));
    }
    Ok(ours)
}

/// Two sides of links that differ in nothing but where their code lies.
pub fn links(bench: &Bench) -> Res {
    let ours = linked(bench)?;
    let (mut slower, mut invalid, mut changes) = (0, 0, Vec::new());
    for _ in 0..times() {
        let flags = "--loop --links --threshold 2% --budget 60s";
        let (contrasts, _) = compared(bench, flags, ["a-*", "b-*"])?;
        let told = |word| contrasts.iter().filter(|one| one.verdict == word).count();
        slower += told("SLOWER");
        invalid += told("INVALID");
        let worst = contrasts.iter().map(|one| one.change * 100.0);
        changes.push(worst.fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a }));
    }
    let changes: Vec<String> = changes.iter().map(|change| format!("{change:+.2}")).collect();
    bench.note("eight links against eight, changes in %", changes.join(", "));
    bench.same("SLOWER among them", slower, 0);
    bench.within("INVALID among them", invalid, ..=changes.len() / 2);
    let (mut slower, mut invalid, mut build, mut largest) = (0, 0, 0, 0.0);
    let pairs = ours
        .iter()
        .enumerate()
        .flat_map(|(nth, one)| ours[nth + 1..].iter().map(move |other| (one, other)));
    for (one, other) in pairs {
        let commands = [format!("./{one}"), format!("./{other}")];
        let flags = "--loop --threshold 2% --budget 6s";
        let (contrasts, _) = compared(bench, flags, commands.each_ref().map(String::as_str))?;
        for contrast in contrasts {
            slower += u32::from(contrast.verdict == "SLOWER");
            invalid += u32::from(contrast.verdict == "INVALID");
            build += u32::from(contrast.verdict == "BUILD");
            largest = f64::max(largest, contrast.change.abs());
        }
    }
    let words = format!("{build} BUILD, largest change {:.1} %", largest * 100.0);
    bench.note("one link against one, 28 pairs by time and by CPU time", words);
    bench.same("SLOWER among them", slower, 0);
    bench.within("INVALID of 56", invalid, ..=14);
    Ok(())
}

/// Of slowdowns as large as what a run says that it sees nine times in ten, that many are found:
/// what a run states is planted in the next.
pub fn power(bench: &Bench) -> Res {
    built(bench)?;
    let flags = "--loop --threshold 1% --budget 10s";
    let runs = times() * 5;
    for kind in KINDS {
        let by_cpu = |flags: &str, amount: f64| -> Res<Contrast> {
            let planted = [format!("./work {kind} 1000"), format!("./copy {kind} {amount}")];
            let ([_, cpu], _) = compared(bench, flags, planted.each_ref().map(String::as_str))?;
            Ok(cpu)
        };
        let says = |run: &Contrast| run.seen.context("a run does not state its power");
        let mut stated = says(&by_cpu(flags, 1000.0)?)?;
        // What waits for memory does so in short slices, too, at their start: more work is a
        // smaller change there, so what is planted is measured first.
        let ten_times = (1000.0 * 10.0 * stated).round();
        let large = by_cpu("--loop --threshold 0.2% --budget 30s", 1000.0 + ten_times)?;
        let shown = large.change / (ten_times / 1000.0);
        let (mut slower, mut planted) = (0, Vec::new());
        for _ in 0..runs {
            planted.push(stated * 100.0);
            // Not less than stated: of 1% beyond 1% a tenth is much.
            let run = by_cpu(flags, (1000.0 * (1.0 + stated / shown)).ceil())?;
            slower += u32::from(run.verdict == "SLOWER");
            stated = says(&run)?;
        }
        planted.sort_by(f64::total_cmp);
        let share = f64::from(slower) / f64::from(runs);
        let what = format!(
            "{kind}: {:.1} to {:.1} % planted, as the run before states, of which {:.0} % show; \
             SLOWER in",
            planted[0],
            planted[planted.len() - 1],
            shown * 100.0
        );
        // Of a hundred; of fewer, what 90 % of them may come to.
        let spread = 3.0 * (0.9 * 0.1 / f64::from(runs)).sqrt();
        bench.within(what, share, 0.9 - spread..=1.0);
    }
    Ok(())
}
