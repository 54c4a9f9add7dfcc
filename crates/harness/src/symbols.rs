//! Names of functions by their addresses: the kernel's from /proc/kallsyms,
//! a program's from the symbol tables of the files that it has mapped.

use std::collections::HashMap;
use std::path::Path;

use iolens_model::profile::{KERNEL_MARK, SYSCALL_EXIT, UNNAMED};
use iolens_sys::peek;
use iolens_sys::perf_event::sampling::Space;
use iolens_sys::proc::Root;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

/// The instruction of a system call: `syscall`.
#[cfg(target_arch = "x86_64")]
const CALL: [u8; 2] = [0x0f, 0x05];

/// The instruction of a system call: `svc #0`.
#[cfg(not(target_arch = "x86_64"))]
const CALL: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];

/// A table from addresses to names.
#[derive(Debug, Default)]
pub struct Table {
    /// Where each function begins, in bytes if its table tells, and its name;
    /// sorted.
    functions: Vec<Function>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    start: u64,
    /// 0: up to the next one.
    bytes: u64,
    name: String,
}

impl Table {
    fn new(mut functions: Vec<Function>) -> Table {
        functions.sort_unstable();
        Table { functions }
    }

    /// The function an address lies in.
    fn find(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|function| function.start <= address);
        // Of aliases the first name is as good as the others, and stays.
        let last = self.functions.get(after.checked_sub(1)?)?;
        let first = self.functions.partition_point(|function| function.start < last.start);
        let within =
            |function: &&Function| function.bytes == 0 || address < function.start + function.bytes;
        self.functions[first..after].iter().find(within).map(|function| function.name.as_str())
    }
}

/// Everything that the samples of a process can be named from.
#[derive(Debug)]
pub struct Symbols {
    kernel: Table,
    mappings: Vec<Mapping>,
    files: HashMap<String, Table>,
}

/// An executable part of a file in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

impl Symbols {
    /// Of the kernel and of this process.
    ///
    /// Errors: none; a table that cannot be read is empty, see
    /// [`Self::kernel_hidden`].
    pub fn here(root: &Root) -> Symbols {
        let kernel = kernel(&root.read("proc/kallsyms").unwrap_or_default());
        let mappings = mappings(&root.read("proc/self/maps").unwrap_or_default());
        let mut files = HashMap::new();
        for mapping in &mappings {
            if !files.contains_key(&mapping.path) {
                let table = functions(Path::new(&mapping.path));
                files.insert(mapping.path.clone(), Table::new(table));
            }
        }
        Symbols { kernel, mappings, files }
    }

    /// Why the kernel's functions have no names here, if they have none.
    pub fn kernel_hidden(&self) -> Option<String> {
        self.kernel.functions.is_empty().then(|| {
            "the kernel's functions have no names: /proc/kallsyms is missing or zeroed \
             (kernel.kptr_restrict; it needs CAP_SYSLOG)"
                .to_owned()
        })
    }

    /// Why samples of the kernel's way back from system calls cannot be told
    /// from those of the program, if they cannot.
    pub fn code_hidden(&self) -> Option<String> {
        let errno = peek::bytes_at::<1>(self.mappings.first()?.start).err()?;
        Some(format!(
            "the way back from system calls, which counts as user code here: this program cannot \
             read its own code with process_vm_readv: {errno}"
        ))
    }

    /// A stack, innermost first, in its folded form. Callers of the program
    /// are kept as far as they lie in its code: code without frame pointers
    /// has none.
    ///
    /// The kernel returns to the program with interrupts off, so a timer that
    /// is due by then is seen at the instruction behind the call.
    pub fn fold(&self, stack: &[(Space, u64)]) -> String {
        let mut names: Vec<String> = Vec::with_capacity(stack.len() + 1);
        if let Some(&(Space::User, address)) = stack.first()
            && self.follows_call(address)
        {
            names.push(format!("{SYSCALL_EXIT}{KERNEL_MARK}"));
        }
        for &(space, address) in stack {
            match space {
                Space::Kernel => {
                    let name = self.kernel.find(address).unwrap_or(UNNAMED);
                    names.push(format!("{name}{KERNEL_MARK}"));
                }
                Space::User => match self.user(address) {
                    Some(name) => names.push(name),
                    None => break,
                },
            }
        }
        if names.is_empty() {
            names.push(UNNAMED.to_owned());
        }
        names.reverse();
        names.join(";")
    }

