//! Values in little room: an analysis keeps sums of every arm in every trial in a few dozen bytes,
//! since most of the counts of a slice are `None`, and what many trials have alike once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use iolens_model::arm::ArmOutcome;
use iolens_model::cell::Cell;
use iolens_model::outcome::Counts;

use crate::gates::Flag;
use crate::remark::Circumstance;
use crate::sums::Sums;

/// The numbers of [`Sums`], with those that are `None` left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packed(Box<[u8]>);

/// As many bits as a byte of a number has beside the one that says that more follow.
const BITS: u32 = 7;
const MORE: u8 = 1 << BITS;

/// A one in each of eight bytes.
const ONES: u64 = 0x0101_0101_0101_0101;

impl Packed {
    /// Packs sums; [`Packed::sums`] gives them back. What `bytes` held is lost: it lends room.
    pub(crate) fn within(bytes: &mut Vec<u8>, sums: &Sums) -> Packed {
        bytes.clear();
        let own = [u64::from(sums.slices), u64::from(sums.rx_slices), sums.all_active_ns];
        own.into_iter().for_each(|number| push(bytes, number));
        for counts in [&sums.tx, &sums.rx] {
            let values = counts.values();
            let bits =
                values.iter().enumerate().map(|(at, value)| u64::from(value.is_some()) << at);
            push(bytes, bits.sum());
            values.into_iter().flatten().for_each(|value| push(bytes, value));
        }
        Packed(bytes.as_slice().into())
    }

    /// The sums that were packed.
    pub(crate) fn sums(&self) -> Sums {
        let mut rest = &*self.0;
        let mut small = || u32::try_from(pull(&mut rest)).unwrap_or(u32::MAX);
        let (slices, rx_slices) = (small(), small());
        let all_active_ns = pull(&mut rest);
        let mut counts = || {
            // A bit that no count has would be a mistake of `of`.
            let mut known = pull(&mut rest) & ((1 << Counts::COUNT) - 1);
            let mut values = [None; Counts::COUNT];
            while known != 0 {
                values[known.trailing_zeros() as usize] = Some(pull(&mut rest));
                known &= known - 1;
            }
            Counts::from_values(&values).unwrap_or_default()
        };
        Sums { slices, rx_slices, all_active_ns, tx: counts(), rx: counts() }
    }
}

// One bit says of each count whether it is there.
const _: () = assert!(Counts::COUNT < u64::BITS as usize);

/// Appends a number: seven bits to a byte, the lowest first.
fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= u64::from(MORE) {
        bytes.push(number.to_le_bytes()[0] | MORE);
        number >>= BITS;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Takes the number that comes next; 0 at the end.
fn pull(bytes: &mut &[u8]) -> u64 {
    // Most are small.
    if let [byte @ ..MORE, rest @ ..] = *bytes {
        *bytes = rest;
        return u64::from(*byte);
    }
    if let Some(word) = bytes.first_chunk().map(|chunk| u64::from_le_bytes(*chunk)) {
        // The first byte behind which no more follow is the last of the number.
        let ends = !word & (ONES << BITS);
        let bits = ends.trailing_zeros() + 1;
        if bits <= u64::BITS {
            *bytes = &bytes[bits as usize / 8..];
            return joined(word & (u64::MAX >> (u64::BITS - bits)));
        }
    }
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(BITS as usize) {
        let Some((&byte, rest)) = bytes.split_first() else { break };
        *bytes = rest;
        number |= u64::from(byte & !MORE) << shift;
        if byte < MORE {
            break;
        }
    }
    number
}

/// The bits of eight bytes beside the one of each that says that more follow: neighbours are
/// put together, then pairs, then fours.
fn joined(word: u64) -> u64 {
    let pairs = (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1);
    let fours = (pairs & 0x0000_3fff_0000_3fff) | ((pairs & 0x3fff_0000_3fff_0000) >> 2);
    (fours & 0x0fff_ffff) | ((fours & 0x0fff_ffff_0000_0000) >> 4)
}

// What trials have had so far, each once, for those to come that have the same.

/// Cells, outcomes of arms and circumstances of a run so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    cells: BTreeSet<Arc<Cell>>,
    /// How the arm with this label ended last.
    outcomes: BTreeMap<String, Arc<ArmOutcome>>,
    /// What was remarked of it last.
    flags: BTreeMap<String, Arc<[Flag]>>,
    circumstances: BTreeSet<Arc<Circumstance>>,
    /// Room for the sums of a trial, and for those of an arm while they are packed.
    pub(super) sums: Vec<Sums>,
    bytes: Vec<u8>,
}

impl Known {
    pub(super) fn cell(&mut self, cell: &Cell) -> Arc<Cell> {
        if let Some(known) = self.cells.get(cell) {
            return Arc::clone(known);
        }
        let cell = Arc::new(cell.clone());
        self.cells.insert(Arc::clone(&cell));
        cell
    }

    pub(super) fn outcome(&mut self, outcome: &ArmOutcome) -> Arc<ArmOutcome> {
        let label = &outcome.arm.label;
        if let Some(known) = self.outcomes.get(label).filter(|known| ***known == *outcome) {
            return Arc::clone(known);
        }
        let outcome = Arc::new(outcome.clone());
        self.outcomes.insert(label.clone(), Arc::clone(&outcome));
        outcome
    }

    pub(super) fn packed(&mut self, sums: &Sums) -> Packed {
        Packed::within(&mut self.bytes, sums)
    }

    /// What is remarked of the arm with this label.
    pub(super) fn flags(&mut self, label: &str, flags: Vec<Flag>) -> Arc<[Flag]> {
        if let Some(known) = self.flags.get(label).filter(|known| known[..] == flags[..]) {
            return Arc::clone(known);
        }
        let shared = |flag: Flag| match flag {
            Flag::Once(found) => Flag::Once(self.circumstance(found)),
            other => other,
        };
        let flags: Arc<[Flag]> = flags.into_iter().map(shared).collect();
        self.flags.insert(label.to_owned(), Arc::clone(&flags));
        flags
    }

    fn circumstance(&mut self, found: Arc<Circumstance>) -> Arc<Circumstance> {
        if let Some(known) = self.circumstances.get(&found) {
            return Arc::clone(known);
        }
        self.circumstances.insert(Arc::clone(&found));
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_arm_that_never_ran_takes_eleven_bytes() {
        let nothing = Sums::default();
        let packed = Packed::within(&mut vec![7], &nothing);
        assert_eq!(packed.sums(), nothing);
        assert_eq!(packed.0.len(), 3 + 2 * (1 + 3), "own numbers, and what is always counted");
    }

    proptest! {
        #[test]
        fn numbers_of_any_size_come_back(numbers in proptest::collection::vec(any::<u64>(), 0..9)) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|&number| push(&mut bytes, number));
            let mut rest = &*bytes;
            let back: Vec<u64> = numbers.iter().map(|_| pull(&mut rest)).collect();
            prop_assert_eq!(back, numbers);
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn sums_come_back(
            own in any::<(u32, u32, u64)>(),
            ends in proptest::array::uniform2(
                proptest::collection::vec(any::<Option<u64>>(), Counts::COUNT),
            ),
        ) {
            let counts = ends.map(|values| {
                let values = values.try_into().unwrap();
                Counts::from_values(&values).unwrap_or_default()
            });
            let (slices, rx_slices, all_active_ns) = own;
            let [tx, rx] = counts;
            let sums = Sums { slices, rx_slices, all_active_ns, tx, rx };
            prop_assert_eq!(Packed::within(&mut Vec::new(), &sums).sums(), sums);
        }
    }
}
