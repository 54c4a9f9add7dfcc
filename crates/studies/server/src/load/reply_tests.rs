//! Replies in one piece and in many.

use proptest::prelude::*;

use super::*;

/// The replies of a stream that comes in pieces that end at `cuts`, with nothing left.
fn read(stream: &[u8], cuts: &[usize], expected: &Expected) -> Vec<Read> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
    ends.push(stream.len());
    ends.sort_unstable();
    let begins = std::iter::once(0).chain(ends.iter().copied());
    let pieces = begins.zip(&ends).map(|(begin, &end)| &stream[begin..end]);
    let (replies, partial) = read_all(pieces, expected);
    assert!(partial.bytes == 0 && !partial.in_body, "{partial:?}");
    replies
}

fn check(stream: &str, expected: &Expected, expect: &[(Option<u64>, bool)]) {
    let bytes = stream.as_bytes();
    let every_byte: Vec<usize> = (0..bytes.len()).collect();
    for cuts in [&[][..], &[bytes.len() / 2], &every_byte] {
        let replies = read(bytes, cuts, expected);
        let replies: Vec<_> = replies.iter().map(|(id, right, _)| (*id, *right)).collect();
        assert_eq!(replies, expect, "{stream:?} cut at {cuts:?}");
    }
}

fn service(word: &str, text: &str) -> Expected {
    Expected::of_service(word, text.as_bytes()).unwrap()
}

#[test]
fn a_reply_is_right_or_it_is_not() {
    let echo = service("echo", "some text");
    check("7 some text\n8 some text\n", &echo, &[(Some(7), true), (Some(8), true)]);
    check("7 some texT\n", &echo, &[(Some(7), false)]);
    check("7 some tex\n", &echo, &[(Some(7), false)]);
    check("7 some text \n", &echo, &[(Some(7), false)]);
    check("7\n", &echo, &[(Some(7), false)]);
    check("7 \n8\n", &service("echo", ""), &[(Some(7), true), (Some(8), true)]);
    let fill = service("payload:32", "");
    let line = format!("123 {}\n", "x".repeat(27));
    check(&line, &fill, &[(Some(123), true)]);
    check(&line.replacen('x', "y", 1), &fill, &[(Some(123), false)]);
    check(&line.replacen('x', "", 1), &fill, &[(Some(123), false)]);
    check(&line.replacen('x', "xx", 1), &fill, &[(Some(123), false)]);
    check("1 burned\n2 burnt\n", &service("burn:5", ""), &[(Some(1), true), (Some(2), false)]);
    let top = service("top2", "");
    let spent = |who: &str| format!("pid {who}: user 0.30 s, kernel 0.04 s, total 0.34 s");
    let (a, b, c) = (spent("12 a)\\x20(b:"), spent("7 d,"), spent("8 e"));
    let check_top = |text: &str, is_right: bool| {
        check(&format!("1 {text}\n"), &top, &[(Some(1), is_right)]);
    };
    check_top(&format!("{a}; {b}"), true);
    check_top(&a, true);
    check_top(&format!("{a}; {b}; {c}"), false);
    check_top(&spent("a 12"), false);
    check_top(&spent("12"), false);
    check_top(&spent("12 a b"), false);
    check_top(&a.replace(" s,", ","), false);
    check_top(&a.replace(", total 0.34 s", ""), false);
    check_top(&format!("{a}, 22.2% of a CPU"), false);
    let shares = service("top2:interval", "");
    let check_shares = |text: &str, is_right: bool| {
        check(&format!("1 {text}\n"), &shares, &[(Some(1), is_right)]);
    };
    check_shares(&format!("{a}, 22.2% of a CPU; {b}, too soon for a share"), true);
    check_shares(&format!("{a}, 100.0% of a CPU"), true);
    check_shares(&format!("{a}; {b}"), false);
    check_shares(&format!("{a}, % of a CPU"), false);
    let oracle = service("oracle", "");
    check("1 100 200\n", &oracle, &[(Some(1), true)]);
    check("1 200 100\n", &oracle, &[(Some(1), false)]);
}

