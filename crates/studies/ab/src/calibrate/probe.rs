//! One process, asked for slices to find out what they take.

use iolens_programs::{Around, Conversation, Reading, Request};

use super::slices::WarmUp;
use super::{AbError, Probes, at_least_one, median};

/// How often a slice that was long enough is tried again.
const AGAIN: u32 = 2;

/// A slice that takes so long is long whatever interrupts it.
const LONG_NS: u64 = 100_000_000;

/// An operation longer than this hides what asking for it takes, ns.
const ASKED_FOR_NS_MAX: f64 = 1_000_000.0;

/// A process that is asked this and that.
pub(super) struct Probe<'a> {
    pub(super) probes: &'a Probes<'a>,
    pub(super) program: usize,
    pub(super) conversation: Conversation,
    pub(super) around: Around,
    /// What an operation took in the slice before; `None` before the first.
    pub(super) operation_ns: Option<f64>,
}

impl Probe<'_> {
    pub(super) fn slice(&mut self, operations: u64) -> Result<Reading, AbError> {
        let (setup, limits) = (self.probes.setup, self.probes.setup.limits);
        let limit_ns = match self.operation_ns {
            Some(ns) => limits.of_slice(at_least_one(ns * operations as f64)),
            // One operation may take long, and the first one longest.
            None => limits.start_ns.max(limits.slice_ns),
        };
        let (request, interrupted) = (Request::of(operations), self.probes.interrupted);
        let done = self.conversation.slice_with_delay(&request, self.around, limit_ns, interrupted);
        let reading = done.map_err(|fault| AbError::of(setup, self.program, fault))?;
        self.operation_ns = Some(reading.took_ns as f64 / operations as f64);
        Ok(reading)
    }

    /// Asks for more and more operations until they take so long.
    pub(super) fn grow(&mut self, from: u64, target_ns: u64) -> Result<u64, AbError> {
        let mut operations = from.max(1);
        loop {
            let mut took_ns = self.slice(operations)?.alone_ns().max(1);
            // What others on the machine have made longer is too soon long enough.
            for _ in 0..AGAIN {
                if (target_ns..LONG_NS).contains(&took_ns) {
                    took_ns = took_ns.min(self.slice(operations)?.alone_ns().max(1));
                }
            }
            if took_ns >= target_ns || operations >= u64::MAX / 32 {
                return Ok(operations);
            }
            let growth = (target_ns as f64 / took_ns as f64 * 1.1).clamp(1.5, 10.0);
            operations = at_least_one(operations as f64 * growth).max(operations + 1);
        }
    }

    /// Some slices, one at least, as many as fit into a time.
    pub(super) fn several(
        &mut self,
        operations: u64,
        count: usize,
        most_ns: u64,
    ) -> Result<Vec<Reading>, AbError> {
        let (mut readings, mut spent_ns) = (Vec::with_capacity(count), 0);
        while readings.is_empty() || readings.len() < count && spent_ns < most_ns {
            let reading = self.slice(operations)?;
            spent_ns += reading.took_ns;
            readings.push(reading);
        }
        Ok(readings)
    }

    /// What a slice takes where nobody else wants the processor: the least of a few.
    pub(super) fn slice_ns(&mut self, operations: u64) -> Result<u64, AbError> {
        const SLICES: usize = 9;
        let readings = self.several(operations, SLICES, 500_000_000)?;
        Ok(readings.iter().map(Reading::alone_ns).min().unwrap_or(0))
    }

    /// What asking for a slice takes, ns; `None` where that cannot be told from what its operations
    /// take, each about so long.
    pub(super) fn asking_ns(
        &mut self,
        operations: u64,
        operation_ns: f64,
    ) -> Result<Option<u64>, AbError> {
        const PAIRS: usize = 21;
        if operations < 2 || operation_ns > ASKED_FOR_NS_MAX {
            return Ok(None);
        }
        let (mut one_ns, mut slice_ns) = (u64::MAX, u64::MAX);
        let (mut pairs, mut spent_ns) = (0, 0);
        while pairs == 0 || pairs < PAIRS && spent_ns < 30_000_000 {
            let (one, slice) = (self.slice(1)?.took_ns, self.slice(operations)?.took_ns);
            (one_ns, slice_ns) = (one_ns.min(one), slice_ns.min(slice));
            (pairs, spent_ns) = (pairs + 1, spent_ns + one + slice);
        }
        Ok(beyond_operations(one_ns as f64, slice_ns as f64, operations as f64))
    }

    /// How many times as long twice as many operations take.
    pub(super) fn ratio_of_twice(&mut self, operations: u64) -> Result<f64, AbError> {
        const PAIRS: usize = 9;
        let (mut growth, mut spent_ns) = (Growth::default(), 0);
        while growth.pairs() == 0 || growth.pairs() < PAIRS && spent_ns < 1_000_000_000 {
            let once = self.slice(operations)?;
            let twice = self.slice(operations.saturating_mul(2))?;
            spent_ns += once.took_ns + twice.took_ns;
            growth.add(&once, &twice);
        }
        Ok(growth.ratio())
    }

    /// Runs slices for so long, or until they do not become cheaper; how many that took.
    pub(super) fn warm_up(
        &mut self,
        operations: u64,
        stated_ns: Option<u64>,
    ) -> Result<u32, AbError> {
        let mut warm_up = WarmUp::of(stated_ns);
        while !warm_up.is_over() {
            warm_up.add(&[self.slice(operations)?]);
        }
        Ok(warm_up.slices)
    }
}

/// How the time of a program grows with its operations.
#[derive(Debug, Default)]
pub(super) struct Growth {
    times: Vec<f64>,
    cpus: Vec<f64>,
    /// CPU time over time of a slice that nobody interrupted.
    cpu_share: f64,
}

impl Growth {
    pub(super) fn add(&mut self, once: &Reading, twice: &Reading) {
        self.times.push(twice.alone_ns() as f64 / once.alone_ns().max(1) as f64);
        if let (Some(one), Some(two)) = (once.cpu_ns, twice.cpu_ns) {
            self.cpus.push(two as f64 / one.max(1) as f64);
            self.cpu_share = self.cpu_share.max(one as f64 / once.alone_ns().max(1) as f64);
        }
    }

    pub(super) fn pairs(&self) -> usize {
        self.times.len()
    }

    /// How many times as long twice as many operations take: by CPU time, which others on the
    /// machine disturb less, where that is most of the time.
    pub(super) fn ratio(self) -> f64 {
        let ratios = if self.cpu_share > 0.5 { self.cpus } else { self.times };
        median(ratios).unwrap_or(f64::NAN)
    }
}

/// What a slice takes beyond its operations, ns, from one of one operation and one of more: these
/// are c + t and c + n·t. `None` where noise is larger.
fn beyond_operations(one_ns: f64, slice_ns: f64, operations: f64) -> Option<u64> {
    let fixed_ns = (operations * one_ns - slice_ns) / (operations - 1.0);
    (fixed_ns > 0.0).then(|| at_least_one(fixed_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_grow_with_the_operations_is_asking() {
        let of = beyond_operations;
        assert_eq!(of(12_000.0 + 200.0, 12_000.0 + 200.0 * 2500.0, 2500.0), Some(12_000));
        assert_eq!(of(15_000.0, 20_000.0, 2.0), Some(10_000));
        // Noise may make it less than nothing.
        assert_eq!(of(100.0, 500_000.0, 1000.0), None);
    }
}