    /// The executable mapping that an address lies in.
    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let inside = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
        self.mappings.iter().find(inside)
    }

    /// Whether the instruction before an address is that of a system call.
    fn follows_call(&self, address: u64) -> bool {
        let before = address.checked_sub(CALL.len() as u64);
        let before = before.filter(|&before| self.mapping(before).is_some());
        before.is_some_and(|before| peek::bytes_at(before) == Ok(CALL))
    }

    /// The name of a function of the program; of code without one its file's.
    fn user(&self, address: u64) -> Option<String> {
        let mapping = self.mapping(address)?;
        let offset = address - mapping.start + mapping.offset;
        let name = self.files.get(&mapping.path).and_then(|table| table.find(offset));
        let file = Path::new(&mapping.path)
            .file_name()
            .map_or_else(|| mapping.path.clone(), |name| name.to_string_lossy().into_owned());
        // `;` divides frames.
        Some(name.map_or_else(|| format!("[{file}]"), str::to_owned).replace(';', ":"))
    }
}

/// The functions in the text of /proc/kallsyms: `address type name [module]`.
/// Empty where all addresses are hidden, which shows as zero.
fn kernel(kallsyms: &str) -> Table {
    let function = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let start = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
        // A function split off by the compiler is a part of its own.
        let name = words.next()?.split('.').next()?.to_owned();
        (is_code && start != 0).then_some(Function { start, bytes: 0, name })
    };
    Table::new(kallsyms.lines().filter_map(function).collect())
}

/// The executable mappings in the text of /proc/PID/maps:
/// `start-end perms offset device inode path`.
fn mappings(maps: &str) -> Vec<Mapping> {
    let mapping = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let executable = words.next()?.contains('x');
        let offset = u64::from_str_radix(words.next()?, 16).ok()?;
        let path = words.skip(2).collect::<Vec<_>>().join(" ");
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        (executable && start < end).then_some(Mapping { start, end, offset, path })
    };
    maps.lines().filter_map(mapping).collect()
}

// The functions in an ELF file, by their place in the file.

