//! `iolens ab`, as a user meets it: tiny programs and a few seconds.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Finished, Place, finished, list, started, wait_until_gone};

/// Speaks the loop protocol; an operation is as many turns as its argument says.
pub(crate) const LOOP: &str = "#!/bin/sh
echo ready
while read n; do
    i=$((n * $1))
    while [ $i -gt 0 ]; do i=$((i - 1)); done
    echo ok
done
";

/// A place with a program `loop`.
pub(crate) fn with_programs() -> Place {
    let place = Place::new();
    program(&place, "loop", LOOP);
    place
}

pub(crate) fn program(place: &Place, name: &str, text: &str) {
    place.write(name, text);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(name), executable).unwrap();
}

/// Compares commands.
pub(crate) fn ab(place: &Place, flags: &str, commands: &[&str]) -> Finished {
    finished(command(place, flags, commands).output().unwrap())
}

fn command(place: &Place, flags: &str, commands: &[&str]) -> Command {
    let folder = place.path("");
    let folder = folder.to_str().unwrap().trim_end_matches('/');
    let mut command = place.command(&format!("ab {flags}"));
    command.args(commands.iter().map(|line| line.replace("PLACE", folder)));
    command
}

fn contrast<'a>(result: &'a Value, quantity: &str) -> &'a Value {
    let contrasts = list(&result["settings"][0]["contrasts"]);
    contrasts.iter().find(|contrast| contrast["quantity"] == quantity).unwrap()
}

#[test]
fn twice_the_work_is_slower_by_cpu_time_and_stays_in_the_database() {
    let place = with_programs();
    let flags = "--loop --names one,two --judge cpu --budget 30s --json";
    let result = ab(&place, flags, &["PLACE/loop 20", "PLACE/loop 40"]).ended(1).json();
    assert_eq!(result["schema"], "iolens-ab/1");
    let cpu = contrast(&result, "cpu");
    assert_eq!((&cpu["verdict"], &cpu["arm"]), (&"SLOWER".into(), &"two".into()), "{cpu}");
    let change = cpu["change"].as_f64().unwrap();
    assert!((0.5..1.5).contains(&change), "{change}");

    // What was stored says the same.
    let shown = place.json("show last --json");
    assert_eq!(contrast(&shown, "cpu"), cpu);
    place.run("show last").ended(0).prints("two is SLOWER than one");
    // Those that count system calls are no trials of the comparison.
    let rows = place.exported("arms");
    let is_trial = |row: &&Value| row["role"] == "baseline" && row["pass"] != 0;
    let trials = rows.iter().filter(is_trial).count();
    assert!(trials >= 12 && rows.iter().any(|row| row["pass"] == 0), "{trials}");
    assert_eq!(place.json("runs --json")[0]["trials"], trials);
    let slices = place.exported("slices");
    assert!(slices.len() > 100, "{}", slices.len());
    place.run("report last").ended(0);
    // Programs are measured anew, not gone on with.
    place.refuses("resume last", 2, "a run of `ab` cannot be continued");
}

#[test]
fn the_same_command_twice_is_not_slower() {
    let place = with_programs();
    let flags = "--loop --budget 4s --json=PLACE/result.json";
    let commands = ["PLACE/loop 20", "PLACE/loop 20"];
    ab(&place, flags, &commands).ended(0).prints("Verdict");
    let result: Value = serde_json::from_str(&place.read("result.json")).unwrap();
    assert_eq!(list(&result["settings"][0]["arms"]).len(), 2);
    // A file of the user's is not written over.
    ab(&place, flags, &commands).ended(2).says("exists");
}

#[test]
fn whole_commands_are_compared_and_so_is_what_they_print() {
    let place = with_programs();
    program(
        &place,
        "turns",
        "#!/bin/sh\ni=$1\nwhile [ $i -gt 0 ]; do i=$((i - 1)); done\necho $2\n",
    );
    let commands = ["PLACE/turns 5000 x", "PLACE/turns 20000 x"];
    let result = ab(&place, "--judge cpu --budget 30s --json", &commands).ended(1).json();
    assert_eq!(contrast(&result, "cpu")["verdict"], "SLOWER");
    let commands = ["PLACE/turns 5000 x", "PLACE/turns 5000 y"];
    let refused = ab(&place, "--budget 5s", &commands).ended(4);
    refused.says("line 1: `x` (A), `y` (B)").says("--different-output");
}

