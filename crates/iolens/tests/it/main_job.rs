//! The main job at smoke size: measured, stored, answered, exported.

use crate::harness::{Place, list};

/// 3 discarded rounds and 20 that count.
const SMALL: &str = "run net --methods send,sendmsg_iov,memcpy --sizes 256,16KiB \
                     --threads 1,2 --quick --passes 2 --network loopback --progress plain";

/// Arms where a test is not about them.
const ARMS: &str = "--methods send_staged,send,sendmsg_iov,memcpy";

#[test]
fn a_run_answers_and_can_be_looked_at_again() {
    let place = Place::new();
    let run = place.run(SMALL).ended(0);
    run.prints("quick look: ");
    let page = run.stdout.lines().last().unwrap().strip_prefix("Report").unwrap().trim();
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("sendmsg_iov") && !html.contains("src=\"http"));

    let runs = place.json("runs --json");
    assert_eq!(list(&runs).len(), 1);
    let id = runs[0]["id"].as_str().unwrap();
    assert!(place.run("runs").stdout.contains(id));
    assert!(place.run(&format!("show {}", &id[..3])).stdout.contains("send_staged"));
    assert!(place.run("show last 1").stdout.contains("256 B"));
    place.run("show last 9").ended(2);
    let summary = place.run("show last --size 256B --threads 1").stdout;
    assert!(summary.contains("Use ") && !summary.contains("BY SIZE"), "{summary}");
    assert!(!summary.contains("2 threads") && !summary.contains("Crossover"), "{summary}");
    place.fails("show last --threads 64", 2, "--threads 64: the run has none");
    place.run("show ffffffffff").ended(2);

    exports_hold_every_row(&place);
    reports_can_be_written(&place);
}

/// 4 cells × 2 passes × 5 arms together, and one cell isolated: 2 passes × 3.
fn exports_hold_every_row(place: &Place) {
    let csv = place.run("export last --format csv").stdout;
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(lines.count(), 4 * 2 * 5 + 2 * 3);
    for column in ["run", "pass", "arm", "message_bytes", "time_ns", "goodput_bits_per_s", "cycles"]
    {
        assert!(header.contains(&column), "{column}");
    }
    let all = place.run("export last --columns all").stdout;
    assert!(all.split_once('\n').unwrap().0.split(',').count() > 3 * header.len());
    let slices = place.run("export last --format csv --rows slices").stdout;
    assert_eq!(slices.lines().count() - 1, (4 * 2 * 5 + 2 * 3) * 13);
    let cells = place.run("export last --format csv --rows cells").stdout;
    assert_eq!(cells.lines().count() - 1, 4 * 5);
    let json = place.json("export last --format json --rows cells");
    assert!(json.is_object() || json.is_array());
    let some = place.run("export last --rows cells --columns arm,ratio,threads").stdout;
    assert!(some.starts_with("arm,ratio,threads\n"), "{some}");
    place.run("export last --rows cells --columns arm -o PLACE/cells.json");
    let value: serde_json::Value = serde_json::from_str(&place.read("cells.json")).unwrap();
    assert_eq!(value["cells"][0].as_object().map(serde_json::Map::len), Some(1), "{value}");
    place.fails("export last --columns arms", 2, "unknown column `arms`, did you mean `arm`?");
    let line = "export last --format csv -o PLACE/rows.csv";
    place.run(line).ended(0);
    assert_eq!(place.read("rows.csv"), csv);
    place.run(line).ended(2);
    place.run(&format!("{line} --overwrite")).ended(0);
    reasons_stand_beside_a_table(place);
}

/// Nobody counts tracepoints unasked, and no receiver here maps anything.
fn reasons_stand_beside_a_table(place: &Place) {
    let line = "export last --columns arm,sys_enter,rx_mapped_bytes -o PLACE/why.csv";
    place.run(line).ended(0).says("why.reasons.csv says why fields are empty");
    let reasons = place.read("why.reasons.csv");
    let rows = 4 * 2 * 5 + 2 * 3;
    let expected = format!("1,{rows},sys_enter,not asked for: --tracepoints counts them\n");
    assert_eq!(reasons, format!("first_row,last_row,column,reason\n{expected}"));
    // One of the user's is left alone, and then the table is not written either.
    place.write("mine.reasons.csv", "mine");
    place.fails(&line.replace("why.csv", "mine.csv"), 2, "mine.reasons.csv: it exists");
    assert!(!place.path("mine.csv").exists());
    place.run("export last --columns arm -o PLACE/mine.csv").ended(0);
    assert_eq!(place.read("mine.reasons.csv"), "mine");
}

fn reports_can_be_written(place: &Place) {
    let line = "report last -o PLACE/page.html";
    place.run(line).ended(0);
    assert!(place.read("page.html").len() > 10_000);
    place.run(line).says("--overwrite");
    for how in ["svg", "png", "svg --paper column --overwrite", "png --paper slide --dpi 72"] {
        let folder = if how.contains("slide") { "slides" } else { "figures" };
        let line = format!("report last --figures PLACE/{folder} --format {how}");
        let done = place.run(&line).ended(0);
        assert!(done.stdout.lines().count() >= 2, "{}", done.stdout);
        assert!(done.stdout.lines().all(|path| std::fs::metadata(path).unwrap().len() > 1000));
    }
    let line = "report last --figures PLACE/figures --format svg --dpi 300";
    place.fails(line, 2, "an SVG has no pixels");
    let column = std::fs::read_dir(place.path("figures")).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        path.extension().is_some_and(|e| e == "svg").then(|| std::fs::read_to_string(path).unwrap())
    });
    assert!(column.into_iter().all(|svg| svg.contains(" width=\"89.00mm\" ")));
}

