//! The study `ab`: its axes, what it judges, and what is known of its arms besides counts.

use serde::{Deserialize, Serialize};

use crate::axes::{axis, crossed, product};
use crate::external::External;
use crate::units::Nanos;

axis! {
    /// How a program is measured.
    AbMode {
        /// It does so many operations as it is told, a slice at a time: the loop protocol.
        Loop = "loop",
        /// Each run of it from start to end is one operation.
        Command = "command",
    }
}

axis! {
    /// What is judged.
    AbQuantity {
        /// Time per operation.
        Time = "time",
        /// CPU time of the program and its children per operation, user and kernel.
        Cpu = "cpu",
    }
}

/// Which of so many programs starts first, and last, in the trials of a pass of a loop: each in
/// turn.
///
/// The system gives a process the memory that another has just given back. Where programs start in
/// the same order, one of them always has the same part of it, and parts differ: on a virtual
/// machine by some percent, by how the host maps them.
pub fn ab_first(pass: u32, programs: usize) -> usize {
    pass as usize % programs.max(1)
}

/// The axes of `ab` and its programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbAxes {
    /// How the programs are measured.
    pub mode: AbMode,
    /// The arms, the baseline first. Within an argument, `{NAME}` stands for the value of a
    /// parameter. In a suite they have the commands of its first bench.
    pub programs: Vec<External>,
    /// Parameters whose values are cells; in a suite each bench has its own.
    pub parameters: Vec<AbParameter>,
    /// The benches of a suite; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub benches: Vec<AbBench>,
    /// What is judged; at least one.
    pub judged: Vec<AbQuantity>,
    /// Whether the first word of each program is a pattern of several links of one source, of which
    /// every trial runs one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub links: bool,
    /// How long each process of a loop warms up in each trial; `None` for as long as it gets
    /// faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Nanos>,
    /// Whether the files are run where they are, not from a fresh copy for each trial.
    pub in_place: bool,
    /// Whether arms may print or compute different things.
    pub different_output: bool,
    /// Whether arms may exit with a status that is not 0.
    pub ignore_exit: bool,
    /// Path of the standard input of whole commands; `None` for an empty one.
    pub input: Option<String>,
    /// Argument list of what runs before each run of a command, outside the clock.
    pub prepare: Option<Vec<String>>,
}

/// A bench of a suite: what each program is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbBench {
    /// Its name, which is the first value of its settings.
    pub name: String,
    /// The argument list of each program, in the order of these.
    pub commands: Vec<Vec<String>>,
    /// Its parameters, whose values are cells.
    pub parameters: Vec<AbParameter>,
    /// Path of the standard input of whole commands; `None` for that of the suite.
    pub input: Option<String>,
    /// Argument list of what runs before each run of a command; `None` for that of the suite.
    pub prepare: Option<Vec<String>>,
}

/// A command of a plan, before the values of parameters are in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbCommand<'a> {
    /// The bench; `None` where there is no suite.
    pub bench: Option<&'a str>,
    /// The program's name.
    pub program: &'a str,
    /// The argument list.
    pub argv: &'a [String],
}

impl AbAxes {
    /// What the name of a bench is called among the values of a setting.
    pub const BENCH: &str = "bench";

    /// Of programs without parameters, with all else as usual: everything is judged.
    pub fn of(mode: AbMode, programs: Vec<External>) -> AbAxes {
        AbAxes {
            mode,
            programs,
            parameters: Vec::new(),
            benches: Vec::new(),
            judged: AbQuantity::ALL.to_vec(),
            links: false,
            warm_up: None,
            in_place: false,
            different_output: false,
            ignore_exit: false,
            input: None,
            prepare: None,
        }
    }

    /// Every setting, in the order of the benches and parameters.
    pub(crate) fn settings(&self) -> Vec<AbSetting> {
        let all = |first: Vec<(String, String)>, parameters: &[AbParameter]| {
            let first = AbSetting { mode: self.mode, values: first };
            parameters.iter().fold(vec![first], |settings, parameter| {
                crossed(settings, &parameter.values, |setting, value| {
                    setting.values.push((parameter.name.clone(), value.clone()));
                })
            })
        };
        if self.benches.is_empty() {
            return all(Vec::new(), &self.parameters);
        }
        let of_bench = |bench: &AbBench| {
            all(vec![(AbAxes::BENCH.to_owned(), bench.name.clone())], &bench.parameters)
        };
        self.benches.iter().flat_map(of_bench).collect()
    }

