//! What a process says on its standard output before SIGBUS ends it: a mapped page
//! that its file has lost ends whoever touches it, and others want to know what it did
//! just then.
//!
//! # Safety
//! The handler reads a text that is never freed, formats a number into memory of its
//! own stack, and calls write(2) and sigaction(2), both async-signal-safe.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use crate::errno::Errno;
use crate::signal;

/// The longest text.
const TEXT_BYTES_MAX: usize = 1024;

/// What is said, but for the number.
struct Word {
    text: Vec<u8>,
    /// Where in it the number belongs.
    place: Range<usize>,
}

/// `None` before there is one, and once it is said.
static WORD: AtomicPtr<Word> = AtomicPtr::new(std::ptr::null_mut());

/// Whether all of it is said.
static IS_SAID: AtomicBool = AtomicBool::new(false);

/// What the process does now; [`NOTHING`] before it does anything.
static NUMBER: AtomicU32 = AtomicU32::new(NOTHING);

const NOTHING: u32 = u32::MAX;

/// Has SIGBUS say `text` first, with what [`doing`] was told last at `place`, in
/// digits behind spaces, or `null`. Once per process; the text stays for ever.
///
/// Errors: `EINVAL` for a text that is too long or has no such place, `EBUSY` the
/// second time.
pub fn on_bus(text: Vec<u8>, place: Range<usize>) -> Result<(), Errno> {
    if text.len() > TEXT_BYTES_MAX || place.len() < DIGITS || text.get(place.clone()).is_none() {
        return Err(Errno::EINVAL);
    }
    let word = Box::into_raw(Box::new(Word { text, place }));
    let nobody = std::ptr::null_mut();
    if WORD.compare_exchange(nobody, word, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        // SAFETY: it came from a box just now, and nobody else has seen it.
        drop(unsafe { Box::from_raw(word) });
        return Err(Errno::EBUSY);
    }
    signal::set_handler(signal::BUS, say as *const () as libc::sighandler_t)
}

/// Tells what the process does from now on.
pub fn doing(number: u32) {
    NUMBER.store(number, Ordering::Relaxed);
}

/// Digits of the largest number.
const DIGITS: usize = 10;

extern "C" fn say(_signal: libc::c_int) {
    let word = WORD.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if word.is_null() {
        // Another thread is about to say it.
        while !IS_SAID.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
    } else {
        // SAFETY: it came from a box, is never freed, and whoever swapped it out has it
        // alone.
        let word = unsafe { &*word };
        let mut bytes = [0; TEXT_BYTES_MAX];
        let bytes = render(word, NUMBER.load(Ordering::Relaxed), &mut bytes);
        // SAFETY: write(2) reads these bytes of this stack. In one piece where the pipe
        // has room, and nobody can be told if not.
        unsafe { libc::write(libc::STDOUT_FILENO, bytes.as_ptr().cast(), bytes.len()) };
        IS_SAID.store(true, Ordering::Release);
    }
    // What faulted does so again when this returns, and then ends the process.
    let _ = signal::set_handler(signal::BUS, libc::SIG_DFL);
}

/// The text with the number in its place.
fn render<'a>(word: &Word, number: u32, bytes: &'a mut [u8; TEXT_BYTES_MAX]) -> &'a [u8] {
    let bytes = &mut bytes[..word.text.len()];
    bytes.copy_from_slice(&word.text);
    let place = &mut bytes[word.place.clone()];
    place.fill(b' ');
    match number {
        NOTHING => place[..4].copy_from_slice(b"null"),
        mut left => {
            for digit in place.iter_mut().rev() {
                *digit = b'0' + (left % 10) as u8;
                left /= 10;
                if left == 0 {
                    break;
                }
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_in_its_place() {
        let word = Word { text: b"{\"slice\":##########}".to_vec(), place: 9..19 };
        let mut bytes = [0; TEXT_BYTES_MAX];
        let mut text = |number| String::from_utf8(render(&word, number, &mut bytes).to_vec());
        assert_eq!(text(0).as_deref(), Ok("{\"slice\":         0}"));
        assert_eq!(text(120).as_deref(), Ok("{\"slice\":       120}"));
        assert_eq!(text(4_294_967_294).as_deref(), Ok("{\"slice\":4294967294}"));
        assert_eq!(text(NOTHING).as_deref(), Ok("{\"slice\":null      }"));
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        assert_eq!(on_bus(vec![b' '; TEXT_BYTES_MAX + 1], 0..10), Err(Errno::EINVAL));
        assert_eq!(on_bus(vec![b' '; 20], 12..22), Err(Errno::EINVAL));
        assert_eq!(on_bus(vec![b' '; 20], 0..9), Err(Errno::EINVAL));
    }
}
