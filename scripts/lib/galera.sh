# shellcheck shell=bash
# Three nodes of MariaDB with Galera: each takes writes, and certifies those of the
# others before it commits its own. A node that joins gets its data by rsync, which may
# not be root, so under root they run as the user mysql of Debian's package.

galera_nodes=(galera-1 galera-2 galera-3)

up_galera() {
  local node
  if [[ -e $dir/galera.ready ]]; then
    say "galera is already up on port $(port_of galera-1)"
    heal_galera
    return
  fi
  say "starting galera on port $(port_of galera-1) of 127.0.0.1 to 127.0.0.3"
  for node in "${galera_nodes[@]}"; do
    end_process "$node"
    rm -rf "${dir:?}/$node"
    need_ports "$node" "$node-group" "$node-ist"
  done
  create_galera
  touch "$dir/galera.ready"
}

# create_galera: the first node has the data, from which the others get a copy.
create_galera() {
  local node
  choose_galera_user
  for node in "${galera_nodes[@]}"; do
    mkdir -p "$dir/$node/data" "$dir/$node/tmp"
    [[ ${#as_mysql[@]} -eq 0 ]] || chown -R mysql: "$dir/$node"
  done
  "${as_mysql[@]}" env -C "$dir/galera-1" mariadb-install-db --no-defaults --force --datadir=./data \
    --skip-test-db --auth-root-authentication-method=socket >"$dir/log/galera-1-install.log" 2>&1 </dev/null ||
    fail_with_log galera-1-install "the data of galera-1 could not be created"
  private_file "$dir/galera-1/init.sql" <<SQL
CREATE DATABASE IF NOT EXISTS belay;
CREATE USER IF NOT EXISTS belay IDENTIFIED BY '$(<"$dir/password")';
GRANT ALL PRIVILEGES ON *.* TO belay WITH GRANT OPTION;
SQL
  [[ ${#as_mysql[@]} -eq 0 ]] || chown mysql: "$dir/galera-1/init.sql"
  launch_galera galera-1 --wsrep-new-cluster --init-file="$dir/galera-1/init.sql"
  wait_for galera-1 60 "answer from galera-1" database_answers galera-1
  for node in galera-2 galera-3; do
    launch_galera "$node"
    wait_for "$node" 90 "member $node of the cluster" galera_synced "$node"
  done
}

# launch_galera NODE FLAG...: a node that has died is told how far it had come, and gets
# the rest from another.
launch_galera() {
  local node=$1 program position=() found
  shift
  galera_program "$node"
  if [[ -e $dir/$node/data/grastate.dat ]]; then
    found=$(galera_position "$node")
    [[ -z $found ]] || position=(--wsrep-start-position="$found")
  fi
  launch "$node" "${program[@]}" "${position[@]}" "$@"
}

# galera_program NODE sets program. A member that does not answer is put out after 2 s
# instead of 5.
galera_program() {
  local node=$1 inside
  choose_galera_user
  enter_network "$node"
  program=("${inside[@]}" "${as_mysql[@]}" env TMPDIR="$dir/$node/tmp" "$(command -v mariadbd)" --no-defaults
    --datadir="$dir/$node/data" --tmpdir="$dir/$node/tmp"
    --bind-address="$(bind_of "$node")" --port="$(port_of "$node")" --socket=server.sock --pid-file=server.pid
    --skip-name-resolve --max-connections=200 --default-time-zone=+00:00 --character-set-server=utf8mb4
    --innodb-flush-log-at-trx-commit="${BELAY_GALERA_FLUSH:-1}" --innodb-autoinc-lock-mode=2 --innodb-buffer-pool-size=64M --binlog-format=ROW
    --wsrep-on=ON --wsrep-provider=/usr/lib/galera/libgalera_smm.so --wsrep-cluster-name="belay-$stack"
    --wsrep-cluster-address="gcomm://$(galera_addresses)" --wsrep-node-name="$node"
    --wsrep-node-address="$(peer_of "$node")" --wsrep-node-incoming-address="$(host_of "$node"):$(port_of "$node")"
    --wsrep-sst-method=rsync --wsrep-sst-receive-address="$(peer_of "$node"):$(port_of galera-copy)"
    --wsrep-provider-options="gmcast.listen_addr=tcp://$(peer_of "$node"):$(port_of "$node-group");ist.recv_addr=$(peer_of "$node"):$(port_of "$node-ist");gcache.size=32M;evs.keepalive_period=PT0.5S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT5S")
}

# galera_position NODE: the cluster and the number of the last transaction in its log.
galera_position() {
  local program
  galera_program "$1"
  timeout 60 "${program[@]}" --wsrep-recover >"$dir/log/$1-recover.log" 2>&1 </dev/null || true
  sed -nE 's/.*Recovered position: *([0-9a-f-]+:-?[0-9]+).*/\1/p' "$dir/log/$1-recover.log" | tail -n 1
}

choose_galera_user() {
  as_mysql=()
  [[ $(id -u) -eq 0 ]] || return 0
  as_mysql=(setpriv --reuid=mysql --regid=mysql --clear-groups)
  "${as_mysql[@]}" test -x "$dir" || die "the user mysql can't enter $dir: use a copy of the repository that others may enter"
}

galera_addresses() {
  local node list=()
  for node in "${galera_nodes[@]}"; do
    list+=("$(peer_of "$node"):$(port_of "$node-group")")
  done
  (IFS=, && echo "${list[*]}")
}

# galera_left NODE: it lives, and has left its cluster for good, as after a write that it
# could not apply.
galera_left() {
  alive "$1" && [[ $(galera_status "$1" wsrep_connected) == *OFF ]]
}

galera_synced() { [[ $(galera_status "$1" wsrep_local_state_comment) == *Synced ]]; }

galera_status() {
  MYSQL_PWD=$(<"$dir/password") timeout 5 mariadb --no-defaults --host="$(host_of "$1")" --port="$(port_of "$1")" --user=belay \
    --batch --skip-column-names --execute="SHOW STATUS LIKE '$2'" 2>/dev/null
}

# heal_galera: a cluster that has lost all its nodes begins with the one that came furthest.
heal_galera() {
  local node first=
  mend_all "${galera_nodes[@]}"
  for node in "${galera_nodes[@]}"; do
    resume_paused "$node"
    ! galera_left "$node" || end_process "$node"
    ! alive "$node" || first=$node
  done
  if [[ -z $first ]]; then
    first=$(for node in "${galera_nodes[@]}"; do echo "$(galera_position "$node" | sed 's/.*://') $node"; done | sort -n | tail -n 1)
    first=${first#* }
    sed -i 's/^safe_to_bootstrap:.*/safe_to_bootstrap: 1/' "$dir/$first/data/grastate.dat"
    launch_galera "$first" --wsrep-new-cluster
    wait_for "$first" 60 "answer from $first" database_answers "$first"
  fi
  for node in "${galera_nodes[@]}"; do # at once: what is left of the others alone may not go on
    alive "$node" || launch_galera "$node"
  done
  for node in "${galera_nodes[@]}"; do
    start_galera "$node"
  done
}

start_galera() {
  alive "$1" || launch_galera "$1"
  wait_for "$1" 90 "member $1 of the cluster" galera_synced "$1"
}