    /// How many values of parameters all settings have together at most, or how many settings
    /// where they have none; the largest number where that is none.
    pub(crate) fn values(&self) -> usize {
        let of = |parameters: &[AbParameter]| {
            let lengths = parameters.iter().map(|parameter| parameter.values.len());
            product(lengths.chain([parameters.len()])).unwrap_or(usize::MAX)
        };
        if self.benches.is_empty() {
            return of(&self.parameters);
        }
        self.benches.iter().fold(0, |all, bench| all.saturating_add(of(&bench.parameters)))
    }

    /// Every command, bench by bench.
    pub fn commands(&self) -> Vec<AbCommand<'_>> {
        let names = || self.programs.iter().map(|program| program.name.as_str());
        if self.benches.is_empty() {
            let argv = self.programs.iter().map(|program| &program.argv[..]);
            let commands = names().zip(argv);
            return commands
                .map(|(program, argv)| AbCommand { bench: None, program, argv })
                .collect();
        }
        let commands = self.benches.iter().flat_map(|bench| {
            let argv = bench.commands.iter().map(|argv| &argv[..]);
            names().zip(argv).map(|(program, argv)| AbCommand {
                bench: Some(&bench.name),
                program,
                argv,
            })
        });
        commands.collect()
    }

    /// The bench of a setting; `None` where there is no suite.
    pub fn bench(&self, setting: &AbSetting) -> Option<&AbBench> {
        let (_, name) = setting.values.first().filter(|(of, _)| of == AbAxes::BENCH)?;
        self.benches.iter().find(|bench| bench.name == *name)
    }

    /// The standard input of whole commands in a setting; `None` for an empty one.
    pub fn input(&self, setting: &AbSetting) -> Option<&str> {
        let own = self.bench(setting).and_then(|bench| bench.input.as_deref());
        own.or(self.input.as_deref())
    }

    /// What runs before each run of a command in a setting.
    pub fn prepare(&self, setting: &AbSetting) -> Option<&[String]> {
        let own = self.bench(setting).and_then(|bench| bench.prepare.as_deref());
        own.or(self.prepare.as_deref())
    }

    /// The argument list of a program, given by its place, in a setting; `None` where there is no
    /// such program.
    pub fn command(&self, setting: &AbSetting, program: usize) -> Option<Vec<String>> {
        let word = |word: &String| {
            setting.values.iter().fold(word.clone(), |word, (name, value)| {
                word.replace(&format!("{{{name}}}"), value)
            })
        };
        let argv = match self.bench(setting) {
            Some(bench) => bench.commands.get(program)?,
            None => &self.programs.get(program)?.argv,
        };
        Some(argv.iter().map(word).collect())
    }

    /// What tells a setting from others of the plan.
    pub(crate) fn told_apart(&self, setting: &AbSetting) -> Vec<String> {
        if !self.benches.is_empty() {
            return setting.words();
        }
        let of = self.parameters.iter().zip(&setting.values);
        of.filter(|(parameter, _)| parameter.values.len() > 1)
            .map(|(_, value)| told(value))
            .collect()
    }
}

/// A parameter of the commands: `--with size=1KiB,64KiB`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AbParameter {
    /// Its name, as it stands in braces in the commands.
    pub name: String,
    /// Its values, at least one.
    pub values: Vec<String>,
}

/// One setting of the axes of `ab`: a value of every parameter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AbSetting {
    /// How the programs are measured.
    pub mode: AbMode,
    /// Name and value of every parameter, in the order of the plan.
    pub values: Vec<(String, String)>,
}

impl AbSetting {
    /// `size 1KiB` of each parameter.
    pub(crate) fn words(&self) -> Vec<String> {
        self.values.iter().map(told).collect()
    }
}

