//! Messages in memory, field by field, and the iovecs that point at them.
//!
//! # Safety
//! A prepared iovec borrows from the ring that holds it, which Rust cannot
//! express; the fields are therefore never moved, resized or handed out
//! mutably once the iovecs exist: a ring lends its fields, and who has one of
//! his own ([`Field::filled`]) has no ring around it.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::hash::{BuildHasher, RandomState};
use std::io::IoSlice;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// How the fields of a message lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Every field is an allocation of its own, as in a program that builds a
    /// reply from parts.
    Separate,
    /// All fields lie one behind the other in one allocation.
    Contiguous,
}

/// Where in a page data begin is drawn in steps of this, which keeps them in the cache lines
/// where the allocator puts them.
const STEP_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;

/// Fields from this size on begin at a place in a page that is drawn. A ring of smaller ones has
/// many, which lie at many places by themselves; and a page more for each would be much.
const DRAWN_BYTES: usize = 4 * PAGE_BYTES;

/// Bytes in memory that a field of so many takes, at most.
pub fn room(field_bytes: u64) -> u64 {
    let drawn = if field_bytes >= DRAWN_BYTES as u64 { PAGE_BYTES as u64 } else { 0 };
    field_bytes.saturating_add(drawn)
}

/// A field of a message, somewhere in an allocation of its own.
#[derive(Debug)]
pub struct Field {
    memory: Box<[u8]>,
    from: usize,
}

impl Field {
    /// A buffer of so many bytes of this value, which begins in a page where a large field of a
    /// ring might.
    pub fn filled(bytes: usize, value: u8) -> Field {
        let from = offset_of(bytes);
        Field { memory: vec![value; from + bytes].into_boxed_slice(), from }
    }
}

impl Deref for Field {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.from..]
    }
}

impl DerefMut for Field {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..]
    }
}

/// A ring of equal messages with different contents. Its bytes never change; a
/// clone is the same memory, so that whoever hands it to the kernel can keep it
/// for as long as the kernel reads from it.
#[derive(Debug, Clone)]
pub struct MessageRing {
    // Declared before `fields`: dropped first, so no iovec outlives its field.
    iovecs: Arc<[IoSlice<'static>]>,
    fields: Arc<[Field]>,
    fields_per_message: usize,
    message_bytes: usize,
    messages: usize,
}

impl MessageRing {
    /// Makes `messages` messages of `message_bytes` bytes in at most `fields`
    /// fields and writes every byte of them. A message of n bytes in k fields
    /// has n mod k fields of ⌈n/k⌉ bytes and the rest of ⌊n/k⌋; empty fields
    /// are left out. All three counts are at least 1.
    ///
    /// Where in a page large fields begin is drawn for each ring: a copy can take several times
    /// as long from one place as from another, and an arm that always had the same would be
    /// compared by it.
    pub fn new(messages: usize, message_bytes: usize, fields: usize, layout: Layout) -> Self {
        assert!(messages > 0 && message_bytes > 0 && fields > 0, "a ring of nothing");
        let lengths = match layout {
            Layout::Separate => field_lengths(message_bytes, fields),
            Layout::Contiguous => vec![message_bytes],
        };
        let from = offset_of(lengths[0]);
        let mut all: Vec<Field> = Vec::with_capacity(messages * lengths.len());
        for message in 0..messages {
            let mut offset = 0;
            for &length in &lengths {
                let bytes = (offset..offset + length).map(|at| content(message, at));
                let memory = std::iter::repeat_n(0, from).chain(bytes).collect();
                all.push(Field { memory, from });
                offset += length;
            }
        }
        let iovecs = all
            .iter()
            .map(|field| {
                // SAFETY: the bytes live on the heap behind a Box in `fields`, which is
                // private, never changed after this and dropped after `iovecs`; `prepared`
                // hands the slices out only for as long as the ring is borrowed.
                let field: &'static [u8] =
                    unsafe { std::slice::from_raw_parts(field.as_ptr(), field.len()) };
                IoSlice::new(field)
            })
            .collect();
        MessageRing {
            iovecs,
            fields: all.into(),
            fields_per_message: lengths.len(),
            message_bytes,
            messages,
        }
    }

    /// Messages in the ring.
    #[inline]
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Bytes of one message.
    #[inline]
    pub fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// Non-empty fields of one message.
    pub fn fields_per_message(&self) -> usize {
        self.fields_per_message
    }

