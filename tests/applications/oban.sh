# Prepares the suite of oban: its databases are PostgreSQL alone, at PGHOST and PGPORT, where this
# makes one.
set -eu
rm -rf test/mix test/oban/migrations/sqlite_test.exs test/oban/migrations/myxql_test.exs
sed -i 's/Adapters.SQLite3/Adapters.Postgres/; s/Adapters.MyXQL/Adapters.Postgres/' test/support/repo.ex
sed -i -e '/LiteRepo\|DolphinRepo/d' \
  -e 's|^Oban.Test.UnboxedRepo.start_link()|&\nEcto.Migrator.run(Oban.Test.UnboxedRepo, "test/support/postgres/migrations", :up, all: true)|' test/test_helper.exs
sed -i "s|localhost:5432|${PGUSER:-postgres}@$PGHOST:$PGPORT|" config/config.exs
psql -U "${PGUSER:-postgres}" -d postgres -c 'CREATE DATABASE oban_test' || :