#[test]
fn a_program_is_kept_and_compared_with_when_it_has_changed() {
    let place = with_programs();
    place.run("keep").ended(0).prints("no programs are kept");
    place.run("keep PLACE/loop --as v1").ended(0).prints("kept v1");
    place.refuses("keep PLACE/loop --as v1", 2, "is kept as v1 already");
    place.refuses("keep PLACE/loop --as ..", 2, "..");
    place.run("keep").ended(0).prints("v1  SHA-256 ");
    program(&place, "loop", &LOOP.replace("n * $1", "2 * n * $1"));
    let flags = "--loop --judge cpu --budget 30s --against v1 --names now --json";
    let result = ab(&place, flags, &["PLACE/loop 20"]).ended(1).json();
    let cpu = contrast(&result, "cpu");
    assert_eq!((&cpu["baseline"], &cpu["arm"]), (&"v1".into(), &"now".into()));
    place.run("keep --rm v1").ended(0).prints("removed v1");
    place.refuses("keep --rm v1", 2, "nothing is kept yet");
}

#[test]
fn parameters_are_settings() {
    let place = with_programs();
    let flags = "--loop --judge cpu --budget 40s --with n=10,20 --slice 1ms --json";
    let result = ab(&place, flags, &["PLACE/loop {n}", "PLACE/loop 40"]).ended(1).json();
    let values: Vec<&Value> =
        list(&result["settings"]).iter().map(|setting| &setting["values"]["n"]).collect();
    assert_eq!(values, ["10", "20"]);
}

#[test]
fn two_runs_beside_one_baseline_are_compared() {
    let place = with_programs();
    let flags = |name: &str| format!("--loop --judge cpu --budget 30s --name {name} --json");
    ab(&place, &flags("before"), &["PLACE/loop 20", "PLACE/loop 40"]).ended(1);
    ab(&place, &flags("after"), &["PLACE/loop 20", "PLACE/loop 80"]).ended(1);
    ab(&place, &flags("other"), &["PLACE/loop 21", "PLACE/loop 40"]).ended(1);
    let done = place.run("compare before after --json").ended(1).json();
    let change = &done["settings"][0]["changes"][0];
    assert_eq!((&change["verdict"], &change["b"]["arm"]), (&"SLOWER".into(), &"B".into()));
    let by = change["change"].as_f64().unwrap();
    assert!((0.5..1.5).contains(&by), "{change}");
    place.run("compare before after").ended(1).prints("B is SLOWER in run B by more than 3%");
    place.run("compare before after --markdown").ended(1).prints("| B CPU | ");
    place.run("compare before before").ended(0).prints("the same trials");
    place.refuses("compare before other", 2, "baselines have different arguments");
    place.refuses("compare before after --absolute", 2, "--absolute");
}

