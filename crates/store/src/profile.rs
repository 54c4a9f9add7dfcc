//! Sampled trials: appended like timed ones, read back with their run.

use iolens_model::cell::Cell;
use iolens_model::plan::Plan;
use iolens_model::profile::{ProfileEnd, ProfileTrial, Samples, Sampling, Stack};
use iolens_model::units::Nanos;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};
use serde_json::Value;

use crate::{Store, StoreError, row};

impl Store {
    /// Stores a sampled trial with both ends of its arms, all of it or
    /// nothing.
    ///
    /// # Errors
    /// As [`Store::append_trial`].
    pub fn append_profile(&mut self, run_id: &str, trial: &ProfileTrial) -> Result<(), StoreError> {
        let run = self.run_key(run_id)?;
        let path = self.path.clone();
        let failed = |source| StoreError::sqlite("append a sampled trial", &path, source);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let key = insert(&transaction, run, trial, &failed)?;
        for (seq, end) in trial.ends.iter().enumerate() {
            insert_end(&transaction, key, seq, end, &failed)?;
        }
        transaction.commit().map_err(failed)
    }
}

fn insert(
    transaction: &Transaction<'_>,
    run: i64,
    trial: &ProfileTrial,
    failed: &impl Fn(rusqlite::Error) -> StoreError,
) -> Result<i64, StoreError> {
    let values = params![
        run,
        trial.number,
        row::json("the cell", &trial.cell)?,
        row::integer("the start of a sampled trial", trial.started_unix_ns)?,
        trial.status.word(),
        trial.reason,
        row::integer("the period of samples", trial.sampling.period.0)?,
        row::json("what was not sampled", &trial.not_measured)?,
        trial.unsampled.as_ref().map(|u| row::json("the unsampled arm", u)).transpose()?,
    ];
    let sql = "INSERT INTO profile (run, number, cell_json, started_unix_ns, status, reason, \
               period_ns, not_measured_json, unsampled_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    transaction.execute(sql, values).map_err(failed)?;
    Ok(transaction.last_insert_rowid())
}

fn insert_end(
    transaction: &Transaction<'_>,
    profile: i64,
    seq: usize,
    end: &ProfileEnd,
    failed: &impl Fn(rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    let values = params![
        profile,
        row::integer("the place of an end", seq)?,
        end.arm,
        end.primitive,
        end.sends,
        end.kernel,
        row::json("the counts of a sampled end", &end.counts)?,
        row::integer("lost samples", end.samples.lost)?,
        written(&end.samples.stacks)?,
    ];
    let sql = "INSERT INTO profile_end (profile, seq, arm, primitive, sends, kernel, \
               counts_json, lost, stacks) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    transaction.prepare_cached(sql).map_err(failed)?.execute(values).map_err(failed)?;
    Ok(())
}

/// A line per stack.
fn written(stacks: &[Stack]) -> Result<String, StoreError> {
    let mut text = String::new();
    for stack in stacks {
        if stack.folded.contains('\n') {
            let why = "the name of a function has a line break".to_owned();
            return Err(StoreError::NotStorable { what: "a stack", why });
        }
        text.push_str(&stack.folded);
        text.push_str(&format!(" {}\n", stack.samples));
    }
    Ok(text)
}

/// The stacks of such a text; null where it is none.
fn parsed(text: &str) -> Option<Vec<Stack>> {
    let stack = |line: &str| {
        let (folded, samples) = line.rsplit_once(' ')?;
        Some(Stack { folded: folded.to_owned(), samples: samples.parse().ok()? })
    };
    text.split_terminator('\n').map(stack).collect()
}

/// Every sampled trial of a run of this plan, in the order in which they ran.
pub(crate) fn all(
    connection: &Connection,
    run: i64,
    plan: &Plan,
) -> rusqlite::Result<Vec<ProfileTrial>> {
    let sql = "SELECT profile, number, cell_json, started_unix_ns, status, reason, period_ns, \
               not_measured_json, unsampled_json FROM profile WHERE run = ? ORDER BY profile";
    let mut statement = connection.prepare_cached(sql)?;
    let trials = statement.query_map([run], |row| {
        Ok(ProfileTrial {
            number: row.get("number")?,
            cell: cell(row, plan)?,
            started_unix_ns: row.get("started_unix_ns")?,
            status: row::get_word(row, "status")?,
            reason: row.get("reason")?,
            sampling: Sampling { period: Nanos(row.get("period_ns")?) },
            ends: ends(connection, row.get("profile")?)?,
            not_measured: row::get_json(row, "not_measured_json")?,
            unsampled: row::get_json_or_null(row, "unsampled_json")?,
        })
    })?;
    trials.collect()
}

/// The cell of a sampled trial; before version 7 it said nothing of what a run
/// had one of each of.
fn cell(row: &Row<'_>, plan: &Plan) -> rusqlite::Result<Cell> {
    let cell: Cell = row::get_json(row, "cell_json")?;
    let stored: Value = row::get_json(row, "cell_json")?;
    let is_older = stored.get("tuning").is_none();
    let plan = plan.net().filter(|_| is_older);
    Ok(match plan {
        Some(plan) => cell.with_net(|net| net.tuning = plan.only_tuning(net.topology)),
        None => cell,
    })
}

fn ends(connection: &Connection, profile: i64) -> rusqlite::Result<Vec<ProfileEnd>> {
    let sql = "SELECT arm, primitive, sends, kernel, counts_json, lost, stacks \
               FROM profile_end WHERE profile = ? ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let ends = statement.query_map([profile], |row| {
        let stacks: String = row.get("stacks")?;
        Ok(ProfileEnd {
            arm: row.get("arm")?,
            primitive: row.get("primitive")?,
            sends: row.get("sends")?,
            kernel: row.get("kernel")?,
            counts: row::get_json(row, "counts_json")?,
            samples: Samples {
                stacks: parsed(&stacks)
                    .ok_or_else(|| row::unreadable(row, "stacks", "not stacks"))?,
                lost: row.get("lost")?,
            },
        })
    })?;
    ends.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_come_back_as_they_were() {
        let stacks = vec![
            Stack { folded: "main;<impl X for Y>::run;tcp_sendmsg_[k]".to_owned(), samples: 17 },
            Stack { folded: "[unknown]".to_owned(), samples: 1 },
        ];
        assert_eq!(parsed(&written(&stacks).unwrap()), Some(stacks));
        assert_eq!(parsed(""), Some(Vec::new()));
        assert_eq!(parsed("no number\n"), None);
        let broken = [Stack { folded: "a\nb".to_owned(), samples: 1 }];
        assert!(written(&broken).is_err());
    }
}
