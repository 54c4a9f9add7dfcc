//! The plain tools for files, against arithmetic of our own.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::process::{Job, need};
use super::{Bench, Judged, Outcome};

/// Bytes of the file: a block of none of the sizes divides it.
const BYTES: usize = (1 << 20) + 3;
const BLOCKS: [&str; 3] = ["1", "4096", "1MiB"];

pub(crate) fn check(bench: &Bench) -> Judged {
    let home = bench.home("by_hand")?;
    let content = content();
    let path = home.join("source");
    fs::write(&path, &content).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    let (hash, xor) = (hash(&content), xor(&content));
    let mut wrong = Vec::new();
    for block in BLOCKS {
        wrong.extend(reading(bench, &path, block, &hash, &xor)?);
        wrong.extend(copying(bench, &home, &path, block, &content)?);
        wrong.extend(writing(bench, &home, block)?);
    }
    let messages = messages(bench, &home, &path)?;
    let refused = messages.iter().filter(|(_, is_one)| !is_one).count();
    let said: Vec<&str> = messages.iter().map(|(said, _)| said.as_str()).collect();
    let evidence = format!(
        "blocks {BLOCKS:?}, checksum {hash}, xor {xor}: {}\n{}",
        if wrong.is_empty() { "all as computed here".to_owned() } else { wrong.join("; ") },
        said.join("\n")
    );
    let passes = wrong.is_empty() && refused == 0;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Bytes that repeat nowhere.
fn content() -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..BYTES).map(|_| next()).collect()
}

/// The checksum as its documentation has it, word by word.
fn hash(bytes: &[u8]) -> String {
    const P: u128 = (1 << 61) - 1;
    const R: u128 = 0x1e37_79b9_7f4a_7c1a;
    let word = |piece: &[u8]| {
        let mut word = [0; 8];
        word[..piece.len()].copy_from_slice(piece);
        u128::from(u64::from_le_bytes(word))
    };
    let sum = bytes.chunks(8).rev().fold(0, |sum, piece| (sum + word(piece)) * R % P);
    format!("{:016x}", (sum + bytes.len() as u128) % P)
}

fn xor(bytes: &[u8]) -> String {
    let word = |piece: &[u8]| {
        let mut word = [0; 4];
        word[..piece.len()].copy_from_slice(piece);
        u32::from_le_bytes(word)
    };
    format!("{:08x}", bytes.chunks(4).map(word).fold(0, |sum, word| sum ^ word))
}

