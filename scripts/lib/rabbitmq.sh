# shellcheck shell=bash
# RabbitMQ with the management plugin, and the epmd that Erlang wants beside it;
# on demand also RabbitMQ 4.

# Debian's programs in /usr/sbin switch to another user; these do not.
RABBITMQ_SERVER=/usr/lib/rabbitmq/bin/rabbitmq-server
RABBITMQCTL=/usr/lib/rabbitmq/bin/rabbitmqctl

# The names of their epmd.
declare -A epmd_of=([rabbitmq]=epmd [rabbitmq4]=epmd4)

up_rabbitmq() { up_broker rabbitmq; }
heal_rabbitmq() { heal_broker rabbitmq; }
start_rabbitmq() { start_broker rabbitmq; }
up_rabbitmq4() { up_broker rabbitmq4; }
heal_rabbitmq4() { heal_broker rabbitmq4; }
start_rabbitmq4() { start_broker rabbitmq4; }

up_broker() {
  if alive "$1"; then
    say "$1 is already up on port $(port_of "$1")"
  else
    say "starting $1 on port $(port_of "$1"), its HTTP API on $(port_of "$1-api")"
  fi
  heal_broker "$1"
  touch "$dir/$1.ready"
}

heal_broker() {
  resume_paused "$1"
  start_broker "$1"
}

start_broker() {
  local node=$1 epmd=${epmd_of[$1]}
  # Without the mark the first start was cut short.
  alive "$node" || [[ -e $dir/$node.ready ]] || create_broker "$node"
  if ! alive "$epmd"; then
    need_ports "$epmd"
    launch_program "$node" "$epmd" epmd -port "$(port_of "$epmd")" -address 127.0.0.1
    wait_for "$epmd" 10 "answer from $epmd" port_answers "$(port_of "$epmd")"
  fi
  if ! alive "$node"; then
    need_ports "$node" "$node-api" "$node-dist"
    launch_broker "$node"
  fi
  wait_for "$node" 90 "answer from $node" broker_answers "$node"
}

create_broker() {
  local node=$1 password
  rm -rf "${dir:?}/$node"
  mkdir -p "$dir/$node"
  echo '[rabbitmq_management].' >"$dir/$node/enabled_plugins"
  password=$(<"$dir/password")
  # Statistics are gathered every second, not every five, for tests that poll.
  private_file "$dir/$node/rabbitmq.conf" <<CONF
listeners.tcp.1 = 127.0.0.1:$(port_of "$node")
management.tcp.ip = 127.0.0.1
management.tcp.port = $(port_of "$node-api")
default_user = belay
default_pass = $password
collect_statistics_interval = 1000
CONF
}

# RUNNING_UNDER_SYSTEMD makes the start script become the server instead of
# staying as its parent, so that signals hit the right process.
launch_broker() {
  local node=$1 epmd=${epmd_of[$1]} data program=$RABBITMQ_SERVER
  local loopback='-kernel inet_dist_use_interface {127,0,0,1}'
  data=$dir/$node
  if [[ $node == rabbitmq4 ]]; then
    data=/data # in its own tree
  fi
  launch_program "$node" "$node" env -C "$data" HOME="$data" RUNNING_UNDER_SYSTEMD=true \
    RABBITMQ_CONF_ENV_FILE=/dev/null \
    RABBITMQ_CONFIG_FILE="$data/rabbitmq.conf" \
    RABBITMQ_ADVANCED_CONFIG_FILE="$data/advanced.config" \
    RABBITMQ_ENABLED_PLUGINS_FILE="$data/enabled_plugins" \
    RABBITMQ_MNESIA_BASE="$data/mnesia" \
    RABBITMQ_LOG_BASE="$data/log" RABBITMQ_LOGS=- \
    RABBITMQ_NODENAME="belay-$stack@localhost" \
    RABBITMQ_DIST_PORT="$(port_of "$node-dist")" \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="$loopback" \
    RABBITMQ_PID_FILE="$data/pid" \
    ERL_EPMD_PORT="$(port_of "$epmd")" ERL_EPMD_ADDRESS=127.0.0.1 \
    "$program"
}

# launch_program SERVER NODE COMMAND...: RabbitMQ 4 and its epmd run in a root
# directory of their own, as Erlang starts helpers by their full paths. What is
# mounted there is theirs alone and goes with them.
launch_program() {
  local server=$1 node=$2
  shift 2
  if [[ $server == rabbitmq4 ]]; then
    # shellcheck disable=SC2016 # for the inner shell
    set -- unshare --mount --propagation private bash -c '
      set -e
      tree=$1 data=$2
      shift 2
      mount --rbind /dev "$tree/dev"
      mount -t proc proc "$tree/proc"
      mount --bind "$data" "$tree/data"
      exec chroot "$tree" "$@"' bash "$(sid_tree rabbitmq4)" "$dir/rabbitmq4" "$@"
  fi
  launch "$node" "$@"
}

# control_broker NODE ARGUMENT... runs rabbitmqctl where that broker runs.
control_broker() {
  local node=$1 data=$dir/$1 there=()
  shift
  alive "$node" || die "$node is not running"
  if [[ $node == rabbitmq4 ]]; then
    data=/data
    there=(nsenter --mount --root --target "$(pid_of "$node")")
  fi
  "${there[@]}" env -C "$data" HOME="$data" RABBITMQ_CONF_ENV_FILE=/dev/null \
    ERL_EPMD_PORT="$(port_of "${epmd_of[$node]}")" \
    "$RABBITMQCTL" -n "belay-$stack@localhost" "$@"
}

# broker_answers asks the HTTP API whether the AMQP port takes connections.
broker_answers() {
  local api credentials
  api=$(port_of "$1-api")
  credentials=$(printf 'belay:%s' "$(<"$dir/password")" | base64)
  credentials=$credentials timeout 5 bash -c '
    exec 3<>"/dev/tcp/127.0.0.1/$1" &&
    printf "GET /api/health/checks/port-listener/%s HTTP/1.0\r\nAuthorization: Basic %s\r\n\r\n" "$2" "$credentials" >&3 &&
    read -r _ code _ <&3 && [[ $code == 200 ]]
  ' bash "$api" "$(port_of "$1")" 2>/dev/null
}
