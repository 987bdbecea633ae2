# shellcheck shell=bash
# Names, places and ports of a stack, and the words that it says.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
stack=${BELAY_STACK:-main}
dir=$root/.stack/$stack

say() { printf 'stack %s: %s\n' "$stack" "$*"; }

die() {
  printf 'stack %s: %s\n' "$stack" "$*" >&2
  exit 1
}

[[ $stack =~ ^[a-z0-9][a-z0-9-]{0,30}$ ]] ||
  die "BELAY_STACK must be up to 31 lower-case letters, digits and dashes"

usual_servers=(redis mariadb rabbitmq)
extra_servers=(mysql mariadb11 postgres pgbouncer rabbitmq4 galera standby semisync group router
  etcd
  zookeeper
  mysql80
  postgres17
  postgres18
  seekdb)
servers=("${usual_servers[@]}" "${extra_servers[@]}")
programs=(compiler browser prometheus strace) # that tests run

# modules prints the folders of all Go modules.
modules() { sed -n 's/^MODULES := //p' "$root/Makefile"; }

check_servers() {
  local server
  for server in "$@"; do
    [[ " ${servers[*]} " == *" $server "* ]] || die "no such server: $server (there are ${servers[*]})"
  done
}

check_fetch() {
  local name
  for name in "$@"; do
    [[ " ${programs[*]} " == *" $name "* ]] || check_servers "$name"
  done
}

check_node() {
  [[ $# -eq 2 ]] || die "$1 takes the name of one node"
  [[ $2 =~ ^(redis-[1-6]|galera-[1-3]|standby-[12]|semisync-[12]|group-[1-3]|etcd-[1-3]|zookeeper-[1-3])$ || " ${servers[*]:1} " == *" $2 "* ]] ||
    die "no such node: $2 (there are redis-1 .. redis-6 ${servers[*]:1})"
  # Its sessions are processes of their own, which would go on.
  [[ "$1 $2" != "pause postgres"* ]] || die "$2 can't be paused"
}

# private_file FILE writes standard input to a file that nobody else can read,
# not even for the moment before its mode is set.
private_file() { (umask 077 && rm -f "$1" && cat >"$1"); }

# lock_stack lets one command at a time change the stack. The lock ends with
# the process; servers do not inherit it.
lock_stack() {
  mkdir -p "$dir/log" "$dir/run"
  exec 9>"$dir/lock"
  flock -w 180 9 || die "another scripts/stack has been at work for 3 minutes"
}

# need_room ends the program where the servers would run out of disk. A full one shows far from
# its cause: RabbitMQ takes no message while less than 50 MB are free.
need_room() {
  local free
  free=$(df --output=avail -m "$root" | tail -n 1)
  [[ $free -ge 2048 ]] || die "only $((free)) MB of disk are free at $root, the servers need 2048"
}

# choose_ports fixes the ports and the password of a stack that is coming up.
# Both are kept until it is down, so that later commands need no settings.
choose_ports() {
  local port=${BELAY_STACK_PORT:-}
  if [[ -z $port && $stack == main ]]; then
    port=17000
  fi
  if [[ -e $dir/port ]]; then
    local now
    now=$(<"$dir/port")
    [[ -z ${BELAY_STACK_PORT:-} || $port == "$now" ]] ||
      die "it is up on port $now, not on BELAY_STACK_PORT=$port; take it down first"
    return
  fi
  [[ -n $port ]] || die "set BELAY_STACK_PORT, the first of the 40 ports of this stack"
  [[ $port =~ ^[0-9]{4,5}$ && $port -ge 1024 && $port -le 65000 ]] ||
    die "BELAY_STACK_PORT=$port is not a port between 1024 and 65000"
  if [[ ! -e $dir/password ]]; then
    od -An -N12 -tx1 /dev/urandom | tr -d ' \n' | private_file "$dir/password"
  fi
  echo "$port" >"$dir/port"
}

# port_of NODE: where it listens. Also NODE-bus of a Redis node, NODE-api and
# NODE-dist of a RabbitMQ.
port_of() {
  local base=17000
  if [[ -e $dir/port ]]; then
    base=$(<"$dir/port")
  elif [[ -n ${BELAY_STACK_PORT:-} ]]; then
    base=$BELAY_STACK_PORT
  fi
  case $1 in
    postgres17 | postgres18) echo "$base" ;;
    redis-?) echo $((base + ${1#redis-})) ;;
    redis-?-bus)
      local node=${1%-bus}
      echo $((base + 10 + ${node#redis-}))
      ;;
    mariadb) echo $((base + 20)) ;;
    mysql) echo $((base + 21)) ;;
    mariadb11) echo $((base + 22)) ;;
    postgres) echo $((base + 23)) ;;
    nginx) echo $((base + 25)) ;;
    pgbouncer | router) echo $((base + 29)) ;;
    galera-copy | mysql80 | seekdb) echo $((base + 24)) ;;
    galera-?) echo $((base + 26)) ;; # each on an address of its own
    galera-?-group)
      local member=${1%-group}
      echo $((base + 6 + ${member#galera-}))
      ;;
    galera-?-ist)
      local member=${1%-ist}
      echo $((base + 16 + ${member#galera-}))
      ;;
    semisync-?) echo $((base + 39)) ;;
    standby-?) echo $((base + 23 + ${1#standby-})) ;; # etcd runs beside it in make mutants
    group-?) echo $((base + 25 + ${1#group-})) ;;
    group-?-xcom)
      local member=${1%-xcom}
      echo $((base + 6 + ${member#group-}))
      ;;
    etcd-?) echo $((base + 25 + ${1#etcd-})) ;;
    etcd-?-peer)
      local member=${1%-peer}
      echo $((base + 6 + ${member#etcd-}))
      ;;
    zookeeper-1-vote) echo $((base + 37)) ;;
    zookeeper-2-vote) echo $((base + 38)) ;;
    zookeeper-3-vote) echo $((base + 10)) ;;
    zookeeper-?-peer)
      local member=${1%-peer}
      echo $((base + 16 + ${member#zookeeper-}))
      ;;
    zookeeper-?) echo $((base + 33 + ${1#zookeeper-})) ;;
    rabbitmq) echo $((base + 30)) ;;
    rabbitmq-api) echo $((base + 31)) ;;
    rabbitmq-dist) echo $((base + 32)) ;;
    epmd) echo $((base + 33)) ;;
    rabbitmq4) echo $((base + 34)) ;;
    rabbitmq4-api) echo $((base + 35)) ;;
    rabbitmq4-dist) echo $((base + 36)) ;;
    epmd4) echo $((base + 37)) ;;
  esac
}
