//! What threads and processes count, each in a row of its own, in memory that
//! forked children share with their parent. Only the owner of a row writes to
//! it, so a count is a load and a store; a row whose owner has ended goes to the
//! next one, counts and all.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use iolens_model::server::Mishap;
use iolens_sys::errno::Errno;
use iolens_sys::event::Event;
use iolens_sys::shared::{ROW, SharedNumbers};

/// Threads or processes at once at most: 8 MiB, of which what is used is touched.
const ROWS: usize = 1 << 16;

/// The first row is everybody's.
const COMMON: usize = 0;

/// Places in a row of an owner.
const TASK: usize = 0;
const CONNECTIONS: usize = 1;
const REQUESTS: usize = 2;
const WAITS: usize = 3;
const MISHAPS: usize = 4;

const _: () = assert!(MISHAPS + Mishap::ALL.len() <= ROW);

/// Places in the common row.
const STOPPING: usize = 0;
const IDLE: usize = 1;
const NUMBER: usize = 2;
const SERVING: usize = 3;

/// The rows, and which of them have no owner.
#[derive(Debug)]
pub(super) struct Tallies {
    numbers: SharedNumbers,
    free: Mutex<Free>,
    /// Set when an owner meets a kind of mishap for the first time.
    noticed: Event,
}

#[derive(Debug)]
struct Free {
    given_back: Vec<usize>,
    /// Rows from here on never had an owner.
    next: usize,
}

/// A row and who owns it.
#[derive(Debug)]
pub(super) struct Tally {
    tallies: Arc<Tallies>,
    row: usize,
    /// Whether the owner has answered a request.
    serves: AtomicBool,
}

/// What an owner of a row has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskCounts {
    /// Id of the thread or process; `None` where it has ended.
    pub id: Option<u32>,
    /// Connections taken.
    pub connections: u64,
    /// Requests answered.
    pub requests: u64,
}

impl Tallies {
    /// Errors: `ENOMEM`, `EMFILE`.
    pub(super) fn new() -> Result<Arc<Tallies>, Errno> {
        let numbers = SharedNumbers::new(ROWS)?;
        let free = Mutex::new(Free { given_back: Vec::new(), next: COMMON + 1 });
        Ok(Arc::new(Tallies { numbers, free, noticed: Event::new()? }))
    }

    /// A row for somebody who begins; nothing where all are taken.
    pub(super) fn take(self: &Arc<Tallies>) -> Option<Tally> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let row = match free.given_back.pop() {
            Some(row) => row,
            None if free.next < ROWS => {
                free.next += 1;
                free.next - 1
            }
            None => return None,
        };
        Some(Tally { tallies: Arc::clone(self), row, serves: AtomicBool::new(false) })
    }

    /// What everybody has counted who ever owned a row.
    pub(super) fn tasks(&self) -> Vec<TaskCounts> {
        let read = |row: &[AtomicU64; ROW], place: usize| row[place].load(Ordering::Relaxed);
        let counts = |row| TaskCounts {
            id: u32::try_from(read(row, TASK)).ok().filter(|&id| id != 0),
            connections: read(row, CONNECTIONS),
            requests: read(row, REQUESTS),
        };
        self.owned().iter().map(counts).collect()
    }

    /// How many answered a request so far, and how many of them there were at once, at most:
    /// a row has one owner at a time. Who only takes connections for others is none.
    pub(super) fn served(&self) -> (u64, u64) {
        let answered = |row: &&[AtomicU64; ROW]| row[REQUESTS].load(Ordering::Relaxed) > 0;
        let at_once = self.owned().iter().filter(answered).count() as u64;
        (self.common(SERVING).load(Ordering::Relaxed), at_once)
    }

    /// How often each mishap happened.
    pub(super) fn mishaps(&self) -> Vec<(Mishap, u64)> {
        let sum = |place: usize| -> u64 {
            self.owned().iter().map(|row| row[place].load(Ordering::Relaxed)).sum()
        };
        let all = Mishap::ALL.iter().enumerate();
        all.map(|(index, &mishap)| (mishap, sum(MISHAPS + index))).filter(|&(_, n)| n > 0).collect()
    }

    /// Ready when there may be a kind of mishap that there was not before.
    pub(super) fn noticed(&self) -> &Event {
        &self.noticed
    }

    fn owned(&self) -> &[[AtomicU64; ROW]] {
        let next = self.free.lock().unwrap_or_else(PoisonError::into_inner).next;
        &self.numbers.rows()[COMMON + 1..next]
    }

    /// From now on everybody ends who looks.
    pub(super) fn stop(&self) {
        self.common(STOPPING).store(1, Ordering::SeqCst);
    }

    /// Whether that is so.
    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.common(STOPPING).load(Ordering::Relaxed) != 0
    }

    /// How many wait for a connection, to count up and down by everybody.
    pub(super) fn idle(&self) -> &AtomicU64 {
        self.common(IDLE)
    }

    /// The number of the next request that takes one, from 1.
    pub(super) fn next_number(&self) -> u64 {
        self.common(NUMBER).fetch_add(1, Ordering::Relaxed) + 1
    }

    fn common(&self, place: usize) -> &AtomicU64 {
        &self.numbers.rows()[COMMON][place]
    }
}

