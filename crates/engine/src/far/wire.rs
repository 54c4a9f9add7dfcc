//! What travels between this machine and the keeper of the workers on another one: what the
//! two say to each other, and what goes in and out of each worker, in frames.

use std::io::{self, Write};
use std::net::IpAddr;

use iolens_model::doctor::Finding;
use iolens_model::host::HostFacts;
use iolens_model::outcome::Environment;
use iolens_sys::proc::Root;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest body that either side accepts.
pub(crate) const BODY_BYTES_MAX: usize = 4 << 20;

/// Longest piece of a worker's output in one frame.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Without another word to the keeper for so long, [`ToKeeper::Alive`] is said.
pub(crate) const BEAT_NS: u64 = 10_000_000_000;

/// Without a word for so long, whoever had the keeper started has gone without ending its input:
/// the link is down, or a launcher does not tell.
pub(crate) const SILENCE_LIMIT_NS: u64 = 6 * BEAT_NS;

/// In place of a worker's number: it is a word between the two themselves.
pub const NOBODY: u32 = 0;

/// From this machine to the keeper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToKeeper {
    /// The answer to its hello. Answered by [`FromKeeper::Here`].
    Hello {
        /// The protocol of workers that is spoken here.
        protocol: u32,
        /// Which boot of which machine this is, if that is known.
        boot: Option<String>,
    },
    /// Start a worker. What it says comes in frames of its number; one that is empty is the
    /// end of it.
    Start {
        /// Its number, from 1, and new.
        worker: u32,
        /// Variables of its environment.
        environment: Vec<(String, String)>,
    },
    /// Nothing else was to be said for a while; the conversation goes on.
    Alive,
    /// End a worker, if it has not ended yet. Answered by [`FromKeeper::Ended`].
    End {
        /// Its number.
        worker: u32,
    },
}

/// From the keeper to this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromKeeper {
    /// The first word, in all versions.
    Hello {
        /// The protocol of its workers.
        protocol: u32,
        /// Its build.
        build: String,
    },
    /// What its machine is.
    Here {
        /// The machine.
        end: Box<FarEnd>,
    },
    /// It cannot be the other end of a run now.
    Refused {
        /// Why not.
        what: String,
    },
    /// A worker could not be started.
    Failed {
        /// Its number.
        worker: u32,
        /// What was tried and what the system said.
        what: String,
    },
    /// A worker has ended.
    Ended {
        /// Its number.
        worker: u32,
        /// How, in words.
        how: String,
        /// Its machine around it.
        environment: Box<Environment>,
    },
}

/// The machine of a keeper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FarEnd {
    /// What it is.
    pub host: HostFacts,
    /// The address at which the launcher reached it, where that is known.
    pub reached_at: Option<IpAddr>,
    /// Its addresses that are not of the loopback device.
    pub addresses: Vec<IpAddr>,
    /// What `doctor` finds there.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// Writes a frame: four bytes of length, four of the worker's number, little-endian, and the
/// body.
///
/// # Errors
/// Of the write; the other side has usually gone.
pub fn write(to: &mut impl Write, worker: u32, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(|_| io::Error::other("frame too long"))?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&worker.to_le_bytes())?;
    to.write_all(body)?;
    to.flush()
}

/// The same of a word.
///
/// # Errors
/// As of [`write`].
pub fn say(to: &mut impl Write, word: &impl Serialize) -> io::Result<()> {
    write(to, NOBODY, &serde_json::to_vec(word)?)
}

/// Reads a word.
///
/// # Errors
/// It is none of this protocol.
pub fn word<T: DeserializeOwned>(body: &[u8]) -> io::Result<T> {
    serde_json::from_slice(body).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// Puts frames together from whatever pieces come.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Adds what was read.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The number and the body of the next one, if all of it is here.
    ///
    /// # Errors
    /// It is too long to be one.
    pub fn take(&mut self) -> io::Result<Option<(u32, Vec<u8>)>> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > BODY_BYTES_MAX {
            let text = format!("a frame of {length} bytes, more than {BODY_BYTES_MAX}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let Some((worker, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let worker = u32::from_le_bytes(*worker);
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let body = body.to_vec();
        self.bytes.drain(..8 + length);
        Ok(Some((worker, body)))
    }
}

/// Why nothing can be measured to another machine.
pub const NOT_NAMED: &str = "no other machine is named: add --peer with what starts programs \
                             there, such as --peer 'ssh user@host'";

/// Which boot of which machine this is.
pub(super) fn boot() -> Option<String> {
    Some(Root::real().read("proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_survive_any_split() {
        let mut wire = Vec::new();
        say(&mut wire, &ToKeeper::End { worker: 7 }).unwrap();
        write(&mut wire, 7, b"bytes").unwrap();
        write(&mut wire, 7, b"").unwrap();
        for split in 0..=wire.len() {
            let (mut frames, mut got) = (Frames::default(), Vec::new());
            for piece in [&wire[..split], &wire[split..]] {
                frames.extend(piece);
                while let Some(frame) = frames.take().unwrap() {
                    got.push(frame);
                }
            }
            assert_eq!(got.len(), 3);
            let (to, body) = &got[0];
            let said = word::<ToKeeper>(body).unwrap();
            assert_eq!((*to, said), (NOBODY, ToKeeper::End { worker: 7 }));
            assert_eq!(got[1..], [(7, b"bytes".to_vec()), (7, Vec::new())]);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut frames = Frames::default();
            frames.extend(&bytes);
            while let Ok(Some((_, body))) = frames.take() {
                let _ = word::<FromKeeper>(&body);
            }
        }
    }
}
