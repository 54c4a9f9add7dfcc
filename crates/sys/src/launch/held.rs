//! Where the stack of a program begins within a page. The kernel draws that anew for each process
//! (`arch_align_stack`), and a call that copies into a block on the stack takes up to a tenth
//! longer at one place than at another. So a process is held before its first instruction
//! (ptrace(2)), and what the kernel has laid on its stack (counts and pointers of arguments,
//! environment and auxiliary vector) is moved down to where it is wanted; what these point to
//! stays. All other places are as random as ever.
//!
//! # Safety
//! ptrace(2) is given numbers, and an iovec over a struct, both on the caller's stack.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

use libc::{c_int, c_void, user_regs_struct};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{Begun, Program};
use crate::errno::Errno;
use crate::proc::{Root, stack_ends};

const PAGE_BYTES: u64 = 4096;
/// What a stack pointer is a multiple of.
const ALIGNMENT_BYTES: u64 = 16;

/// More than this lies on no stack as a program begins but where its environment has a hundred
/// thousand variables.
const BLOCK_BYTES_MAX: u64 = 1 << 20;

/// Where in a page a stack begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackPlace(u64);

impl StackPlace {
    /// By a random number, each as often as the others.
    pub fn of(random: u64) -> StackPlace {
        StackPlace(random % PAGE_BYTES / ALIGNMENT_BYTES * ALIGNMENT_BYTES)
    }
}

impl Program {
    /// As [`Program::begin`], with a stack that begins at this place, as far as this process may
    /// trace its children.
    ///
    /// Errors: as [`Program::run`].
    pub fn begin_at(&mut self, place: StackPlace) -> Result<Begun, Errno> {
        let (begun, is_held) = self.begin_apart(true)?;
        if is_held {
            if begun.stops() {
                // Where that cannot be done it begins where it did.
                let _ = begun.move_stack(place);
            }
            begun.release();
        }
        Ok(begun)
    }
}

impl Begun {
    /// Waits until it has stopped, traced by this thread; false if it has ended instead.
    fn stops(&self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options));
        // Of one that is traced, waitid(2) says CLD_TRAPPED.
        status.ok().flatten().is_some_and(|status| status.trapped() || status.stopped())
    }

    /// Moves what lies on its stack down to the next such place.
    ///
    /// Errors: `ENOEXEC` for a program of 32 bits; what /proc does not tell; of ptrace(2).
    fn move_stack(&self, place: StackPlace) -> Result<(), Errno> {
        let mut registers = self.registers()?;
        let from = *stack_pointer(&mut registers);
        let to = from - (from.wrapping_sub(place.0) % PAGE_BYTES);
        let stat = Root::real().read(&format!("proc/{}/stat", self.pid));
        let (start, strings) = stat.ok().as_deref().and_then(stack_ends).ok_or(Errno::EIO)?;
        let bytes = strings.checked_sub(from).filter(|bytes| *bytes <= BLOCK_BYTES_MAX);
        let bytes = bytes.filter(|_| start == from).ok_or(Errno::EIO)?;
        let memory =
            File::options().read(true).write(true).open(format!("/proc/{}/mem", self.pid))?;
        let mut block = vec![0; usize::try_from(bytes).map_err(|_| Errno::EIO)?];
        memory.read_exact_at(&mut block, from)?;
        memory.write_all_at(&block, to)?;
        *stack_pointer(&mut registers) = to;
        self.set_registers(&registers)
    }

    fn registers(&self) -> Result<user_regs_struct, Errno> {
        let mut registers = MaybeUninit::<user_regs_struct>::zeroed();
        let bytes = self.register_set(libc::PTRACE_GETREGSET, registers.as_mut_ptr().cast())?;
        // One of 32 bits has fewer.
        if bytes != size_of::<user_regs_struct>() {
            return Err(Errno::from_raw(libc::ENOEXEC));
        }
        // SAFETY: all of it was written, and it is numbers.
        Ok(unsafe { registers.assume_init() })
    }

    fn set_registers(&self, registers: &user_regs_struct) -> Result<(), Errno> {
        let mut registers = *registers;
        self.register_set(libc::PTRACE_SETREGSET, (&raw mut registers).cast()).map(drop)
    }

    /// Reads or writes the registers of programs; the bytes of them that there are.
    fn register_set(&self, request: u32, registers: *mut c_void) -> Result<usize, Errno> {
        let mut all = libc::iovec { iov_base: registers, iov_len: size_of::<user_regs_struct>() };
        // SAFETY: `registers` leads to a struct of that size, whatever part of it the kernel
        // reads or writes.
        let result = unsafe { libc::ptrace(request, self.pid, PROGRAM_REGISTERS, &raw mut all) };
        if result < 0 { Err(Errno::last()) } else { Ok(all.iov_len) }
    }

    /// Lets it run, untraced. One that was killed meanwhile has gone.
    fn release(&self) {
        // SAFETY: numbers alone; the last is the signal that it gets, none.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.pid, 0, 0) };
    }
}

