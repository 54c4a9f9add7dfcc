//! The study `file` from outside: measured with verified cache states, gone on with,
//! and what would touch somebody's file refused.

use crate::harness::{Place, list};

/// Small enough for any folder of temporary files.
const RUN: &str = "run file --file-size 4MiB --threads 1 --quick --passes 2 --rounds 3 \
                   --consumer scan --progress none";

#[test]
fn a_warm_file_is_read_by_every_engine() {
    let place = Place::new();
    let run = format!("{RUN} --engines all --block-sizes 1,4KiB,64KiB --cache warm --verbose");
    place.run(&run).ended(0).prints("4 MiB (as asked for), made for this run");
    let json = place.json("show last --json");
    assert_eq!(json["run"]["plan"]["study"], "file");
    assert_eq!(json["run"]["file"]["bytes"], 4 << 20);
    assert_eq!(json["run"]["engines"].as_array().map(Vec::len), Some(12));
    let cells = list(&json["cells"]);
    let ok = |id: &str| {
        let own = cells.iter().filter(|row| row["primitive"] == id && row["role"] != "self_check");
        own.filter(|row| row["status"] == "ok").count()
    };
    // What the folder's file system or this kernel lacks is skipped with its reason.
    assert_eq!([ok("read"), ok("pread"), ok("readv"), ok("mmap")], [3; 4], "{cells:?}");
    for row in cells.iter().filter(|row| row["status"] != "ok") {
        assert!(row["reason"].as_str().is_some_and(|why| !why.is_empty()), "{row}");
    }
}

#[test]
fn a_cold_cell_is_verified_or_not_believed() {
    let place = Place::new();
    let run = format!("{RUN} --engines read,mmap,direct --block-sizes 64KiB --cache cold");
    place.run(&run).assert_ended();
    let json = place.json("show last --json");
    for row in list(&json["cells"]) {
        let (status, reason) = (row["status"].as_str(), row["reason"].as_str());
        let verified = match status {
            Some("ok") => true,
            Some("invalid") => reason.is_some_and(|why| why.contains("cache state")),
            _ => reason.is_some(),
        };
        assert!(verified, "{row}");
    }
    // 4 where nothing could be made cold, as in memory.
}

#[test]
fn somebodys_file_is_only_read() {
    let place = Place::new();
    let content: Vec<u8> = (0..300_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    let file = place.write("theirs", &content);
    let run = format!(
        "run file --file {file} --block-sizes 4KiB --engines read,mmap --cache warm --quick \
         --passes 2 --rounds 3 --progress none"
    );
    let done = place.run(&run).ended(0);
    let text = done.flat();
    assert!(text.contains("theirs ("), "{text}");
    assert_eq!(std::fs::read(&file).unwrap(), content);

    let refused = |rest: &str, expect: &str| {
        place.fails(&format!("run file {rest} --dry-run"), 2, expect);
    };
    refused(&format!("--file {file} --cache cold"), "add --allow-evict");
    refused(&format!("--file {file} --cache warm --dir /tmp"), "it is about the test file");
    refused("--allow-evict", "needs --file");
    refused("--block-sizes 128MiB", "the largest is 64 MiB");
    refused("--engines raed", "did you mean `read`?");
    refused("--network veth", "run file has no --network; it belongs to run net and server");
    refused("--cache luke", "choose from: warm, cold");
}

#[test]
fn a_file_that_cannot_be_read_is_said_before_anything_is_measured() {
    let place = Place::new();
    place.write("empty", "");
    for (file, code, expect) in [
        ("PLACE/none", 2, "no such file"),
        ("/dev/zero", 2, "it is a character device"),
        ("PLACE/empty", 4, "is empty"),
    ] {
        place.fails(&format!("run file --file {file} --cache warm --quick"), code, expect);
    }
    place.fails(&format!("{RUN} --dir PLACE/nowhere"), 4, "nowhere");
}

#[test]
fn holes_are_said_before_the_first_trial() {
    let place = Place::new();
    let path = place.path("holes");
    std::fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let run = format!(
        "run file --file {} --block-sizes 4KiB --engines read --cache warm --quick --passes 2 \
         --rounds 3 --progress none",
        path.display()
    );
    let done = place.run(&run);
    assert!(done.stderr.contains("holes") || done.stderr.contains("zeros"), "{}", done.stderr);
}

#[test]
fn one_engine_alone_answers_with_its_rates() {
    let place = Place::new();
    let done = place.run(&format!("{RUN} --engines read --block-sizes 1,4KiB,64KiB --cache warm"));
    done.assert_ended();
    assert!(!done.stdout.contains("no answer"), "{}", done.stdout);
    assert!(!done.stdout.contains("no comparison"), "{}", done.stdout);
    let flat = done.flat();
    assert!(flat.contains("Fastest read at every size"), "{flat}");
    // Each size has its rate with an interval, three digits of each, in one unit.
    for size in ["1 B ", "4 KiB ", "64 KiB "] {
        let row = done.stdout.lines().find(|line| line.trim_start().starts_with(size));
        let row = row.unwrap_or_else(|| panic!("no {size} in {}", done.stdout));
        // Two trials have an interval, and it may say nothing.
        assert!(row.contains('[') || done.stdout.contains("(no intervals)"), "{row}");
    }
    let page = std::fs::read_to_string(page_of(&done.stdout)).unwrap();
    assert!(!page.contains("no answer") && !page.contains("no comparison"));
    assert!(!page.contains("Speed against"), "no figure of ratios of nothing");
}

/// The page that a run names.
fn page_of(stdout: &str) -> &str {
    stdout.lines().find_map(|line| line.strip_prefix("Report")).expect("a page").trim()
}

#[test]
fn rates_of_small_blocks_have_three_digits() {
    let place = Place::new();
    let run = format!("{RUN} --engines read,pread --block-sizes 1,16,64KiB --cache warm --verbose");
    let done = place.run(&run);
    done.assert_ended();
    let lines: Vec<Vec<&str>> =
        done.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let rates: Vec<&str> = lines
        .iter()
        .filter_map(|line| match line.as_slice() {
            [_, "B" | "KiB", "read" | "pread", rate, ..] | ["read" | "pread", rate, _, ..] => {
                Some(*rate)
            }
            _ => None,
        })
        .filter(|rate| rate.parse::<f64>().is_ok())
        .collect();
    assert!(rates.len() >= 6, "{}", done.stdout);
    for rate in rates {
        let digits = rate.trim_start_matches(['0', '.']).replace('.', "");
        assert!(digits.len() >= 3, "{rate} in {}", done.stdout);
    }
    done.prints("MiB/s");
}