#[test]
fn what_has_no_id_is_no_reply_to_anything() {
    for line in ["\n", " x\n", "a 1\n", "+1 x\n", "-1 x\n", "99999999999999999999 x\n", "1\tx\n"] {
        check(line, &Expected::Id, &[(None, false)]);
    }
    check(&format!("{} x\n", u64::MAX), &Expected::Id, &[(Some(u64::MAX), true)]);
    check(&format!("{} x\n", "0".repeat(21)), &Expected::Id, &[(None, false)]);
    check("5 error it failed\n", &Expected::Id, &[(Some(5), false)]);
    check("5 anything\n", &Expected::Id, &[(Some(5), true)]);
}

#[test]
fn a_service_that_does_not_exist_is_named_with_those_that_do() {
    let why = Expected::of_service("payload:31", b"").unwrap_err();
    assert!(why.contains("from 32 on"), "{why}");
    let why = Expected::of_service("ehco", b"").unwrap_err();
    assert!(why.contains("`ehco`") && why.contains("echo, payload:N"), "{why}");
}

#[test]
fn only_the_beginning_of_a_long_text_is_kept() {
    let line = format!("5 {}\n", "y".repeat(100_000));
    let replies = read(line.as_bytes(), &[50_000], &Expected::Id);
    assert_eq!((replies.len(), replies[0].2.len()), (1, HEAD_BYTES_MAX));
}

/// Of what is longer than is kept in pieces nobody has seen all, so it is not right in one
/// piece either.
#[test]
fn a_long_text_is_judged_alike_however_it_comes() {
    let top = "pid 12 a: user 0.30 s, kernel 0.04 s, total 0.34 s";
    for (text, expected) in [(top, Expected::Processes), ("5 6", Expected::Record)] {
        for (bytes, is_right) in [(HEAD_BYTES_MAX, true), (HEAD_BYTES_MAX + 1, false)] {
            let filled = format!("7 {text:<bytes$}\n");
            check(&filled, &expected, &[(Some(7), is_right)]);
        }
    }
}

#[test]
fn a_response_ends_where_its_header_says() {
    let http = Expected::Http;
    let ok = "HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH:  5 \r\n\r\nhello";
    let empty = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n";
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n";
    check(&[ok, empty, missing].concat(), &http, &[(None, true), (None, true), (None, false)]);
}

#[test]
fn a_response_that_does_not_say_how_long_it_is_ends_the_stream() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n";
    let (used, reply) = Partial::default().take(chunked, &Expected::Http);
    assert_eq!((used, reply.unwrap().is_right), (chunked.len(), false));
    let mut partial = Partial::default();
    let endless = vec![b'a'; HEADER_BYTES_MAX];
    let (used, reply) = partial.take(&endless, &Expected::Http);
    assert_eq!((used, reply.unwrap().is_right), (HEADER_BYTES_MAX, false));
}

proptest! {
    /// However a stream is cut, the same replies come out of it.
    #[test]
    fn pieces_make_no_difference(
        lines in prop::collection::vec("[0-9]{0,3}[ x1a]{0,40}", 0..8),
        cuts in prop::collection::vec(0..400_usize, 0..12),
        which in 0..7_usize,
    ) {
        let all = ["echo", "payload:32", "burn:1", "top2", "oracle"];
        let expected = match which {
            5 => Expected::Id,
            6 => Expected::Text(b"x1".to_vec()),
            known => service(all[known], "x"),
        };
        let stream: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let expect = read(stream.as_bytes(), &[], &expected);
        prop_assert_eq!(expect.len(), lines.len());
        let cut: Vec<_> = read(stream.as_bytes(), &cuts, &expected)
            .into_iter().map(|(id, right, _)| (id, right)).collect();
        let expect: Vec<_> = expect.into_iter().map(|(id, right, _)| (id, right)).collect();
        prop_assert_eq!(cut, expect);
    }
}
