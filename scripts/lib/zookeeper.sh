# shellcheck shell=bash
# Three nodes of ZooKeeper, Debian's. A tick is half a second, so a node that is gone is
# noticed after 2 seconds, and a session lasts for 1 to 60 seconds.

zookeeper_nodes=(zookeeper-1 zookeeper-2 zookeeper-3)

up_zookeeper() {
  local node
  if [[ -e $dir/zookeeper.ready ]]; then
    say "zookeeper is already up on ports $(port_of zookeeper-1)-$(port_of zookeeper-3)"
    heal_zookeeper
    return
  fi
  say "starting zookeeper on ports $(port_of zookeeper-1)-$(port_of zookeeper-3)"
  for node in "${zookeeper_nodes[@]}"; do
    end_process "$node"
    rm -rf "${dir:?}/$node"
    need_ports "$node" "$node-peer" "$node-vote"
  done
  for node in "${zookeeper_nodes[@]}"; do
    configure_zookeeper "$node"
    launch_zookeeper "$node"
  done
  for node in "${zookeeper_nodes[@]}"; do
    wait_for "$node" 90 "answer from $node" zookeeper_answers "$node"
  done
  touch "$dir/zookeeper.ready"
}

configure_zookeeper() {
  local node=$1 other
  mkdir -p "$dir/$node/data"
  echo "${node#zookeeper-}" >"$dir/$node/data/myid"
  {
    cat <<CFG
tickTime=500
initLimit=20
syncLimit=4
maxSessionTimeout=60000
maxClientCnxns=0
dataDir=$dir/$node/data
clientPort=$(port_of "$node")
clientPortAddress=$(bind_of "$node")
admin.enableServer=false
4lw.commands.whitelist=srvr
CFG
    for other in "${zookeeper_nodes[@]}"; do
      echo "server.${other#zookeeper-}=$(peer_of "$other"):$(port_of "$other-peer"):$(port_of "$other-vote")"
    done
  } >"$dir/$node/zoo.cfg"
}

# launch_zookeeper NODE: the jar names the others that it needs.
launch_zookeeper() {
  local jars=/usr/share/java inside
  enter_network "$1"
  launch "$1" "${inside[@]}" java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Dorg.slf4j.simpleLogger.showDateTime=true \
    -cp "$jars/zookeeper.jar:$jars/slf4j-simple.jar" \
    org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/$1/zoo.cfg"
}

# zookeeper_answers NODE: it follows a leader, or is one.
zookeeper_answers() { [[ $(zookeeper_mode "$1") =~ ^(leader|follower)$ ]]; }

zookeeper_mode() {
  timeout 2 bash -c "exec 3<>/dev/tcp/$(host_of "$1")/$(port_of "$1") && echo srvr >&3 && cat <&3" 2>/dev/null |
    sed -n 's/^Mode: //p'
}

zookeeper_addresses() {
  local node list=()
  for node in "${zookeeper_nodes[@]}"; do
    list+=("$(host_of "$node"):$(port_of "$node")")
  done
  (IFS=, && echo "${list[*]}")
}

start_zookeeper() {
  alive "$1" || launch_zookeeper "$1"
  wait_for "$1" 90 "answer from $1" zookeeper_answers "$1"
}

heal_zookeeper() {
  local node
  mend_all "${zookeeper_nodes[@]}"
  for node in "${zookeeper_nodes[@]}"; do
    resume_paused "$node"
    alive "$node" || launch_zookeeper "$node"
  done
  for node in "${zookeeper_nodes[@]}"; do
    start_zookeeper "$node"
  done
}
