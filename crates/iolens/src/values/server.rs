//! Values that servers, their clients and programs of the user take.

use std::net::{IpAddr, Ipv4Addr};

use iolens_model::ab::AbParameter;
use iolens_model::external::External;
use iolens_model::units::Bytes;
use iolens_model::{command_line, parse};
use iolens_server::services::Spec;

use super::{List, Parsed, at_most, distinct, each, no_larger};

/// What a program that copies must be told, or it copies nothing that we know of.
pub(crate) const OF_COPIES: &[&str] = &["{src}", "{dst}"];

/// What a program that sends must be told, or it sends something else or elsewhere.
pub(crate) const OF_SENDERS: &[&str] = &["{port}", "{size}"];

/// What a program that reads must be told, or it reads something else.
pub(crate) const OF_READERS: &[&str] = &["{file}", "{block}"];

/// What a program that makes calls must be told where sizes are asked for.
pub(crate) const OF_CALLERS: &[&str] = &["{size}"];

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
    each(text, open_connections)
}

/// `NAME=COMMAND`, such as `mine=prog {port}`, split as a shell would split it, of which there is
/// none.
pub(crate) fn external(text: &str) -> Parsed<External> {
    let advice = "write NAME='COMMAND'";
    let (name, command) =
        text.split_once('=').ok_or_else(|| format!("`{text}` names no program: {advice}"))?;
    let name = name.trim();
    program_name(name).map_err(|why| format!("{why}; {advice}"))?;
    let argv = shlex::split(command)
        .ok_or_else(|| format!("`{command}` has a quotation mark that is not closed"))?;
    if argv.is_empty() {
        return Err(format!("`{name}` names no program: {advice}"));
    }
    if argv[0].contains('{') {
        return Err(format!("`{}` is not a program: {advice}", argv[0]));
    }
    Ok(External { name: name.to_owned(), argv })
}

/// Refuses what cannot be the name of a program that is an arm.
pub(crate) fn program_name(name: &str) -> Parsed<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is not a name of an arm: write letters, digits, `_`, `-` and `.`"
        )),
    }
}

/// The name of a program that is kept, which is that of a file.
pub(crate) fn kept_name(text: &str) -> Parsed<String> {
    program_name(text)?;
    match text.trim_matches('.').is_empty() {
        true => Err(format!("`{text}` is not a file name")),
        false => Ok(text.to_owned()),
    }
}

/// `size=1KiB,64KiB`: a parameter of commands.
pub(crate) fn parameter(text: &str) -> Parsed<AbParameter> {
    let advice = "write NAME=VALUE,VALUE";
    let (name, values) =
        text.split_once('=').ok_or_else(|| format!("`{text}` has no values: {advice}"))?;
    program_name(name.trim()).map_err(|_| format!("`{name}` is not a name: {advice}"))?;
    let values = each(values, |value| Ok(value.to_owned()))?;
    Ok(AbParameter { name: name.trim().to_owned(), values })
}

/// A program as it is asked for.
pub(crate) fn written_external(external: &External) -> String {
    format!("{}={}", external.name, command_line::join(&external.argv))
}

/// Connections of a load: a thread has very many.
pub(crate) fn open_connections(text: &str) -> Parsed<u32> {
    at_most(text, 1 << 20, "connections")
}

pub(crate) fn load_threads(text: &str) -> Parsed<u32> {
    at_most(text, 1024, "threads")
}

/// Requests per second: `20000`, `0.5`, `20k`, `1000/s`.
pub(crate) fn rate(text: &str) -> Parsed<f64> {
    const RATE_MAX: f64 = 1e8;
    let number = text.trim().trim_end_matches("/s").trim_end();
    let (number, scale) = match number.strip_suffix('k') {
        Some(thousands) => (thousands, 1e3),
        None => (number, 1.0),
    };
    match number.parse::<f64>().map(|rate| rate * scale) {
        Ok(rate) if rate > 0.0 && rate <= RATE_MAX => Ok(rate),
        _ => Err(format!(
            "`{text}` is not a rate: write requests per second, above 0 and at most {RATE_MAX}, \
             like 20000 or 20k"
        )),
    }
}

/// Text of a request: a server must take up to 64 KiB, and may refuse more.
pub(crate) fn text(text: &str) -> Parsed<Bytes> {
    no_larger(parse::size(text)?, Bytes(Bytes::MIB), "text", "the largest")
}

/// A path of HTTP, as it goes into a request.
pub(crate) fn http_path(text: &str) -> Parsed<String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    match text.starts_with('/') && is_plain {
        true => Ok(text.to_owned()),
        false => Err(format!("`{text}` is not a path: it begins with / and has no blanks")),
    }
}

/// Addresses as a list or ranges of the last number: `127.0.0.1-127.0.0.8,10.0.0.1`.
pub(crate) fn sources(text: &str) -> Parsed<List<IpAddr>> {
    const SOURCES_MAX: u32 = 65_536;
    let refused = |item: &str| {
        format!(
            "`{item}` is not an address or a range of them: write 127.0.0.1 or \
             127.0.0.1-127.0.0.8, {SOURCES_MAX} addresses at most"
        )
    };
    let mut all = Vec::new();
    for item in parse::items(text)? {
        let Some((from, to)) = item.split_once('-') else {
            all.push(item.parse().map_err(|_| refused(item))?);
            continue;
        };
        let number = |text: &str| text.trim().parse::<Ipv4Addr>().map(u32::from);
        match (number(from), number(to)) {
            (Ok(from), Ok(to)) if from <= to && to - from < SOURCES_MAX => {
                all.extend((from..=to).map(|number| IpAddr::V4(number.into())));
            }
            _ => return Err(refused(item)),
        }
    }
    Ok(distinct(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_requests_per_second() {
        let check = |text: &str, expect: f64| assert_eq!(rate(text), Ok(expect), "{text}");
        check("20000", 20_000.0);
        check("20k", 20_000.0);
        check("0.5/s", 0.5);
        for wrong in ["0", "-1", "nan", "inf", "1e9", "fast", "1m"] {
            assert!(rate(wrong).unwrap_err().contains("requests per second"), "{wrong}");
        }
    }

    #[test]
    fn sources_are_addresses_and_ranges() {
        let check = |text: &str, expect: &[&str]| {
            let expect: Vec<IpAddr> = expect.iter().map(|ip| ip.parse().unwrap()).collect();
            assert_eq!(sources(text).unwrap(), expect, "{text}");
        };
        check("127.0.0.9", &["127.0.0.9"]);
        check("127.0.0.255-127.0.1.1, 127.0.0.255", &["127.0.0.255", "127.0.1.0", "127.0.1.1"]);
        check("::1", &["::1"]);
        for wrong in ["127.0.0.2-127.0.0.1", "a", "::1-::2", "0.0.0.0-255.255.255.255"] {
            assert!(sources(wrong).unwrap_err().contains("127.0.0.1-127.0.0.8"), "{wrong}");
        }
    }

    #[test]
    fn a_path_goes_into_a_request_as_it_is() {
        assert_eq!(http_path("/a?b=c").as_deref(), Ok("/a?b=c"));
        assert!(
            http_path("a").is_err() && http_path("/a b").is_err() && http_path("/a\r\n").is_err()
        );
    }
}
