# shellcheck shell=bash
# PostgreSQL with durable commits and a superuser named belay. It refuses to be
# root, so under root it runs as the user postgres of Debian's package.

# postgres_programs: the folder of the newest installed version's programs.
postgres_programs() { compgen -G '/usr/lib/postgresql/*/bin/postgres' | sort -V | tail -n 1 | xargs -r dirname | grep .; }

up_postgres() {
  if alive postgres; then
    say "postgres is already up on port $(port_of postgres)"
  else
    say "starting postgres on port $(port_of postgres)"
  fi
  heal_postgres
  touch "$dir/postgres.ready"
}

heal_postgres() {
  mend_all postgres
  start_postgres
}

start_postgres() {
  if ! alive postgres; then
    need_ports postgres
    choose_postgres_user
    if [[ ! -e $dir/postgres.ready ]]; then
      create_postgres postgres
      ! networked || echo 'host all all all scram-sha-256' >>"$dir/postgres/data/pg_hba.conf"
    fi
    launch_postgres postgres
  fi
  wait_for postgres 60 "answer from postgres" postgres_answers postgres
}

# launch_postgres NODE FLAG...
launch_postgres() {
  local node=$1 inside
  shift
  enter_network "$node"
  await_sessions_gone "$node"
  # Else it takes a killed process that nobody has reaped for a live one.
  rm -f "$dir/$node/data/postmaster.pid"
  launch "$node" "${inside[@]}" "${as_postgres[@]}" "$(postgres_programs)/postgres" -D "$dir/$node/data" \
    -c listen_addresses="$(bind_of "$node")" -c port="$(port_of "$node")" -c unix_socket_directories= \
    -c max_connections=500 -c timezone=UTC "$@"
}

choose_postgres_user() {
  as_postgres=()
  [[ $(id -u) -eq 0 ]] || return 0
  as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups)
  "${as_postgres[@]}" test -x "$dir" ||
    die "the user postgres can't enter $dir, and PostgreSQL refuses to be root: use a copy of the repository that others may enter"
}

# await_sessions_gone NODE: the sessions of a killed server go by themselves, soon.
await_sessions_gone() {
  local end=$((SECONDS + 20))
  while [[ -n $(postgres_processes "$1") ]]; do
    [[ $SECONDS -lt $end ]] || die "processes of the dead $1 do not go: $(postgres_processes "$1" | xargs)"
    sleep 0.05
  done
}

# postgres_processes NODE: those of the server, its sessions among them.
postgres_processes() {
  find /proc -maxdepth 2 -name cwd -lname "$dir/$1/data" 2>/dev/null | cut -d/ -f3
}

# create_postgres NODE FLAG...
create_postgres() {
  local node=$1
  shift
  rm -rf "${dir:?}/$node"
  mkdir -p "$dir/$node"
  private_file "$dir/$node/password" <"$dir/password"
  [[ ${#as_postgres[@]} -eq 0 ]] || chown -R postgres: "$dir/$node"
  "${as_postgres[@]}" env -C "$dir/$node" "$(postgres_programs)/initdb" --pgdata=data --username=belay \
    --pwfile=password --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 "$@" \
    >"$dir/log/$node-install.log" 2>&1 </dev/null ||
    fail_with_log "$node-install" "the data of $node could not be created"
}

# stop_postgres lets it give back the shared memory that outlives a process.
stop_postgres() { stop_postgres_node postgres; }

stop_postgres_node() {
  alive "$1" || return 0
  kill -QUIT "$(pid_of "$1")"
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    alive "$1" || return 0
    sleep 0.05
  done
}

postgres_answers() { ask_postgres "$1" "SELECT 1" >/dev/null 2>&1; }

# ask_postgres NODE QUERY prints what it answers.
ask_postgres() {
  PGPASSWORD=$(<"$dir/password") timeout 5 psql --no-psqlrc --tuples-only --no-align --quiet --host="$(host_of "$1")" \
    --port="$(port_of "$1")" --username=belay --dbname=postgres --command="$2"
}

postgres_dsn() { echo "postgres://belay:$(<"$dir/password")@$(host_of "$1"):$(port_of "$1")/postgres?sslmode=disable"; }
