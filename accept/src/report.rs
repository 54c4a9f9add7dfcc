//! What a user meets: the first run, pages, how long one waits, tests, building.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::page;
use crate::pairs::Median;
use crate::prelude::*;
use crate::process::{Finished, Said};

pub const FUNCTIONS: Functions = &[
    ("first-run", first_run),
    ("tests", cargo_tests),
    ("clean-build", clean_build),
    ("help", help),
    ("families", families),
    ("speed", speed),
];

fn first_run(bench: &Bench) -> Res {
    // The promise is about the run; another line is about the build.
    let build = Job::cargo("build --release --bin iolens").success()?;
    bench.note("built before in seconds", build.seconds());
    let job = Job::cargo("run --release -- run net --quick").env("NO_COLOR", "1");
    let run = job.env("XDG_DATA_HOME", bench.path("")).success()?;
    bench.within("seconds", run.seconds(), ..=45.0);
    let stdout = run.stdout();
    let rows = stdout.lines().filter(|line| line.contains("send_staged")).count();
    let looks = stdout.lines().filter(|line| line.starts_with("quick look: ")).count();
    bench.same("quick looks", looks, 1);
    bench.within("lines with send_staged", rows, 1..);
    let page = stdout.split_whitespace().rfind(|word| word.ends_with(".html"));
    let page = page.context("the output names no page")?.trim_start_matches("file://");
    let html = fs::read_to_string(page)?;
    bench.note("KiB of page", html.len() / 1024);
    bench.same("references", page::references(&html).len(), 0);
    bench.ask("the run", &bench.last()?, &Value::Null);
    Ok(())
}

fn cargo_tests(bench: &Bench) -> Res {
    for task in ["test", "test-unprivileged"] {
        let run = Job::cargo(format!("run --quiet --package xtask -- {task}")).success()?;
        let words = format!("{} passed in {:.0} s", passed(&run.stdout()), run.seconds());
        bench.judge(task, true, format!("{words}, {}", run.line(" skipped (")));
    }
    Ok(())
}

/// Tests that passed, over all binaries of libtest's output.
fn passed(output: &str) -> u64 {
    let counts = output.lines().filter_map(|line| {
        line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u64>().ok()
    });
    counts.sum()
}

/// A release build into an empty directory.
fn clean_build(bench: &Bench) -> Res {
    let build = "build --release -p iolens --message-format=json-render-diagnostics";
    let built = Job::cargo(build).env("CARGO_TARGET_DIR", bench.path("clean-build")).success()?;
    bench.note("CPUs", std::thread::available_parallelism().map_or(0, usize::from));
    bench.within("seconds", built.seconds(), ..240.0);
    let dependencies = dependencies_done(&built, &crate::root()).as_secs_f64();
    bench.within("seconds until the last dependency was done", dependencies, ..120.0);
    Ok(())
}

/// When the last package from outside of the workspace was compiled.
fn dependencies_done(built: &Finished, root: &Path) -> Duration {
    let is_dependency = |line: &&Said| {
        let message: Value = serde_json::from_str(&line.text).unwrap_or_default();
        message["reason"] == "compiler-artifact"
            && !Path::new(message.word("manifest_path")).starts_with(root)
    };
    let lines = built.said.iter().filter(is_dependency);
    lines.map(|line| line.after).max().unwrap_or_default()
}

/// `iolens --help`, from start to end.
fn help(bench: &Bench) -> Res {
    let time = |_| Ok(bench.run("--help")?.seconds() * 1e3);
    let times: Vec<f64> = (0..20).map(time).collect::<Res<_>>()?;
    bench.note("to within 5 ms, the poll of its end", format!("{times:.1?}"));
    bench.within("ms, median", Median::of(times).value, ..50.0);
    Ok(())
}

/// The shape of the trials: two arms and the hidden one, a slice each.
const FEW: &str = "run net --methods send,sendmsg_iov --sizes 1KiB,64KiB --threads 1 --network \
                   loopback --sequential-messages 2000 --passes 2 --progress none --db few.db";

/// A wait that is not felt.
const AT_ONCE_S: f64 = 0.1;

