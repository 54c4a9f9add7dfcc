//! Sysctls of the whole machine: files below /proc/sys, by their dotted names.
//! See proc_sys(5) and sysctl(8).

use std::fs::OpenOptions;
use std::io::Write;

use crate::errno::Errno;
use crate::proc::Root;

/// Where a sysctl is, below a root: `net.core.somaxconn` is
/// `proc/sys/net/core/somaxconn`.
pub fn file(name: &str) -> String {
    format!("proc/sys/{}", name.replace('.', "/"))
}

/// What a sysctl is now, without white space around it.
///
/// Errors: `ENOENT` where this kernel, or this namespace, does not show it.
pub fn read(root: &Root, name: &str) -> Result<String, Errno> {
    Ok(std::fs::read_to_string(root.path(&file(name)))?.trim().to_owned())
}

/// Whether this process may change a sysctl: opens its file and writes nothing.
///
/// Errors: `EACCES` for all but the machine's root (`test_perm`,
/// fs/proc/proc_sysctl.c), `EROFS` where /proc/sys is mounted read-only,
/// `ENOENT`.
pub fn try_write(root: &Root, name: &str) -> Result<(), Errno> {
    OpenOptions::new().write(true).open(root.path(&file(name)))?;
    Ok(())
}

/// Changes a sysctl, in one write(2).
///
/// Errors: as [`try_write`], and `EINVAL` for a value that it cannot have.
pub fn write(root: &Root, name: &str, value: &str) -> Result<(), Errno> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(root.path(&file(name)))?;
    Ok(file.write_all(format!("{value}\n").as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::at(machine.path());
        std::fs::create_dir_all(machine.path().join("proc/sys/net/core")).unwrap();
        let name = "net.core.x";
        assert_eq!(read(&root, name), Err(Errno::ENOENT));
        assert_eq!(try_write(&root, name), Err(Errno::ENOENT));
        assert_eq!(write(&root, name, "1"), Err(Errno::ENOENT), "it is never made");
        std::fs::write(machine.path().join(file(name)), "4096\n").unwrap();
        assert_eq!(try_write(&root, name), Ok(()));
        assert_eq!(read(&root, name).unwrap(), "4096", "trying changes nothing");
        write(&root, name, "1").unwrap();
        assert_eq!(read(&root, name).unwrap(), "1");
    }

    #[test]
    fn the_machine_is_read() {
        assert!(!read(&Root::real(), "kernel.ostype").unwrap().is_empty());
    }
}