impl Tally {
    /// Everybody's rows.
    pub(super) fn tallies(&self) -> &Arc<Tallies> {
        &self.tallies
    }

    /// Says who owns the row.
    pub(super) fn set_task(&self, id: u32) {
        self.place(TASK).store(id.into(), Ordering::Relaxed);
    }

    /// Says whether the owner waits for a connection: it is one of [`Tallies::idle`] then, and is
    /// counted out by others when it ends without a word.
    #[inline]
    pub(super) fn set_waits(&self, waits: bool) {
        self.place(WAITS).store(waits.into(), Ordering::SeqCst);
    }

    /// Whether it said so.
    pub(super) fn waits(&self) -> bool {
        self.place(WAITS).load(Ordering::SeqCst) != 0
    }

    /// A connection was taken.
    #[inline]
    pub(super) fn connection(&self) {
        self.count(CONNECTIONS);
    }

    /// A request was answered.
    #[inline]
    pub(super) fn request(&self) {
        self.count(REQUESTS);
        // Only the owner writes here too.
        if !self.serves.load(Ordering::Relaxed) {
            self.serves.store(true, Ordering::Relaxed);
            self.tallies.common(SERVING).fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Something went wrong.
    #[cold]
    pub(super) fn mishap(&self, mishap: Mishap) {
        let index = Mishap::ALL.iter().position(|&other| other == mishap);
        let place = MISHAPS + index.expect("every kind is listed");
        self.count(place);
        if self.place(place).load(Ordering::Relaxed) == 1 {
            self.tallies.noticed.set();
        }
    }

    #[inline]
    fn count(&self, place: usize) {
        // Only the owner writes: nothing has to be locked.
        let place = self.place(place);
        place.store(place.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[inline]
    fn place(&self, place: usize) -> &AtomicU64 {
        &self.tallies.numbers.rows()[self.row][place]
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.set_task(0);
        self.set_waits(false);
        let mut free = self.tallies.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.given_back.push(self.row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_its_counts_for_the_next_owner() {
        let tallies = Tallies::new().unwrap();
        let first = tallies.take().unwrap();
        let second = tallies.take().unwrap();
        first.set_task(7);
        first.connection();
        first.request();
        second.request();
        second.mishap(Mishap::Reset);
        let expect = TaskCounts { id: Some(7), connections: 1, requests: 1 };
        assert_eq!(tallies.tasks()[0], expect);
        drop(first);
        assert_eq!(tallies.tasks()[0], TaskCounts { id: None, ..expect });
        let third = tallies.take().unwrap();
        third.connection();
        third.connection();
        third.request();
        assert_eq!(tallies.tasks().iter().map(|t| t.requests).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(tallies.mishaps(), [(Mishap::Reset, 1)]);
        let fourth = tallies.take().unwrap();
        fourth.connection();
        assert_eq!(tallies.served(), (3, 2), "two after one another, and one beside them");
    }

    #[test]
    fn there_is_an_end_to_them() {
        let tallies = Tallies::new().unwrap();
        let all: Vec<Tally> = std::iter::from_fn(|| tallies.take()).collect();
        assert_eq!(all.len(), ROWS - 1);
        drop(all);
        assert!(tallies.take().is_some());
    }

    #[test]
    fn numbers_of_requests_begin_with_one() {
        let tallies = Tallies::new().unwrap();
        assert_eq!([tallies.next_number(), tallies.next_number()], [1, 2]);
        assert!(!tallies.is_stopping());
        tallies.stop();
        assert!(tallies.is_stopping());
    }
}
