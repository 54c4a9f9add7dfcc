//! The words of a page, in one place.

use iolens_document::{Fact, Node, Section};
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use crate::number::percent;

pub(super) fn section(run: &Run, analysis: &Analysis) -> Section {
    let baseline = &run.header.plan.baseline;
    let tie = format!(
        "a tie is shown to be within {}; what is too close to call is not ranked by this run",
        percent(analysis.delta)
    );
    let here = format!("the method that others are compared with; here {baseline}");
    let words = [
        (
            "95% interval",
            "would contain the true value in 95 of 100 such runs on this machine and boot; those \
             shown hold for all comparisons together",
        ),
        ("baseline", &here),
        ("copied", "a zero-copy send whose bytes the kernel copied after all, by its own report"),
        ("crossover", "the message size at which one method overtakes another"),
        ("hot, cold", "send buffers fit the L2 cache, or exceed the last-level cache"),
        (
            "loopback, veth, sink, peer",
            "one network namespace; two, joined by a virtual cable; a device that drops \
             everything; another machine",
        ),
        ("noise floor", "the smallest difference that this run can see"),
        ("note", "something that a check noticed and let pass"),
        ("quick look", "a run too short for verdicts"),
        ("self-check", "the baseline measured a second time in hiding; any difference is noise"),
        (
            "stalls",
            "rare slices far slower than the rest; changes are of the median slice, exports have \
             totals, which include stalls",
        ),
        ("stream, rr", "one-way messages, or request and response"),
        ("tie, too close to call", &tie),
        ("trial", "one setting, measured once, in fresh processes; n counts trials"),
    ];
    let facts = words.into_iter().map(|(word, means)| Fact::new(word, means)).collect();
    Section::new("words", "Glossary", vec![Node::Facts(facts)])
}
