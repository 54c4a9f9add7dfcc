//! The check sum that the shell at the other end can compute too: that of cksum(1) in POSIX.

/// x^32 + x^26 + ... + 1, without its first term.
const POLYNOMIAL: u32 = 0x04c1_1db7;

/// What a byte at the top makes of the sum.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    loop {
        let mut sum = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum >> 31 == 1 { sum << 1 ^ POLYNOMIAL } else { sum << 1 };
            bit += 1;
        }
        table[byte as usize] = sum;
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

/// A sum of bytes that come in pieces.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    sum: u32,
    bytes: u64,
}

impl Sum {
    /// Adds a piece.
    pub(super) fn add(&mut self, piece: &[u8]) {
        self.sum = piece.iter().fold(self.sum, |sum, &byte| next(sum, byte));
        self.bytes += piece.len() as u64;
    }

    /// How many bytes there were.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What cksum(1) prints of them.
    pub(super) fn crc(&self) -> u32 {
        let length = self.bytes.to_le_bytes().into_iter();
        let digits = 8 - self.bytes.leading_zeros() as usize / 8;
        !length.take(digits).fold(self.sum, next)
    }
}

fn next(sum: u32, byte: u8) -> u32 {
    sum << 8 ^ TABLE[usize::from(sum.to_be_bytes()[0] ^ byte)]
}

#[cfg(test)]
mod tests {
    use super::Sum;

    #[test]
    fn it_is_what_cksum_prints() {
        let of = |pieces: &[&[u8]]| {
            let mut sum = Sum::default();
            pieces.iter().for_each(|piece| sum.add(piece));
            (sum.crc(), sum.bytes())
        };
        assert_eq!(of(&[]), (4_294_967_295, 0));
        assert_eq!(of(&[b"123456789"]), (930_766_865, 9));
        assert_eq!(of(&[b"1234", b"", b"56789"]), (930_766_865, 9));
        let large = vec![7; 70_000];
        let printed = {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("large"), &large).unwrap();
            let mut command = std::process::Command::new("cksum");
            let output = command.arg(folder.path().join("large")).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let (crc, bytes) = of(&[&large]);
        assert!(printed.starts_with(&format!("{crc} {bytes} ")), "{printed}");
    }
}
