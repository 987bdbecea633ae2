# shellcheck shell=bash
# Networks that can be cut: with BELAY_STACK_NETWORK=1 at up, as root, each node of a
# cluster has a network namespace of its own with two links, one to a bridge that it shares
# with its peers, and one by which clients reach it from here. cut takes the first one off
# the bridge: what is sent there is lost, and nobody is told. Without it all is 127.0.0.1.

# choose_network notes whether this stack has such networks, until it is down.
choose_network() {
  [[ -n ${BELAY_STACK_NETWORK:-} && ! -e $dir/network ]] || return 0
  [[ $(id -u) -eq 0 ]] || die "BELAY_STACK_NETWORK needs root"
  ensure_packages network
  cp "$dir/port" "$dir/network"
}

networked() { [[ -e $dir/network ]]; }

# subnet: 10.X.Y, which no stack on other ports has.
subnet() {
  local base
  base=$(<"$dir/network")
  echo "10.$((base / 256)).$((base % 256))"
}

# host_of NODE: where clients find it.
host_of() {
  if networked && is_clustered "$1"; then
    echo "$(subnet).$((200 + $(number_of "$1")))"
  elif [[ $1 =~ ^(semisync|galera)-[23]$ ]]; then
    echo "127.0.0.${1##*-}"
  else
    echo 127.0.0.1
  fi
}

# peer_of NODE: where its peers find it.
peer_of() {
  if networked && is_clustered "$1"; then
    echo "$(subnet).$(number_of "$1")"
  else
    host_of "$1"
  fi
}

# bind_of NODE: where it listens.
bind_of() {
  if networked && is_clustered "$1"; then
    echo 0.0.0.0
  else
    host_of "$1"
  fi
}

# is_clustered NODE: it is one of several, which a network connects.
is_clustered() { [[ $1 =~ ^([a-z]+-[1-9]|postgres|pgbouncer)$ && $1 != redis-* ]]; }

# number_of NODE: among those of its network.
number_of() {
  case $1 in
    postgres) echo 1 ;;
    pgbouncer) echo 2 ;;
    *) echo "${1##*-}" ;;
  esac
}

namespace_of() { echo "belay-$stack-$1"; }

# link_of NODE peers|clients: the name of the end of its link that is here.
link_of() { echo "bl$(<"$dir/network")-${2:0:1}$(number_of "$1")"; }

bridge_name() { echo "bl$(<"$dir/network")-br"; }

# enter_network NODE sets inside, what runs a command in the node's namespace, and makes
# that if need be.
enter_network() {
  local node=$1 space
  inside=()
  networked && is_clustered "$node" || return 0
  space=$(namespace_of "$node")
  inside=(ip netns exec "$space")
  [[ ! -e /run/netns/$space ]] || return 0
  ip link show "$(bridge_name)" >/dev/null 2>&1 || ip link add "$(bridge_name)" up type bridge forward_delay 0
  ip netns add "$space"
  ip -n "$space" link set lo up
  add_link "$node" peers
  ip link set "$(link_of "$node" peers)" master "$(bridge_name)"
  ip -n "$space" addr add "$(peer_of "$node")/26" dev peers
  add_link "$node" clients
  local here
  here=$(subnet).$((220 + $(number_of "$node")))
  ip addr add "$here" peer "$(host_of "$node")" dev "$(link_of "$node" clients)"
  ip -n "$space" addr add "$(host_of "$node")" peer "$here" dev clients
}

add_link() {
  local space
  space=$(namespace_of "$1")
  ip link add "$(link_of "$1" "$2")" up type veth peer name "$2" netns "$space"
  ip -n "$space" link set "$2" up
}

# stack_cut NODE: its peers and it lose each other. Clients still reach it.
stack_cut() {
  require_network "$1"
  ip link set "$(link_of "$1" peers)" nomaster
}

stack_mend() {
  require_network "$1"
  ip link set "$(link_of "$1" peers)" master "$(bridge_name)"
}

is_cut() { networked && [[ $(ip link show "$(link_of "$1" peers)") != *" master "* ]]; }

require_network() {
  networked && is_clustered "$1" && [[ -e /run/netns/$(namespace_of "$1") ]] ||
    die "$1 has no network of its own: set BELAY_STACK_NETWORK=1 at up"
}

# mend_all NODE... is for heal.
mend_all() {
  local node
  networked || return 0
  for node in "$@"; do
    [[ ! -e /run/netns/$(namespace_of "$node") ]] || stack_mend "$node"
  done
}

# remove_network NODE... removes what enter_network has made.
remove_network() {
  local node
  networked || return 0
  for node in "$@"; do
    ip netns del "$(namespace_of "$node")" 2>/dev/null || true
  done
}
