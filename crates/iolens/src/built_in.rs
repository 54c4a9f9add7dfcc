//! Plans that the binary carries: the files of the folder `plans`, by name.

/// A plan by its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BuiltIn {
    /// The name of the file without its extension.
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

impl BuiltIn {
    /// What messages call it.
    pub(crate) fn file(&self) -> String {
        format!("plans/{}.toml", self.name)
    }

    /// The comment that its file begins with, up to the end of its first clause.
    pub(crate) fn summary(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix("# "));
        let comment = lines.collect::<Vec<_>>().join(" ");
        let ends = ["? ", ". ", ": "].iter().filter_map(|end| comment.find(end));
        let end = ends.min().map_or(comment.len(), |at| at + 1);
        comment[..end].trim_end_matches(['.', ':']).to_owned()
    }
}

/// Declares plans of the folder.
macro_rules! built_in {
    ($($name:literal)+) => {
        [$(BuiltIn {
            name: $name,
            text: include_str!(concat!("../../../plans/", $name, ".toml")),
        }),+]
    };
}

/// Every plan, the studies' own first: the default of each, and that with `--quick`.
pub(crate) const ALL: [BuiltIn; 24] = built_in! {
    "net" "quick"
    "syscall" "syscall-quick"
    "file" "file-quick"
    "write" "write-quick"
    "copy" "copy-quick"
    "server" "server-quick"
    "server-models" "server-classic"
    "copy-vs-dd"
    "file-block-sizes" "file-threads"
    "net-rr"
    "classic-48" "classic-48-rr" "classic-72" "classic-72-recvmsg" "classic-small"
    "smoke"
};

#[cfg(test)]
mod tests {
    use iolens_model::axes::{Mode, Topology};
    use iolens_model::units::Nanos;

    use super::*;
    use crate::axes::Wishes;
    use crate::plan_file;
    use crate::values::Stand;

    /// The form alone: which primitives there are is the build's affair.
    fn read(name: &str) -> Wishes {
        let plan = ALL.into_iter().find(|plan| plan.name == name).unwrap();
        plan_file::parse(&plan.file(), plan.text, &|_, _, _| Ok(())).unwrap()
    }

    #[test]
    fn every_file_of_the_folder_is_here_and_reads() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
        let files = std::fs::read_dir(folder).unwrap();
        let mut found: Vec<String> = files
            .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let mut names: Vec<&str> = ALL.iter().map(|plan| plan.name).collect();
        found.sort();
        names.sort_unstable();
        assert_eq!(found, names);
        assert!(names.iter().all(|name| read(name).methods.is_some()));
    }

    #[test]
    fn the_classic_tables_are_the_documented_ones() {
        let cells = |wishes: &Wishes| {
            let threads = wishes.threads.as_ref().unwrap().len();
            wishes.sizes.as_ref().unwrap().len() * threads
        };
        let check = |name: &str, contrasts: usize, topology: Topology, mode: Mode| {
            let wishes = read(name);
            let methods = wishes.methods.as_ref().unwrap();
            let arms = methods.iter().filter(|method| *method != "memcpy").count();
            // Each arm but the baseline and the control against it, and the A/A arm.
            assert_eq!(cells(&wishes) * arms, contrasts, "{name}");
            assert_eq!(wishes.network.unwrap(), [Stand::At(topology)], "{name}");
            assert_eq!(wishes.mode.unwrap(), [mode], "{name}");
        };
        check("classic-48", 48, Topology::Loopback, Mode::Stream);
        check("classic-48-rr", 48, Topology::Loopback, Mode::Rr);
        check("classic-72", 72, Topology::Veth, Mode::Stream);
        check("classic-72-recvmsg", 72, Topology::Veth, Mode::Stream);
        check("classic-small", 80, Topology::Loopback, Mode::Stream);
        assert_eq!(read("classic-48").budget, Some(Nanos(300 * Nanos::SECOND.0)));
    }

    #[test]
    fn the_receiver_is_the_only_thing_the_recvmsg_plan_changes() {
        let recvmsg = read("classic-72-recvmsg");
        let receivers = recvmsg.receivers.clone();
        assert_eq!(receivers, Some(vec!["recvmsg_iov".to_owned()]));
        assert_eq!(Wishes { receivers: None, ..recvmsg }, read("classic-72"));
    }

    #[test]
    fn request_and_response_is_the_only_thing_the_rr_plans_change() {
        for name in ["net", "classic-48"] {
            let rr = read(&format!("{name}-rr"));
            assert_eq!(Wishes { mode: read(name).mode, ..rr }, read(name));
        }
    }
}
