//! The first lines from the other end: ours, among whatever a launcher prints before.

/// What our lines begin with. Others may come before them: a banner, a message of the day.
const MARK: &str = "iolens-far: ";

/// Bytes of others' lines that are passed over.
const BANNER_BYTES_MAX: usize = 1 << 20;

/// Lines from whatever pieces come.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Bytes of others' lines since the last of ours.
    passed: usize,
}

/// What comes and is not what a shell says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Odd {
    /// A terminal is in the way.
    Terminal,
    /// Much, and nothing of ours.
    Much,
}

impl Lines {
    /// Adds what was read.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next line that is ours and is here, without its mark.
    ///
    /// # Errors
    /// See [`Odd`].
    pub fn take(&mut self) -> Result<Option<String>, Odd> {
        let (mut ours, mut done) = (None, 0);
        while let Some(length) = memchr::memchr(b'\n', &self.bytes[done..]) {
            let line = &self.bytes[done..done + length];
            done += length + 1;
            if let Some(said) = line.strip_prefix(MARK.as_bytes()) {
                ours = Some(String::from_utf8_lossy(said).into_owned());
                break;
            }
            self.passed += length;
        }
        self.bytes.drain(..done);
        match ours {
            Some(said) if said.ends_with('\r') => Err(Odd::Terminal),
            Some(said) => {
                self.passed = 0;
                Ok(Some(said))
            }
            None if self.passed + self.bytes.len() > BANNER_BYTES_MAX => Err(Odd::Much),
            None => Ok(None),
        }
    }

    /// What came behind the last line that was taken.
    #[must_use]
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_ours_are_taken_and_what_follows_stays() {
        let mut lines = Lines::default();
        lines.extend(b"Welcome\n\niolens-far: Linux x86");
        assert_eq!(lines.take(), Ok(None));
        lines.extend(b"_64\nbehind\0it");
        assert_eq!(lines.take(), Ok(Some("Linux x86_64".to_owned())));
        assert_eq!(lines.rest(), b"behind\0it");
        lines.extend(b"iolens-far: go\r\n");
        assert_eq!(lines.take(), Err(Odd::Terminal));
        lines.extend(&vec![b'\n'; 2 * BANNER_BYTES_MAX]);
        assert_eq!(lines.take(), Ok(None), "a line end is no word");
        lines.extend(&vec![b'x'; BANNER_BYTES_MAX + 1]);
        assert_eq!(lines.take(), Err(Odd::Much));
    }
}