fn told((name, value): &(String, String)) -> String {
    format!("{name} {value}")
}

/// What is known of a program before it is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbProgramFacts {
    /// The file that its first word names, found in `PATH` where it has no `/`; of several links
    /// the first.
    pub path: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Whether it is an ELF file, in which relinking can move code.
    pub is_elf: bool,
    /// All files that are links of its source; empty where it is one file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<AbLink>,
}

/// A file that is one of several links of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbLink {
    /// The file.
    pub path: String,
    /// SHA-256 of it, in hexadecimal.
    pub sha256: String,
}

impl AbProgramFacts {
    /// The facts of one of its links, by its number; as they are where there is no such one.
    pub fn of_link(&self, number: usize) -> AbProgramFacts {
        let Some(AbLink { path, sha256 }) = self.links.get(number).cloned() else {
            return self.clone();
        };
        AbProgramFacts { path, sha256, is_elf: self.is_elf, links: Vec::new() }
    }
}

/// A larger part of a slice is not taken for what does not grow with its operations.
const AB_FIXED_SHARE_MAX: f64 = 0.75;

/// How many times as long an operation of one program takes as one of another, as a logarithm, from
/// what it is in slices of which a part does not grow with their operations. Of slices that take
/// equally long every operation bears its part of that, and nothing is hidden; `ln_alike` is what
/// the numbers of operations are made for, ln(operations of the other / of the one). Of what the
/// slices differ by, that part is hidden.
pub fn whole_ln_ratio(ln: f64, ln_alike: f64, fixed_share: f64) -> f64 {
    let fixed = fixed_share.clamp(0.0, AB_FIXED_SHARE_MAX);
    if ln_alike.is_finite() { ln_alike + (ln - ln_alike) / (1.0 - fixed) } else { ln }
}

/// CPU time of a program between its slices, as a part of that within them: with more, its work is
/// in the time of others, or in nobody's.
pub const AB_IDLE_SHARE_MAX: f64 = 0.05;

/// How much of an output is kept to show where two differ.
pub const AB_OUTPUT_START_BYTES: usize = 64 << 10;

/// What came of an arm in a trial besides the counts of its slices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AbArm {
    /// The word of a unit that the program announced; `None` where it announced none.
    pub unit: Option<String>,
    /// Which of [`AbProgramFacts::links`] it ran, from 0; `None` where the program is one file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<u32>,
    /// What the program timed itself, ns, by the number of the slice; empty where it times nothing.
    pub own_ns: Vec<(u32, u64)>,
    /// SHA-256 of all that it printed or computed (`sum`), in hexadecimal; `None` where it told
    /// nothing. The same number of operations must give the same in every arm.
    pub output_sha256: Option<String>,
    /// How that begins, to show where two differ: at most [`AB_OUTPUT_START_BYTES`] of what was
    /// printed, or a line with the sum of each slice. It is not stored.
    #[serde(skip)]
    pub output_start: Vec<u8>,
    /// What it told in its answers that looks like a time, but is not one of the protocol: `ms=3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<String>,
    /// Lines that it printed between a request and its answer, all slices together.
    pub stray_lines: u64,
    /// Bytes that it wrote to its standard error in its measured slices.
    pub stderr_bytes: u64,
    /// What asking it for a slice takes, ns; `None` where its operations are too long to tell, and
    /// of commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asking_ns: Option<u64>,
    /// What twice the operations take less than twice as long, in millionths, in turns with the
    /// others, which share caches with it: the part of a slice that does not grow with its
    /// operations. `None` where slices are long, and of commands.
    #[serde(rename = "hidden_ppm", skip_serializing_if = "Option::is_none")]
    pub fixed_ppm: Option<u32>,
    /// CPU time that it used between its slices, ns.
    pub idle_cpu_ns: Option<u64>,
    /// CPU time in user mode and in the kernel over all slices, in ticks of the kernel's accounts.
    pub ticks: Option<[u64; 2]>,
    /// System calls by name, in a trial that counts them.
    pub calls: Vec<AbCalls>,
    /// By what they were counted; `None` in other trials, and in runs of before there was a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_by: Option<AbCallsBy>,
}

