//! The loop that copies. Dispatch is erased once per slice, at [`Copier::run`];
//! inside, `drive` is compiled for its engine, and allocates, locks and logs
//! nothing.

use iolens_sys::clock;
use iolens_sys::errno::Errno;

use crate::moved::{Broken, Call, Moved};
use crate::part::{Part, Place, Sequential, Walk};
use iolens_harness::op::{Budget, Fact, Span};

/// One thread's part of a copy: erased, one virtual call per slice. To be used on
/// the thread that opened it.
pub trait Copier: Send {
    /// Copies as many blocks as the budget has messages, one after the other, and
    /// from the beginning again after the last. When it returns, none is under way.
    ///
    /// Errors: the first call that failed for good; `ENODATA` where the source ends
    /// that was longer. What was copied before is counted.
    fn run(&mut self, budget: &Budget) -> Result<Span, Broken>;

    /// What was done so far.
    fn moved(&self) -> Moved;

    /// What a reader of its numbers should know.
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }
}

/// One engine that copies a piece at a time.
pub(crate) trait Piecewise: Send {
    /// Copies at most `piece.bytes` from `piece.offset` on, and counts its calls and
    /// the bytes that the destination took. 0 says that the source ends there.
    ///
    /// Errors: as [`Copier::run`], and `EINTR` before anything moved.
    fn piece(&mut self, piece: Place, moved: &mut Moved) -> Result<usize, Broken>;

    /// A piece has ended that is not the next one's beginning: the part starts over,
    /// or does so for the first time.
    fn begin(&mut self, _offset: u64) -> Result<(), Broken> {
        Ok(())
    }

    /// As [`Copier::facts`].
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }
}

/// An engine and its blocks.
pub(crate) struct Blocks<P> {
    engine: P,
    walk: Sequential,
    start: u64,
    /// The call that tells that the source has ended.
    ends: Call,
    moved: Moved,
}

impl<P> Blocks<P> {
    /// The blocks of a part, one at least, copied by `engine`. `ends` is the call
    /// that reads the source.
    pub(crate) fn of(part: Part, engine: P, ends: Call) -> Blocks<P> {
        let walk = Sequential::of(part);
        Blocks { engine, walk, start: part.start, ends, moved: Moved::default() }
    }
}

impl<P: Piecewise> Copier for Blocks<P> {
    fn run(&mut self, budget: &Budget) -> Result<Span, Broken> {
        drive(self, budget)
    }

    fn moved(&self) -> Moved {
        self.moved
    }

    fn facts(&self) -> Vec<Fact> {
        self.engine.facts()
    }
}

/// Two timestamps, and between them nothing but blocks.
#[inline(never)]
fn drive<P: Piecewise>(blocks: &mut Blocks<P>, budget: &Budget) -> Result<Span, Broken> {
    let Blocks { engine, walk, start, ends, moved } = blocks;
    let first_call_ns = clock::monotonic_ns();
    budget.begin(first_call_ns);
    while let Some(batch) = budget.take() {
        for _ in 0..batch {
            let place = walk.next();
            if place.offset == *start {
                engine.begin(*start)?;
            }
            copy_block(engine, place, *ends, moved)?;
            moved.blocks += 1;
        }
    }
    Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
}

/// Copies a block whole, in as many pieces as it takes.
#[inline]
fn copy_block<P: Piecewise>(
    engine: &mut P,
    block: Place,
    ends: Call,
    moved: &mut Moved,
) -> Result<(), Broken> {
    let mut done = 0;
    while done < block.bytes {
        let piece = Place { offset: block.offset + done as u64, bytes: block.bytes - done };
        match engine.piece(piece, moved) {
            Ok(0) => return Err(Broken { call: ends, errno: Errno::ENODATA }),
            Ok(n) => done += n,
            Err(Broken { errno: Errno::EINTR, .. }) => {}
            Err(broken) => return Err(broken),
        }
    }
    Ok(())
}

/// An engine with one call for a piece.
pub(crate) struct OneCall<F> {
    /// What its manual calls it.
    pub(crate) call: Call,
    /// Copies at most so many bytes from an offset on.
    pub(crate) copy: F,
}

impl<F: FnMut(Place) -> Result<usize, Errno> + Send> Piecewise for OneCall<F> {
    #[inline]
    fn piece(&mut self, piece: Place, moved: &mut Moved) -> Result<usize, Broken> {
        let n = (self.copy)(piece).map_err(|errno| moved.failed(self.call, errno))?;
        moved.call(piece.bytes, n);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call::both("scripted");

    /// Copies 25 bytes in blocks of 10 with a script of what each call does.
    fn scripted(script: &[Result<usize, Errno>]) -> (Result<(), Broken>, Moved, Vec<Place>) {
        let (mut asked, mut script) = (Vec::new(), script.iter());
        let part = Part { block_bytes: 10, start: 100, end: 125 };
        let copy = |piece| {
            asked.push(piece);
            *script.next().expect("no more calls than the script has")
        };
        let mut blocks = Blocks::of(part, OneCall { call: CALL, copy }, CALL);
        let result = blocks.run(&Budget::messages(part.blocks(), 1)).map(|_| ());
        let moved = blocks.moved();
        (result, moved, asked)
    }

    #[test]
    fn short_counts_and_interruptions_are_gone_on_with() {
        let script = [Ok(10), Ok(4), Err(Errno::EINTR), Ok(6), Ok(5)];
        let (result, moved, asked) = scripted(&script);
        assert_eq!(result, Ok(()));
        assert_eq!(moved, Moved { blocks: 3, bytes: 25, calls: 5, short_calls: 2 });
        let asked: Vec<_> = asked.iter().map(|piece| (piece.offset, piece.bytes)).collect();
        assert_eq!(asked, [(100, 10), (110, 10), (114, 6), (114, 6), (120, 5)]);
    }

    #[test]
    fn a_source_that_ends_early_is_an_error_and_not_a_short_copy() {
        let (result, moved, _) = scripted(&[Ok(10), Ok(3), Ok(0)]);
        assert_eq!(result, Err(Broken { call: CALL, errno: Errno::ENODATA }));
        assert_eq!((moved.blocks, moved.bytes), (1, 13));
    }

    #[test]
    fn every_other_error_ends_it() {
        for errno in [Errno::ENOSPC, Errno::EIO, Errno::EINVAL, Errno::EOPNOTSUPP] {
            let (result, moved, _) = scripted(&[Ok(10), Err(errno)]);
            assert_eq!(result, Err(Broken { call: CALL, errno }));
            assert_eq!(moved.calls, 2);
        }
    }
}
