//! What the sending loop does with completions in every order, and with
//! refusals: against a script in the place of the kernel.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::batch::Queue;
use super::*;
use crate::entry::Shape;
use iolens_harness::op::Budget;

const BYTES: usize = 1000;
const MESSAGES: usize = 4;
const LIMIT: Duration = Duration::from_millis(5);

/// Sends that are under way at once where there are several.
const DEPTH: u32 = 4;

/// What one send comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    result: Result<usize, Errno>,
    notifies: bool,
}

const WHOLE: Answer = Answer { result: Ok(usize::MAX), notifies: true };

fn refused(errno: Errno, notifies: bool) -> Answer {
    Answer { result: Err(errno), notifies }
}

/// A kernel that gives these answers in turn.
#[derive(Debug, Default)]
struct Script {
    answers: VecDeque<Answer>,
    zerocopy: bool,
    /// What it answers after them; `None` for [`WHOLE`].
    otherwise: Option<Answer>,
    /// Completions that can be read.
    ready: VecDeque<Completed>,
    /// Notifications that come when somebody waits, latest last.
    due: VecDeque<u32>,
    /// Whether a result comes only when somebody waits, too, behind all
    /// notifications.
    late: VecDeque<Completed>,
    slow: bool,
    /// Whether it says what was copied.
    reports: bool,
    /// What was handed over: message, from, id.
    sent: Vec<(usize, usize, u32)>,
    /// What was taken of it: message, from, bytes.
    taken: Vec<(usize, usize, usize)>,
    /// What is queued: message, id, whether the next one is linked to it.
    queued: Vec<(usize, u32, bool)>,
    /// Calls that handed over what was queued.
    submits: u64,
    silent: bool,
    lost: u32,
}

impl Exchange for Script {
    fn is_zerocopy(&self) -> bool {
        self.zerocopy
    }

    fn send(&mut self, message: usize, from: usize, id: u32) -> Result<(), Errno> {
        let under_way = !self.late.is_empty()
            || self.ready.iter().any(|one| matches!(one, Completed::Sent { .. }));
        assert!(!under_way, "two sends at once may overtake each other");
        assert!(!self.due.contains(&id), "the id {id} is in use");
        self.take(message, from, id);
        Ok(())
    }

    fn completion(&mut self) -> Option<Completed> {
        self.ready.pop_front()
    }

    fn wait(&mut self, _: Duration) -> Result<bool, Errno> {
        if self.silent {
            return Ok(false);
        }
        // A notification never comes before its own result.
        let held = |due: &u32| {
            self.late.iter().any(|one| match one {
                Completed::Sent { id, .. } | Completed::Released { id, .. } => id == due,
            })
        };
        let next = self.due.front().copied().filter(|id| !held(id));
        match next {
            Some(id) => {
                self.due.pop_front();
                let copied = self.reports.then_some(true);
                self.ready.push_back(Completed::Released { id, copied });
            }
            None => self.ready.extend(self.late.pop_front()),
        }
        Ok(!self.ready.is_empty())
    }

    fn lost(&mut self) -> u32 {
        self.lost
    }

    fn idle(&mut self) -> Result<bool, Errno> {
        Ok(false)
    }
}

impl Script {
    /// Answers one send; returns whether it has gone whole.
    fn take(&mut self, message: usize, from: usize, id: u32) -> bool {
        if self.silent {
            self.sent.push((message, from, id));
            return true;
        }
        let answer = self.answers.pop_front().or(self.otherwise).unwrap_or(WHOLE);
        self.answer(message, from, id, answer)
    }

    fn answer(&mut self, message: usize, from: usize, id: u32, answer: Answer) -> bool {
        let Answer { result, notifies } = answer;
        let result = result.map(|bytes| bytes.min(BYTES - from));
        self.sent.push((message, from, id));
        self.taken.extend(result.map(|bytes| (message, from, bytes)).ok());
        let completed = Completed::Sent { id, result, notifies };
        if self.slow {
            self.late.push_back(completed)
        } else {
            self.ready.push_back(completed)
        }
        if notifies {
            self.due.push_back(id);
        }
        result == Ok(BYTES - from)
    }
}

