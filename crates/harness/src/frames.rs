//! Messages between processes of ours: JSON in frames with a length before them.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest frame either side accepts. A report of 100 000 slices has 40 MB.
pub const FRAME_BYTES_MAX: usize = 256 << 20;

/// Writes one frame: four bytes of length, little-endian, then JSON.
///
/// Errors: of the write; the other side has usually gone.
pub fn write_frame<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(|_| io::Error::other("frame too long"))?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&body)?;
    to.flush()
}

/// Puts frames together from whatever pieces the pipe delivers.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
}

impl FrameBuffer {
    /// Adds what was read.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, if all of it is here.
    ///
    /// Errors: a frame that is too long or not a message of this protocol.
    pub fn take<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some((length, body)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > FRAME_BYTES_MAX {
            let text = format!("a frame of {length} bytes, more than {FRAME_BYTES_MAX}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if body.len() < length {
            return Ok(None);
        }
        let message = serde_json::from_slice(&body[..length])
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        self.bytes.drain(..4 + length);
        Ok(Some(message))
    }
}

/// Reads one message, waiting for it; `None` when the other side has gone.
///
/// Errors: of the read, or as [`FrameBuffer::take`].
pub fn read_frame<T: DeserializeOwned>(
    from: &mut impl Read,
    buffer: &mut FrameBuffer,
) -> io::Result<Option<T>> {
    let mut piece = vec![0; 64 << 10];
    loop {
        if let Some(message) = buffer.take()? {
            return Ok(Some(message));
        }
        match from.read(&mut piece) {
            Ok(0) => return Ok(None),
            Ok(n) => buffer.extend(&piece[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
