# shellcheck shell=bash
# Three members of MySQL's group replication, of the server that mysql has. One of them
# takes writes, and another is elected when it is gone. With BELAY_GROUP_MODE=multi all take
# writes; up changes the mode of a group that is up, too.

group_nodes=(group-1 group-2 group-3)

up_group() {
  local node
  if [[ -e $dir/group.ready ]]; then
    say "group is already up on ports $(port_of group-1)-$(port_of group-3)"
  else
    say "starting group on ports $(port_of group-1)-$(port_of group-3)"
    for node in "${group_nodes[@]}"; do
      end_process "$node"
      need_ports "$node" "$node-xcom"
    done
    create_group
    touch "$dir/group.ready"
  fi
  heal_group
  set_group_mode "${BELAY_GROUP_MODE:-single}"
}

# create_group: all begin with one copy of the data, in which only the server's own id is
# missing.
create_group() {
  rm -f "$dir/group.mode"
  local node program
  for node in "${group_nodes[@]}"; do
    rm -rf "${dir:?}/$node"
    mkdir -p "$dir/$node/tmp"
  done
  group_program group-1
  "${program[@]}" --initialize-insecure >"$dir/log/group-1-install.log" 2>&1 </dev/null ||
    fail_with_log group-1-install "the data of group-1 could not be created"
  rm -f "$dir/group-1/data/auto.cnf"
  for node in "${group_nodes[@]}"; do
    [[ $node == group-1 ]] || cp -r "$dir/group-1/data" "$dir/$node/data"
    # Not in the binary log: what only one of them had could not join the others.
    private_file "$dir/$node/init.sql" <<SQL
SET SQL_LOG_BIN = 0;
CREATE DATABASE IF NOT EXISTS belay;
CREATE USER IF NOT EXISTS belay IDENTIFIED BY '$(<"$dir/password")';
GRANT ALL PRIVILEGES ON *.* TO belay WITH GRANT OPTION;
DROP USER IF EXISTS root@localhost;
SQL
  done
}

# group_program NODE sets program.
group_program() {
  local node=$1 tree inside
  tree=$(sid_tree mysql)
  enter_network "$node"
  sid_program mysql usr/sbin/mysqld
  program=("${inside[@]}" "${program[@]}" --no-defaults --user="$(id -un)" --basedir="$tree/usr" --lc-messages-dir="$tree/usr/share/mysql"
    --plugin-dir="$tree/usr/lib/mysql/plugin" --datadir="$dir/$node/data" --tmpdir="$dir/$node/tmp" --mysqlx=OFF --secure-file-priv=NULL)
}

# launch_group NODE: it joins no group yet. A member that is silent is put out after the 5 s
# that nobody can change, and does not come back by itself.
launch_group() {
  local node=$1 program
  group_program "$node"
  rm -f "$dir/$node/data/server.sock.lock" # see launch_database
  launch "$node" "${program[@]}" --init-file="$dir/$node/init.sql" \
    --bind-address="$(bind_of "$node")" --port="$(port_of "$node")" --socket=server.sock --pid-file=server.pid \
    --skip-name-resolve --max-connections=500 --default-time-zone=+00:00 --character-set-server=utf8mb4 \
    --innodb-flush-log-at-trx-commit=1 --innodb-buffer-pool-size=64M \
    --server-id="${node#group-}" --gtid-mode=ON --enforce-gtid-consistency=ON --report-host="$(peer_of "$node")" --report-port="$(port_of "$node")" \
    --plugin-load-add=group_replication.so --loose-group-replication-start-on-boot=OFF \
    --loose-group-replication-group-name=be1a4000-0000-4000-8000-000000000000 \
    --loose-group-replication-local-address="$(peer_of "$node"):$(port_of "$node-xcom")" \
    --loose-group-replication-group-seeds="$(group_addresses)" \
    --loose-group-replication-recovery-get-public-key=ON --loose-group-replication-message-cache-size=134217728 \
    --loose-group-replication-member-expel-timeout=0 --loose-group-replication-autorejoin-tries=0
}

group_addresses() {
  local node list=()
  for node in "${group_nodes[@]}"; do
    list+=("$(peer_of "$node"):$(port_of "$node-xcom")")
  done
  (IFS=, && echo "${list[*]}")
}

# group_sql NODE STATEMENT [SECONDS]
group_sql() {
  MYSQL_PWD=$(<"$dir/password") timeout "${3:-60}" mariadb --no-defaults --host="$(host_of "$1")" --port="$(port_of "$1")" --user=belay \
    --batch --skip-column-names --execute="$2"
}

# group_ask NODE QUERY is group_sql for a node that may be of no use.
group_ask() { group_sql "$1" "$2" 5 2>/dev/null; }

# group_state NODE: its own state in the group, and how many members it knows.
group_state() {
  group_ask "$1" "SELECT COALESCE(MAX(IF(member_id = @@server_uuid, member_state, NULL)), 'OFFLINE'), COUNT(*)
    FROM performance_schema.replication_group_members WHERE member_id <> ''"
}

