# shellcheck shell=bash
# PgBouncer in front of postgres, which must be up: a client has a server's session for as
# long as a transaction lasts.

up_pgbouncer() {
  if alive pgbouncer; then
    say "pgbouncer is already up on port $(port_of pgbouncer)"
  else
    say "starting pgbouncer on port $(port_of pgbouncer)"
  fi
  heal_pgbouncer
  touch "$dir/pgbouncer.ready"
}

heal_pgbouncer() {
  mend_all pgbouncer
  resume_paused pgbouncer
  start_pgbouncer
}

# Three sessions for each database, or BELAY_PGBOUNCER_POOL: clients soon meet those of others.
start_pgbouncer() {
  local inside
  if ! alive pgbouncer; then
    need_ports pgbouncer
    enter_network pgbouncer
    mkdir -p "$dir/pgbouncer"
    private_file "$dir/pgbouncer/pgbouncer.ini" <<INI
[databases]
* = host=$(peer_of postgres) port=$(port_of postgres) user=belay password=$(<"$dir/password")
[pgbouncer]
listen_addr = $(bind_of pgbouncer)
listen_port = $(port_of pgbouncer)
unix_socket_dir =
auth_type = plain
auth_file = $dir/pgbouncer/users
pool_mode = transaction
default_pool_size = ${BELAY_PGBOUNCER_POOL:-3}
max_client_conn = 1000
server_login_retry = 1
ignore_startup_parameters = extra_float_digits
INI
    printf '"belay" "%s"\n' "$(<"$dir/password")" | private_file "$dir/pgbouncer/users"
    choose_postgres_user
    [[ ${#as_postgres[@]} -eq 0 ]] || chown -R postgres: "$dir/pgbouncer"
    launch pgbouncer "${inside[@]}" "${as_postgres[@]}" "$(command -v pgbouncer)" "$dir/pgbouncer/pgbouncer.ini"
  fi
  wait_for pgbouncer 60 "answer from pgbouncer" port_answers "$(port_of pgbouncer)" "$(host_of pgbouncer)"
}