impl Queue for Script {
    fn queue(&mut self, place: usize, message: usize, id: u32, linked: bool) -> Result<(), Errno> {
        assert!(place < DEPTH as usize, "there is no place {place}");
        assert!(!self.due.contains(&id), "the id {id} is in use");
        assert!(self.queued.iter().all(|(queued, ..)| *queued != message), "twice in a batch");
        self.queued.push((message, id, linked));
        Ok(())
    }

    fn submit(&mut self, _: u32) -> Result<(), Errno> {
        self.submits += 1;
        let mut goes_on = true;
        for (message, id, linked) in std::mem::take(&mut self.queued) {
            let cancelled = Answer { result: Err(Errno::ECANCELED), notifies: self.reports };
            let whole = match goes_on {
                true => self.take(message, 0, id),
                false => self.answer(message, 0, id, cancelled),
            };
            goes_on = whole || !linked;
        }
        Ok(())
    }
}

fn uring(script: Script, zerocopy: bool) -> Uring<Script> {
    let shape = Shape {
        messages: MESSAGES,
        message_bytes: BYTES,
        fields: 1,
        iovec: iolens_model::axes::Iovec::PerMessage,
    };
    let script = Script { zerocopy, ..script };
    Uring::new(script, Stream::new(&shape, Layout::Contiguous), 16, LIMIT)
}

/// The same in batches: of 4 as a chain, of 2 otherwise.
fn batched(script: Script, zerocopy: bool, linked: bool) -> Batched<Script> {
    let together = Together { batch: if linked { 4 } else { 2 }, depth: DEPTH, linked };
    Batched::new(uring(script, zerocopy), together)
}

fn after(answers: &[Answer]) -> Script {
    Script { answers: answers.iter().copied().collect(), reports: true, ..Script::default() }
}

fn run(uring: &mut impl Sender, messages: u64) -> Result<(), Errno> {
    uring.run(&Budget::messages(messages, 1))?;
    Sender::settle(uring)
}

#[test]
fn flags_that_are_asked_for_are_those_of_the_kernel() {
    let of_thread = "coop_taskrun+single_issuer+defer_taskrun";
    let kind = |word: &str| match word {
        "fixed_file" => "IOSQE",
        "registered_ring" => "IORING_ENTER",
        _ => "IORING_SETUP",
    };
    for text in ["none", of_thread, "single_issuer+sqpoll", "fixed_file+registered_ring"] {
        let tuning = Tuning { ring_flags: text.parse().unwrap(), ..Tuning::DEFAULT };
        let named = setup_flags(tuning).to_string();
        let mut found: Vec<&str> = named.split('|').filter(|name| *name != "0").collect();
        let mut asked: Vec<String> = text
            .split('+')
            .filter(|word| *word != "none")
            .map(|word| format!("{}_{}", kind(word), word.to_uppercase()))
            .collect();
        found.sort_unstable();
        asked.sort_unstable();
        assert_eq!(found, asked, "{text}");
    }
}

#[test]
fn several_notifications_are_in_flight_and_none_at_the_end() {
    let mut uring = uring(after(&[]), true);
    for _ in 0..MESSAGES {
        uring.message().unwrap();
    }
    assert_eq!(uring.flight.outstanding() as usize, MESSAGES, "nobody waited for one");
    uring.message().unwrap();
    assert!(!uring.exchange.due.contains(&0), "the first message was used again too early");
    Sender::settle(&mut uring).unwrap();
    let counts = Sender::tally(&uring).zerocopy.unwrap();
    assert_eq!((counts.sends, counts.completions, counts.copied), (5, 5, Some(5)));
    assert_eq!(Sender::tally(&uring).calls, 5);
}

