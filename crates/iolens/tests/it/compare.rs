//! Two stored runs against each other.

use crate::harness::Place;

/// A run of a second or so that tells halves from wholes and nothing finer.
const TINY: &str = "run net --primitives send,sendmsg_iov --threads 1 --topologies loopback \
                    --rounds 5 --passes 3 --delta 90% --precision 50% --progress none --json";

fn measured(place: &Place, further: &str) -> String {
    let run = place.json(&format!("{TINY} {further}"));
    run["run"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn two_runs_are_compared_in_every_form() {
    let place = Place::new();
    let a = measured(&place, "--sizes 1KiB --baseline send");
    let b = measured(&place, "--sizes 1KiB,4KiB --baseline send");
    let json = place.json(&format!("compare {a} last --json"));
    assert_eq!((&json["a"]["id"], &json["b"]["id"]), (&a.as_str().into(), &b.as_str().into()));
    // One cell in common: two arms, a copy of the baseline among them, and the baseline.
    assert_eq!(json["contrasts"], 2);
    assert_eq!(json["changes"].as_array().unwrap().len(), 3, "{json}");
    assert_eq!(json["missing"][0]["cell"]["message_bytes"], 4096);
    let differs = |name: &str| {
        let inputs = json["inputs"].as_array().unwrap().iter();
        inputs.clone().any(|input| input["group"] == "plan" && input["name"] == name)
    };
    assert!(differs("sizes") && !differs("delta") && !differs("seed"), "{json}");

    let text = place.run(&format!("compare {a} {b}"));
    assert!(text.stdout.contains("Inputs that differ"), "{}", text.stdout);
    assert!(text.stdout.contains("slower beyond 90 %"), "{}", text.stdout);
    assert!(text.stdout.contains("Cells that only B has: 4 KiB"), "{}", text.stdout);
    let markdown = place.run(&format!("compare {a} {b} --markdown --absolute"));
    assert!(markdown.stdout.contains("| plan: sizes | "), "{}", markdown.stdout);
    assert!(markdown.stdout.contains("<details>"), "{}", markdown.stdout);

    let same = place.run(&format!("compare {a} {a}"));
    assert_eq!(same.code, Some(0), "{}", same.stdout);
    assert!(same.stdout.contains("1.00 [1.00, 1.00]"), "{}", same.stdout);
    assert!(same.stdout.contains("the same trials"), "{}", same.stdout);

    assert_eq!(place.run(&format!("compare {a} ffffffff")).code, Some(2));
}
