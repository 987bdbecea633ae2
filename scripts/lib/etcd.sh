# shellcheck shell=bash
# Three nodes of etcd, built from the version in tools/etcd/go.mod. A leader that is gone is
# followed after a second, and a lease lasts for 2 seconds at least.

etcd_nodes=(etcd-1 etcd-2 etcd-3)

up_etcd() {
  local node
  if [[ -e $dir/etcd.ready ]]; then
    say "etcd is already up on ports $(port_of etcd-1)-$(port_of etcd-3)"
    heal_etcd
    return
  fi
  build_etcd
  say "starting etcd on ports $(port_of etcd-1)-$(port_of etcd-3)"
  for node in "${etcd_nodes[@]}"; do
    end_process "$node"
    rm -rf "${dir:?}/$node"
    need_ports "$node" "$node-peer"
  done
  for node in "${etcd_nodes[@]}"; do
    launch_etcd "$node"
  done
  for node in "${etcd_nodes[@]}"; do
    wait_for "$node" 60 "answer from $node" etcd_answers "$node"
  done
  touch "$dir/etcd.ready"
}

etcd_program() { echo "${BELAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/belay}/etcd/$(etcd_version)/etcd"; }

etcd_version() { sed -nE 's|^\tgo.etcd.io/etcd/server/v3 (v[^ ]+).*|\1|p' "$root/tools/etcd/go.mod"; }

# build_etcd compiles the server, for half a minute, unless that was done before.
build_etcd() {
  local program
  program=$(etcd_program)
  [[ ! -x $program ]] || return 0
  command -v go >/dev/null || die "etcd needs Go, to compile it"
  say "compiling etcd $(etcd_version)"
  mkdir -p "${program%/*}"
  CGO_ENABLED=0 go build -C "$root/tools/etcd" -o "$program.$$" go.etcd.io/etcd/server/v3 ||
    die "etcd could not be compiled"
  mv "$program.$$" "$program"
}

launch_etcd() {
  local node=$1 other cluster=() inside
  for other in "${etcd_nodes[@]}"; do
    cluster+=("$other=http://$(peer_of "$other"):$(port_of "$other-peer")")
  done
  enter_network "$node"
  local peer client
  peer=:$(port_of "$node-peer")
  client=:$(port_of "$node")
  launch "$node" "${inside[@]}" "$(etcd_program)" --name="$node" --data-dir="$dir/$node" --log-level=warn \
    --heartbeat-interval=100 --election-timeout=1000 --quota-backend-bytes=268435456 \
    --listen-peer-urls="http://$(bind_of "$node")$peer" --initial-advertise-peer-urls="http://$(peer_of "$node")$peer" \
    --listen-client-urls="http://$(bind_of "$node")$client" --advertise-client-urls="http://$(host_of "$node")$client" \
    --initial-cluster="$(IFS=, && echo "${cluster[*]}")" --initial-cluster-token="belay-$stack"
}

# etcd_answers NODE: it knows a leader.
etcd_answers() { [[ $(curl -s -m 2 "http://$(host_of "$1"):$(port_of "$1")/health") == *'"health":"true"'* ]]; }

etcd_addresses() {
  local node list=()
  for node in "${etcd_nodes[@]}"; do
    list+=("$(host_of "$node"):$(port_of "$node")")
  done
  (IFS=, && echo "${list[*]}")
}

start_etcd() {
  alive "$1" || launch_etcd "$1"
  wait_for "$1" 60 "answer from $1" etcd_answers "$1"
}

heal_etcd() {
  local node
  mend_all "${etcd_nodes[@]}"
  for node in "${etcd_nodes[@]}"; do
    resume_paused "$node"
    alive "$node" || launch_etcd "$node"
  done
  for node in "${etcd_nodes[@]}"; do
    start_etcd "$node"
  done
}
