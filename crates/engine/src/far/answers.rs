//! What the keeper and its workers say, on its way out. A link that takes nothing holds up the
//! thread that writes, and workers that say much; the keeper itself waits for nobody.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::wire::{self, FromKeeper};

/// So many bytes may wait before a worker has to.
const ROOM_BYTES: usize = 1 << 20;

/// Frames for a thread that writes them. It ends with the last of those who have it, or with
/// the link.
pub(super) struct Answers(Arc<Shared>);

struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// What was taken is still being written.
    is_writing: bool,
    /// Nobody hears anything any more, and why.
    broken: Option<io::ErrorKind>,
    /// Those that may say something.
    speakers: usize,
}

impl Answers {
    /// Begins to write.
    pub(super) fn to(to: impl Write + Send + 'static) -> Answers {
        let waiting = Mutex::new(Waiting { speakers: 1, ..Waiting::default() });
        let shared = Arc::new(Shared { waiting, changed: Condvar::new() });
        let of_writer = Arc::clone(&shared);
        std::thread::spawn(move || of_writer.write_all(to));
        Answers(shared)
    }

    /// Says a word of the keeper's own. They are few, each an answer to what was heard.
    ///
    /// Errors: nobody hears it.
    pub(super) fn say(&self, word: &FromKeeper) -> io::Result<()> {
        let mut waiting = self.0.lock();
        waiting.check()?;
        wire::say(&mut waiting.bytes, word)?;
        self.0.changed.notify_all();
        Ok(())
    }

    /// Says what a worker says, once there is room.
    ///
    /// Errors: nobody hears it.
    pub(super) fn pass_on(&self, worker: u32, piece: &[u8]) -> io::Result<()> {
        let is_full =
            |waiting: &mut Waiting| waiting.bytes.len() >= ROOM_BYTES && waiting.broken.is_none();
        let waiting = self.0.changed.wait_while(self.0.lock(), is_full);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        waiting.check()?;
        wire::write(&mut waiting.bytes, worker, piece)?;
        self.0.changed.notify_all();
        Ok(())
    }

    /// Waits until all is written, but not longer than this.
    pub(super) fn settle(&self, limit: Duration) {
        let is_left = |waiting: &mut Waiting| {
            waiting.broken.is_none() && (waiting.is_writing || !waiting.bytes.is_empty())
        };
        drop(self.0.changed.wait_timeout_while(self.0.lock(), limit, is_left));
    }
}

impl Clone for Answers {
    fn clone(&self) -> Answers {
        self.0.lock().speakers += 1;
        Answers(Arc::clone(&self.0))
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.0.lock().speakers -= 1;
        self.0.changed.notify_all();
    }
}

impl Waiting {
    fn check(&self) -> io::Result<()> {
        self.broken.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, mut to: impl Write) {
        let mut taken = Vec::new();
        loop {
            {
                let is_idle =
                    |waiting: &mut Waiting| waiting.bytes.is_empty() && waiting.speakers > 0;
                let waiting = self.changed.wait_while(self.lock(), is_idle);
                let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
                if waiting.bytes.is_empty() {
                    return;
                }
                taken.clear();
                std::mem::swap(&mut taken, &mut waiting.bytes);
                waiting.is_writing = true;
                self.changed.notify_all();
            }
            let written = to.write_all(&taken).and_then(|()| to.flush());
            let mut waiting = self.lock();
            waiting.is_writing = false;
            waiting.broken = written.err().map(|e| e.kind());
            self.changed.notify_all();
            if waiting.broken.is_some() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Takes a piece each time that it is let.
    struct Gate(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            let _ = self.1.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_worker_waits_for_room_and_the_keeper_does_not() {
        let (open, gate) = channel();
        let (taken, written) = channel();
        let answers = Answers::to(Gate(gate, taken));
        // The first that is taken leaves room for as much again.
        let pieces = 2 * ROOM_BYTES / wire::PIECE_BYTES + 2;
        let of_worker = answers.clone();
        let worker = std::thread::spawn(move || {
            let piece = vec![7; wire::PIECE_BYTES];
            (0..pieces).try_for_each(|_| of_worker.pass_on(1, &piece))
        });
        let word = FromKeeper::Refused { what: "no".to_owned() };
        answers.say(&word).expect("somebody may still hear it");
        assert!(answers.0.lock().bytes.len() < ROOM_BYTES + 2 * wire::PIECE_BYTES);
        let mut frames = wire::Frames::default();
        let (mut heard, mut said) = (0, 0);
        while heard + said < pieces + 1 {
            open.send(()).expect("it is written to");
            frames.extend(&written.recv().expect("something is written"));
            while let Some((worker, body)) = frames.take().expect("these are frames") {
                match worker {
                    1 => heard += usize::from(body.len() == wire::PIECE_BYTES),
                    _ => said += usize::from(wire::word::<FromKeeper>(&body).unwrap() == word),
                }
            }
        }
        assert_eq!((heard, said), (pieces, 1));
        worker.join().unwrap().expect("all was taken");
        answers.settle(Duration::from_secs(10));
        assert!(!answers.0.lock().is_writing);
    }

    #[test]
    fn who_waits_for_room_hears_that_the_link_is_gone() {
        let (open, gate) = channel();
        let answers = Answers::to(Gate(gate, channel().0));
        let of_worker = answers.clone();
        let worker = std::thread::spawn(move || {
            loop {
                if let Err(e) = of_worker.pass_on(1, &[7; wire::PIECE_BYTES]) {
                    return e.kind();
                }
            }
        });
        drop::<Sender<()>>(open);
        assert_eq!(worker.join().unwrap(), io::ErrorKind::BrokenPipe);
        let word = FromKeeper::Refused { what: "no".to_owned() };
        assert_eq!(answers.say(&word).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
