//! What need not be probed: the work of slices that is recalled, found well enough, or known
//! of another cell.

use iolens_engine::work;
use iolens_model::cell::{Cell, Setting};
use iolens_model::server::LoadLevel;

use super::{CellState, GroupArm};

impl CellState {
    /// Whether an earlier session has found the work of every arm of a group.
    pub(crate) fn is_recalled(&self, group: usize) -> bool {
        self.groups[group].arms.iter().all(|arm| arm.is_recalled)
    }

    /// Whether a probe has told all of a group's work: none of its slices would be more
    /// than one file, however exactly the time of that were known, or than one request on
    /// each connection, or than the fewest messages that go to another machine.
    pub(crate) fn is_known(&self, group: usize) -> bool {
        if self.is_apart() {
            let fewest = work::messages(self.target, f64::INFINITY, &self.cell);
            let is_long =
                |arm: &GroupArm| arm.is_probed && self.messages(arm, self.target) == fewest;
            return self.groups[group].arms.iter().all(is_long);
        }
        let least = match self.cell.server() {
            Some(setting) => f64::from(setting.connections),
            None if self.cell.copy().is_some() => 0.5,
            None => return false,
        };
        let is_long =
            |arm: &GroupArm| arm.is_probed && arm.message_ns * least > self.target.0 as f64;
        self.groups[group].arms.iter().all(is_long)
    }

    /// Takes over what was found of a cell of servers that differs in its load alone: the
    /// probes of both are a closed loop. Whether that is known of every arm.
    pub(crate) fn take_over(&mut self, other: &CellState) -> bool {
        let is_recalled = (0..self.groups.len()).any(|group| self.is_recalled(group));
        if is_recalled || self.cell.server().is_none() || closed(&self.cell) != closed(&other.cell)
        {
            return false;
        }
        let found = |own: &GroupArm| {
            let mut all = other.groups.iter().flat_map(|group| &group.arms);
            all.find(|arm| arm.arm == own.arm && arm.is_probed).map(|arm| arm.message_ns)
        };
        let arms = || self.groups.iter().flat_map(|group| &group.arms);
        let Some(times) = arms().map(found).collect::<Option<Vec<f64>>>() else { return false };
        let own = self.groups.iter_mut().flat_map(|group| &mut group.arms);
        own.zip(times).for_each(|(arm, time)| (arm.message_ns, arm.is_probed) = (time, true));
        (0..self.groups.len()).for_each(|group| self.learn_rate(group));
        true
    }
}