/// The fastest of so many: on a shared machine any one may be held up.
const TIMES: usize = 5;

/// How long one waits for what is stored, and for the first line.
fn speed(bench: &Bench) -> Res {
    // A database with very many trials, made of a few that were measured.
    bench.run(FEW)?;
    let multiply = Job::cargo("run --release --package iolens-store --example multiply --");
    multiply.arg(bench.path("few.db")).arg(bench.path("many.db")).arg("100000").success()?;
    let report = "report last --db many.db -o page.html --overwrite";
    // Such a machine has slow ones of what takes seconds, several in a row.
    let (seconds, mib) = fastest(bench, report, 4 * TIMES)?;
    bench.within("report of 100000 trials, s", seconds, ..2.0);
    bench.within("MiB", mib, ..200.0);
    bench.within("bytes of page", bench.read("page.html")?.len(), 1..);
    // An ordinary run, to be shown.
    bench.run("run net --quick --network loopback --progress none")?;
    let (seconds, mib) = fastest(bench, "show last", TIMES)?;
    bench.within(format!("show last, {mib:.0} MiB, s"), seconds, ..AT_ONCE_S);
    for words in ["run net --quick --network loopback", "run net --quick --dry-run", "runs"] {
        bench.within(format!("first line of `{words}`, s"), first_line(bench, words)?, ..AT_ONCE_S);
    }
    Ok(())
}

/// The shortest time of a command in s, and the most memory it had in MiB.
fn fastest(bench: &Bench, words: &str, times: usize) -> Res<(f64, f64)> {
    let (mut least, mut most_kib) = (f64::INFINITY, 0.0_f64);
    for _ in 0..times {
        let time = Job::of("time -f").arg("peak %M");
        let done = bench.under(time, words).success()?;
        let peak = done.noted("peak ").strip_prefix("peak ").and_then(|kib| kib.parse().ok());
        most_kib = most_kib.max(peak.context("`time` named no peak")?);
        least = least.min(done.seconds());
    }
    Ok((least, most_kib / 1024.0))
}

/// How long it takes until a command has said anything, on either output, in s.
fn first_line(bench: &Bench, words: &str) -> Res<f64> {
    let mut least = Duration::MAX;
    for _ in 0..TIMES {
        let first = bench.run(words)?.said.iter().map(|line| line.after).min();
        least = least.min(first.context(format!("`iolens {words}` said nothing"))?);
    }
    Ok(least.as_secs_f64())
}

const FAMILIES_RUN: &str = "run net --quick --network loopback --threads 1,2 --sizes \
                   64,1KiB,16KiB,256KiB,1MiB --receivers recv --methods";

/// Lines that a reader can tell apart in a figure.
const LINES_MAX: usize = 7;
const PAGE_BYTES_MAX: usize = 3 << 19;
const TEXT_LINES_MAX: usize = 120;

/// What a run of every available primitive looks like.
fn families(bench: &Bench) -> Res {
    let listed = bench.json("list methods --json")?;
    let items = listed.list("methods").iter();
    let shown = items.filter(|item| item["available"] == true && item["hidden"] != true);
    let arms: BTreeMap<&str, &str> =
        shown.map(|item| (item.word("name"), item.word("family"))).collect();
    let list = Vec::from_iter(arms.keys().copied()).join(",");
    let text = bench.run(format!("{FAMILIES_RUN} {list}"))?.stdout();
    let place = text.lines().find_map(|line| line.strip_prefix("Report").map(str::trim));
    let page = fs::read_to_string(place.context("the run names no page")?)?;
    let shown = bench.run("show last")?.stdout();
    judge_families(bench, &page, (&text, &shown), &arms);
    Ok(())
}

