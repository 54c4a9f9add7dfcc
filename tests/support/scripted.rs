//! A machine laid out in a folder, for tests.

use std::path::Path;

use iolens_sys::proc::Root;

/// Files below a folder that is gone when this is.
pub(crate) struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    /// A machine with these files; paths as [`Root::read`] takes them.
    pub(crate) fn with(files: &[(&str, &str)]) -> Machine {
        let machine = Machine { folder: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(path, text)| machine.write(path, text));
        machine
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(self.folder.path())
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes or replaces a file.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Makes a symbolic link that leads nowhere, as those of /proc do.
    pub(crate) fn link(&self, path: &str, target: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// Takes a file away.
    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.folder.path().join(path)).unwrap();
    }
}
