//! Rules: what is found is data and not prose, and what shows it knows no study. A sentence in a
//! finding would be read back by somebody, and a renderer, or a page, with a case for a study
//! would be that study's second home.

use super::Finding;
use super::source::{Source, is_of_word};

/// Where findings are declared.
const FINDINGS: &[&str] = &[
    "crates/report/src/findings.rs",
    "crates/report/src/studies/files/findings.rs",
    "crates/report/src/findings/programs.rs",
    "crates/stats/src/ab/findings.rs",
    "crates/stats/src/reason.rs",
    "crates/stats/src/remark.rs",
];

/// Fields of findings that are text: names that users or the kernel gave, and the reasons of
/// failed trials as they were stored.
const NAMES: &str = "arm baseline beside file_system from high_order_alloc_disable lowest method \
                     methods name reason receiver restricted run to";

/// The crate of documents and their renderers, and the only module of the model that it may use.
const RENDERERS: &str = "document";
const RENDERERS_KNOW: &str = "iolens_model::units";

/// Where reports name studies, and the runs that their tests are of.
const STUDIES: [&str; 2] = ["crates/report/src/studies", "crates/report/src/fixture"];

/// Findings in one file.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for line in source.own_lines() {
        let mut say = |message: String| found.push(source.finding(line.number, message));
        if FINDINGS.contains(&source.path.as_str()) {
            for name in
                text_fields(&line.code).filter(|name| !NAMES.split(' ').any(|known| known == *name))
            {
                say(format!("`{name}` of a finding is text: make it data, and words of it later"));
            }
        }
        let is_model = |code: &str| code.replace(RENDERERS_KNOW, "").contains("iolens_model");
        if source.package() == RENDERERS && is_model(&line.code) {
            say(format!("renderers know {RENDERERS_KNOW} and no study"));
        }
        let is_of_studies = STUDIES.iter().any(|place| source.path.starts_with(place));
        if source.package() == "report" && !is_of_studies && line.code.contains("Study::") {
            say(format!("ask the entry of a study, in {}", STUDIES[0]));
        }
    }
    found
}

/// The names of fields of type `String`, or of several, in a line of code.
fn text_fields(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("String").filter_map(|(at, _)| {
        let before = code[..at].trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '<');
        let name = before.trim_end().strip_suffix(':')?;
        let name = &name[name.rfind(|c| !is_of_word(c)).map_or(0, |sign| sign + 1)..];
        (!name.is_empty()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(path, text)).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_sentence_in_a_finding_is_found() {
        let text = "enum Finding {\n    Tie { methods: Vec<String>, why: Option<String> },\n}\n\
                    fn words() -> String {\n";
        let why = "crates/stats/src/remark.rs:2: `why` of a finding is text: make it data, and \
                   words of it later";
        assert_eq!(said("crates/stats/src/remark.rs", text), [why]);
        assert!(said("crates/stats/src/other.rs", text).is_empty());
    }

    #[test]
    fn a_renderer_that_knows_a_study_is_found() {
        let text = "use iolens_model::units::Bytes;\nuse iolens_model::plan::Plan;\n";
        let found = ["crates/document/src/html.rs:2: renderers know iolens_model::units and no \
                      study"];
        assert_eq!(said("crates/document/src/html.rs", text), found);
        assert!(said("crates/report/src/html.rs", text).is_empty());
    }

    #[test]
    fn a_page_that_knows_a_study_is_found() {
        let text = "fn unit(study: Study) -> bool {\n    study == Study::Net\n}\n";
        let found = ["crates/report/src/html.rs:2: ask the entry of a study, in \
                      crates/report/src/studies"];
        assert_eq!(said("crates/report/src/html.rs", text), found);
        assert!(said("crates/report/src/studies/net.rs", text).is_empty());
        assert!(said("crates/iolens/src/menu.rs", text).is_empty());
    }

    #[test]
    fn every_place_of_findings_is_there() {
        let root = crate::root();
        assert!(FINDINGS.iter().all(|path| root.join(path).is_file()));
    }
}
