//! Whether a run of all families is still readable: what its page and its text
//! show, counted.

use std::collections::BTreeSet;

use crate::bench::read;
use crate::prelude::*;

const RUN: &str = "run net --quick --network loopback --threads 1,2 --sizes \
                   64,1KiB,16KiB,256KiB,1MiB --receivers recv --methods";

/// Lines that a reader can tell apart in a figure.
const LINES_MAX: usize = 7;
const PAGE_BYTES_MAX: usize = 3 << 19;
const TEXT_LINES_MAX: usize = 120;

/// What a run of every available primitive looks like.
pub fn check(bench: &Bench) -> Res {
    let listed = bench.json("list methods --json")?;
    let items = listed.list("methods").iter();
    let shown = items.filter(|item| item["available"] == true && item["hidden"] != true);
    let (ids, families): (BTreeSet<&str>, BTreeSet<&str>) =
        shown.map(|item| (item.word("name"), item.word("family"))).unzip();
    let list = Vec::from_iter(ids.iter().copied()).join(",");
    let text = bench.run(format!("{RUN} {list}"))?.stdout();
    let place = text.lines().find_map(|line| line.strip_prefix("Report").map(str::trim));
    let page = read(place.ok_or("the run names no page")?.as_ref())?;
    judge(bench, &page, &text, &ids, &families);
    Ok(())
}

fn judge(check: &Check, page: &str, text: &str, ids: &BTreeSet<&str>, families: &BTreeSet<&str>) {
    let headed = |family: &&str| page.contains(&format!("data-family=\"{family}\""));
    let unheaded: BTreeSet<&str> = families.iter().copied().filter(|f| !headed(f)).collect();
    let of = format!("of {} families without a heading on the page", families.len());
    check.same(of, unheaded, BTreeSet::new());
    let on_page =
        |id: &str| page.contains(&format!(">{id}<")) || page.contains(&format!(">{id} ("));
    let in_text = |id: &str| text.split_whitespace().any(|word| word == id);
    let lacks = |id: &&str| !on_page(id) || !in_text(id);
    let missing: BTreeSet<&str> = ids.iter().copied().filter(lacks).collect();
    let of = format!("of {} arms the page or the text lacks", ids.len());
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

    fn figure(lines: usize, columns: usize) -> String {
        let columns = "<th class=\"l\">x".repeat(columns + 2);
        format!("<figure id=\"net-x\" data-lines=\"{lines}\"><thead><tr>{columns}</thead></figure>")
    }

    #[test]
    fn a_page_is_judged_by_what_it_shows() {
        let page = |lines| {
            let (strip, chart) = (figure(0, 30), figure(lines, lines - 1));
            format!("<h3 data-family=\"plain\">plain</h3><b>send</b>{strip}{chart}")
        };
        let passes = |page: &str, text: &str| {
            let (ids, families) = (["send"].into(), ["plain"].into());
            crate::check::passes(|check| judge(check, page, text, &ids, &families))
        };
        assert_eq!(lines_of_figures(&page(7)), [7]);
        assert!(passes(&page(7), " send 1.0"));
        assert!(!passes(&page(8), " send 1.0"));
        assert!(!passes(&page(7), " sendfile 1.0"));
        assert!(!passes(&page(7).replace("data-family", "id"), " send 1.0"));
        assert!(!passes(&page(7), &"send\n".repeat(TEXT_LINES_MAX)));
        assert!(!passes(&(page(7) + &" ".repeat(PAGE_BYTES_MAX)), "send"));
    }
}
