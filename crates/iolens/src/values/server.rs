//! The values of a study of servers, and of programs of the user's, as users write them.

use iolens_engine::server::services::Spec;
use iolens_model::copy::External;
use iolens_model::shell;

use super::{List, Parsed, each, load};

/// What a program that copies must be told, or it copies nothing that we know of.
pub(crate) const OF_COPIES: &[&str] = &["{src}", "{dst}"];

/// What a program that serves must be told, or nobody finds it.
pub(crate) const OF_SERVERS: &[&str] = &["{port}"];

/// The first of some placeholders that a program is not told.
pub(crate) fn lacking(argv: &[String], placeholders: &[&'static str]) -> Option<&'static str> {
    let lacks = |key: &&&str| !argv.iter().any(|argument| argument.contains(**key));
    placeholders.iter().find(lacks).copied()
}

/// Services of a server, each as it is written.
pub(crate) fn services(text: &str) -> Parsed<List<String>> {
    each(text, |item| Spec::parse(item).map(|_| item.to_owned()))
}

pub(crate) fn connections(text: &str) -> Parsed<List<u32>> {
    each(text, load::connections)
}

/// `NAME=prog {src} {dst}` or `NAME=prog {port}`, split as a shell would split it, of
/// which there is none.
pub(crate) fn external(text: &str) -> Parsed<External> {
    let advice = "write NAME='prog {src} {dst} {block}', or of a server NAME='prog {port}'";
    let (name, command) =
        text.split_once('=').ok_or_else(|| format!("`{text}` names no program: {advice}"))?;
    let name = name.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!(
            "`{name}` is not a name of an arm: write letters, digits, `_`, `-` and `.`; {advice}"
        ));
    }
    let argv = shlex::split(command)
        .ok_or_else(|| format!("`{command}` has a quotation mark that is not closed"))?;
    if argv.is_empty() {
        return Err(format!("`{name}` names no program: {advice}"));
    }
    if let Some(key) = lacking(&argv, OF_COPIES).filter(|_| lacking(&argv, OF_SERVERS).is_some()) {
        return Err(format!(
            "`{command}` lacks {key}, or of a server {{port}}: it would not know what to work on; \
             {advice}"
        ));
    }
    if argv[0].contains('{') {
        return Err(format!("`{}` is not a program: {advice}", argv[0]));
    }
    Ok(External { name: name.to_owned(), argv })
}

/// A program as it is asked for.
pub(crate) fn written_external(external: &External) -> String {
    format!("{}={}", external.name, shell::join(&external.argv))
}