fn json(bench: &Bench, args: &[&str]) -> Result<Value, String> {
    Ok(bench.iolens_json("by_hand", args, 2)?.json)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// What a reading got wrong.
fn reading(
    bench: &Bench,
    path: &Path,
    block: &str,
    hash: &str,
    xor: &str,
) -> Result<Option<String>, String> {
    let args =
        ["file", "read", &text(path), "--block-size", block, "--checksum", "--xor", "--json"];
    let read = json(bench, &args)?;
    let right = read["bytes"] == BYTES && read["checksum"] == hash && read["xor"] == xor;
    Ok((!right).then(|| format!("read at {block}: {read}")))
}

/// What a copy got wrong.
fn copying(
    bench: &Bench,
    home: &Path,
    source: &Path,
    block: &str,
    content: &[u8],
) -> Result<Option<String>, String> {
    let copy = home.join(format!("copy-{block}"));
    let args =
        ["file", "copy", &text(source), &text(&copy), "--block-size", block, "--verify", "--json"];
    let copied = json(bench, &args)?;
    let same = fs::read(&copy).is_ok_and(|bytes| bytes == content);
    Ok((!same || copied["bytes"] != BYTES).then(|| format!("copy at {block}: {copied}")))
}

/// What a writing got wrong: its size, or the checksum that a reading finds.
fn writing(bench: &Bench, home: &Path, block: &str) -> Result<Option<String>, String> {
    let path = home.join(format!("written-{block}"));
    let name = text(&path);
    let count = if block == "1" { "1000" } else { "3" };
    let args = ["file", "write", &name, "--block-size", block, "--count", count, "--json"];
    let written = json(bench, &args)?;
    let bytes = fs::read(&path).map_err(|e| format!("cannot read {name}: {e}"))?;
    let right = written["bytes"] == bytes.len() && written["checksum"] == hash(&bytes);
    Ok((!right).then(|| format!("write at {block}: {written}, {} bytes are there", bytes.len())))
}

/// What is said of paths that cannot be used, and whether it is one message with
/// the path in it; and of a file that is shorter than asked for.
fn messages(bench: &Bench, home: &Path, source: &Path) -> Result<Vec<(String, bool)>, String> {
    let (source, folder) = (text(source), text(home));
    let none = text(&home.join("none"));
    let other = text(&home.join("other"));
    let wrong: [&[&str]; 6] = [
        &["read", &none, "--block-size", "4096"],
        &["read", &folder, "--block-size", "4096"],
        &["write", &source, "--block-size", "1", "--count", "1"],
        &["write", &folder, "--block-size", "1", "--count", "1"],
        &["copy", &none, &other, "--block-size", "1"],
        &["copy", &source, &folder, "--block-size", "1"],
    ];
    let mut said = Vec::new();
    for args in wrong {
        let all: Vec<&str> = ["file"].iter().chain(args).copied().collect();
        let finished = bench.iolens("by_hand", &all)?.run()?;
        let lines: Vec<&str> =
            finished.stderr_lines().iter().map(|(_, line)| line.as_str()).collect();
        let messages = lines.iter().filter(|line| line.starts_with("iolens: ")).count();
        let named = lines.first().is_some_and(|line| args.iter().any(|arg| line.contains(arg)));
        let is_one = !finished.status.success() && messages == 1 && named;
        said.push((format!("{}: {}", args[0], lines.join(" ").replace(&folder, "…")), is_one));
    }
    let short = ["file", "read", &source, "--block-size", "4096", "--count", "1000", "--json"];
    let read = json(bench, &short)?;
    said.push((
        format!("1000 blocks of 4096 asked, {} bytes read", read["bytes"]),
        read["bytes"] == BYTES,
    ));
    Ok(said)
}

/// Files that are unfit to be timed.
pub(crate) fn check_flags(bench: &Bench) -> Judged {
    if let Err(missing) = need("fallocate", "util-linux") {
        return Ok(Outcome::Skip(missing));
    }
    let home = bench.home("flags")?;
    let make = |name: &str| -> Result<(PathBuf, File), String> {
        let path = home.join(name);
        let file =
            File::create(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok((path, file))
    };
    let (holes, file) = make("holes")?;
    let written = file.set_len(4 << 20).and_then(|()| file.write_all_at(&[1; 4096], 0));
    written.map_err(|e| e.to_string())?;
    let (zeros, file) = make("zeros")?;
    file.write_all_at(&vec![0; 4 << 20], 0)
        .and_then(|()| file.sync_all())
        .map_err(|e| e.to_string())?;
    let (unwritten, _) = make("unwritten")?;
    Job::new("fallocate").args(&["-l", "4MiB", &text(&unwritten)]).run()?.success()?;
    let mut evidence = Vec::new();
    let mut passes = true;
    for (path, word) in [(&holes, "holes"), (&unwritten, "never written"), (&zeros, "zeros")] {
        let run = format!(
            "run file --file {} --cache warm --quick --block-sizes 4KiB --engines read --passes 2 \
             --rounds 3 --progress none",
            text(path)
        );
        let args: Vec<&str> = run.split_whitespace().collect();
        let finished = bench.iolens("flags", &args)?.run()?;
        let lines = finished.stderr_lines().iter().map(|(_, line)| line.as_str());
        let said = lines.clone().find(|line| line.contains(word));
        passes &= said.is_some();
        evidence.push(said.map_or_else(|| format!("nothing about {word}"), str::to_owned));
    }
    let evidence = evidence.join("\n").replace(&text(&home), "…");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_independent_sums_are_those_of_the_documentation() {
        assert_eq!(hash(b""), format!("{:016x}", 0));
        assert_eq!(hash(&[1]), format!("{:016x}", 0x1e37_79b9_7f4a_7c1a_u64 + 1));
        assert_eq!(xor(&[1, 0, 0, 0, 3]), "00000002");
    }
}