#[test]
fn a_plan_has_several_benches_that_are_judged_together() {
    let place = with_programs();
    program(&place, "twice", &LOOP.replace("n * $1", "2 * n * $1"));
    let folder = place.path("").display().to_string();
    let plan = "loop = true\nnames = \"old,new\"\njudge = \"cpu\"\nbudget = \"1s\"\n\
                [[bench]]\nname = \"few\"\ncommands = [\"PLACEtwice 10\", \"PLACEloop 40\"]\n\
                [[bench]]\nname = \"many\"\ncommands = [\"PLACEloop {n}\", \"PLACEloop 80\"]\n\
                with = \"n=20,30\"\n";
    let suite = place.write("suite.toml", plan.replace("PLACE", &folder));
    // A flag counts more than the file.
    let result = ab(&place, "--budget 40s --json", &[&suite]).ended(1).json();
    let settings = list(&result["settings"]);
    let values = |key: &str| settings.iter().map(|one| one["values"][key].clone()).collect();
    let benches: Vec<Value> = values("bench");
    assert_eq!(benches, ["few", "many", "many"]);
    assert_eq!(values("n"), [Value::Null, "20".into(), "30".into()]);
    for setting in settings {
        assert_eq!(list(&setting["contrasts"])[0]["verdict"], "SLOWER", "{result}");
    }
    let programs = list(&result["programs"]);
    assert_eq!((&programs[3]["bench"], &programs[3]["name"]), (&"many".into(), &"new".into()));
    let [few, many] = [0, 2].map(|nth| programs[nth]["sha256"].clone());
    assert!(few.is_string() && few != many, "{result}");
    place.run("show last").ended(0).prints("bench few").prints("bench many, n 30");
    place.run("report last").ended(0);
}

#[test]
fn a_plan_that_cannot_be_is_told_at_once() {
    const BENCH: &str = "[[bench]]\nname = \"a\"\ncommands = [\"x\", \"y\"]\n";
    let place = with_programs();
    let check = |text: &str, words: &str| {
        let suite = place.write("suite.toml", text);
        ab(&place, "", &[&suite]).ended(2).says(words);
    };
    check("", "there is no command in it");
    check("treshold = 1", "suite.toml:1:1: unknown key `treshold`, did you mean `threshold`?");
    check("[[bench]]\nname = \"a\"\ncommands = [\"x\"]", "nothing to compare");
    check(&format!("with = \"n=1\"\n{BENCH}"), "no command contains {n}");
    check(&format!("loop = true\ninput = \"x\"\n{BENCH}"), "`input` is for whole commands");
    let three = "[[bench]]\nname = \"b\"\ncommands = [\"x\", \"y\", \"z\"]\n";
    check(&format!("{BENCH}{three}"), "bench b: it has 3 commands for 2 programs (A, B)");
    check(BENCH, "a: A: ");
    ab(&place, "", &["nowhere.toml"]).ended(2).says("cannot read the plan nowhere.toml");
}

#[test]
fn what_is_typed_goes_before_a_bench_and_a_bench_before_its_suite() {
    let place = with_programs();
    let text = r#"
with = ["n=1", "m=1"]
input = "in"
[[bench]]
name = "a"
commands = ["x {n} {m} {k}", "y"]
with = ["m=2", "k=2"]
input = "own"
prepare = "sync"
[[bench]]
name = "b"
commands = ["x {k}", "y {m}"]
with = "k=3"
"#;
    let suite = place.write("suite.toml", text);
    let settings = |flags: &str| {
        let plan = ab(&place, &format!("{flags} --print-plan --json"), &[&suite]).ended(0).json();
        let of = |parameter: &Value| {
            format!("{}={}", parameter["name"], parameter["values"][0]).replace('"', "")
        };
        let bench = |bench: &Value| {
            let with: Vec<String> = list(&bench["parameters"]).iter().map(of).collect();
            (with.join(" "), bench["input"].clone(), bench["prepare"][0].clone())
        };
        let benches: Vec<_> = list(&plan["benches"]).iter().map(bench).collect();
        (benches, plan["input"].clone(), plan["prepare"][0].clone())
    };
    let (benches, input, prepare) = settings("");
    assert_eq!(benches[0], ("n=1 m=2 k=2".to_owned(), "own".into(), "sync".into()));
    assert_eq!(benches[1], ("m=1 k=3".to_owned(), Value::Null, Value::Null));
    assert_eq!((input, prepare), ("in".into(), Value::Null));
    let (benches, input, prepare) = settings("--with m=9 --with k=8 --input typed --prepare true");
    assert_eq!(benches[0], ("m=9 k=8 n=1".to_owned(), Value::Null, Value::Null));
    assert_eq!(benches[1], ("m=9 k=8".to_owned(), Value::Null, Value::Null));
    assert_eq!((input, prepare), ("typed".into(), "true".into()));
    // What is printed says the same.
    let printed = ab(&place, "--with m=9 --input typed --print-plan", &[&suite]).ended(0);
    let again = place.write("again.toml", &printed.stdout);
    ab(&place, "--print-plan", &[&again]).ended(0).prints(&printed.stdout);
}

