//! What tells whether all bytes of a file were read, once, and each in its place:
//! a hash that knows where every word stands, and the XOR of words for those who
//! must compare with a program that has nothing better.
//!
//! # The hash
//! The file is a sequence of 64-bit little-endian words w₀, w₁, …, the last one
//! filled up with zero bytes. With p = 2⁶¹ − 1, which is prime, and its primitive
//! root r = 0x1e37_79b9_7f4a_7c1a (the golden ratio's first 61 bits, and the next
//! such root), the value is
//!
//! ```text
//! (length in bytes + w₀·r + w₁·r² + w₂·r³ + …) mod p
//! ```
//!
//! In Python, of the bytes `b`:
//!
//! ```text
//! h = 0
//! for at in reversed(range(0, len(b), 8)):
//!     h = (h + int.from_bytes(b[at:at+8], "little")) * 0x1e3779b97f4a7c1a % (2**61 - 1)
//! print("%016x" % ((h + len(b)) % (2**61 - 1)))
//! ```
//!
//! It is a sum, so that blocks may come in any size and order and on any thread,
//! and a word may come in pieces. A polynomial of degree n has at most n roots: two
//! files of n words that differ collide for at most n of the 2⁶¹ possible r. A
//! block read twice, left out or swapped with another changes the sum, which the
//! XOR does not see. It finds accidents; it is no cryptographic hash.

use std::ops::Range;

use iolens_sys::memory::Memory;

/// The prime.
const P: u64 = (1 << 61) - 1;

/// Its primitive root.
const R: u64 = 0x1e37_79b9_7f4a_7c1a;

/// Words whose powers are in a table.
const RUN_WORDS: usize = 256;

/// Products of a word and a power that a 128-bit number holds together: each is
/// below 2¹²⁵.
const PRODUCTS: usize = 8;

/// r⁰ to r²⁵⁵.
static RUN: [u64; RUN_WORDS] = powers(R);

/// r to the power of RUN_WORDS.
const R_RUN: u64 = multiply(RUN[RUN_WORDS - 1], R);

/// r to the power of d · 256ᵏ, by k and d: any power is a product of eight.
static DIGITS: [[u64; 256]; 8] = digits();

/// a·b mod p; both below 2⁶³, the result below p.
#[inline]
const fn multiply(a: u64, b: u64) -> u64 {
    reduce(a as u128 * b as u128)
}

/// Any number mod p: 2⁶¹ is 1 there.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the parts are cut to size before")]
const fn reduce(n: u128) -> u64 {
    let (low, middle, high) = (n as u64 & P, (n >> 61) as u64 & P, (n >> 122) as u64);
    let sum = low + middle + high;
    let sum = (sum & P) + (sum >> 61);
    if sum >= P { sum - P } else { sum }
}

/// a + b mod p; both below p.
#[inline]
const fn add(a: u64, b: u64) -> u64 {
    let sum = a + b;
    if sum >= P { sum - P } else { sum }
}

const fn powers(base: u64) -> [u64; 256] {
    let mut powers = [1; 256];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = multiply(powers[at - 1], base);
        at += 1;
    }
    powers
}

const fn digits() -> [[u64; 256]; 8] {
    let mut tables = [[1; 256]; 8];
    let mut base = R;
    let mut at = 0;
    while at < tables.len() {
        tables[at] = powers(base);
        base = multiply(tables[at][255], base);
        at += 1;
    }
    tables
}

/// r to the power of n.
fn power(n: u64) -> u64 {
    let digits = n.to_le_bytes();
    let digits = digits.iter().zip(&DIGITS).filter(|(digit, _)| **digit > 0);
    digits.fold(1, |product, (&digit, table)| multiply(product, table[usize::from(digit)]))
}

/// The hash of what has come so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    /// The sum of words times powers.
    sum: u64,
    /// The word after the last one that came, and its power: what comes in order
    /// needs no table.
    next: u64,
    power: u64,
}

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum::new()
    }
}

impl Checksum {
    /// Of nothing.
    pub const fn new() -> Checksum {
        Checksum { sum: 0, next: 0, power: R }
    }

