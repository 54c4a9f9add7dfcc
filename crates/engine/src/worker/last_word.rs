//! What a worker says when SIGBUS ends it: which slice ran, so that the arm whose
//! mapped file lost a page has failed and the others have not.

use iolens_model::trial::Trial;
use iolens_sys::last_word;

use iolens_harness::frames::write_frame;

use super::protocol::{Failure, FromWorker};
use iolens_file::failure::{LOST_PAGE, NO_ROOM_FOR_PAGE};

/// Stands where the slice's number will: as many digits as it can have, and none of a
/// number that is anywhere else in the message.
const PLACE: usize = 4_000_000_000;

/// Has SIGBUS say what it does to a trial with a file. Where that cannot be, the death
/// itself is heard of, and not which slice it came in.
pub(super) fn prepare(trial: &Trial) {
    if trial.file.is_none() {
        return;
    }
    let what = if trial.cell.write().is_some() { NO_ROOM_FOR_PAGE } else { LOST_PAGE };
    let (text, at) = rendered(what);
    let _ = last_word::on_bus(text, at..at + PLACE.to_string().len());
}

/// Tells which slice runs from now on.
pub(super) fn slice(index: usize) {
    last_word::doing(u32::try_from(index).unwrap_or(u32::MAX));
}

/// The message's frame, and where in it the number of the slice stands.
fn rendered(what: &str) -> (Vec<u8>, usize) {
    let failure =
        Failure { slice: Some(PLACE), what: what.to_owned(), consequence: false, refused: false };
    let mut frame = Vec::new();
    // Writing to memory does not fail.
    let _ = write_frame(&mut frame, &FromWorker::Failed { failure });
    let digits = PLACE.to_string();
    let at = frame.windows(digits.len()).position(|window| window == digits.as_bytes());
    (frame, at.unwrap_or(usize::MAX - digits.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolens_harness::frames::FrameBuffer;

    #[test]
    fn a_number_in_its_place_is_the_slice() {
        let (frame, at) = rendered(LOST_PAGE);
        for (written, slice) in [("        17", Some(17)), ("null      ", None)] {
            let mut frame = frame.clone();
            frame[at..at + 10].copy_from_slice(written.as_bytes());
            let mut buffer = FrameBuffer::default();
            buffer.extend(&frame);
            let expect =
                Failure { slice, what: LOST_PAGE.to_owned(), consequence: false, refused: false };
            let heard: Option<FromWorker> = buffer.take().unwrap();
            assert_eq!(heard, Some(FromWorker::Failed { failure: expect }));
        }
    }
}
