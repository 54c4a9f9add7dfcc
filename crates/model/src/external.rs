//! Programs of the user's as arms, and the words of theirs that stand for something else.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::transport::SenderTask;
use crate::units::Bytes;

/// A program of the user's as an arm: one that copies or reads a file, serves, sends, or makes
/// calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct External {
    /// The arm's id.
    pub name: String,
    /// Its argument list, the program first. Within an argument of one that copies,
    /// `{src}`, `{dst}` and `{block}` stand for the source, the destination and the bytes
    /// of a block; of one that serves, `{port}` and `{address}` for where it is to listen; of
    /// one that sends, what is in [`SenderTask`]; of one that reads, `{file}`, `{block}` and
    /// `{pattern}`; of one that makes calls, `{size}` for the bytes that each moves.
    pub argv: Vec<String>,
}

impl External {
    /// The argument list with every placeholder replaced.
    pub fn with(&self, source: &[u8], destination: &[u8], block: Bytes) -> Vec<Vec<u8>> {
        let block = block.0.to_string();
        let values = [("{src}", source), ("{dst}", destination), ("{block}", block.as_bytes())];
        self.with_values(&values)
    }

    /// The same of a program that serves.
    pub fn with_address(&self, address: SocketAddr) -> Vec<Vec<u8>> {
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        self.with_values(&[("{port}", port.as_bytes()), ("{address}", ip.as_bytes())])
    }

    /// The same of a program that sends.
    pub fn with_task(&self, task: &SenderTask) -> Vec<Vec<u8>> {
        let (host, port) = (task.receiver.ip().to_string(), task.receiver.port().to_string());
        let numbers = [task.size.0, task.threads.into(), task.messages, task.seconds];
        let [size, threads, messages, seconds] = numbers.map(|number| number.to_string());
        let values = [
            ("{host}", &host),
            ("{port}", &port),
            ("{size}", &size),
            ("{threads}", &threads),
            (MESSAGES_KEY, &messages),
            ("{seconds}", &seconds),
        ];
        self.with_values(&values.map(|(key, value)| (key, value.as_bytes())))
    }

    /// The same of a program that reads.
    pub fn with_file(&self, file: &[u8], block: Bytes, pattern: &str) -> Vec<Vec<u8>> {
        let block = block.0.to_string();
        let values =
            [("{file}", file), ("{block}", block.as_bytes()), ("{pattern}", pattern.as_bytes())];
        self.with_values(&values)
    }

    /// The same of a program that makes calls.
    pub fn with_size(&self, size: Bytes) -> Vec<Vec<u8>> {
        self.with_values(&[("{size}", size.0.to_string().as_bytes())])
    }

    /// Whether a program that sends is told how many messages, and ends by itself.
    pub fn counts_messages(&self) -> bool {
        self.argv.iter().any(|word| word.contains(MESSAGES_KEY))
    }

    fn with_values(&self, values: &[(&str, &[u8])]) -> Vec<Vec<u8>> {
        self.argv.iter().map(|argument| replaced(argument.as_bytes(), values)).collect()
    }
}

const MESSAGES_KEY: &str = "{messages}";

/// A text with each key replaced by its value; values are not looked into again.
fn replaced(text: &[u8], values: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut done, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&first, behind)) = rest.split_first() {
        let found = values.iter().find(|(key, _)| rest.starts_with(key.as_bytes()));
        rest = match found {
            Some((key, value)) => {
                done.extend_from_slice(value);
                &rest[key.len()..]
            }
            None => {
                done.push(first);
                behind
            }
        };
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_within_arguments_and_only_once() {
        let argv = ["dd", "if={src}", "of={dst}", "bs={block}", "{}", "{other}"];
        let dd = External { name: "dd".into(), argv: argv.map(str::to_owned).to_vec() };
        let made = dd.with(b"/a b/{dst}\xff", b"/tmp/x", Bytes(4096));
        let expect: [&[u8]; 6] =
            [b"dd", b"if=/a b/{dst}\xff", b"of=/tmp/x", b"bs=4096", b"{}", b"{other}"];
        assert_eq!(made, expect);
    }

    #[test]
    fn a_sender_is_told_where_and_what() {
        let argv = ["./send", "--to={host}:{port}", "-s{size}", "{threads}", "{seconds}s", "{x}"];
        let mut program = External { name: "mine".into(), argv: argv.map(str::to_owned).to_vec() };
        let receiver = SocketAddr::from(([127, 0, 0, 1], 4711));
        let size = Bytes(4096);
        let task = SenderTask { receiver, size, threads: 2, messages: 1000, seconds: 40 };
        let words = |program: &External| {
            let words = program.with_task(&task).into_iter();
            words.map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(&program), "./send --to=127.0.0.1:4711 -s4096 2 40s {x}");
        assert!(!program.counts_messages());
        program.argv.push("-n{messages}".to_owned());
        assert!(program.counts_messages() && words(&program).ends_with(" -n1000"));
    }
}