#[test]
fn what_the_kernel_does_not_report_is_unknown() {
    let mut uring = uring(Script { reports: false, ..after(&[]) }, true);
    run(&mut uring, 9).unwrap();
    let counts = Sender::tally(&uring).zerocopy.unwrap();
    assert_eq!((counts.sends, counts.completions, counts.copied), (9, 9, None));
}

#[test]
fn the_flag_decides_whether_a_notification_is_awaited() {
    let quiet = Answer { notifies: false, ..WHOLE };
    let mut uring = uring(after(&[quiet, WHOLE, quiet]), true);
    run(&mut uring, 3).unwrap();
    let counts = Sender::tally(&uring).zerocopy.unwrap();
    assert_eq!((counts.sends, counts.completions), (1, 1));
    assert_eq!(uring.exchange.sent, [(0, 0, 0), (1, 0, 0), (2, 0, 1)]);
}

#[test]
fn a_short_send_goes_on_where_it_ended() {
    let short = |bytes| Answer { result: Ok(bytes), notifies: true };
    let mut uring = uring(after(&[short(1), short(998), refused(Errno::EINTR, false)]), true);
    run(&mut uring, 2).unwrap();
    assert_eq!(uring.exchange.sent, [(0, 0, 0), (0, 1, 1), (0, 999, 2), (0, 999, 2), (1, 0, 3)]);
    let tally = Sender::tally(&uring);
    assert_eq!((tally.messages, tally.bytes, tally.calls), (2, 2000, 5));
}

#[test]
fn without_memory_it_waits_for_what_is_in_flight_and_tries_again() {
    for errno in [Errno::ENOMEM, Errno::ENOBUFS] {
        for notifies in [false, true] {
            let script = after(&[WHOLE, WHOLE, refused(errno, notifies), refused(errno, notifies)]);
            let mut uring = uring(script, true);
            run(&mut uring, 3).unwrap();
            let tally = Sender::tally(&uring);
            let counts = tally.zerocopy.unwrap();
            assert_eq!((counts.sends, counts.completions, counts.enobufs), (3, 3, 2));
            assert_eq!((tally.messages, tally.bytes), (3, 3000), "{errno}, {notifies}");
        }
    }
}

#[test]
fn without_memory_and_with_nothing_in_flight_it_ends() {
    for notifies in [false, true] {
        let never = Some(refused(Errno::ENOMEM, notifies));
        let mut uring = uring(Script { otherwise: never, ..after(&[]) }, true);
        assert_eq!(run(&mut uring, 1), Err(Errno::ENOBUFS));
        let counts = Sender::tally(&uring).zerocopy.unwrap();
        assert_eq!((counts.sends, counts.completions), (0, 0));
        assert!(counts.enobufs > 0);
    }
    let mut copies = uring(after(&[refused(Errno::ENOBUFS, false)]), false);
    assert_eq!(run(&mut copies, 1), Err(Errno::ENOBUFS), "a copying send locks nothing");
}

#[test]
fn a_peer_that_ends_in_the_middle_of_a_message_ends_the_slice() {
    for (zerocopy, notifies) in [(false, false), (true, false), (true, true)] {
        let half = Answer { result: Ok(500), notifies: zerocopy };
        let mut uring = uring(after(&[half, refused(Errno::EPIPE, notifies)]), zerocopy);
        assert_eq!(run(&mut uring, 3), Err(Errno::EPIPE));
        let tally = Sender::tally(&uring);
        assert_eq!((tally.messages, tally.bytes, tally.calls), (0, 500, 2));
    }
}

#[test]
fn a_result_that_never_comes_ends_at_the_stall_limit() {
    let mut uring = uring(Script { silent: true, ..after(&[]) }, true);
    assert_eq!(run(&mut uring, 1), Err(Errno::EAGAIN));
}