/// `NT_PRSTATUS`, <elf.h>.
const PROGRAM_REGISTERS: c_int = 1;

fn stack_pointer(registers: &mut user_regs_struct) -> &mut u64 {
    #[cfg(target_arch = "x86_64")]
    return &mut registers.rsp;
    #[cfg(target_arch = "aarch64")]
    return &mut registers.sp;
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::skip;

    fn sleeper() -> Program {
        let argv = ["tail", "-f", "/dev/null"].map(|word| word.as_bytes().to_vec());
        let null = File::options().write(true).open("/dev/null").unwrap();
        Program::new("/usr/bin/tail".as_ref(), &argv, null).unwrap()
    }

    #[test]
    fn a_stack_begins_where_it_is_wanted() {
        let test = "launch::held::tests::a_stack_begins_where_it_is_wanted";
        let (probe, is_held) = sleeper().begin_apart(true).unwrap();
        probe.kill();
        if !is_held {
            return skip::note(test, "its child may not be traced");
        }
        for random in [0, 16, 1000, 2048, 4095] {
            let place = StackPlace::of(random);
            let (begun, _) = sleeper().begin_apart(true).unwrap();
            assert!(begun.stops());
            begun.move_stack(place).unwrap();
            let pointer = *stack_pointer(&mut begun.registers().unwrap());
            assert_eq!(StackPlace(pointer % PAGE_BYTES), place);
            begun.release();
            // It runs, and nobody traces it.
            let status = format!("/proc/{}/status", begun.id());
            let says = |line: &str| std::fs::read_to_string(&status).unwrap().contains(line);
            while !says("State:\tS") {
                std::thread::yield_now();
            }
            assert!(says("TracerPid:\t0\n"));
            begun.kill();
            begun.wait().unwrap();
        }
    }

    /// With everything that the kernel has told it.
    #[test]
    fn a_program_whose_stack_was_moved_finds_its_arguments_and_its_environment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("said");
        for random in [8, 1 << 11, u64::MAX] {
            let said = File::options().write(true).create(true).truncate(true).open(&path).unwrap();
            let argv =
                ["sh", "-c", "echo $IOLENS_X $1 $2 $#; grep -c . /proc/self/auxv", "0", "a b", "c"];
            let argv = argv.map(|word| word.as_bytes().to_vec());
            let null = File::open("/dev/null").unwrap();
            let files = [&null, &said, &said].map(AsFd::as_fd);
            let environment = [("IOLENS_X", "there")];
            let sh = Program::with_files("/bin/sh".as_ref(), &argv, &environment, &files);
            let begun = sh.unwrap().begin_at(StackPlace::of(random)).unwrap();
            assert_eq!(begun.wait().unwrap().status, 0);
            let said = std::fs::read_to_string(&path).unwrap();
            assert!(said.starts_with("there a b c 2\n"), "{said}");
        }
    }

    #[test]
    fn what_cannot_be_executed_is_an_error_here_too() {
        let null = File::options().write(true).open("/dev/null").unwrap();
        let mut missing = Program::new("/no/such/program".as_ref(), &[], null).unwrap();
        assert_eq!(missing.begin_at(StackPlace::of(1)).map(drop), Err(Errno::ENOENT));
    }
}
