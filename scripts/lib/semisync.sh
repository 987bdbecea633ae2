# shellcheck shell=bash
# Two nodes of MariaDB, a primary and a semi-synchronous replica that can be promoted. They
# have one host name and one port on two addresses, as two containers may have.
#
# A primary whose replica is gone has its commits wait for as long as that takes. It can't
# know whether the replica is dead or about to be promoted, and a commit that it acknowledged
# alone would be lost then. A promoted replica commits alone until it has a replica of its
# own: nobody can be promoted in its place, as `promote` only takes a replica that is whole.

semisync_nodes=(semisync-1 semisync-2)

up_semisync() {
  local node
  if [[ -e $dir/semisync.ready ]]; then
    say "semisync is already up on port $(port_of semisync-1)"
    heal_semisync
    return
  fi
  say "starting semisync on port $(port_of semisync-1) of 127.0.0.1 and 127.0.0.2"
  for node in "${semisync_nodes[@]}"; do
    end_process "$node"
    rm -rf "${dir:?}/$node"
  done
  need_ports semisync-1
  each_server create semisync_1 semisync_2
  echo semisync-1 >"$dir/semisync.writer"
  heal_semisync
  touch "$dir/semisync.ready"
}

# create_semisync NODE: users are each server's own, and no matter of replication. The user
# of the tests must obey read_only. Servers in other process namespaces may use the same
# names in /tmp.
create_semisync() {
  rm -rf "${dir:?}/$1"
  mkdir -p "$dir/$1/tmp"
  env -C "$dir/$1" TMPDIR="$dir/$1/tmp" mariadb-install-db --no-defaults --force --datadir=./data --user="$(id -un)" \
    --skip-test-db --auth-root-authentication-method=socket >"$dir/log/$1-install.log" 2>&1 </dev/null ||
    fail_with_log "$1-install" "the data of $1 could not be created"
  private_file "$dir/$1/init.sql" <<SQL
SET SESSION sql_log_bin = 0;
CREATE DATABASE IF NOT EXISTS belay;
CREATE USER IF NOT EXISTS operator IDENTIFIED BY '$(<"$dir/password")';
GRANT ALL PRIVILEGES ON *.* TO operator;
CREATE USER IF NOT EXISTS belay IDENTIFIED BY '$(<"$dir/password")';
GRANT ALL PRIVILEGES ON *.* TO belay;
REVOKE READ ONLY ADMIN ON *.* FROM belay;
SQL
}

create_semisync_1() { create_semisync semisync-1; }
create_semisync_2() { create_semisync semisync-2; }

# launch_semisync NODE FLAG... starts a node. A timeout of 41 days is never reached.
launch_semisync() {
  local node=$1 inside
  shift
  rm -f "$dir/$node/whole"
  enter_network "$node"
  launch "$node" "${inside[@]}" "$(command -v mariadbd)" --no-defaults --user="$(id -un)" --datadir="$dir/$node/data" --tmpdir="$dir/$node/tmp" --init-file="$dir/$node/init.sql" \
    --bind-address="$(bind_of "$node")" --port="$(port_of "$node")" --socket=server.sock --pid-file=server.pid \
    --skip-name-resolve --max-connections=500 --default-time-zone=+00:00 --character-set-server=utf8mb4 \
    --server-id="${node#semisync-}" --log-bin=binlog --log-slave-updates --binlog-format=ROW --relay-log=relay --gtid-strict-mode=ON \
    --sync-binlog=1 --innodb-flush-log-at-trx-commit=1 --innodb-buffer-pool-size=64M --skip-slave-start --master-retry-count=0 \
    --rpl-semi-sync-master-wait-point=AFTER_SYNC --rpl-semi-sync-master-timeout=3600000000 --rpl-semi-sync-slave-kill-conn-timeout=1 \
    "$@"
  wait_for "$node" 60 "answer from $node" semisync_query "$node" "SELECT 1" >/dev/null
}

# semisync_query NODE SQL FLAG...: the statements are one session's.
semisync_query() {
  local node=$1 statements=$2
  shift 2
  MYSQL_PWD=$(<"$dir/password") timeout 30 mariadb --no-defaults --connect-timeout=5 --host="$(host_of "$node")" --port="$(port_of "$node")" \
    --user=operator --batch --skip-column-names --execute="$statements" "$@" 2>>"$dir/log/semisync-queries.log"
}

semisync_dsn() {
  echo "belay:$(<"$dir/password")@tcp($(host_of "$1"):$(port_of "$1"))/belay?parseTime=true&charset=utf8mb4"
}

other_semisync() { [[ $1 == semisync-1 ]] && echo semisync-2 || echo semisync-1; }

# heal_semisync: the writer remains the writer, also if both have died.
heal_semisync() {
  local node writer
  writer=$(<"$dir/semisync.writer")
  mend_all "${semisync_nodes[@]}"
  for node in "${semisync_nodes[@]}"; do
    resume_paused "$node"
  done
  start_semisync "$writer"
  start_semisync "$(other_semisync "$writer")"
}

# start_semisync NODE: what is not the writer becomes its replica, if the writer is up.
start_semisync() {
  local node=$1 writer
  writer=$(<"$dir/semisync.writer")
  if [[ $node == "$writer" ]]; then
    # What is in its binary log is committed: the replica may have it.
    alive "$node" || launch_semisync "$node" --rpl-semi-sync-master-enabled=ON
    return
  fi
  if ! alive "$node" || [[ $(semisync_query "$node" "SELECT @@rpl_semi_sync_slave_enabled") != 1 ]]; then
    # A former primary: what no replica has acknowledged is prepared, and rolled back by
    # this role. It is taken out of the binary log, too.
    end_process "$node"
    launch_semisync "$node" --init-rpl-role=SLAVE --rpl-semi-sync-slave-enabled=ON --read-only=ON
  fi
  if [[ $(state_of "$writer") == up ]]; then
    attach_semisync "$node" "$writer"
  fi
}

