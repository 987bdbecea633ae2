# shellcheck shell=bash
# RabbitMQ with the management plugin, and the epmd that Erlang wants beside it.

# Debian's /usr/sbin/rabbitmq-server switches to another user; this one does not.
RABBITMQ_SERVER=/usr/lib/rabbitmq/bin/rabbitmq-server

up_rabbitmq() {
  if alive rabbitmq; then
    say "rabbitmq is already up on port $(port_of rabbitmq)"
  else
    say "starting rabbitmq on port $(port_of rabbitmq), its HTTP API on $(port_of rabbitmq-api)"
  fi
  heal_rabbitmq
  touch "$dir/rabbitmq.ready"
}

heal_rabbitmq() {
  resume_paused rabbitmq
  start_rabbitmq
}

start_rabbitmq() {
  if ! alive epmd; then
    need_ports epmd
    launch epmd epmd -port "$(port_of epmd)" -address 127.0.0.1
    wait_for epmd 10 "answer from epmd" port_answers "$(port_of epmd)"
  fi
  if ! alive rabbitmq; then
    need_ports rabbitmq rabbitmq-api rabbitmq-dist
    [[ -e $dir/rabbitmq.ready ]] || create_rabbitmq_data
    launch_rabbitmq
  fi
  wait_for rabbitmq 90 "answer from rabbitmq" rabbitmq_answers
}

create_rabbitmq_data() {
  rm -rf "$dir/rabbitmq"
  mkdir -p "$dir/rabbitmq"
  echo '[rabbitmq_management].' >"$dir/rabbitmq/enabled_plugins"
  local password
  password=$(<"$dir/password")
  # Statistics are gathered every second, not every five, for tests that poll.
  cat >"$dir/rabbitmq/rabbitmq.conf" <<CONF
listeners.tcp.1 = 127.0.0.1:$(port_of rabbitmq)
management.tcp.ip = 127.0.0.1
management.tcp.port = $(port_of rabbitmq-api)
default_user = belay
default_pass = $password
collect_statistics_interval = 1000
CONF
  chmod 600 "$dir/rabbitmq/rabbitmq.conf"
}

# RUNNING_UNDER_SYSTEMD makes the start script become the server instead of
# staying as its parent, so that signals hit the right process.
launch_rabbitmq() {
  local data=$dir/rabbitmq
  local loopback='-kernel inet_dist_use_interface {127,0,0,1}'
  launch rabbitmq env -C "$data" HOME="$data" RUNNING_UNDER_SYSTEMD=true \
    RABBITMQ_CONF_ENV_FILE=/dev/null \
    RABBITMQ_CONFIG_FILE="$data/rabbitmq.conf" \
    RABBITMQ_ADVANCED_CONFIG_FILE="$data/advanced.config" \
    RABBITMQ_ENABLED_PLUGINS_FILE="$data/enabled_plugins" \
    RABBITMQ_MNESIA_BASE="$data/mnesia" \
    RABBITMQ_LOG_BASE="$data/log" RABBITMQ_LOGS=- \
    RABBITMQ_NODENAME="belay-$stack@localhost" \
    RABBITMQ_DIST_PORT="$(port_of rabbitmq-dist)" \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="$loopback" \
    RABBITMQ_PID_FILE="$data/pid" \
    ERL_EPMD_PORT="$(port_of epmd)" ERL_EPMD_ADDRESS=127.0.0.1 \
    "$RABBITMQ_SERVER"
}

# rabbitmq_answers asks the HTTP API whether the AMQP port takes connections.
rabbitmq_answers() {
  local api credentials
  api=$(port_of rabbitmq-api)
  credentials=$(printf 'belay:%s' "$(<"$dir/password")" | base64)
  credentials=$credentials timeout 5 bash -c '
    exec 3<>"/dev/tcp/127.0.0.1/$1" &&
    printf "GET /api/health/checks/port-listener/%s HTTP/1.0\r\nAuthorization: Basic %s\r\n\r\n" "$2" "$credentials" >&3 &&
    read -r _ code _ <&3 && [[ $code == 200 ]]
  ' bash "$api" "$(port_of rabbitmq)" 2>/dev/null
}