    /// Takes in the bytes that stand at `offset` of the file.
    #[inline]
    pub fn take(&mut self, offset: u64, bytes: impl Memory) {
        let within = (offset % 8) as usize;
        let mut power = self.power_of(offset / 8);
        let mut word = offset / 8;
        let mut at = 0;
        if within > 0 {
            at = bytes.bytes().min(8 - within);
            let head = partial(bytes, 0..at) << (8 * within);
            self.sum = add(self.sum, multiply_word(head, power));
            if within + at < 8 {
                (self.next, self.power) = (word, power);
                return;
            }
            (word, power) = (word + 1, multiply(power, R));
        }
        let mut words = (bytes.bytes() - at) / 8;
        word += words as u64;
        while words > 0 {
            let run = words.min(RUN_WORDS);
            self.sum = add(self.sum, multiply(sum_of(bytes, at, run), power));
            power = match run {
                RUN_WORDS => multiply(power, R_RUN),
                short => multiply(power, RUN[short]),
            };
            (at, words) = (at + run * 8, words - run);
        }
        if at < bytes.bytes() {
            self.sum = add(self.sum, multiply_word(partial(bytes, at..bytes.bytes()), power));
        }
        (self.next, self.power) = (word, power);
    }

    /// r to the power of a word's place.
    #[inline]
    fn power_of(&self, word: u64) -> u64 {
        if word == self.next { self.power } else { power(word + 1) }
    }

    /// Takes in what another thread has.
    pub fn merge(&mut self, other: &Checksum) {
        self.sum = add(self.sum, other.sum);
    }

    /// The value for a file of `bytes` bytes.
    pub fn value(&self, bytes: u64) -> u64 {
        add(self.sum, bytes % P)
    }
}

/// A word, which may be above p, times a power.
#[inline]
fn multiply_word(word: u64, power: u64) -> u64 {
    reduce(u128::from(word) * u128::from(power))
}

/// Less than eight bytes as a word.
#[inline]
fn partial(bytes: impl Memory, range: Range<usize>) -> u64 {
    range.rev().fold(0, |word, at| word << 8 | u64::from(bytes.array::<1>(at)[0]))
}

/// The sum of at most RUN_WORDS words from `at` on, each times its power from r⁰ on.
#[inline]
fn sum_of(bytes: impl Memory, at: usize, words: usize) -> u64 {
    const ROW_BYTES: usize = 8 * PRODUCTS;
    let product =
        |word: [u8; 8], power: u64| u128::from(u64::from_le_bytes(word)) * u128::from(power);
    let (powers, _) = RUN.as_chunks::<PRODUCTS>();
    let rows = words / PRODUCTS;
    let mut sum = 0u128;
    for (row, powers) in powers[..rows].iter().enumerate() {
        // Below 2¹²⁸, and the parts that are added to the sum below 2⁶⁷.
        let row = bytes.array::<ROW_BYTES>(at + row * ROW_BYTES);
        let (row, _) = row.as_chunks::<8>();
        let products: u128 =
            row.iter().zip(powers).map(|(&word, &power)| product(word, power)).sum();
        sum += (products & u128::from(P)) + (products >> 61);
    }
    let rest = rows * PRODUCTS..words;
    let products: u128 = rest.map(|word| product(bytes.array(at + word * 8), RUN[word])).sum();
    reduce(sum + (products & u128::from(P)) + (products >> 61))
}

/// The XOR of the 32-bit little-endian words of a file, the last one filled up
/// with zero bytes. Two blocks that are swapped, or one that is read three times,
/// leave it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Xor(u32);

