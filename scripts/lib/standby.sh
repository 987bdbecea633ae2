# shellcheck shell=bash
# PostgreSQL with a synchronous standby: two nodes, of which one takes writes and the other
# follows it. The writer is noted in standby.writer.
#
# While only one of them is up, commits wait: the writer acknowledges none that the standby
# does not have. They go on when an operator says so, by `promote`, which makes a node
# the writer, also one that is it already, and has it commit alone until the other is back.
# promote does not look at the other node: whoever runs it has seen to it that it is dead,
# paused or cut off. `start` brings the former writer back as the standby, without what
# it has alone.

standby_nodes=(standby-1 standby-2)

up_standby() {
  local node
  if [[ -e $dir/standby.ready ]]; then
    say "standby is already up on ports $(port_of standby-1) and $(port_of standby-2)"
    heal_standby
    return
  fi
  say "starting standby on ports $(port_of standby-1) and $(port_of standby-2)"
  for node in "${standby_nodes[@]}"; do
    end_standby "$node"
    need_ports "$node"
  done
  choose_postgres_user
  create_postgres standby-1 --data-checksums # pg_rewind needs them, or wal_log_hints
  printf 'host %s all all scram-sha-256\n' all replication >>"$dir/standby-1/data/pg_hba.conf"
  # Else pg_rewind, which lets a dead node recover first, finds its log cut off.
  echo "wal_keep_size = 512MB
include '../settings.conf'" >>"$dir/standby-1/data/postgresql.conf"
  make_writer standby-1
  follow_writer standby-2
  touch "$dir/standby.ready"
}

other_standby() { [[ $1 == standby-1 ]] && echo standby-2 || echo standby-1; }

standby_writer() { cat "$dir/standby.writer"; }

# make_writer NODE starts it if need be, and has it take writes and commit alone.
make_writer() {
  local node=$1
  echo "$node" >"$dir/standby.writer"
  wait_for_standby "$node" ""
  start_writer "$node"
}

start_writer() {
  alive "$1" || launch_standby "$1"
  wait_for "$1" 60 "answer from $1" postgres_answers "$1"
  if ! takes_writes "$1"; then
    "${as_postgres[@]}" "$(postgres_programs)/pg_ctl" promote --no-wait -D "$dir/$1/data" >>"$dir/log/$1.log" 2>&1 ||
      fail_with_log "$1" "$1 can't be promoted"
    wait_for "$1" 60 "end of its recovery" takes_writes "$1"
  fi
}

takes_writes() { [[ $(ask_postgres "$1" "SELECT pg_is_in_recovery()" 2>/dev/null) == f ]]; }