#[test]
fn a_notification_that_never_comes_ends_at_the_stall_limit() {
    let mut uring = uring(after(&[]), true);
    uring.message().unwrap();
    uring.exchange.silent = true;
    assert_eq!(Sender::settle(&mut uring), Err(Errno::ETIMEDOUT));
}

#[test]
fn completions_that_cannot_be_are_errors() {
    let mut strange = uring(after(&[]), true);
    strange.exchange.ready.push_back(Completed::Released { id: 3, copied: None });
    assert_eq!(strange.message(), Err(Errno::EBADMSG));
    let mut lossy = uring(Script { lost: 1, ..after(&[]) }, true);
    assert_eq!(run(&mut lossy, 1), Err(Errno::EBADMSG));
}

#[test]
fn a_batch_is_one_call_and_what_is_left_at_the_end_another() {
    for linked in [true, false] {
        let mut uring = batched(after(&[]), false, linked);
        uring.run(&Budget::messages(13, 1)).unwrap();
        let tally = Sender::tally(&uring);
        assert_eq!((tally.messages, tally.bytes, tally.zerocopy), (13, 13_000, None));
        let calls = if linked { 4 } else { 7 };
        assert_eq!((tally.calls, exchange(&uring).submits), (calls, calls));
        let messages: Vec<usize> = exchange(&uring).sent.iter().map(|sent| sent.0).collect();
        assert_eq!(messages, (0..13).map(|n| n % MESSAGES).collect::<Vec<_>>());
    }
}

#[test]
fn a_broken_chain_is_gone_on_with_where_it_ended() {
    let short = |bytes| Answer { result: Ok(bytes), notifies: true };
    let mut uring = batched(after(&[WHOLE, short(300)]), true, true);
    run(&mut uring, 4).unwrap();
    assert_eq!(
        exchange(&uring).taken,
        [(0, 0, 1000), (1, 0, 300), (1, 300, 700), (2, 0, 1000), (3, 0, 1000)]
    );
    let tally = Sender::tally(&uring);
    // The chain, and what is left of three messages; the waits for the
    // notifications of what was cancelled are not known beforehand.
    assert!((4..=8).contains(&tally.calls), "{tally:?}");
    assert_eq!((tally.messages, tally.bytes), (4, 4000));
    let counts = tally.zerocopy.unwrap();
    assert_eq!((counts.sends, counts.completions, counts.copied), (5, 5, Some(5)));
}

#[test]
fn a_chain_that_goes_on_behind_its_break_is_an_error() {
    let mut uring = batched(after(&[Answer { result: Ok(1), notifies: false }]), false, false);
    uring.together.linked = true;
    uring.together.batch = 4;
    for place in 0..4u32 {
        uring.single.flight.reserve(place as usize);
        let bytes = if place == 0 { 1 } else { BYTES };
        let sent = Completed::Sent { id: place, result: Ok(bytes), notifies: false };
        uring.single.exchange.ready.push_back(sent);
    }
    assert_eq!(uring.flush().map(drop), Err(Errno::EBADMSG));
}

#[test]
fn a_peer_that_ends_in_the_middle_of_a_chain_ends_the_slice() {
    for zerocopy in [false, true] {
        let half = Answer { result: Ok(500), notifies: zerocopy };
        let whole = Answer { notifies: zerocopy, ..WHOLE };
        let script = after(&[whole, half, refused(Errno::EPIPE, zerocopy)]);
        let mut uring = batched(Script { reports: zerocopy, ..script }, zerocopy, true);
        assert_eq!(run(&mut uring, 8), Err(Errno::EPIPE));
        let tally = Sender::tally(&uring);
        assert_eq!((tally.messages, tally.bytes), (1, 1500));
    }
}

#[test]
fn a_batch_without_results_ends_at_the_stall_limit() {
    for linked in [true, false] {
        let mut uring = batched(Script { silent: true, ..after(&[]) }, true, linked);
        assert_eq!(run(&mut uring, 4), Err(Errno::EAGAIN));
    }
}

fn exchange(uring: &Batched<Script>) -> &Script {
    &uring.single.exchange
}

