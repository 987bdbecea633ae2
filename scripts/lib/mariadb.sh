# shellcheck shell=bash
# MariaDB with durable commits, and a user and a database named belay.

up_mariadb() {
  if alive mariadb; then
    say "mariadb is already up on port $(port_of mariadb)"
  else
    say "starting mariadb on port $(port_of mariadb)"
  fi
  heal_mariadb
  touch "$dir/mariadb.ready"
}

heal_mariadb() {
  resume_paused mariadb
  start_mariadb
}

start_mariadb() {
  if ! alive mariadb; then
    need_ports mariadb
    # Without the mark the first start was cut short, and half a data
    # directory is worth nothing.
    [[ -e $dir/mariadb.ready ]] || create_mariadb_data
    launch_mariadb
  fi
  wait_for mariadb 60 "answer from mariadb" mariadb_answers
}

# create_mariadb_data works from inside the folder, as mariadb-install-db does
# not understand a path with spaces; --force: the host's name need not resolve.
create_mariadb_data() {
  rm -rf "$dir/mariadb"
  mkdir -p "$dir/mariadb"
  env -C "$dir/mariadb" mariadb-install-db --no-defaults --force --datadir=./data --user="$(id -un)" \
    --skip-test-db --auth-root-authentication-method=socket >"$dir/log/mariadb-install.log" 2>&1 </dev/null ||
    fail_with_log mariadb-install "mariadb-install-db failed"
  local password
  password=$(<"$dir/password")
  cat >"$dir/mariadb/init.sql" <<SQL
CREATE DATABASE IF NOT EXISTS belay;
CREATE USER IF NOT EXISTS belay IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON *.* TO belay;
SQL
  chmod 600 "$dir/mariadb/init.sql"
}

# The socket's path is relative to the data directory: a full one may be longer
# than the 107 bytes that a socket can have.
launch_mariadb() {
  launch mariadb "$(command -v mariadbd)" --no-defaults --user="$(id -un)" \
    --datadir="$dir/mariadb/data" --init-file="$dir/mariadb/init.sql" \
    --bind-address=127.0.0.1 --port="$(port_of mariadb)" --socket=mariadb.sock --pid-file=mariadb.pid \
    --skip-name-resolve --max-connections=1000 --default-time-zone=+00:00 \
    --character-set-server=utf8mb4 \
    --innodb-flush-log-at-trx-commit=1
}

mariadb_answers() {
  MYSQL_PWD=$(<"$dir/password") timeout 5 mariadb --no-defaults --host=127.0.0.1 --port="$(port_of mariadb)" \
    --user=belay --execute='SELECT 1' belay >/dev/null 2>&1
}