/// A larger file is not read: ours has tens of MiB, with its line tables.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Functions with their offsets in the file; none where it is no ELF file, or
/// cannot be read, such as `[vdso]`.
fn functions(path: &Path) -> Vec<Function> {
    let is_small = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= FILE_BYTES_MAX)
    };
    let bytes = if is_small(path) { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
    // A symbol has a virtual address; a mapping tells offsets in the file.
    let segments: Vec<(u64, u64, u64)> = file
        .segments()
        .map(|segment| (segment.address(), segment.size(), segment.file_range().0))
        .collect();
    let offset = |address: u64| {
        let inside = |(start, bytes, _): &&(u64, u64, u64)| {
            address.checked_sub(*start).is_some_and(|at| at < *bytes)
        };
        segments.iter().find(inside).map(|(start, _, offset)| address - start + offset)
    };
    let function = |symbol: object::Symbol<'_, '_>| {
        let is_function = symbol.kind() == SymbolKind::Text && symbol.size() > 0;
        let name = symbol.name().ok().filter(|_| is_function)?;
        // Without its hash, which says nothing to a reader.
        let name = format!("{:#}", rustc_demangle::demangle(name));
        Some(Function { start: offset(symbol.address())?, bytes: symbol.size(), name })
    };
    file.symbols().chain(file.dynamic_symbols()).filter_map(function).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KALLSYMS: &str = "\
ffffffff81000000 T startup_64
ffffffff81000100 t tcp_sendmsg_locked
ffffffff81000100 T alias_of_it
ffffffff81000200 T skb_copy_ubufs.part.0
ffffffff82000000 D some_data
ffffffffc0000000 t veth_xmit\t[veth]
";

    #[test]
    fn the_kernels_functions_have_names() {
        let table = kernel(KALLSYMS);
        assert_eq!(table.find(0xffff_ffff_8100_0000), Some("startup_64"));
        assert_eq!(table.find(0xffff_ffff_8100_01ff), Some("alias_of_it"));
        assert_eq!(table.find(0xffff_ffff_8100_0204), Some("skb_copy_ubufs"));
        assert_eq!(table.find(0xffff_ffff_c000_0010), Some("veth_xmit"));
        assert_eq!(table.find(0x1000), None);
    }

    #[test]
    fn hidden_addresses_are_no_functions() {
        let hidden = "0000000000000000 T startup_64\n0000000000000000 t tcp_sendmsg_locked\n";
        assert!(kernel(hidden).functions.is_empty());
    }

    #[test]
    fn executable_mappings_are_kept() {
        let maps = "\
55d0a000-55d0b000 r--p 00000000 fe:00 12 /usr/bin/a program
55d0b000-55d0f000 r-xp 00001000 fe:00 12 /usr/bin/a program
7ffd1000-7ffd2000 r-xp 00000000 00:00 0  [vdso]
";
        let found = mappings(maps);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].path, "/usr/bin/a program");
        assert_eq!(
            (found[0].start, found[0].end, found[0].offset),
            (0x55d0_b000, 0x55d0_f000, 0x1000)
        );
        assert_eq!(found[1].path, "[vdso]");
    }

    #[test]
    fn this_program_names_its_own_functions() {
        let symbols = Symbols::here(&Root::real());
        let here = this_program_names_its_own_functions as fn() as usize as u64;
        let folded = symbols.fold(&[(Space::User, here)]);
        assert!(folded.contains("this_program_names_its_own_functions"), "{folded}");
    }

    /// Where a system call of this process returns to.
    fn behind_a_call(symbols: &Symbols) -> u64 {
        const PAGE: usize = 4096;
        let pages = |mapping: &Mapping| (mapping.start..mapping.end).step_by(PAGE);
        let find = |start: u64| {
            let page = peek::bytes_at::<PAGE>(start).ok()?;
            let at = page.windows(CALL.len()).position(|bytes| bytes == CALL)?;
            Some(start + (at + CALL.len()) as u64)
        };
        symbols.mappings.iter().flat_map(pages).find_map(find).unwrap()
    }

    #[test]
    fn a_sample_behind_a_system_call_is_the_kernels() {
        let symbols = Symbols::here(&Root::real());
        assert_eq!(symbols.code_hidden(), None);
        let behind = behind_a_call(&symbols);
        let exit = format!("{SYSCALL_EXIT}{KERNEL_MARK}");
        let is_exit = |stack: &[(Space, u64)]| symbols.fold(stack).ends_with(&exit);
        assert!(is_exit(&[(Space::User, behind)]), "{}", symbols.fold(&[(Space::User, behind)]));
        assert!(!is_exit(&[(Space::User, behind - 1)]));
        assert!(!is_exit(&[(Space::Kernel, behind)]));
        assert!(!is_exit(&[(Space::User, 1)]));
        let caller = symbols.fold(&[(Space::User, behind - 1), (Space::User, behind)]);
        assert!(!caller.contains(SYSCALL_EXIT), "{caller}");
        let data = CALL.to_vec();
        let end = data.as_ptr_range().end.addr() as u64;
        assert!(!is_exit(&[(Space::User, end)]), "data is no code");
    }

    #[test]
    fn a_stack_is_folded_from_the_outside() {
        let symbols =
            Symbols { kernel: kernel(KALLSYMS), mappings: Vec::new(), files: HashMap::new() };
        let stack =
            [(Space::Kernel, 0xffff_ffff_8100_0201), (Space::Kernel, 0xffff_ffff_8100_0101)];
        assert_eq!(symbols.fold(&stack), "alias_of_it_[k];skb_copy_ubufs_[k]");
        assert_eq!(symbols.fold(&[(Space::User, 1)]), UNNAMED);
    }

    proptest! {
        #[test]
        fn no_text_panics_the_readers(text in "[0-9a-fx \\-tT\n\\[\\]/]{0,200}", at in any::<u64>()) {
            let _ = kernel(&text).find(at);
            let _ = mappings(&text);
        }
    }
}
