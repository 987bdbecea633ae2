# shellcheck shell=bash
# PostgreSQL with durable commits and a superuser named belay, and beside it on demand newer
# ones. It refuses to be root, so under root it runs as the user postgres of Debian's package.

# programs_of NODE: the folder of its programs. Those from Maven are copied: the user postgres
# may not enter the cache.
programs_of() {
  case $1 in
    postgres17 | postgres18) echo "$dir/$1/server/bin" ;;
    *) postgres_programs ;;
  esac
}

# postgres_programs: the folder of the newest installed version's programs.
postgres_programs() { compgen -G '/usr/lib/postgresql/*/bin/postgres' | sort -V | tail -n 1 | xargs -r dirname | grep .; }

up_postgres() { up_postgres_node postgres; }
heal_postgres() { heal_postgres_node postgres; }
start_postgres() { start_postgres_node postgres; }
up_postgres17() { up_postgres_node postgres17; }
heal_postgres17() { heal_postgres_node postgres17; }
start_postgres17() { start_postgres_node postgres17; }
up_postgres18() { up_postgres_node postgres18; }
heal_postgres18() { heal_postgres_node postgres18; }
start_postgres18() { start_postgres_node postgres18; }

up_postgres_node() {
  if alive "$1"; then
    say "$1 is already up on port $(port_of "$1")"
  else
    say "starting $1 on port $(port_of "$1")"
  fi
  heal_postgres_node "$1"
  touch "$dir/$1.ready"
}

heal_postgres_node() {
  mend_all "$1"
  start_postgres_node "$1"
}

start_postgres_node() {
  if ! alive "$1"; then
    need_ports "$1"
    choose_postgres_user
    if [[ ! -e $dir/$1.ready ]]; then
      create_postgres "$1"
      ! networked || echo 'host all all all scram-sha-256' >>"$dir/$1/data/pg_hba.conf"
    fi
    launch_postgres "$1"
  fi
  wait_for "$1" 60 "answer from $1" postgres_answers "$1"
}

# launch_postgres NODE FLAG...
launch_postgres() {
  local node=$1 inside
  shift
  enter_network "$node"
  await_sessions_gone "$node"
  # Else it takes a killed process that nobody has reaped for a live one.
  rm -f "$dir/$node/data/postmaster.pid"
  launch "$node" "${inside[@]}" "${as_postgres[@]}" "$(programs_of "$node")/postgres" -D "$dir/$node/data" \
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
  [[ -z ${maven_artifacts[$node]:-} ]] || cp -r "$(maven_tree "$node")" "$dir/$node/server"
  private_file "$dir/$node/password" <"$dir/password"
  [[ ${#as_postgres[@]} -eq 0 ]] || chown -R postgres: "$dir/$node"
  "${as_postgres[@]}" env -C "$dir/$node" "$(programs_of "$node")/initdb" --pgdata=data --username=belay \
    --pwfile=password --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 "$@" \
    >"$dir/log/$node-install.log" 2>&1 </dev/null ||
    fail_with_log "$node-install" "the data of $node could not be created"
}

# stop_postgres lets it give back the shared memory that outlives a process.
stop_postgres() { stop_postgres_node postgres; }
stop_postgres17() { stop_postgres_node postgres17; }
stop_postgres18() { stop_postgres_node postgres18; }

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
