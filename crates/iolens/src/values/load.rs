//! The values of `iolens load` as users write them.

use std::net::{IpAddr, Ipv4Addr};

use iolens_model::parse;
use iolens_model::units::Bytes;

use super::{List, Parsed, at_most, distinct, no_larger};

/// Connections of a load: a thread has very many.
pub(crate) fn connections(text: &str) -> Parsed<u32> {
    at_most(text, 1 << 20, "connections")
}

pub(crate) fn threads(text: &str) -> Parsed<u32> {
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