#[test]
fn a_printed_plan_gives_the_same_run() {
    let place = with_programs();
    let check = |flags: &str, commands: &[&str], words: &[&str]| {
        let printed = ab(&place, &format!("{flags} --print-plan"), commands).ended(0);
        words.iter().for_each(|word| {
            printed.prints(word);
        });
        let plan = ab(&place, &format!("{flags} --seed 5 --print-plan --json"), commands).json();
        let file = place.write("printed.toml", &printed.stdout);
        let again = ab(&place, "--print-plan", &[&file]).ended(0).stdout;
        assert_eq!(again, printed.stdout);
        let again = ab(&place, "--seed 5 --print-plan --json", &[&file]).ended(0).json();
        assert_eq!(again, plan);
    };
    let flags = "--loop --with n=1,2 --cpus 0 --slice 1ms --start-limit 2s --warmup 300ms \
                 --no-calls --judge cpu --threshold 2% --budget 90s --name nightly";
    let words = ["warmup = \"300ms\"", "start_limit = \"2s\"", "cpus = [0]", "no_calls = true"];
    check(flags, &["x 'a b' {n}", "y"], &words);
    check("--input in --prepare sync --ignore-exit", &["x", "sh -c 'a | b'"], &["input"]);
    check("--loop --links --names a,b", &["x-*", "y-[1-8] z"], &["links = true"]);
    place.run("keep PLACE/loop --as v1").ended(0);
    check("--loop --against v1", &["PLACE/loop 20"], &["names = [\"v1\", \"B\"]"]);
    let suite = "with = \"n=1,2\"\n[[bench]]\nname = \"a\"\ncommands = [\"x {n}\", \"y\"]\n\
                 [[bench]]\nname = \"b\"\ncommands = [\"x\", \"y\"]\nprepare = \"sync\"\n";
    let suite = place.write("suite.toml", suite);
    check("--threshold 1%", &[&suite], &["[[bench]]", "prepare = \"sync\""]);
    // Nothing was measured.
    place.fails("runs", 4, "no results yet");
}

#[test]
fn programs_warm_up_for_as_long_as_is_said() {
    let place = with_programs();
    let flags = "--loop --warmup 100ms --no-calls --budget 1s --json";
    let begun = Instant::now();
    ab(&place, flags, &["PLACE/loop 20", "PLACE/loop 20"]).ended(0);
    let took = begun.elapsed();
    let trials = place.json("runs --json")[0]["trials"].as_u64().unwrap();
    // Two programs and their copies in each.
    assert!(trials > 0 && took > Duration::from_millis(400 * trials), "{took:?}, {trials} trials");
    place.run("show last").ended(0);
}

/// Programs that are slow to start leave the budget no time for that.
#[test]
fn calls_are_not_counted_beyond_the_budget() {
    let place = with_programs();
    program(&place, "late", &LOOP.replace("echo ready", "sleep 0.3; echo ready"));
    let late = ["PLACE/late 20", "PLACE/late 20"];
    let result = ab(&place, "--loop --budget 1s --json", &late).ended(0).json();
    let arm = &result["settings"][0]["arms"][1];
    assert_eq!(arm["calls"], serde_json::json!([]));
    let why = "system calls are not counted: the budget has no time for that";
    assert_eq!(arm["calls_missing"], why);
    let all = format!("{why} (A, B)");
    place.run("show last").ended(0).prints(&all);
}

