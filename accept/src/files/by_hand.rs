//! The plain tools for files, against arithmetic of our own.

use crate::prelude::*;

/// Bytes of the file: a block of none of the sizes divides it.
const BYTES: usize = (1 << 20) + 3;

pub fn check(bench: &Bench) -> Res {
    let content = content();
    bench.write("source", &content)?;
    let (hash, xor) = (hash(&content), xor(&content));
    bench.note("checksum and xor computed here", format!("{hash}, {xor}"));
    for block in ["1", "4096", "1MiB"] {
        let size = format!("--block-size {block} --json");
        bench.note("blocks of", block);
        let read = bench.json(format!("file read source --checksum --xor {size}"))?;
        bench.ask("read", &read, &json!([BYTES, hash, xor]));
        let copied = bench.json(format!("file copy source copy-{block} --verify {size}"))?;
        let made = fs::read(bench.path(&format!("copy-{block}")))?;
        bench.ask("copied", &copied, &json!((made == content).then_some(BYTES)));
        write(bench, block, &size)?;
    }
    // Paths that cannot be used: one message that names one of them.
    fs::create_dir_all(bench.path("folder"))?;
    for words in [
        "read absent --block-size 4096",
        "read folder --block-size 4096",
        "write source --block-size 1 --count 1",
        "write folder --block-size 1 --count 1",
        "copy absent other --block-size 1",
        "copy source folder --block-size 1",
    ] {
        let finished = bench.iolens(format!("file {words}")).run()?;
        let messages: Vec<&str> =
            finished.err_lines().filter(|line| line.starts_with("iolens: ")).collect();
        let is_named = |line: &str| ["absent", "folder", "source"].iter().any(|p| line.contains(p));
        let is_clear = matches!(messages[..], [one] if is_named(one));
        bench.judge(words, is_clear && !finished.status.success(), finished.stderr());
    }
    // A file that is shorter than asked for.
    let short = bench.json("file read source --block-size 4096 --count 1000 --json")?;
    bench.ask("short", &short, &json!(BYTES));
    Ok(())
}

/// The size that is there, and the checksum of it.
fn write(bench: &Bench, block: &str, size: &str) -> Res {
    let name = format!("written-{block}");
    let count = if block == "1" { 1000 } else { 3 };
    let written = bench.json(format!("file write {name} --count {count} {size}"))?;
    let bytes = fs::read(bench.path(&name))?;
    bench.ask("written", &written, &json!([bytes.len(), hash(&bytes)]));
    Ok(())
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