/// A cell of servers as it would be in a closed loop.
fn closed(cell: &Cell) -> Cell {
    let mut cell = cell.clone();
    if let Setting::Server(setting) = &mut cell.setting {
        setting.load = LoadLevel::Closed;
    }
    cell
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use iolens_harness::host;
    use iolens_model::axes::{Direction, Study, Topology};
    use iolens_model::plan::{Axes, Plan};
    use iolens_model::run::FarFacts;
    use iolens_model::trial::Work;
    use iolens_model::units::Nanos;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::super::servers::Kind;
    use super::*;
    use crate::args::flags_of;
    use crate::request;

    fn planned(line: &str) -> Plan {
        planned_of(Study::Server, line)
    }

    fn planned_of(study: Study, line: &str) -> Plan {
        let words = ["--network", "loopback"].into_iter().chain(line.split_whitespace());
        let asked = flags_of(study, words).unwrap();
        request::plan(request::complete(asked).unwrap(), 1, &|_| Ok(())).unwrap().plan
    }

    /// The cells of a plan, the arms of the first as if they had been probed.
    fn cells(line: &str, probed: &[(&str, f64)]) -> Vec<CellState> {
        let mut cells = cells_of(&planned(line));
        for arm in cells[0].groups.iter_mut().flat_map(|group| &mut group.arms) {
            let found = probed.iter().find(|(id, _)| *id == arm.arm.primitive);
            if let Some((_, message_ns)) = found {
                (arm.message_ns, arm.is_probed) = (*message_ns, true);
            }
        }
        cells
    }

    fn cells_of(plan: &Plan) -> Vec<CellState> {
        let host = host::read(&host::Root::real()).unwrap();
        plan.cells().into_iter().map(|cell| CellState::new(plan, cell, &host)).collect()
    }

    const MODELS: &str = "--models epoll_lt,poll,prefork --load closed,50% --connections";

    #[test]
    fn a_cell_at_a_rate_needs_no_probe_of_its_own() {
        let found = [("epoll_lt", 1e4), ("poll", 2e4), ("prefork", 5e4)];
        let mut all = cells(&format!("{MODELS} 16"), &found);
        let (closed, open) = all.split_at_mut(1);
        assert!(open[0].take_over(&closed[0]));
        assert_eq!(open[0].rates.of(Kind::Shares), Some(25_000.0));
        assert_eq!(open[0].rates.of(Kind::Keeps), Some(10_000.0));
        // Another number of connections is another cell, and what failed is not known.
        let mut others = cells(&format!("{MODELS} 2"), &[]);
        assert!(!others[0].take_over(&closed[0]));
        let mut lacking = cells(&format!("{MODELS} 16"), &found[..2]);
        let (closed, open) = lacking.split_at_mut(1);
        assert!(!open[0].take_over(&closed[0]));
    }

    #[test]
    fn one_request_on_each_connection_is_found_with_one_probe() {
        let found = [("epoll_lt", 2e5), ("poll", 2e5), ("prefork", 2e5)];
        let known = |connections: &str, found: &[(&str, f64)]| {
            let all = cells(&format!("{MODELS} {connections}"), found);
            (0..all[0].groups.len()).all(|group| all[0].is_known(group))
        };
        // 100 ms a slice is 500 requests.
        assert!(known("1000", &found));
        assert!(!known("400", &found));
        assert!(!known("1000", &found[..1]));
    }

    #[test]
    fn the_baseline_is_measured_beside_others_or_once_by_itself() {
        let groups = |models: &str| {
            let line = format!("--models {models} --load 50% --connections 16");
            let all = cells(&line, &[]);
            let said: Vec<&str> = all[0].refused().map(|(label, _)| label).collect();
            (all[0].groups.len(), all[0].never_began().len(), said.join(" "))
        };
        // `fork` has connections of one request alone, and would have a group of its own.
        assert_eq!(groups("epoll_lt,poll,fork"), (1, 1, "fork".to_owned()));
        assert_eq!(groups("epoll_lt,fork,iterative").0, 1);
        assert_eq!(groups("epoll_lt,poll,prefork"), (2, 0, String::new()));
    }

    #[test]
    fn controls_are_measured_also_where_they_have_a_group_of_their_own() {
        // Six others fill the group before them.
        let six = "send,write,writev,sendto,sendmsg_iov,send_per_field";
        let line = format!("--methods send_staged,{six},memcpy --sizes 1KiB --threads 1");
        let all = cells_of(&planned_of(Study::Net, &line));
        let groups = &all[0].groups;
        assert_eq!(groups.len(), 2);
        assert!(groups[1].arms.iter().any(|arm| arm.arm.label == "memcpy"));
    }

    #[test]
    fn a_link_is_tried_with_few_messages_and_what_is_slow_is_known_at_once() {
        let mut plan = planned_of(Study::Net, "--methods send --sizes 256KiB --threads 1");
        let Axes::Net(axes) = &mut plan.axes else { panic!("a plan of net") };
        axes.topologies = vec![Topology::Host];
        let host = host::read(&host::Root::real()).unwrap();
        let far = FarFacts {
            launcher: "ssh far".to_owned(),
            build: String::new(),
            direction: Direction::Tx,
            near_address: Ipv4Addr::LOCALHOST.into(),
            address: Ipv4Addr::LOCALHOST.into(),
            host: host.clone(),
            findings: Vec::new(),
            near_findings: Vec::new(),
        };
        let cell = CellState::new(&plan, plan.cells()[0].clone(), &host);
        let mut cell = cell.towards(Some(&far));
        let probe = cell.probe(&plan, (0, None), 4, &mut Pcg64Mcg::seed_from_u64(1));
        assert!(probe.slices.iter().all(|slice| slice.work == Work::Messages(4)));
        let bytes = probe.slices.len() as u64 * 4 * (256 << 10);
        let at_four_megabits = Nanos(bytes * 2000);
        assert!(probe.trial_limit > at_four_megabits, "{:?} for {bytes}", probe.trial_limit);
        for (message_ns, known) in [(262e6, true), (1e3, false)] {
            for arm in cell.groups.iter_mut().flat_map(|group| &mut group.arms) {
                (arm.message_ns, arm.is_probed) = (message_ns, true);
            }
            assert_eq!(cell.is_known(0), known, "{message_ns}");
        }
    }

    #[test]
    fn servers_stand_apart_where_they_would_be_in_the_way_and_nowhere_else() {
        let apart = |models: &str| {
            let plan =
                planned(&format!("--models {models} --service echo,top2 --connections 1,16"));
            let cells = plan.cells().into_iter().filter(|cell| plan.measures_alone(cell));
            cells.map(|cell| cell.server().unwrap().service.clone()).collect::<Vec<_>>()
        };
        assert_eq!(apart("epoll_lt,thread_per_connection"), ["top2"; 4]);
        assert!(apart("epoll_lt,poll").is_empty());
    }
}