#[test]
fn who_interrupts_it_gets_what_there_is_and_nothing_stays() {
    let place = with_programs();
    let long = ["PLACE/loop 20", "PLACE/loop 20"];
    let flags = "--loop --threshold 0.01% --budget 10m --progress plain";
    let mut running = started(command(&place, flags, &long));
    running.wait_for("committed: pass 2");
    let programs = running.programs();
    running.interrupted().ended(130).prints("interrupted");
    wait_until_gone(&programs);
    place.run("runs").ended(0).prints("interrupted");

    let mut running = started(command(&place, flags, &long));
    running.wait_for("committed: pass 2");
    let programs = running.programs();
    running.killed();
    wait_until_gone(&programs);
    place.run("show last").ended(0).prints("not ended, or killed");
}

#[test]
fn what_commands_have_started_goes_with_a_killed_iolens() {
    let place = Place::new();
    let told = place.path("told");
    let waits = format!(
        "#!/bin/sh\nsh -c 'tail -f /dev/null; exit' & echo $! >{0}.new; mv {0}.new {0}; wait\n",
        told.to_str().unwrap()
    );
    program(&place, "waits", &waits);
    let flags = "--budget 10m --progress plain";
    let running = started(command(&place, flags, &["PLACE/waits", "PLACE/waits"]));
    let begin = Instant::now();
    while !told.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no command was started");
        std::thread::yield_now();
    }
    let child = std::fs::read_to_string(&told).unwrap().trim().parse().unwrap();
    running.killed();
    wait_until_gone(&[child]);
}

#[test]
fn what_is_no_such_program_is_told_at_once() {
    let place = with_programs();
    program(&place, "mute", "#!/bin/sh\nexit 3\n");
    let check = |flags: &str, commands: &[&str], words: &str| {
        ab(&place, flags, commands).ended(2).says(words);
    };
    check("--loop", &["PLACE/loop 1", "PLACE/nowhere"], "nowhere");
    check("--loop", &["PLACE/loop 1", "PLACE/mute"], "`B` in its set-up");
    check("", &["PLACE/loop 1"], "nothing to compare");
    check("--against v1", &["PLACE/loop 1"], "no program is kept as v1");
    check("--names a,a", &["PLACE/loop 1", "PLACE/loop 1"], "two programs are called a");
    check("--names a", &["x", "y"], "--names names 1 of 2 commands");
    check("--with b=1", &["x {a}", "y"], "no command contains {b}");
    check("--slice 1ms", &["true", "true"], "--slice is for loops");
    let plan = place.write("plan.toml", "commands = ['true', 'true']\nstart_limit = '1s'\n");
    check("", &[&plan], "`start_limit` is for loops, not for whole commands");
    check("--threshold 1", &["true", "true"], "did you mean 1%?");
    check("", &[&plan, "true"], "is a plan, which has the commands in itself");
    check("--json --markdown", &["true", "true"], "name a file for one of them: --json=FILE");
    let twice = "--json=PLACE/result --markdown=PLACE/./result";
    check(twice, &["true", "true"], "--json and --markdown both write");
    check("--json=same --markdown=./same", &["true", "true"], "both write same\n");
    check("--json=PLACE/nowhere/a.json", &["true", "true"], "cannot write");
    check("--warmup 1ms", &["true", "true"], "each run of a command is a fresh process");
    check("--loop --cpus 4000", &["PLACE/loop 1", "PLACE/loop 1"], "cannot use CPU 4000");
    program(&place, "slow", "#!/bin/sh\nsleep 60\n");
    check("--loop --start-limit 100ms", &["PLACE/loop 1", "PLACE/slow"], "within 100 ms");
    place.refuses("run ab", 2, "iolens ab 'COMMAND A' 'COMMAND B'");
    let check = |flags: &str, commands: &[&str], expect: &str| {
        ab(&place, flags, commands).ended(2).says(expect);
    };
    check("", &["sort < a", "sort -u a"], "no shell sees `sort < a`: < would be an argument");
    check("--with n=1,2", &["true {n}", "true {m}"], "{m} has no values: --with names n");
    check("", &["sh -c 'echo ready; cat'", "sh -c 'echo ready; cat'"], "which --loop measures");
    check("--loop", &["sh -c 'echo ready; while read n; do echo ok; done'"; 2], "does not grow");
}