# wait_for_standby NODE NAME: whose acknowledgement the commits on NODE wait for; of nobody
# if NAME is empty. The file is outside the data, which is copied between the nodes.
wait_for_standby() {
  local node=$1 name=$2
  private_file "$dir/$node/settings.conf" <<CONF
synchronous_standby_names = '${name:+\"$name\"}'
primary_conninfo = 'host=$(peer_of "$(other_standby "$node")") port=$(port_of "$(other_standby "$node")") user=belay password=$(<"$dir/password") application_name=$node'
CONF
  [[ ${#as_postgres[@]} -eq 0 ]] || chown postgres: "$dir/$node/settings.conf"
  ! alive "$node" || kill -HUP "$(pid_of "$node")"
}

# launch_standby NODE: a connection that has broken is noticed within 5 s.
launch_standby() {
  need_ports "$1"
  launch_postgres "$1" -c hot_standby=on \
    -c wal_retrieve_retry_interval=500ms -c wal_receiver_timeout=5s -c wal_sender_timeout=5s
}

# follow_writer NODE makes it the standby: with the data that it has if it was that already,
# else with what differs taken from the writer, else with a copy.
follow_writer() {
  local node=$1 writer
  writer=$(standby_writer)
  [[ $node != "$writer" ]] || die "$node is the writer"
  [[ $(state_of "$writer") == up ]] || die "$writer, the writer, is not up: start it first"
  if [[ -e $dir/$node/data/standby.signal ]] && try_following "$node"; then
    :
  elif end_standby "$node" && rewind_standby "$node" && try_following "$node"; then
    :
  else
    end_standby "$node"
    copy_writer "$node"
    try_following "$node" || fail_with_log "$node" "$node does not follow $writer"
  fi
  wait_for_standby "$writer" "$node"
  wait_for "$writer" 30 "synchronous standby" is_synchronous "$node"
}

# try_following NODE launches it if need be, and waits until it gets what the writer writes.
try_following() {
  local end=$((SECONDS + 20))
  alive "$1" || launch_standby "$1"
  until replicates "$1" streaming; do
    alive "$1" && [[ $SECONDS -lt $end ]] || return 1
    sleep 0.1
  done
}

# replicates NODE STATE...: what the writer says of it.
replicates() {
  [[ $(ask_postgres "$(standby_writer)" "SELECT state FROM pg_stat_replication WHERE application_name = '$1'" 2>/dev/null) == "$2" ]]
}

is_synchronous() {
  [[ $(ask_postgres "$(standby_writer)" "SELECT sync_state FROM pg_stat_replication WHERE application_name = '$1'" 2>/dev/null) == sync ]]
}

# rewind_standby NODE takes back what it has alone. The writer's checkpoint tells pg_rewind
# of the new timeline.
rewind_standby() {
  local node=$1 writer
  writer=$(standby_writer)
  [[ -e $dir/$node/data/PG_VERSION ]] || return 1
  choose_postgres_user
  wait_for_standby "$node" ""
  rm -f "$dir/$node/data/postmaster.pid"
  ask_postgres "$writer" CHECKPOINT >/dev/null
  PGPASSWORD=$(<"$dir/password") timeout 60 "${as_postgres[@]}" "$(postgres_programs)/pg_rewind" --target-pgdata="$dir/$node/data" \
    --source-server="host=$(host_of "$writer") port=$(port_of "$writer") user=belay dbname=postgres" \
    >"$dir/log/$node-rewind.log" 2>&1 </dev/null || return 1
  "${as_postgres[@]}" touch "$dir/$node/data/standby.signal"
}

copy_writer() {
  local node=$1
  choose_postgres_user
  rm -rf "${dir:?}/$node"
  mkdir -p "$dir/$node"
  wait_for_standby "$node" ""
  [[ ${#as_postgres[@]} -eq 0 ]] || chown -R postgres: "$dir/$node"
  PGPASSWORD=$(<"$dir/password") "${as_postgres[@]}" "$(postgres_programs)/pg_basebackup" --pgdata="$dir/$node/data" \
    --host="$(host_of "$(standby_writer)")" --port="$(port_of "$(standby_writer)")" --username=belay --checkpoint=fast \
    >"$dir/log/$node-install.log" 2>&1 </dev/null ||
    fail_with_log "$node-install" "the data of $(standby_writer) could not be copied"
  "${as_postgres[@]}" touch "$dir/$node/data/standby.signal"
}

# promote_standby NODE: the other one is dead, paused or cut off.
promote_standby() {
  [[ $(state_of "$1") != paused ]] || die "$1 is paused; resume it with: scripts/stack resume $1"
  choose_postgres_user
  make_writer "$1"
}

start_standby() {
  choose_postgres_user
  if [[ $1 == "$(standby_writer)" ]]; then
    start_writer "$1"
  else
    follow_writer "$1"
  fi
}

# heal_standby ends a node that takes writes and is not the writer.
heal_standby() {
  local node writer
  writer=$(standby_writer)
  mend_all "${standby_nodes[@]}"
  for node in "$writer" "$(other_standby "$writer")"; do
    resume_standby "$node"
    start_standby "$node"
  done
}

resume_standby() { [[ $(state_of "$1") != paused ]] || signal_standby CONT "$1"; }

# end_standby NODE kills all of its processes at once, as a machine that dies does.
end_standby() {
  ! alive "$1" || signal_standby KILL "$1"
  postgres_processes "$1" | xargs -r kill -KILL 2>/dev/null || true
  rm -f "$dir/run/$1.pid"
}

# signal_standby KILL|STOP|CONT NODE also reaches its sessions, which are processes of
# their own. The one that starts them stands still first, and goes on last.
signal_standby() {
  local signal=$1 node=$2 first
  first=$(pid_of "$node")
  [[ $signal == CONT ]] || kill -STOP "$first"
  postgres_processes "$node" | grep -vx "$first" | xargs -r kill "-$signal" 2>/dev/null || true
  signal_process "$signal" "$node"
}

stop_standby-1() { resume_standby standby-1 && stop_postgres_node standby-1; }
stop_standby-2() { resume_standby standby-2 && stop_postgres_node standby-2; }