/// `arms` have their families; those that are compared with nothing have no figures and no row on
/// the first screen.
fn judge_families(
    check: &Check,
    page: &str,
    (text, shown): (&str, &str),
    arms: &BTreeMap<&str, &str>,
) {
    const CONTROLS: &str = "controls";
    let families: BTreeSet<&str> = arms.values().copied().filter(|of| *of != CONTROLS).collect();
    let has_figures = |family: &&str| page.contains(&format!("-{}\"", family.replace('_', "-")));
    let lacking: BTreeSet<&str> = families.iter().copied().filter(|f| !has_figures(f)).collect();
    let of = format!("of {} families without figures of their own", families.len());
    check.same(of, lacking, BTreeSet::new());
    let on_page =
        |id: &str| page.contains(&format!(">{id}<")) || page.contains(&format!(">{id} ("));
    let in_text = |id: &str, family: &str| {
        let said = if family == CONTROLS { shown } else { text };
        said.split_whitespace().any(|word| word.trim_end_matches(['*', '†']) == id)
    };
    let lacks = |(id, family): &(&&str, &&str)| !on_page(id) || !in_text(id, family);
    let missing: BTreeSet<&str> = arms.iter().filter(lacks).map(|(id, _)| *id).collect();
    let of = format!("of {} arms the page or the text lacks", arms.len());
    check.same(of, missing, BTreeSet::new());
    let figures = lines_of_figures(page);
    check.within("figures of curves", figures.len(), families.len()..);
    check.within("lines in one", figures.into_iter().max().unwrap_or(0), ..=LINES_MAX);
    check.within("bytes of page", page.len(), ..PAGE_BYTES_MAX);
    check.within("lines of text", text.lines().count(), ..TEXT_LINES_MAX);
}

/// The lines of each figure of curves on a page: the most that its table has
/// columns for or its drawing has looks, or what it says itself.
fn lines_of_figures(page: &str) -> Vec<usize> {
    let figures = page.split("<figure id=\"net-").skip(1);
    let one = |figure: &str| {
        let figure = figure.split("</figure>").next().unwrap_or_default();
        let said = figure.split("data-lines=\"").nth(1)?.split('"').next()?.parse().ok()?;
        // Two columns tell panel and place; every other one is an arm's.
        let head = figure.split("<thead>").nth(1)?.split("</thead>").next()?;
        let columns = head.matches("<th").count().saturating_sub(2);
        (said > 0).then_some(columns.max(said))
    };
    figures.filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_are_summed_over_binaries() {
        let output =
            "test result: ok. 22 passed; 0 failed\nx\ntest result: ok. 3 passed; 0 failed\n";
        assert_eq!(passed(output), 25);
    }

    #[test]
    fn dependencies_are_what_lies_outside() {
        let script =
            r#"echo '{"reason":"compiler-artifact","manifest_path":"/r/serde/Cargo.toml"}'"#;
        let built = Job::shell(script).run().expect("it runs");
        assert!(dependencies_done(&built, Path::new("/w")) > Duration::ZERO);
        assert_eq!(dependencies_done(&built, Path::new("/r")), Duration::ZERO);
    }

    fn figure(lines: usize, columns: usize) -> String {
        let columns = "<th class=\"l\">x".repeat(columns + 2);
        format!(
            "<figure id=\"net-x-plain\" data-lines=\"{lines}\"><thead><tr>{columns}</thead></figure>"
        )
    }

    #[test]
    fn a_page_is_judged_by_what_it_shows() {
        let page = |lines| {
            let (strip, chart) = (figure(0, 30), figure(lines, lines - 1));
            format!("<h3>plain</h3><b>send</b>{strip}{chart}")
        };
        let passes = |page: &str, text: &str| {
            let arms = [("send", "plain")].into();
            crate::check::passes(|check| judge_families(check, page, (text, "send"), &arms))
        };
        assert_eq!(lines_of_figures(&page(7)), [7]);
        assert!(passes(&page(7), " send* 1.0"));
        assert!(!passes(&page(8), " send 1.0"));
        assert!(!passes(&page(7), " sendfile 1.0"));
        assert!(!passes(&page(7).replace("-plain\"", "-other\""), " send 1.0"));
        assert!(!passes(&page(7), &"send\n".repeat(TEXT_LINES_MAX)));
        assert!(!passes(&(page(7) + &" ".repeat(PAGE_BYTES_MAX)), "send"));
    }
}
