//! Where two arms take the same time, as a point.

use std::collections::BTreeMap;

use iolens_model::units::Bytes;

use super::{Normal, RUNS, Rate};
use crate::crossing::Curves;
use crate::student::StudentTable;

/// Sizes inside a band, as `iolens confirm` has them.
const SIZES: [u64; 7] = [4096, 5184, 6528, 8192, 10304, 12992, 16384];

/// The truth.
const AT: f64 = 7000.0;

/// A straight line through the truth with this slope per doubling of the size; passes are
/// shifted as a whole by `mood` and at each size by `sd`.
struct Line {
    slope: f64,
    mood: f64,
    sd: f64,
}

impl Line {
    /// How often the interval of a point covers the truth, and how often there is a point.
    fn coverage(&self, seed: u64) -> [Rate; 2] {
        let (table, normal) = (&mut StudentTable::new(1), &mut Normal::seeded(seed));
        let (mut covered, mut named) = (Rate::new(), Rate::new());
        while covered.of < RUNS {
            let found = self.curves(normal).crossing(table);
            named.add(found.is_ok());
            if let Some(interval) = found.ok().and_then(|at| at.interval) {
                covered.add(interval.contains(AT));
            }
        }
        [covered, named]
    }

    fn curves(&self, normal: &mut Normal) -> Curves {
        let moods: Vec<f64> = (0..12).map(|_| self.mood * normal.draw()).collect();
        let mut row = |&size: &u64| -> BTreeMap<u32, f64> {
            let mean = self.slope * (size as f64 / AT).log2();
            let value = |mood: &f64| mean + mood + self.sd * normal.draw();
            (0u32..).zip(moods.iter().map(value)).collect()
        };
        let rows = SIZES.iter().map(&mut row).collect();
        Curves::of(&SIZES.map(Bytes), rows)
    }
}

#[test]
fn intervals_of_points_cover() {
    let steady = Line { slope: 0.2, mood: 0.005, sd: 0.01 };
    let [covered, named] = steady.coverage(111);
    covered.check("a crossing of lines that rise by 0.2 a doubling, sd 0.01", 0.95);
    assert!(named.share() > 0.99, "{}", named.share());
    let moody = Line { slope: 0.2, mood: 0.03, sd: 0.01 };
    let [covered, named] = moody.coverage(112);
    covered.check("the same where whole passes shift by 0.03", 0.95);
    assert!(named.share() > 0.95, "{}", named.share());
    // Stated: where neighbours differ by less than their noise, the lines between them bend.
    let flat = Line { slope: 0.04, mood: 0.005, sd: 0.02 };
    let [covered, named] = flat.coverage(113);
    println!(
        "a crossing of lines that rise by 0.04 a doubling, sd 0.02: {:.1}% covered where a point \
         is named, which is in {:.1}% of runs",
        covered.share() * 100.0,
        named.share() * 100.0
    );
}