impl Xor {
    /// Takes in the bytes that stand at `offset` of the file.
    #[inline]
    pub fn take(&mut self, offset: u64, bytes: impl Memory) {
        const ROW_BYTES: usize = 64;
        let mut lanes = [0u32; 16];
        let rows = bytes.bytes() / ROW_BYTES;
        for row in 0..rows {
            let row = bytes.array::<ROW_BYTES>(row * ROW_BYTES);
            let (words, _) = row.as_chunks::<4>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane ^= u32::from_le_bytes(*word);
            }
        }
        let rest = rows * ROW_BYTES..bytes.bytes();
        let rest = rest.map(|at| u32::from(bytes.array::<1>(at)[0]) << (8 * (at % 4)));
        let folded = lanes.into_iter().chain(rest).fold(0, |xor, word| xor ^ word);
        // As if they stood at the beginning of a word, and then where they do.
        self.0 ^= folded.rotate_left(8 * (offset % 4) as u32);
    }

    /// Takes in what another thread has.
    pub fn merge(&mut self, other: &Xor) {
        self.0 ^= other.0;
    }

    /// The value.
    pub fn value(&self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, word for word.
    fn naive(bytes: &[u8]) -> u64 {
        let p = u128::from(P);
        let mut power = 1u128;
        let mut sum = bytes.len() as u128 % p;
        for word in bytes.chunks(8) {
            power = power * u128::from(R) % p;
            let word = word.iter().rev().fold(0u128, |word, &byte| word << 8 | u128::from(byte));
            sum = (sum + word % p * power) % p;
        }
        u64::try_from(sum).unwrap()
    }

    fn naive_xor(bytes: &[u8]) -> u32 {
        let word = |word: &[u8]| word.iter().rev().fold(0, |word, &b| word << 8 | u32::from(b));
        bytes.chunks(4).fold(0, |xor, bytes| xor ^ word(bytes))
    }

    fn of(bytes: &[u8]) -> (u64, u32) {
        let (mut checksum, mut xor) = (Checksum::new(), Xor::default());
        checksum.take(0, bytes);
        xor.take(0, bytes);
        (checksum.value(bytes.len() as u64), xor.value())
    }

    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| iolens_sys::ring::content(9, at)).collect()
    }

    #[test]
    fn known_files_have_known_values() {
        // Made with the lines of Python above.
        let check = |bytes: &[u8], checksum, xor| assert_eq!(of(bytes), (checksum, xor));
        check(b"", 0, 0);
        check(b"\0", 1, 0);
        check(b"a", 0x1305_1f49_3b39_0636, 0x61);
        check(b"The quick brown fox jumps over the lazy dog", 0x1db3_2675_467c_ebee, 0x0f64_7256);
        check(&[0xff; 1000], 0x180d_f0ef_ac8a_7ca9, 0);
    }

    #[test]
    fn what_is_out_of_place_shows() {
        let bytes = content(4 * 4096);
        let value = |order: [usize; 4]| of(&order.map(|b| &bytes[b * 4096..][..4096]).concat()).0;
        let right = value([0, 1, 2, 3]);
        for wrong in [[0, 2, 1, 3], [0, 1, 1, 3], [3, 1, 2, 0], [1, 2, 3, 0]] {
            assert_ne!(value(wrong), right, "{wrong:?}");
        }
        assert_ne!(of(&bytes[..4095]).0, of(&bytes[..4096]).0);
        assert_ne!(of(&[0; 8]).0, of(&[0; 9]).0, "zeros at the end count");
        // The XOR sees none of the first kind.
        let swapped = [&bytes[4096..8192], &bytes[..4096]].concat();
        assert_eq!(of(&swapped).1, of(&bytes[..8192]).1);
    }

    #[test]
    fn powers_of_far_places_are_right() {
        for n in [0, 1, 255, 256, 257, 65_536, 1 << 40, (1 << 60) + 12_345] {
            let mut expect = 1u128;
            for bit in (0..64).rev() {
                expect = expect * expect % u128::from(P);
                if n >> bit & 1 == 1 {
                    expect = expect * u128::from(R) % u128::from(P);
                }
            }
            assert_eq!(u128::from(power(n)), expect, "{n}");
        }
        assert_eq!(power(P - 1), 1);
        assert_ne!(power((P - 1) / 2), 1, "a primitive root");
    }

    #[test]
    fn the_largest_words_do_not_overflow() {
        for bytes in [vec![0xff; 3 * 8 * RUN_WORDS + 8 * PRODUCTS + 5], vec![0xff; 7]] {
            assert_eq!(of(&bytes), (naive(&bytes), naive_xor(&bytes)));
        }
    }

    proptest! {
        #[test]
        fn sizes_order_and_threads_change_nothing(
            length in 0usize..9000,
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
            shuffle in any::<usize>(),
        ) {
            let bytes = content(length);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(length + 1)).collect();
            cuts.extend([0, length]);
            cuts.sort_unstable();
            let mut pieces: Vec<(usize, usize)> =
                cuts.windows(2).map(|pair| (pair[0], pair[1])).collect();
            let turn = shuffle % pieces.len();
            pieces.rotate_left(turn);
            if shuffle & 1 == 1 {
                pieces.reverse();
            }
            let mut threads = [(Checksum::new(), Xor::default()); 2];
            for (index, (from, to)) in pieces.into_iter().enumerate() {
                let (checksum, xor) = &mut threads[(index ^ (shuffle >> 9)) % 2];
                checksum.take(from as u64, &bytes[from..to]);
                xor.take(from as u64, &bytes[from..to]);
            }
            let [(mut checksum, mut xor), (other, other_xor)] = threads;
            checksum.merge(&other);
            xor.merge(&other_xor);
            prop_assert_eq!(checksum.value(length as u64), naive(&bytes));
            prop_assert_eq!(xor.value(), naive_xor(&bytes));
        }

        #[test]
        fn every_bit_counts(length in 1usize..3000, at in any::<prop::sample::Index>()) {
            let mut bytes = content(length);
            let before = of(&bytes);
            let bit = at.index(length * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let after = of(&bytes);
            prop_assert_ne!(before.0, after.0);
            prop_assert_ne!(before.1, after.1);
        }
    }
}