fn answers() -> impl Strategy<Value = Answer> {
    let result = prop_oneof![
        5 => Just(Ok(usize::MAX)),
        3 => (1..BYTES).prop_map(Ok),
        1 => Just(Err(Errno::EINTR)),
        1 => Just(Err(Errno::ENOMEM)),
    ];
    (result, any::<bool>()).prop_map(|(result, notifies)| Answer { result, notifies })
}

proptest! {
    /// Whatever the kernel answers, the stream is the messages in order, each
    /// byte once, and every notification has been read in the end.
    #[test]
    fn any_answers_make_the_same_stream(
        script in prop::collection::vec(answers(), 0..40),
        slow in any::<bool>(),
    ) {
        let accepted = |answer: &Answer| answer.result.unwrap_or(0);
        let given: Vec<usize> = script.iter().map(accepted).collect();
        let mut uring = uring(Script { slow, ..after(&script) }, true);
        run(&mut uring, 20).unwrap();
        let mut place = 0;
        for (n, (message, from, _)) in uring.exchange.sent.iter().enumerate() {
            prop_assert_eq!((place / BYTES % MESSAGES, place % BYTES), (*message, *from));
            place += given.get(n).map_or(BYTES, |&bytes| bytes).min(BYTES - from);
        }
        prop_assert_eq!(place, 20 * BYTES);
        let tally = Sender::tally(&uring);
        prop_assert_eq!((tally.messages, tally.bytes), (20, 20 * BYTES as u64));
        let counts = tally.zerocopy.unwrap();
        prop_assert_eq!((counts.sends, counts.copied), (counts.completions, Some(counts.sends)));
        prop_assert!(uring.exchange.due.is_empty() && uring.exchange.ready.is_empty());
    }
    /// The same of batches, whatever breaks a chain and wherever.
    #[test]
    fn any_answers_to_batches_make_the_same_messages(
        script in prop::collection::vec(answers(), 0..40),
        (slow, linked, zerocopy) in any::<(bool, bool, bool)>(),
    ) {
        let fits = |answer: &Answer| {
            // A datagram goes whole or not; a send that copies locks nothing.
            let short = answer.result.is_ok_and(|bytes| bytes < BYTES);
            let locks = answer.result == Err(Errno::ENOMEM);
            (linked || !short) && (zerocopy || !locks)
        };
        let notifies = |answer: Answer| Answer { notifies: answer.notifies && zerocopy, ..answer };
        let answers: Vec<Answer> = script.into_iter().filter(fits).map(notifies).collect();
        let otherwise = Some(Answer { notifies: zerocopy, ..WHOLE });
        let script = Script { slow, otherwise, reports: zerocopy, ..after(&answers) };
        let mut uring = batched(script, zerocopy, linked);
        run(&mut uring, 22).unwrap();
        let taken = &exchange(&uring).taken;
        let mut place = 0;
        for &(message, from, bytes) in taken {
            if linked {
                prop_assert_eq!((place / BYTES % MESSAGES, place % BYTES), (message, from));
            }
            place += bytes;
        }
        prop_assert_eq!(place, 22 * BYTES);
        for message in 0..MESSAGES {
            let times = (message..22).step_by(MESSAGES).count();
            let own = taken.iter().filter(|taken| taken.0 == message);
            prop_assert_eq!(own.map(|taken| taken.2).sum::<usize>(), times * BYTES);
        }
        let tally = Sender::tally(&uring);
        prop_assert_eq!((tally.messages, tally.bytes), (22, 22 * BYTES as u64));
        prop_assert_eq!(tally.zerocopy.is_some(), zerocopy);
        let counts = tally.zerocopy.unwrap_or_default();
        prop_assert_eq!(counts.sends, counts.completions);
        let Script { due, ready, .. } = exchange(&uring);
        prop_assert!(due.is_empty() && ready.is_empty() && uring.spent.is_empty());
    }
}
