//! How long programs warm up.

use iolens_programs::Reading;

use super::median;

/// How much less CPU time a block of slices takes than any before while a program warms up.
const STILL_FALLS: f64 = 0.98;

/// Slices of such a block.
const BLOCK: usize = 5;

/// Blocks that do not fall, one after another: one alone may be noise.
const PLATEAU: u32 = 2;

/// How long a program may warm up.
const LONGEST_NS: u64 = 2_000_000_000;

/// The warming up of one program.
#[derive(Debug)]
pub(super) struct WarmUp {
    /// Slices until now.
    pub(super) slices: u32,
    spent_ns: u64,
    stated_ns: Option<u64>,
    block: Vec<f64>,
    least_ns: f64,
    plateau: u32,
}

impl WarmUp {
    /// One that has yet to begin: for so long, or until slices do not become cheaper.
    pub(super) fn of(stated_ns: Option<u64>) -> WarmUp {
        let (block, least_ns) = (Vec::with_capacity(BLOCK), f64::INFINITY);
        WarmUp { slices: 0, spent_ns: 0, stated_ns, block, least_ns, plateau: 0 }
    }

    /// A slice of each of its processes.
    pub(super) fn add(&mut self, readings: &[Reading]) {
        let cost_ns = |reading: &Reading| reading.cpu_ns.unwrap_or(reading.took_ns);
        let took_ns = readings.iter().map(|reading| reading.took_ns).max().unwrap_or(0);
        self.note(took_ns, readings.iter().map(cost_ns).sum());
    }

    fn note(&mut self, took_ns: u64, cost_ns: u64) {
        self.slices += 1;
        self.spent_ns += took_ns;
        self.block.push(cost_ns as f64);
        if self.block.len() == BLOCK {
            let now_ns = median(std::mem::take(&mut self.block)).unwrap_or(self.least_ns);
            self.plateau = if now_ns < self.least_ns * STILL_FALLS { 0 } else { self.plateau + 1 };
            self.least_ns = self.least_ns.min(now_ns);
        }
    }

    /// Whether it has had its time, or slices do not become cheaper any more.
    pub(super) fn is_over(&self) -> bool {
        let is_level = self.plateau >= PLATEAU && self.block.is_empty();
        let is_done = is_level || self.spent_ns > LONGEST_NS;
        self.stated_ns.map_or(is_done, |ns| self.spent_ns >= ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many slices that cost so much it takes.
    fn slices(cost_ns: impl Fn(u32) -> u64) -> u32 {
        let mut warm_up = WarmUp::of(None);
        while !warm_up.is_over() {
            let ns = cost_ns(warm_up.slices);
            warm_up.note(ns, ns);
        }
        warm_up.slices
    }

    #[test]
    fn a_program_is_warm_when_its_slices_do_not_become_cheaper() {
        assert_eq!(slices(|_| 1000), 15);
        // As a compiler at run time does it.
        assert_eq!(slices(|nth| if nth < 22 { 9000 } else { 1000 }), 15);
        assert_eq!(slices(|nth| if nth < 12 { 9000 } else { 1000 }), 25);
        assert_eq!(slices(|nth| 1000 * u64::from(40 - nth.min(30))), 45);
        // One that is slower for a moment has not got faster after it.
        assert_eq!(slices(|nth| if (5..10).contains(&nth) { 1500 } else { 1000 }), 15);
        // It has had its time.
        assert_eq!(slices(|nth| 500_000_000 - 20_000_000 * u64::from(nth.min(20))), 5);
    }

    #[test]
    fn a_stated_time_is_kept() {
        for (ns, slices) in [(0, 0), (1, 1), (30, 3), (31, 4)] {
            let mut warm_up = WarmUp::of(Some(ns));
            while !warm_up.is_over() {
                warm_up.note(10, 10);
            }
            assert_eq!(warm_up.slices, slices, "{ns} ns");
        }
    }
}