/// What counts system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AbCallsBy {
    /// ptrace(2), which stops the program twice in each call.
    Ptrace,
    /// The tracepoints `raw_syscalls:sys_enter` and `raw_syscalls:sys_exit`.
    Tracepoints,
}

/// System calls of one name per operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbCalls {
    /// The name of the call.
    pub name: String,
    /// Calls in a slice of `operations[0]` and in one of `operations[1]`, which is larger.
    pub calls: [u64; 2],
    /// Operations of both slices.
    pub operations: [u64; 2],
    /// Bytes that these calls moved, by what they returned, in both slices; those of the
    /// protocol's own lines are left out. `None` where they moved none, and in runs that were
    /// stored before bytes were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<[u64; 2]>,
}

impl AbCalls {
    /// Calls per operation: how they grow with the operations, so that those of the protocol
    /// itself drop out.
    pub fn per_operation(&self) -> f64 {
        self.growth(self.calls)
    }

    /// Bytes that they moved per operation, in the same way.
    pub fn bytes_per_operation(&self) -> f64 {
        self.growth(self.bytes.unwrap_or_default())
    }

    fn growth(&self, counts: [u64; 2]) -> f64 {
        let [few, many] = self.operations.map(|n| n as f64);
        let [before, after] = counts.map(|n| n as f64);
        if many > few { (after - before) / (many - few) } else { after }
    }
}

/// Where a system call moves the bytes whose number it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbByteWay {
    /// Into the program.
    Read,
    /// Out of it.
    Written,
    /// From one file to another, past the program.
    Between,
}

