//! `cargo xtask release`: static binaries, with manual pages, completions and
//! checksums, in `packages` of the build directory.
//!
//! They are linked with all of glibc and need nothing of the system they run on but a
//! kernel. Not with musl: its sendmmsg(2) is a loop of sendmsg(2) on 64 bits
//! (src/network/sendmmsg.c), its `memcpy` is another one, and both are arms.
//!
//! SQLite is C, so a target is built where a C compiler for it is at hand, and is left
//! out, by name, where none is.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::LittleEndian;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use xshell::{Shell, cmd};

/// Where it is built for, and the C compiler that surely is for it.
const TARGETS: [(&str, &str); 2] = [
    ("x86_64-unknown-linux-gnu", "x86_64-linux-gnu-gcc"),
    ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc"),
];

/// What goes with the binary.
const PAPERS: [&str; 4] = ["README.md", "METHOD.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Shells that get completions.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Builds every target that can be built here.
///
/// Errors: none could be, or one that can did not come out as it should.
pub(crate) fn run(sh: &Shell) -> Result<()> {
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let out = sh.create_dir(built.join("packages"))?;
    let mut archives = Vec::new();
    for (target, compiler) in TARGETS {
        let own = target.starts_with(ARCH).then_some("cc");
        let is_there = |compiler: &&str| {
            cmd!(sh, "{compiler} --version").quiet().ignore_stdout().ignore_stderr().run().is_ok()
        };
        match [compiler].into_iter().chain(own).find(is_there) {
            Some(compiler) => archives.push(package(sh, target, compiler, &built, &out)?),
            None => println!("{target}: left out, no C compiler ({compiler})"),
        }
    }
    let is_any = !archives.is_empty();
    ensure!(is_any, "nothing could be built: on Debian `apt-get install gcc libc6-dev`");
    let _in_out = sh.push_dir(&out);
    let sums = cmd!(sh, "sha256sum {archives...}").read()?;
    sh.write_file("SHA256SUMS", format!("{sums}\n"))?;
    println!("{sums}\nin {}", out.display());
    Ok(())
}

/// Builds a target and packs it; the name of the archive.
fn package(sh: &Shell, target: &str, cc: &str, built: &Path, out: &Path) -> Result<String> {
    cmd!(sh, "rustup target add {target}").run()?;
    let name = target.replace('-', "_");
    let linker = format!("CARGO_TARGET_{}_LINKER", name.to_uppercase());
    let build = cmd!(sh, "cargo build --profile dist --package iolens --target {target}");
    let build = build.env(format!("CC_{name}"), cc).env(linker, cc);
    build.env("RUSTFLAGS", "-C target-feature=+crt-static").run()?;
    let binary = sh.current_dir().join(built).join(target).join("dist/iolens");
    let is_static = !asks_for_interpreter(&sh.read_binary_file(&binary)?)?;
    ensure!(is_static, "{} is not static", binary.display());
    let name = format!("iolens-{}-{target}", env!("CARGO_PKG_VERSION"));
    fill(sh, &out.join(&name), &binary, target)?;
    let archive = format!("{name}.tar.gz");
    let _in_out = sh.push_dir(out);
    cmd!(sh, "tar --owner=0 --group=0 --sort=name -czf {archive} {name}").run()?;
    Ok(archive)
}

/// Puts the binary and what belongs to it into a folder of its own.
fn fill(sh: &Shell, folder: &Path, binary: &Path, target: &str) -> Result<()> {
    sh.remove_path(folder)?;
    let man = sh.create_dir(folder.join("man"))?;
    for file in PAPERS.iter().map(Path::new).chain([binary]) {
        sh.copy_file(file, folder)?;
    }
    // What runs here says itself what it understands.
    if target.starts_with(ARCH) {
        cmd!(sh, "{binary} man {man}").run()?;
        for shell in SHELLS {
            let completions = cmd!(sh, "{binary} completions {shell}").output()?.stdout;
            sh.write_file(folder.join(format!("iolens.{shell}")), completions)?;
        }
    }
    Ok(())
}

/// Whether a binary says `PT_INTERP` (elf(5)), and so needs shared libraries.
fn asks_for_interpreter(elf: &[u8]) -> Result<bool> {
    let header = FileHeader64::<LittleEndian>::parse(elf).context("no ELF file of 64 bits")?;
    let segments = header.program_headers(LittleEndian, elf)?;
    Ok(segments.iter().any(|segment| segment.p_type(LittleEndian) == PT_INTERP))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header with program headers of these types.
    fn elf(types: &[u8]) -> Vec<u8> {
        let mut elf = vec![0; 64 + 56 * types.len()];
        elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        // Where the program headers begin, their size, and how many they are.
        (elf[32], elf[54], elf[56]) = (64, 56, u8::try_from(types.len()).unwrap());
        types.iter().enumerate().for_each(|(entry, kind)| elf[64 + 56 * entry] = *kind);
        elf
    }

    #[test]
    fn a_binary_that_asks_for_an_interpreter_is_not_static() {
        let asks = |elf: &[u8]| asks_for_interpreter(elf).ok();
        assert_eq!(asks(&elf(&[1, 2, 6])), Some(false));
        assert_eq!(asks(&elf(&[6, 3, 1])), Some(true));
        assert_eq!(asks(&elf(&[1, 3])[..100]), None, "cut short");
        assert_eq!(asks(b"#!/bin/sh\n"), None);
        assert!(asks(&std::fs::read(std::env::current_exe().unwrap()).unwrap()).is_some());
    }
}
