# shellcheck shell=bash
# MariaDB, and beside it on demand the real MySQL, an older one and a newer MariaDB. All have
# durable commits, and a user and a database named belay.

up_mariadb() { up_database mariadb; }
heal_mariadb() { heal_database mariadb; }
start_mariadb() { start_database mariadb; }
up_mysql() { up_database mysql; }
heal_mysql() { heal_database mysql; }
start_mysql() { start_database mysql; }
up_mysql80() { up_database mysql80; }
heal_mysql80() { heal_database mysql80; }
start_mysql80() { start_database mysql80; }
up_mariadb11() { up_database mariadb11; }
heal_mariadb11() { heal_database mariadb11; }
start_mariadb11() { start_database mariadb11; }

up_database() {
  if alive "$1"; then
    say "$1 is already up on port $(port_of "$1")"
  else
    say "starting $1 on port $(port_of "$1")"
  fi
  heal_database "$1"
  touch "$dir/$1.ready"
}

heal_database() {
  resume_paused "$1"
  start_database "$1"
}

start_database() {
  if ! alive "$1"; then
    need_ports "$1"
    # Without the mark the first start was cut short, and half a data
    # directory is worth nothing.
    [[ -e $dir/$1.ready ]] || create_database "$1"
    launch_database "$1"
  fi
  wait_for "$1" 60 "answer from $1" database_answers "$1"
}

create_database() {
  local node=$1 password
  install_database "$node" || {
    say "the data of $node could not be created, once more"
    show_errors "$node-install"
    install_database "$node" || fail_with_log "$node-install" "the data of $node could not be created"
  }
  password=$(<"$dir/password")
  private_file "$dir/$node/init.sql" <<SQL
CREATE DATABASE IF NOT EXISTS belay;
CREATE USER IF NOT EXISTS belay IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON *.* TO belay;
$([[ $node != mysql* ]] || echo 'DROP USER IF EXISTS root@localhost;')
SQL
}

install_database() {
  rm -rf "${dir:?}/$1"
  mkdir -p "$dir/$1/tmp"
  "create_$1" >"$dir/log/$1-install.log" 2>&1 </dev/null
}

# create_mariadb works from inside the folder, as mariadb-install-db does not
# understand a path with spaces; --force: the host's name need not resolve.
create_mariadb() {
  env -C "$dir/mariadb" TMPDIR="$dir/mariadb/tmp" mariadb-install-db --no-defaults --force --datadir=./data --user="$(id -un)" \
    --skip-test-db --auth-root-authentication-method=socket
}

# MySQL's first user has no password; init.sql drops it.
create_mysql() {
  local program
  mysql_program
  "${program[@]}" --initialize-insecure
}

create_mysql80() {
  local program
  mysql80_program
  "${program[@]}" --initialize-insecure
}

# create_mariadb11 is what mariadb-install-db does, which finds no server that
# is elsewhere. The server wants each statement to end its line.
create_mariadb11() {
  local program share name
  mariadb11_program
  share=$(sid_tree mariadb11)/usr/share/mariadb
  mkdir -p "$dir/mariadb11/data"
  {
    echo 'CREATE DATABASE mysql;'
    echo 'USE mysql;'
    echo "SET @auth_root_socket = 'root';"
    for name in system_tables performance_tables system_tables_data; do
      cat "$share/mariadb_$name.sql"
    done
    cat "$share"/{fill_help_tables,maria_add_gis_sp_bootstrap,mariadb_sys_schema}.sql
  } | "${program[@]}" --bootstrap --enforce-storage-engine=''
}

# A server has a folder of its own for temporary tables: one that starts deletes those that it
# finds, also those of another server.
mariadb_program() {
  program=("$(command -v mariadbd)" --no-defaults --user="$(id -un)" --datadir="$dir/mariadb/data" --tmpdir="$dir/mariadb/tmp")
}

mysql_program() {
  local tree
  tree=$(sid_tree mysql)
  sid_program mysql usr/sbin/mysqld
  program+=(--no-defaults --user="$(id -un)" --basedir="$tree/usr" --lc-messages-dir="$tree/usr/share/mysql"
    --datadir="$dir/mysql/data" --tmpdir="$dir/mysql/tmp" --mysqlx=OFF --secure-file-priv=NULL)
}

mysql80_program() {
  local tree
  tree=$(maven_tree mysql80)
  program=("$tree/bin/mysqld" --no-defaults --user="$(id -un)" --basedir="$tree" --lc-messages-dir="$tree/share"
    --datadir="$dir/mysql80/data" --tmpdir="$dir/mysql80/tmp" --mysqlx=OFF --secure-file-priv=NULL)
}

mariadb11_program() {
  local tree
  tree=$(sid_tree mariadb11)
  sid_program mariadb11 usr/sbin/mariadbd
  program+=(--no-defaults --user="$(id -un)" --basedir="$tree/usr" --lc-messages-dir="$tree/usr/share/mariadb"
    --datadir="$dir/mariadb11/data" --tmpdir="$dir/mariadb11/tmp")
}

# The socket's path is relative to the data directory: a full one may be longer
# than the 107 bytes that a socket can have.
#
# MySQL takes a killed process that nobody has reaped for one that still uses
# the socket, by the lock file beside it.
launch_database() {
  local program
  "$1_program"
  rm -f "$dir/$1/data/server.sock.lock"
  mkdir -p "$dir/$1/tmp"
  launch "$1" "${program[@]}" --init-file="$dir/$1/init.sql" \
    --bind-address=127.0.0.1 --port="$(port_of "$1")" --socket=server.sock --pid-file=server.pid \
    --skip-name-resolve --max-connections=1000 --default-time-zone=+00:00 \
    --character-set-server=utf8mb4 \
    --innodb-flush-log-at-trx-commit=1
}

database_answers() {
  MYSQL_PWD=$(<"$dir/password") timeout 5 mariadb --no-defaults --host="$(host_of "$1")" --port="$(port_of "$1")" \
    --user=belay --execute='SELECT 1' belay >/dev/null 2>&1
}

database_dsn() {
  echo "belay:$(<"$dir/password")@tcp($(host_of "$1"):$(port_of "$1"))/belay?parseTime=true&charset=utf8mb4"
}
