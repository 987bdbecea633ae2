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

heal_postgres() { start_postgres; }

start_postgres() {
  if ! alive postgres; then
    need_ports postgres
    choose_postgres_user
    [[ -e $dir/postgres.ready ]] || create_postgres
    await_sessions_gone
    # Else it takes a killed process that nobody has reaped for a live one.
    rm -f "$dir/postgres/data/postmaster.pid"
    launch postgres "${as_postgres[@]}" "$(postgres_programs)/postgres" -D "$dir/postgres/data" \
      -c listen_addresses=127.0.0.1 -c port="$(port_of postgres)" -c unix_socket_directories= \
      -c max_connections=500 -c timezone=UTC
  fi
  wait_for postgres 60 "answer from postgres" postgres_answers
}

choose_postgres_user() {
  as_postgres=()
  [[ $(id -u) -eq 0 ]] || return 0
  as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups)
  "${as_postgres[@]}" test -x "$dir" ||
    die "the user postgres can't enter $dir, and PostgreSQL refuses to be root: use a copy of the repository that others may enter"
}

# await_sessions_gone: the sessions of a killed server go by themselves, soon.
await_sessions_gone() {
  local end=$((SECONDS + 20)) process
  for process in /proc/[0-9]*; do
    while [[ $(readlink "$process/cwd") == "$dir/postgres/data" ]]; do
      [[ $SECONDS -lt $end ]] || die "process ${process#/proc/} of the dead postgres does not go"
      sleep 0.05
    done
  done
}

create_postgres() {
  rm -rf "${dir:?}/postgres"
  mkdir -p "$dir/postgres"
  private_file "$dir/postgres/password" <"$dir/password"
  [[ ${#as_postgres[@]} -eq 0 ]] || chown -R postgres: "$dir/postgres"
  "${as_postgres[@]}" env -C "$dir/postgres" "$(postgres_programs)/initdb" --pgdata=data --username=belay \
    --pwfile=password --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 \
    >"$dir/log/postgres-install.log" 2>&1 </dev/null ||
    fail_with_log postgres-install "the data of postgres could not be created"
}

# stop_postgres lets it give back the shared memory that outlives a process.
stop_postgres() {
  alive postgres || return 0
  kill -QUIT "$(pid_of postgres)"
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    alive postgres || return 0
    sleep 0.05
  done
}

postgres_answers() {
  PGPASSWORD=$(<"$dir/password") timeout 5 psql --no-psqlrc --host=127.0.0.1 --port="$(port_of postgres)" \
    --username=belay --dbname=postgres --command='SELECT 1' >/dev/null 2>&1
}