    /// The fields of message `index`, in order. Panics out of range.
    #[inline]
    pub fn fields(&self, index: usize) -> &[Field] {
        let from = index * self.fields_per_message;
        &self.fields[from..from + self.fields_per_message]
    }

    /// The iovec of message `index`, built when the ring was made.
    #[inline]
    pub fn prepared(&self, index: usize) -> &[IoSlice<'_>] {
        let from = index * self.fields_per_message;
        &self.iovecs[from..from + self.fields_per_message]
    }

    /// Reads every cache line of the ring once.
    pub fn touch(&self) -> u64 {
        self.fields.iter().map(|field| crate::memory::touch(field)).fold(0, u64::wrapping_add)
    }
}

/// How far behind where the allocator would put it a field of so many bytes begins.
fn offset_of(field_bytes: usize) -> usize {
    if field_bytes >= DRAWN_BYTES { drawn_offset() } else { 0 }
}

/// One that is drawn: less than a page.
fn drawn_offset() -> usize {
    // Its keys are the kernel's random numbers, others for each.
    let drawn = RandomState::new().hash_one(0);
    #[expect(clippy::cast_possible_truncation, reason = "less than a page")]
    let steps = (drawn % (PAGE_BYTES / STEP_BYTES) as u64) as usize;
    steps * STEP_BYTES
}

/// Lengths of the non-empty fields of a message.
fn field_lengths(message_bytes: usize, fields: usize) -> Vec<usize> {
    let (short, longer) = (message_bytes / fields, message_bytes % fields);
    (0..fields).map(|i| short + usize::from(i < longer)).filter(|&length| length > 0).collect()
}

/// The byte at `offset` of message `index`: the same for every layout, and
/// different enough that a lost, doubled or swapped piece shows.
pub fn content(index: usize, offset: usize) -> u8 {
    let mixed = (index as u64)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add((offset as u64).wrapping_mul(0xD1B5_4A32_D192_ED03));
    (mixed >> 56) as u8
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn fields_follow_the_rule() {
        assert_eq!(field_lengths(17, 8), [3, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(field_lengths(3, 8), [1, 1, 1]);
        assert_eq!(field_lengths(64, 8), [8; 8]);
    }

    #[test]
    fn layouts_hold_the_same_bytes() {
        for size in [1, 7, 8, 100, 4096] {
            let separate = MessageRing::new(3, size, 8, Layout::Separate);
            let contiguous = MessageRing::new(3, size, 8, Layout::Contiguous);
            for message in 0..3 {
                let fields: Vec<u8> =
                    separate.fields(message).iter().flat_map(|f| f.to_vec()).collect();
                assert_eq!(fields, contiguous.fields(message)[0][..]);
                let iovec: Vec<u8> =
                    separate.prepared(message).iter().flat_map(|s| s.to_vec()).collect();
                assert_eq!(iovec, fields);
            }
        }
    }

    /// Of 32 beside each other as arms are, and of 32 made again as in each trial.
    fn places<T>(make: impl Fn() -> T, start: impl Fn(&T) -> *const u8) -> [usize; 2] {
        let place = |made: &T| start(made).addr() % PAGE_BYTES;
        let beside: Vec<T> = (0..32).map(|_| make()).collect();
        let beside: BTreeSet<usize> = beside.iter().map(place).collect();
        let again: BTreeSet<usize> = (0..32).map(|_| place(&make())).collect();
        [beside.len(), again.len()]
    }

    #[test]
    fn where_in_a_page_data_begin_is_drawn_for_each_ring_and_buffer() {
        for bytes in [16 << 10, 64 << 10, 128 << 10, 256 << 10] {
            let ring = || MessageRing::new(1, bytes, 1, Layout::Contiguous);
            let rings = places(ring, |ring| ring.fields(0)[0].as_ptr());
            let buffers = places(|| Field::filled(bytes, 1), |buffer| buffer.as_ptr());
            println!("{bytes} B: places of 32, and of 32 made again: {rings:?}, {buffers:?}");
            assert!(rings.iter().chain(&buffers).all(|&places| places > 8), "{bytes}");
        }
    }

    #[test]
    fn a_buffer_has_its_bytes_and_can_be_written() {
        for bytes in [1, 16 << 10] {
            let mut buffer = Field::filled(bytes, 7);
            assert_eq!(*buffer, vec![7; bytes]);
            buffer.fill(8);
            assert_eq!(*buffer, vec![8; bytes]);
        }
    }
}
