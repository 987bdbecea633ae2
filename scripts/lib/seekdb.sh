# shellcheck shell=bash
# seekdb, OceanBase's server for one machine, which speaks MySQL's protocol.

up_seekdb() {
  if alive seekdb; then
    say "seekdb is already up on port $(port_of seekdb)"
  else
    say "starting seekdb on port $(port_of seekdb)"
  fi
  heal_seekdb
  touch "$dir/seekdb.ready"
}

heal_seekdb() {
  resume_paused seekdb
  start_seekdb
}

start_seekdb() {
  if ! alive seekdb; then
    need_ports seekdb
    # Without the mark the first start was cut short, and half a database is worth nothing.
    [[ -e $dir/seekdb.ready ]] || rm -rf "${dir:?}/seekdb"
    launch_seekdb
  fi
  wait_for seekdb 300 "answer from seekdb" seekdb_answers
}

# launch_seekdb gives the first start time: it makes its tables in one transaction, which takes half a
# minute on a busy machine, and fails with -6210 after internal_sql_execute_timeout, 30 s by default.
launch_seekdb() {
  local tree
  tree=$(pypi_tree seekdb)
  mkdir -p "$dir/seekdb"
  chmod +x "$tree/pylibseekdb/seekdb"
  LD_LIBRARY_PATH=$tree/pylibseekdb:$tree/pylibseekdb.libs launch seekdb "$tree/pylibseekdb/seekdb" --nodaemon \
    --port "$(port_of seekdb)" --base-dir "$dir/seekdb" --log-level ERROR \
    --parameter internal_sql_execute_timeout=10m --parameter datafile_size=512M --parameter log_disk_size=2G \
    --parameter memory_limit=4G --parameter cpu_count=4
}

# seekdb_answers makes the user and the database when the server answers for the first time. Its first
# user has no password until then.
seekdb_answers() {
  local password
  database_answers seekdb && return
  password=$(<"$dir/password")
  timeout 10 mariadb --no-defaults --host=127.0.0.1 --port="$(port_of seekdb)" --user=root >/dev/null 2>&1 <<SQL
CREATE DATABASE IF NOT EXISTS belay;
CREATE USER IF NOT EXISTS belay IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON *.* TO belay;
ALTER USER root IDENTIFIED BY '$password';
SQL
  database_answers seekdb
}