impl AbByteWay {
    /// That of the calls of this name; `None` where they return something else than bytes.
    pub fn of(call: &str) -> Option<AbByteWay> {
        match call {
            "read" | "pread64" | "readv" | "preadv" | "preadv2" | "recvfrom" | "recvmsg" => {
                Some(AbByteWay::Read)
            }
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "sendto" | "sendmsg"
            | "vmsplice" => Some(AbByteWay::Written),
            "splice" | "tee" | "sendfile" | "copy_file_range" => Some(AbByteWay::Between),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As runs were stored before programs had links.
    #[test]
    fn what_has_no_links_is_read_as_one_file() {
        let arm: AbArm = serde_json::from_str(r#"{"stray_lines":3}"#).unwrap();
        assert_eq!((arm.link, arm.stray_lines), (None, 3));
        let stored = r#"{"path":"/a","sha256":"00","is_elf":true}"#;
        let facts: AbProgramFacts = serde_json::from_str(stored).unwrap();
        assert!(facts.links.is_empty());
        assert_eq!(serde_json::to_string(&facts).unwrap(), stored);
        let axes = r#"{"mode":"loop","programs":[],"parameters":[],"judged":[],"in_place":false,
            "different_output":false,"ignore_exit":false,"input":null,"prepare":null}"#;
        let axes: AbAxes = serde_json::from_str(axes).unwrap();
        assert!(!axes.links && axes.warm_up.is_none());
    }

    /// As runs were stored before bytes were counted.
    #[test]
    fn calls_that_moved_no_bytes_are_stored_without_them() {
        let stored = r#"{"name":"futex","calls":[2,22],"operations":[1,11]}"#;
        let calls: AbCalls = serde_json::from_str(stored).unwrap();
        assert_eq!((calls.per_operation(), calls.bytes_per_operation()), (2.0, 0.0));
        assert_eq!(serde_json::to_string(&calls).unwrap(), stored);
        let calls = AbCalls { bytes: Some([4096, 45_056]), ..calls };
        assert_eq!(calls.bytes_per_operation(), 4096.0);
        let stored = serde_json::to_string(&calls).unwrap();
        assert!(stored.ends_with(r#","bytes":[4096,45056]}"#), "{stored}");
        assert_eq!(serde_json::from_str::<AbCalls>(&stored).unwrap(), calls);
    }

    #[test]
    fn a_whole_command_is_one_operation() {
        let stored = r#"{"name":"read","calls":[0,7],"operations":[0,1],"bytes":[0,832]}"#;
        let calls: AbCalls = serde_json::from_str(stored).unwrap();
        assert_eq!((calls.per_operation(), calls.bytes_per_operation()), (7.0, 832.0));
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn parameter(name: &str, values: &str) -> AbParameter {
        AbParameter { name: name.to_owned(), values: words(values) }
    }

    fn axes() -> AbAxes {
        let program =
            |name: &str, line: &str| External { name: name.to_owned(), argv: words(line) };
        let programs = vec![program("old", "./old {n}"), program("new", "./new {n}")];
        AbAxes {
            parameters: vec![parameter("n", "1 2")],
            judged: vec![AbQuantity::Time],
            input: Some("in".to_owned()),
            ..AbAxes::of(AbMode::Command, programs)
        }
    }

    fn bench(name: &str, parameters: Vec<AbParameter>, input: Option<&str>) -> AbBench {
        AbBench {
            name: name.to_owned(),
            commands: ["./old {bench} {n}", "./new {bench} {n}"].map(words).to_vec(),
            parameters,
            input: input.map(str::to_owned),
            prepare: None,
        }
    }

    #[test]
    fn parameters_are_settings() {
        let axes = axes();
        let settings = axes.settings();
        let commands: Vec<_> = settings.iter().filter_map(|one| axes.command(one, 1)).collect();
        assert_eq!(commands, [words("./new 1"), words("./new 2")]);
        assert_eq!(axes.command(&settings[0], 2), None);
        assert_eq!((axes.bench(&settings[0]), axes.input(&settings[0])), (None, Some("in")));
        assert_eq!(axes.told_apart(&settings[1]), ["n 2"]);
        assert_eq!(axes.commands()[1].argv, words("./new {n}"));
    }

    #[test]
    fn values_are_counted_without_settings() {
        let of = |parameters, benches| AbAxes { parameters, benches, ..axes() }.values();
        assert_eq!(of(vec![], vec![]), 1);
        assert_eq!(of(vec![parameter("n", "1 2 3"), parameter("m", "4 5")], vec![]), 3 * 2 * 2);
        let two = vec![bench("a", vec![parameter("n", "1 2 3")], None), bench("b", vec![], None)];
        assert_eq!(of(vec![], two), 3 + 1);
        let many = vec![parameter("n", "1 2"); 70];
        assert_eq!(of(many.clone(), vec![]), usize::MAX);
        assert_eq!(of(vec![], vec![bench("a", many, None); 2]), usize::MAX);
    }

    #[test]
    fn benches_are_settings_with_commands_of_their_own() {
        let benches = vec![
            bench("parse", vec![parameter("n", "3 4")], None),
            bench("sum", vec![], Some("x")),
        ];
        let axes = AbAxes { benches, ..axes() };
        let settings = axes.settings();
        let told: Vec<_> = settings.iter().map(|one| axes.told_apart(one).join(", ")).collect();
        assert_eq!(told, ["bench parse, n 3", "bench parse, n 4", "bench sum"]);
        assert_eq!(axes.command(&settings[1], 0), Some(words("./old parse 4")));
        assert_eq!(axes.command(&settings[2], 1), Some(words("./new sum {n}")));
        assert_eq!((axes.input(&settings[0]), axes.input(&settings[2])), (Some("in"), Some("x")));
        let commands: Vec<_> =
            axes.commands().iter().map(|one| (one.bench, one.program.to_owned())).collect();
        let expect = [("parse", "old"), ("parse", "new"), ("sum", "old"), ("sum", "new")];
        assert_eq!(commands, expect.map(|(bench, program)| (Some(bench), program.to_owned())));
    }

    /// What a stranger stored has fewer commands than programs, or a bench that is not there.
    #[test]
    fn what_is_missing_is_none() {
        let mut axes = AbAxes { benches: vec![bench("parse", vec![], None)], ..axes() };
        let setting = axes.settings().remove(0);
        axes.benches[0].commands.clear();
        assert_eq!(axes.command(&setting, 0), None);
        assert!(axes.commands().is_empty());
        axes.benches[0].name.clear();
        assert_eq!(axes.bench(&setting), None);
    }
}