# attach_semisync NODE WRITER: a node that has what the writer lacks gets a copy of all.
attach_semisync() {
  local node=$1 writer=$2
  follow_semisync "$node" "$writer"
  if ! semisync_follows "$node" "$writer"; then
    say "$node does not follow $writer, so it gets a copy"
    copy_semisync "$node" "$writer"
    follow_semisync "$node" "$writer"
    semisync_follows "$node" "$writer" || fail_with_log "$node" "$node does not follow $writer"
  fi
  touch "$dir/$node/whole"
  semisync_query "$writer" "SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON"
}

# follow_semisync NODE WRITER: what a former primary has written is where it goes on from.
follow_semisync() {
  semisync_query "$2" "SET GLOBAL rpl_semi_sync_master_enabled = ON" || return
  [[ -z $(semisync_query "$1" "SHOW SLAVE STATUS") ]] || { semisync_query "$1" "START SLAVE" && return; }
  semisync_query "$1" "CHANGE MASTER TO MASTER_HOST='$(peer_of "$2")', MASTER_PORT=$(port_of "$2"), MASTER_USER='operator',
    MASTER_PASSWORD='$(<"$dir/password")', MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1, MASTER_USE_GTID=slave_pos, MASTER_DEMOTE_TO_SLAVE=1; START SLAVE"
}

# semisync_follows NODE WRITER waits until the node has what the writer has committed, and
# acknowledges what comes.
semisync_follows() {
  local node=$1 writer=$2 end=$((SECONDS + 60)) status position
  position=$(semisync_query "$writer" "SELECT @@gtid_binlog_pos") || return 1
  until status=$(semisync_query "$node" "SHOW SLAVE STATUS\G" --column-names) && [[ $status == *"Slave_IO_Running: Yes"* && $status == *"Slave_SQL_Running: Yes"* ]]; do
    [[ $status != *"_Running: No"* && $SECONDS -lt $end ]] || return 1
    sleep 0.1
  done
  [[ -z $position || $(semisync_query "$node" "SELECT MASTER_GTID_WAIT('$position', 20)") == 0 ]] || return 1
  until [[ $(semisync_query "$writer" "SHOW STATUS LIKE 'Rpl_semi_sync_master_status'") == *ON ]]; do
    [[ $SECONDS -lt $end ]] || return 1
    sleep 0.1
  done
}

# copy_semisync NODE WRITER replaces all that the node has.
copy_semisync() {
  local node=$1 writer=$2 databases
  end_process "$node"
  create_semisync "$node"
  launch_semisync "$node" --init-rpl-role=SLAVE --rpl-semi-sync-slave-enabled=ON --read-only=ON
  mapfile -t databases < <(semisync_query "$writer" "SHOW DATABASES" | grep -vE '^(mysql|sys|information_schema|performance_schema)$')
  export MYSQL_PWD
  MYSQL_PWD=$(<"$dir/password")
  { echo 'SET SESSION sql_log_bin = 0;' &&
    mariadb-dump --no-defaults --host="$(host_of "$writer")" --port="$(port_of "$writer")" --user=operator \
      --single-transaction --routines --triggers --events --gtid --master-data=1 --databases "${databases[@]}"; } |
    mariadb --no-defaults --host="$(host_of "$node")" --port="$(port_of "$node")" --user=operator
}

# promote_semisync NODE makes the replica the writer.
promote_semisync() {
  local node=$1 old position
  old=$(<"$dir/semisync.writer")
  [[ $node != "$old" ]] || return 0
  [[ $(state_of "$node") == up ]] || die "$node is $(state_of "$node")"
  [[ -e $dir/$node/whole ]] || die "$node may lack what $old has committed: start $old"
  [[ $(state_of "$old") != up ]] || is_cut "$old" || fence_semisync "$old" "$node"
  # What it has received it applies.
  semisync_query "$node" "STOP SLAVE IO_THREAD"
  position=$(semisync_query "$node" "SHOW SLAVE STATUS\G" --column-names | sed -nE 's/^ *Gtid_IO_Pos: //p')
  [[ -z $position || $(semisync_query "$node" "SELECT MASTER_GTID_WAIT('$position', 20)") == 0 ]] ||
    fail_with_log "$node" "$node has not applied what it has received"
  echo "$node" >"$dir/semisync.writer"
  rm -f "$dir/$old/whole"
  semisync_query "$node" "STOP SLAVE; RESET SLAVE ALL;
    SET GLOBAL rpl_semi_sync_slave_enabled = OFF, GLOBAL rpl_semi_sync_master_wait_no_slave = OFF,
      GLOBAL rpl_semi_sync_master_enabled = ON, GLOBAL read_only = OFF"
}

# fence_semisync OLD NEW: the old writer takes no more writes, then the new one gets all of
# them, and then its sessions end. One that can't be fenced is killed.
fence_semisync() {
  local old=$1 new=$2 position sessions
  if semisync_query "$old" "SET SESSION lock_wait_timeout = 3; SET GLOBAL read_only = ON" &&
    position=$(semisync_query "$old" "SELECT @@gtid_binlog_pos") &&
    [[ -z $position || $(semisync_query "$new" "SELECT MASTER_GTID_WAIT('$position', 5)") == 0 ]]; then
    sessions=$(semisync_query "$old" "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE user = 'belay'")
    [[ -z $sessions ]] || semisync_query "$old" "${sessions//$'\n'/ }" || true # some have ended by themselves
  else
    say "$old can't be fenced, so it is killed"
    end_process "$old"
  fi
}
