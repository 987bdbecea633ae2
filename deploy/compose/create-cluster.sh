#!/bin/sh
# create-cluster.sh ADDRESS... makes a Redis Cluster of the nodes with a replica
# for each master, unless it is there, and waits until it serves all slots and every
# replica follows its master.
set -eu

port=${1##*:}

whole() {
  for address in "$@"; do
    info=$(redis-cli -p "${address##*:}" cluster info) || return 1
    case $info in
      *cluster_state:ok*cluster_slots_ok:16384*) ;;
      *) return 1 ;;
    esac
    info=$(redis-cli -p "${address##*:}" info replication) || return 1
    case $info in
      *role:slave*master_link_status:up* | *role:master*connected_slaves:[1-9]*) ;;
      *) return 1 ;;
    esac
  done
}

known=$(redis-cli -p "$port" cluster info | tr -d '\r' | sed -n 's/^cluster_known_nodes://p')
if [ "$known" = 1 ]; then
  redis-cli --cluster create "$@" --cluster-replicas 1 --cluster-yes
fi
tries=0
until whole "$@"; do
  tries=$((tries + 1))
  if [ "$tries" -gt 60 ]; then
    echo "the cluster is not whole after a minute" >&2
    exit 1
  fi
  sleep 1
done
echo "the cluster is whole"