/// Copies of the shell with bytes behind their end, which no layout depends on.
fn links(place: &Place, side: &str, n: usize) {
    let shell = std::fs::read("/bin/sh").unwrap();
    for link in 0..n {
        let name = format!("{side}-{link}");
        place.write(&name, [&shell[..], side.as_bytes(), &[b'0'; 64][..=link]].concat());
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path(&name), executable).unwrap();
    }
}

#[test]
fn links_take_turns_and_each_runs_as_often_as_the_others() {
    let place = with_programs();
    links(&place, "one", 4);
    links(&place, "two", 4);
    let commands = ["PLACE/one-* PLACE/loop 20", "PLACE/two-? PLACE/loop 40"];
    let flags = "--loop --links --names one,two --judge cpu --budget 30s --json";
    let result = ab(&place, flags, &commands).ended(1).json();
    let cpu = contrast(&result, "cpu");
    assert_eq!((&cpu["verdict"], &cpu["layout_allowance"]), (&"SLOWER".into(), &Value::Null));
    assert_eq!(list(&cpu["links"]["arm"]["each"]).len(), 4);
    assert_eq!(result["settings"][0]["arms"][0]["links"], 4);
    assert_eq!(list(&result["programs"][1]["links"]).len(), 4);

    // Arms and their copies run one link, which is stored.
    let mut trials = 0;
    for side in ["one", "two"] {
        let rows = place.exported("arms");
        let mut used: BTreeMap<String, u32> = BTreeMap::new();
        for row in rows.iter().filter(|row| row["primitive"] == side && row["pass"] != 0) {
            *used.entry(row["link"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        assert_eq!(used.len(), 4, "{used:?}");
        trials = used.values().copied().max().unwrap();
        assert!(used.values().all(|n| *n == trials), "{used:?}");
    }
    assert!(trials >= 6, "{trials}");
    place.run("show last").ended(0).prints("4 links of one differ in CPU by up to");
}

#[test]
fn links_of_whole_commands_are_compared() {
    let place = with_programs();
    program(&place, "turns", "i=$1\nwhile [ $i -gt 0 ]; do i=$((i - 1)); done\n");
    links(&place, "one", 4);
    let commands = ["PLACE/one-* PLACE/turns 5000", "PLACE/one-* PLACE/turns 20000"];
    let flags = "--links --judge cpu --budget 40s --no-calls --json";
    let result = ab(&place, flags, &commands).ended(1).json();
    assert_eq!(contrast(&result, "cpu")["verdict"], "SLOWER");
}

#[test]
fn what_are_no_links_of_one_source_is_told_at_once() {
    let place = with_programs();
    links(&place, "one", 16);
    links(&place, "two", 15);
    std::fs::copy(place.path("one-1"), place.path("one-x")).unwrap();
    let check = |commands: &[&str], words: &str| {
        ab(&place, "--loop --links", commands).ended(2).says(words);
    };
    check(&["PLACE/one-[0-3]", "PLACE/none-*"], "B: `");
    check(&["PLACE/one-[0-2]", "PLACE/two-*"], "names 3 files");
    check(&["PLACE/one-*", "PLACE/two-*"], "hold the same bytes");
    check(&["PLACE/loo*", "PLACE/two-*"], "is no ELF file");
    check(&["PLACE/one-*[0-9]", "PLACE/two-*"], "16 and 15 links");
    let flags = "--loop --links --against v1";
    ab(&place, flags, &["PLACE/one-*"]).ended(2).says("cannot be used with");
}

#[test]
fn servers_are_models_of_run_server() {
    let place = Place::new();
    // Too short for the study that it is.
    let flags = "--server --names old,new --budget 1s --progress none";
    let said = ab(&place, flags, &["true {port}", "false {port}"]).ended(2);
    said.says("a budget of 1.00 s is shorter than one pass over 6 settings");
    ab(&place, "--server", &["true", "false {port}"])
        .ended(2)
        .says("the command of A lacks {port}");
    ab(&place, "--server --loop", &["true {port}", "false {port}"]).ended(2).says("--loop");
}