#[test]
fn the_classic_ways_measure_each_arm_once() {
    let place = Place::new();
    for how in ["--sequential-time 50ms", "--sequential-messages 500"] {
        place
            .run(&format!(
                "run net --methods send,sendmsg_iov --sizes 4KiB --threads 2 {how} \
             --network loopback --progress none"
            ))
            .ended(0);
        let rows = place.run("export last --format csv --rows slices").stdout;
        assert_eq!(rows.lines().count() - 1, 3, "{how}: {rows}");
    }
    for [messages] in place.rows("arms", ["messages"]) {
        assert_eq!(messages, "500");
    }
}

#[test]
fn every_way_to_lay_out_a_run_is_measured() {
    for how in [
        "--isolate",
        "--iovec prebuilt",
        "--send-memory cold --fields 1",
        "--threads 8 --fields 64",
        "--methods send,bare_send,null --baseline send",
        "--methods send --strict",
    ] {
        let arms = if how.contains("--methods") { "" } else { ARMS };
        let line = format!(
            "run net --quick --passes 1 --sizes 1KiB --network loopback --progress plain {arms} \
             {how}"
        );
        let done = Place::new().run(&line);
        assert!(done.code.is_some_and(|code| code < 2), "{how}: {}", done.stderr);
        assert!(!done.stderr.contains("failed:"), "{how}: {}", done.stderr);
    }
}

#[test]
fn requests_are_answered_by_every_arm_and_timed_one_by_one() {
    let place = Place::new();
    for threads in [1, 2] {
        let line = format!(
            "run net --mode rr --methods send_staged,sendmsg_iov,sendmsg_zerocopy,memcpy \
             --sizes 1KiB --threads {threads} --network loopback --quick --passes 2"
        );
        place.run(&line).ended(0);
        let columns = ["status", "primitive", "latency_p50_ns", "messages"];
        let mut rows = place.rows("arms", columns);
        rows.retain(|row| row[0] == "ok");
        for primitive in ["send_staged", "sendmsg_iov", "sendmsg_zerocopy"] {
            let of_arm: Vec<_> = rows.iter().filter(|row| row[1] == primitive).collect();
            assert!(!of_arm.is_empty(), "{primitive} × {threads}: {rows:?}");
            for row in of_arm {
                assert!(row[2].parse::<f64>().unwrap() > 1000.0, "{row:?}");
                assert!(row[3].parse::<u64>().unwrap() > 0, "{row:?}");
            }
        }
        let memcpy = rows.iter().find(|row| row[1] == "memcpy").unwrap();
        assert_eq!(memcpy[2], "", "a control answers no requests");
    }
}

/// A name that stands in two places or in the wrong one is a slip in a registry.
#[test]
fn what_is_listed_is_listed_once_and_in_order() {
    let place = Place::new();
    let kinds =
        [("methods", "family"), ("receivers", "family"), ("engines", "task"), ("models", "")];
    for (kind, group) in kinds {
        let listed = place.json(&format!("list {kind} --json"));
        let groups = list(&listed[kind]).chunk_by(|a, b| a[group] == b[group]);
        for names in
            groups.map(|own| own.iter().map(|one| one["name"].as_str()).collect::<Vec<_>>())
        {
            assert!(names.is_sorted_by(|a, b| a < b), "{kind}: {names:?}");
        }
    }
}

#[test]
fn lists_come_from_the_registry() {
    let place = Place::new();
    let shown = place.run("list methods").stdout;
    assert!(shown.contains("send_staged") && !shown.contains("bare_send"), "{shown}");
    assert!(place.run("list methods --all").stdout.contains("bare_send"));
    let listed = place.listed("methods");
    let send = listed.iter().find(|p| p["name"] == "send");
    assert_eq!(send.unwrap()["available"], true, "{listed:?}");
    place.run("list transports").prints("unix_stream").prints("vsock");
    let all = place.json("list --json");
    for transport in list(&all["transports"]) {
        let here = transport["available"] == true;
        assert_eq!(here, transport["unavailable_reason"].is_null(), "{transport}");
    }
    assert!(list(&all["metrics"]).iter().any(|m| m["name"] == "goodput_bits_per_s"));
}

#[test]
fn docs_of_what_is_listed_are_up_to_date() {
    let compiled = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or(compiled, Into::into);
    for what in ["methods", "calls", "models", "metrics"] {
        let file = if what == "methods" { "primitives" } else { what };
        let there = std::fs::read_to_string(package.join(format!("../../docs/{file}.md")));
        let made = Place::new().run(&format!("list {what} --markdown")).stdout;
        assert!(there.is_ok_and(|text| text == made), "out of date: run `cargo xtask docs`");
    }
}

#[test]
fn shells_take_their_completions_and_pages_are_written_once() {
    let place = Place::new();
    let script = place.run("completions bash").stdout;
    let checked = std::process::Command::new("bash").args(["-n", "-c", &script]).output();
    assert!(checked.is_ok_and(|done| done.status.success() && done.stderr.is_empty()));
    place.run("completions tcsh").ended(2);
    let line = format!("man {}", place.path("man/man1").display());
    let written = place.run(&line).ended(0);
    assert!(written.stdout.lines().all(|path| std::path::Path::new(path).exists()));
    place.fails(&line, 2, "replace it with --overwrite");
    assert_eq!(place.run(&format!("{line} --overwrite")).stdout, written.stdout);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    let mut list = place.command("list metrics");
    let mut child = list.stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().code().is_some_and(|code| code == 0));
}
