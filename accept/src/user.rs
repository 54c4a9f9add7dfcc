//! Root and an ordinary user, each with a copy of the tool and a home.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::prelude::*;
use crate::process::own_user;

/// A user of no rights on every system.
const NOBODY: u32 = 65534;

/// A user with a copy of the tool and a home, which is the bench's own.
pub struct User {
    pub id: u32,
    pub bench: Bench,
}

/// Root and an ordinary user; for who is not root himself alone.
pub fn users(bench: &Bench) -> Res<Vec<User>> {
    let own = own_user()?;
    let ids = if own == 0 { vec![0, NOBODY] } else { vec![own] };
    ids.into_iter().map(|id| User::new(bench, id)).collect()
}

impl User {
    fn new(bench: &Bench, id: u32) -> Res<User> {
        let mut own = bench.room(&format!("user-{id}/home"))?;
        own.tool = own.path("../iolens");
        let may = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        may(&own.path(""), 0o777)?;
        fs::copy(&bench.tool, &own.tool)?;
        may(&own.tool, 0o755)?;
        Ok(User { id, bench: own })
    }

    /// A program of this user, with a home and a data directory of its own.
    pub fn job(&self, program: impl AsRef<OsStr>, words: &str) -> Job {
        let (id, home) = (self.id, self.bench.path(""));
        let setpriv = match own_user().is_ok_and(|own| own == id) {
            true => "setpriv --".to_owned(),
            false => format!("setpriv --reuid={id} --regid={id} --clear-groups --"),
        };
        let job = Job::of(&setpriv).arg(program).words(words).minutes(1).directory(&home);
        // Programs of the system: those of root's own path may be root's alone.
        let job = job.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        job.env("HOME", &home).env("XDG_DATA_HOME", home.join("data"))
    }
}
