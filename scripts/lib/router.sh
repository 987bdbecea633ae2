# shellcheck shell=bash
# MySQL Router in front of mysql, which must be up. It shares sessions: a client has one of
# the server's for as long as a transaction lasts.

up_router() {
  if alive router; then
    say "router is already up on port $(port_of router)"
  else
    say "starting router on port $(port_of router)"
  fi
  heal_router
  touch "$dir/router.ready"
}

heal_router() {
  resume_paused router
  start_router
}

# It takes a password only over TLS, as it must know it for other sessions.
start_router() {
  local tree program
  if ! alive router; then
    await_mysql
    need_ports router
    tree=$(sid_tree router)
    mkdir -p "$dir/router"
    private_file "$dir/router/router.conf" <<CONF
[DEFAULT]
logging_folder =
runtime_folder = $dir/router
data_folder = $dir/router
plugin_folder = $tree/usr/lib/mysqlrouter/plugin
[connection_pool]
max_idle_server_connections = 16
[routing:shared]
bind_address = 127.0.0.1
bind_port = $(port_of router)
destinations = 127.0.0.1:$(port_of mysql)
routing_strategy = first-available
protocol = classic
connection_sharing = 1
connection_sharing_delay = 0
client_ssl_mode = REQUIRED
client_ssl_cert = $dir/mysql/data/server-cert.pem
client_ssl_key = $dir/mysql/data/server-key.pem
server_ssl_mode = PREFERRED
CONF
    sid_program router usr/bin/mysqlrouter
    program[3]+=:$tree/usr/lib/mysql-router
    launch router "${program[@]}" --config "$dir/router/router.conf" --user "$(id -un)"
  fi
  wait_for router 60 "answer from router" port_answers "$(port_of router)"
}

# await_mysql: both may be on their way up. The first start of mysql makes the certificate
# that the router shows, too.
await_mysql() {
  local tries
  for ((tries = 0; tries < 1200; tries++)); do
    [[ ! -e $dir/mysql.ready ]] || return 0
    sleep 0.1
  done
  die "router needs mysql, which is not up"
}
