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

check_servers() {
  local server
  for server in "$@"; do
    [[ $server =~ ^(redis|mariadb|rabbitmq)$ ]] || die "no such server: $server (redis, mariadb, rabbitmq)"
  done
}

check_node() {
  [[ $# -eq 2 ]] || die "$1 takes the name of one node"
  [[ $2 =~ ^(redis-[1-6]|mariadb|rabbitmq)$ ]] || die "no such node: $2 (redis-1 .. redis-6, mariadb, rabbitmq)"
}

# lock_stack lets one command at a time change the stack. The lock ends with
# the process; servers do not inherit it.
lock_stack() {
  mkdir -p "$dir/log" "$dir/run"
  exec 9>"$dir/lock"
  flock -w 180 9 || die "another scripts/stack has been at work for 3 minutes"
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
    (umask 077 && od -An -N12 -tx1 /dev/urandom | tr -d ' \n' >"$dir/password")
  fi
  echo "$port" >"$dir/port"
}

# port_of NODE: where it listens. Also NODE-bus of a Redis node, rabbitmq-api
# and rabbitmq-dist.
port_of() {
  local base=17000
  if [[ -e $dir/port ]]; then
    base=$(<"$dir/port")
  elif [[ -n ${BELAY_STACK_PORT:-} ]]; then
    base=$BELAY_STACK_PORT
  fi
  case $1 in
    redis-?) echo $((base + ${1#redis-})) ;;
    redis-?-bus)
      local node=${1%-bus}
      echo $((base + 10 + ${node#redis-}))
      ;;
    mariadb) echo $((base + 20)) ;;
    rabbitmq) echo $((base + 30)) ;;
    rabbitmq-api) echo $((base + 31)) ;;
    rabbitmq-dist) echo $((base + 32)) ;;
    epmd) echo $((base + 33)) ;;
  esac
}
