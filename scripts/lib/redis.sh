# shellcheck shell=bash
# A Redis Cluster of 3 masters and 3 replicas, all in memory.

redis_nodes=(redis-1 redis-2 redis-3 redis-4 redis-5 redis-6)

up_redis() {
  local ports
  ports="ports $(port_of redis-1)-$(port_of redis-6)"
  if [[ -e $dir/redis.ready ]] && any_alive "${redis_nodes[@]}"; then
    say "redis is already up on $ports"
    heal_redis
    return
  fi
  # Nothing is on disk that would outlive the processes, and a cluster whose
  # creation was cut short has no way forward: start from nothing.
  say "starting a redis cluster on $ports"
  local node
  for node in "${redis_nodes[@]}"; do
    end_process "$node"
    rm -rf "${dir:?}/$node"
  done
  rm -f "$dir/redis.ready"
  each_redis launch_redis
  each_redis await_redis
  create_cluster
  wait_for redis-1 60 "whole redis cluster" redis_whole
  touch "$dir/redis.ready"
}

heal_redis() {
  local node
  for node in "${redis_nodes[@]}"; do
    resume_paused "$node"
    alive "$node" || launch_redis "$node"
  done
  each_redis await_redis
  wait_for redis-1 90 "whole redis cluster" redis_stays_whole
}

start_redis() {
  alive "$1" || launch_redis "$1"
  await_redis "$1"
  wait_for "$1" 60 "healthy cluster member $1" redis_joined "$1"
}

each_redis() {
  local node
  for node in "${redis_nodes[@]}"; do
    "$1" "$node"
  done
}

# cluster-require-full-coverage no: the other shards serve on while one fails
# over. No replica migration: each master keeps the number of replicas it has.
launch_redis() {
  need_ports "$1" "$1-bus"
  mkdir -p "$dir/$1"
  launch "$1" env -C "$dir/$1" redis-server --bind 127.0.0.1 \
    --port "$(port_of "$1")" --cluster-port "$(port_of "$1-bus")" \
    --cluster-enabled yes --cluster-config-file nodes.conf \
    --cluster-node-timeout 2000 --cluster-require-full-coverage no \
    --cluster-allow-replica-migration no \
    --appendonly no --save '' --repl-diskless-sync-delay 0 \
    --maxmemory-policy noeviction
}

await_redis() { wait_for "$1" 30 "answer from $1" redis_answers "$1"; }

# ask NODE COMMAND...: a reply, or failure when the node stands still.
ask() {
  local node=$1
  shift
  timeout 2 redis-cli -h 127.0.0.1 -p "$(port_of "$node")" "$@" 2>/dev/null | tr -d '\r'
}

redis_answers() { [[ $(ask "$1" ping) == PONG ]]; }

redis_addresses() {
  local node list=()
  for node in "${redis_nodes[@]}"; do
    list+=("127.0.0.1:$(port_of "$node")")
  done
  (IFS=, && echo "${list[*]}")
}

create_cluster() {
  local list
  IFS=, read -ra list <<<"$(redis_addresses)"
  timeout 60 redis-cli --cluster create "${list[@]}" --cluster-replicas 1 --cluster-yes \
    >"$dir/log/redis-create.log" 2>&1 </dev/null || fail_with_log redis-create "the cluster could not be created"
}

redis_role() { ask "$1" role | sed -n 1p; }

# redis_settled NODE: it serves all slots and, as a replica, follows its master.
redis_settled() {
  local info
  info=$(ask "$1" cluster info) || return 1
  [[ $info == *cluster_state:ok* && $info == *cluster_slots_ok:16384* ]] || return 1
  info=$(ask "$1" info replication) || return 1
  [[ $info == *role:master* || $info == *master_link_status:up* ]]
}

# redis_view NODE: what it believes of each node, in a form that can be
# compared: id, role, master, slots. Fails while it doubts anyone.
redis_view() {
  ask "$1" cluster nodes | awk '
    $3 ~ /fail|handshake|noaddr/ || $8 != "connected" { bad = 1 }
    {
      sub("myself,", "", $3)
      slots = ""
      for (i = 9; i <= NF; i++) slots = slots " " $i
      print $1, $3, $4 slots
    }
    END { exit bad }' | sort
}

# redis_whole: all six agree on 3 masters with slots and one online replica each.
redis_whole() {
  local node view agreed=
  for node in "${redis_nodes[@]}"; do
    redis_settled "$node" && view=$(redis_view "$node") || return 1
    [[ ${agreed:=$view} == "$view" ]] || return 1
  done
  awk '
    $2 == "master" && NF > 3 { masters++ }
    $2 == "slave" { replicas[$3]++ }
    END {
      for (m in replicas) if (replicas[m] == 1) pairs++
      exit !(NR == 6 && masters == 3 && pairs == 3)
    }' <<<"$agreed" || return 1
  each_master_has_replica
}

each_master_has_replica() {
  local node info
  for node in "${redis_nodes[@]}"; do
    info=$(ask "$node" info replication) || return 1
    [[ $info == *role:slave* || $info == *slave0:*state=online* ]] || return 1
  done
}

# redis_stays_whole: an election that has begun may still end a moment later.
redis_stays_whole() {
  redis_whole && sleep 0.5 && redis_whole
}

# redis_joined NODE: it is settled, and every running node sees it as it sees itself.
redis_joined() {
  local node id role
  redis_settled "$1" || return 1
  id=$(ask "$1" cluster myid) && role=$(redis_role "$1") || return 1
  for node in "${redis_nodes[@]}"; do
    [[ $(state_of "$node") == up ]] || continue
    ask "$node" cluster nodes | awk -v id="$id" -v role="$role" '
      $1 == id { flags = $3; sub("myself,", "", flags) }
      END { exit flags != role }' || return 1
  done
}
