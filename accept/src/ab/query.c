/* A query of SQLite as a loop program: its code is large enough that it matters where it lies. */
#include <stdio.h>
#include <stdlib.h>

#include "sqlite3.h"

static sqlite3 *db;
static sqlite3_stmt *query;

static void run(const char *sql) {
    if (sqlite3_exec(db, sql, 0, 0, 0) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
        exit(1);
    }
}

int main(void) {
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 1;
    run("create table t(a integer primary key, b text, c integer)");
    run("with recursive n(i) as (values(1) union all select i + 1 from n where i < 200) insert "
        "into t select i, 'row ' || i, i * 7919 % 200 from n");
    const char *sql = "select count(*), max(b) from t where c between ?1 and ?1 + 40 and b like "
                      "'row 1%' order by a";
    if (sqlite3_prepare_v2(db, sql, -1, &query, 0) != SQLITE_OK) return 1;
    char line[64];
    long i = 0;
    for (puts("ready"), fflush(stdout); fgets(line, sizeof line, stdin); puts("ok"), fflush(stdout))
        for (long n = atol(line); n > 0; n--) {
            sqlite3_bind_int(query, 1, i++ % 100);
            while (sqlite3_step(query) == SQLITE_ROW) {}
            sqlite3_reset(query);
        }
}
