//! `cargo xtask release`: static binaries, with manual pages, completions and
//! checksums, in `packages` of the build directory.
//!
//! They are linked with all of glibc and need nothing of the system they run on but a
//! kernel. Not with musl: its sendmmsg(2) is a loop of sendmsg(2) on 64 bits
//! (src/network/sendmmsg.c), its `memcpy` is another one, and both are arms.
//!
//! SQLite is C, so a target is built where a C compiler for it is at hand, and is left
//! out, by name, where none is.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{self, build_directory, cargo, output, write};
use crate::root;

/// Where it is built for, and C compilers for that, the one that surely is for it first.
const TARGETS: [(&str, &[&str]); 2] = [
    ("x86_64-unknown-linux-gnu", &["x86_64-linux-gnu-gcc"]),
    ("aarch64-unknown-linux-gnu", &["aarch64-linux-gnu-gcc"]),
];

/// What goes with the binary.
const PAPERS: [&str; 4] = ["README.md", "METHOD.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Shells that get completions.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Builds every target that can be built here.
///
/// Errors: none could be, or one that can did not come out as it should.
pub(crate) fn run() -> Result<(), String> {
    let out = build_directory().join("packages");
    fs::create_dir_all(&out).map_err(|e| format!("cannot create {}: {e}", out.display()))?;
    let mut archives = Vec::new();
    for (target, compilers) in TARGETS {
        let own = target.starts_with(std::env::consts::ARCH).then_some(&"cc");
        match compilers.iter().chain(own).find(|compiler| program::is_there(compiler)) {
            Some(compiler) => archives.push(package(target, compiler, &out)?),
            None => println!("{target}: left out, no C compiler ({})", compilers.join(", ")),
        }
    }
    if archives.is_empty() {
        return Err("nothing could be built: on Debian `apt-get install gcc libc6-dev`".to_owned());
    }
    let sums = output(Command::new("sha256sum").args(&archives).current_dir(&out))?;
    write(&out.join("SHA256SUMS"), &sums)?;
    print!("{}", String::from_utf8_lossy(&sums));
    println!("in {}", out.display());
    Ok(())
}

/// Builds a target and packs it; the name of the archive.
fn package(target: &str, compiler: &str, out: &Path) -> Result<String, String> {
    output(Command::new("rustup").args(["target", "add", target]).current_dir(root()))?;
    let name = target.replace('-', "_");
    let linker = format!("CARGO_TARGET_{}_LINKER", name.to_uppercase());
    let build = ["build", "--profile", "dist", "--package", "iolens", "--target", target];
    let mut build = cargo(build);
    build.env(format!("CC_{name}"), compiler).env(linker, compiler);
    program::run(build.env("RUSTFLAGS", "-C target-feature=+crt-static"))?;
    let binary = build_directory().join(target).join("dist/iolens");
    check_static(&binary)?;
    let name = format!("iolens-{}-{target}", env!("CARGO_PKG_VERSION"));
    let folder = out.join(&name);
    fill(&folder, &binary, target)?;
    let archive = format!("{name}.tar.gz");
    let packed = ["--owner=0", "--group=0", "--sort=name", "-czf", &archive, &name];
    output(Command::new("tar").args(packed).current_dir(out))?;
    Ok(archive)
}

/// Puts the binary and what belongs to it into a folder of its own.
fn fill(folder: &Path, binary: &Path, target: &str) -> Result<(), String> {
    let man = folder.join("man");
    let copy = || {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(&man)?;
        fs::copy(binary, folder.join("iolens"))?;
        PAPERS
            .iter()
            .try_for_each(|paper| fs::copy(root().join(paper), folder.join(paper)).map(|_| ()))
    };
    copy().map_err(|e: std::io::Error| format!("cannot fill {}: {e}", folder.display()))?;
    // What runs here says itself what it understands.
    if !target.starts_with(std::env::consts::ARCH) {
        return Ok(());
    }
    output(Command::new(binary).arg("man").arg(&man))?;
    for shell in SHELLS {
        let completions = output(Command::new(binary).args(["completions", shell]))?;
        write(&folder.join(format!("iolens.{shell}")), completions)?;
    }
    Ok(())
}

/// That a binary asks for no interpreter, and so for no shared library.
fn check_static(binary: &Path) -> Result<(), String> {
    let bytes = fs::read(binary).map_err(|e| format!("cannot read {}: {e}", binary.display()))?;
    match asks_for_interpreter(&bytes) {
        Some(false) => Ok(()),
        Some(true) => Err(format!("{} is not static", binary.display())),
        None => Err(format!("{} is no ELF file of 64 bits", binary.display())),
    }
}

/// Whether a program header says `PT_INTERP` (elf(5)); null for what is no little-endian
/// ELF file of 64 bits.
fn asks_for_interpreter(elf: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let bytes = |at: usize, count: usize| elf.get(at..at.checked_add(count)?);
    if bytes(0, 6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let half = |at: usize| Some(usize::from(u16::from_le_bytes(bytes(at, 2)?.try_into().ok()?)));
    let table = u64::from_le_bytes(bytes(32, 8)?.try_into().ok()?);
    let (table, entry_bytes, entries) = (usize::try_from(table).ok()?, half(54)?, half(56)?);
    for entry in 0..entries {
        let at = table.checked_add(entry.checked_mul(entry_bytes)?)?;
        if u32::from_le_bytes(bytes(at, 4)?.try_into().ok()?) == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header with program headers of these types.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut elf = vec![0; 64 + 56 * types.len()];
        elf[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        elf[32] = 64;
        elf[54] = 56;
        elf[56] = u8::try_from(types.len()).unwrap();
        for (entry, kind) in types.iter().enumerate() {
            elf[64 + 56 * entry..][..4].copy_from_slice(&kind.to_le_bytes());
        }
        elf
    }

    #[test]
    fn a_binary_that_asks_for_an_interpreter_is_not_static() {
        assert_eq!(asks_for_interpreter(&elf(&[1, 2, 6])), Some(false));
        assert_eq!(asks_for_interpreter(&elf(&[6, 3, 1])), Some(true));
        assert_eq!(asks_for_interpreter(&elf(&[1, 3])[..100]), None, "cut short");
        assert_eq!(asks_for_interpreter(b"#!/bin/sh\n"), None);
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(asks_for_interpreter(&own).is_some());
    }
}
