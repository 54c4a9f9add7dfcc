//! Groups of a thread with all that it starts.

use super::*;

impl Pmu {
    /// Where not all that is not pinned has room, each has it for a part of the time.
    fn rotating(self) -> Pmu {
        Pmu { rotates: true, ..self }
    }

    /// Those of a thread with all that it starts.
    fn family(self) -> (Rc<Pmu>, Counters<Scripted>) {
        self.reaching(Reach::Family, &all(), Scope::Thread, None, 1)
    }
}

#[test]
fn a_family_inherits_every_group_and_pins_none_that_needs_the_pmu() {
    let (pmu, mut counters) = Pmu::with_room_for(PmuCounts::COUNT).family();
    check_missing(&mut counters, &[], "");
    let options = |open: &Open<Scripted>| open.group().unwrap().options;
    assert!(counters.groups.iter().all(|open| options(open).inherit));
    let pinned = counters.groups.iter().filter(|open| options(open).pinned);
    let pinned: Vec<&str> = pinned.map(|open| open.plan.name).collect();
    assert_eq!(pinned, [SOFTWARE.name, TRACEPOINTS.name], "a child has always room for them");
    // A child that had to wait for the PMU shows in the times.
    pmu.stolen_percent.set(10);
    assert_eq!(slice(&mut counters)[..PmuCounts::COUNT], [None; PmuCounts::COUNT]);
}

#[test]
fn a_family_keeps_its_cycles_where_the_pmu_has_room_for_nothing_else() {
    for room in [4, 5] {
        let (pmu, mut counters) = Pmu::with_room_for(room).rotating().family();
        check_missing(&mut counters, &absent(&[]), "no room for it beside cycles");
        assert_eq!(pmu.groups.borrow().len(), 3, "the others are closed");
    }
    let (_pmu, mut counters) = Pmu::with_room_for(6).rotating().family();
    check_missing(&mut counters, &absent(&[1]), "they take turns by pass");
}
