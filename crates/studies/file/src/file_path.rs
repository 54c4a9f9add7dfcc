//! A path as a worker is told it.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path as bytes, as the kernel has it; JSON has text only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePath(Vec<u8>);

impl FilePath {
    /// Of a path.
    pub fn new(path: &Path) -> FilePath {
        FilePath(path.as_os_str().as_bytes().to_vec())
    }

    /// Of its bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> FilePath {
        FilePath(bytes)
    }

    /// Its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The path.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(std::ffi::OsString::from_vec(self.0.clone()))
    }
}
