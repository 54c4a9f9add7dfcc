//! The study `ab`: its axes, what it judges, and what is known of its arms besides counts.

use serde::{Deserialize, Serialize};

use crate::axes::{axis, crossed};
use crate::copy::External;

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

/// The axes of `ab` and its programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbAxes {
    /// How the programs are measured.
    pub mode: AbMode,
    /// The arms, the baseline first. Within an argument, `{NAME}` stands for the value of a
    /// parameter.
    pub programs: Vec<External>,
    /// Parameters whose values are cells.
    pub parameters: Vec<AbParameter>,
    /// What is judged; at least one.
    pub judged: Vec<AbQuantity>,
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

impl AbAxes {
    /// Every setting, in the order of the parameters.
    pub(crate) fn settings(&self) -> Vec<AbSetting> {
        let first = AbSetting { mode: self.mode, values: Vec::new() };
        self.parameters.iter().fold(vec![first], |settings, parameter| {
            crossed(settings, &parameter.values, |setting, value| {
                setting.values.push((parameter.name.clone(), value.clone()));
            })
        })
    }

    /// The argument list of a program, given by its place, in a setting; `None` where there is no
    /// such program.
    #[must_use]
    pub fn command(&self, setting: &AbSetting, program: usize) -> Option<Vec<String>> {
        let word = |word: &String| {
            setting.values.iter().fold(word.clone(), |word, (name, value)| {
                word.replace(&format!("{{{name}}}"), value)
            })
        };
        Some(self.programs.get(program)?.argv.iter().map(word).collect())
    }

    /// What tells a setting from others of the plan.
    pub(crate) fn told_apart(&self, setting: &AbSetting) -> Vec<String> {
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
    /// The file that its first word names, found in `PATH` where it has no `/`.
    pub path: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Whether it is an ELF file, in which relinking can move code.
    pub is_elf: bool,
}

/// What came of an arm in a trial besides the counts of its slices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AbArm {
    /// The word of a unit that the program announced; `None` where it announced none.
    pub unit: Option<String>,
    /// What the program timed itself, ns, by the number of the slice; empty where it times nothing.
    pub own_ns: Vec<(u32, u64)>,
    /// SHA-256 of all that it printed or computed (`sum`), in hexadecimal; `None` where it told
    /// nothing. The same number of operations must give the same in every arm.
    pub output_sha256: Option<String>,
    /// Lines that it printed between a request and its answer, all slices together.
    pub stray_lines: u64,
    /// CPU time that it used between its slices, ns.
    pub idle_cpu_ns: Option<u64>,
    /// CPU time in user mode and in the kernel over all slices, in ticks of the kernel's accounts.
    pub ticks: Option<[u64; 2]>,
    /// System calls by name, in a trial that counts them.
    pub calls: Vec<AbCalls>,
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
}

impl AbCalls {
    /// Calls per operation: how they grow with the operations, so that those of the protocol
    /// itself drop out.
    #[must_use]
    pub fn per_operation(&self) -> f64 {
        let [few, many] = self.operations.map(|n| n as f64);
        let [before, after] = self.calls.map(|n| n as f64);
        if many > few { (after - before) / (many - few) } else { after }
    }
}