# group_online NODE: it says so itself, and so does each other member. A node that was
# paused for long takes some time to notice that it was put out.
group_online() {
  local node state
  [[ $(group_state "$1") == ONLINE* ]] || return 1
  for node in "${group_nodes[@]}"; do
    state=$(group_ask "$node" "SELECT COALESCE(MAX(IF(member_port = $(port_of "$1"), member_state, NULL)), 'none')
      FROM performance_schema.replication_group_members
      HAVING MAX(member_id = @@server_uuid AND member_state = 'ONLINE')") || continue
    [[ ${state:-ONLINE} == ONLINE ]] || return 1
  done
}

# heal_group: a group that has lost its majority begins anew, with the member that came
# furthest.
heal_group() {
  local node
  mend_all "${group_nodes[@]}"
  for node in "${group_nodes[@]}"; do
    resume_paused "$node"
  done
  group_has_majority || begin_group
  for node in "${group_nodes[@]}"; do
    start_group "$node"
  done
}

group_has_majority() {
  local node state members known=0 online=0
  for node in "${group_nodes[@]}"; do
    alive "$node" && read -r state members < <(group_state "$node") && [[ $state == ONLINE ]] || continue
    online=$((online + 1))
    [[ $known -ge $members ]] || known=$members
  done
  [[ $((2 * online)) -gt $known ]]
}

begin_group() {
  local node first
  for node in "${group_nodes[@]}"; do
    end_process "$node" # those that have no majority would not stop by themselves
    launch_group "$node"
  done
  for node in "${group_nodes[@]}"; do
    wait_for "$node" 60 "answer from $node" database_answers "$node"
  done
  first=$(for node in "${group_nodes[@]}"; do echo "$(group_transactions "$node") $node"; done | sort -n | tail -n 1)
  first=${first#* }
  group_sql "$first" "$(group_mode) SET GLOBAL group_replication_bootstrap_group = ON; START GROUP_REPLICATION;
    SET GLOBAL group_replication_bootstrap_group = OFF"
  wait_for "$first" 60 "group of $first" group_online "$first"
}

# group_transactions NODE: how many it has, those that it has not applied included.
group_transactions() {
  local range total=0
  for range in $(group_sql "$1" "SELECT GTID_SUBTRACT(CONCAT(@@GLOBAL.gtid_executed, ',', COALESCE(MAX(received_transaction_set), '')), '')
      FROM performance_schema.replication_connection_status WHERE channel_name = 'group_replication_applier'" |
    sed 's/\\n//g' | tr ',:' '\n' | grep -E '^[0-9]+(-[0-9]+)?$'); do
    total=$((total + ${range#*-} - ${range%-*} + 1))
  done
  echo "$total"
}

# start_group NODE: a member that was put out is still known to the others for some
# seconds, and then may join them. If these have no majority it can't, so all are healed.
start_group() {
  group_has_majority || { heal_group; return; }
  if ! alive "$1"; then
    launch_group "$1"
    wait_for "$1" 60 "answer from $1" database_answers "$1"
  fi
  wait_for "$1" 240 "member $1 of the group" group_joined "$1" # a dead member may be waited for as long
}

group_joined() {
  local state
  ! group_online "$1" || return 0
  state=$(group_state "$1") || return 1
  case $state in
    ONLINE* | RECOVERING*) return 1 ;;
    ERROR*) group_sql "$1" 'STOP GROUP_REPLICATION; SET GLOBAL offline_mode = OFF' >>"$dir/log/$1-join.log" 2>&1 || return 1 ;;
  esac
  group_forgot "$1" || return 1
  group_sql "$1" "$(group_mode) START GROUP_REPLICATION USER = 'belay', PASSWORD = '$(<"$dir/password")'" >>"$dir/log/$1-join.log" 2>&1
  return 1
}

# group_forgot NODE: no member that is online knows it any more. One that knocks before keeps
# them from putting out what it was before its death, and commits wait for that.
group_forgot() {
  local node
  for node in "${group_nodes[@]}"; do
    [[ $node != "$1" ]] && alive "$node" || continue
    [[ $(group_ask "$node" "SELECT SUM(member_port = $(port_of "$1")) > 0 AND SUM(member_id = @@server_uuid AND member_state = 'ONLINE') > 0
      FROM performance_schema.replication_group_members") != 1 ]] || return 1
  done
}

# set_group_mode MODE has a group that is whole change its mode.
set_group_mode() {
  echo "$1" >"$dir/group.mode"
  [[ $(group_sql group-1 'SELECT IF(@@group_replication_single_primary_mode, "single", "multi")') == "$1" ]] ||
    group_sql group-1 "SELECT group_replication_switch_to_$1_primary_mode()" >/dev/null
}

# group_mode prints the statements that give a member, before it joins, the mode of its group:
# one that was dead or away when that was changed has another.
group_mode() {
  if [[ $(cat "$dir/group.mode" 2>/dev/null) == multi ]]; then
    echo 'SET GLOBAL group_replication_single_primary_mode = OFF; SET GLOBAL group_replication_enforce_update_everywhere_checks = ON;'
  else
    echo 'SET GLOBAL group_replication_enforce_update_everywhere_checks = OFF; SET GLOBAL group_replication_single_primary_mode = ON;'
  fi
}
