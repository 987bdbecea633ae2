# shellcheck shell=bash
# Starting, knowing and signalling the stack's own processes, and no others.

# launch NODE COMMAND... runs a server with output to its log, in a session of
# its own so that no Ctrl-C reaches it. The process itself notes who it is
# before it becomes the server: there is no moment in which nobody knows it. A
# compiler that takes both cores must not look like a dead node, so servers go
# before it where that is allowed.
launch() {
  local node=$1 child
  shift
  rm -f "$dir/run/$node.pid"
  (
    identity "$BASHPID" >"$dir/run/$node.pid"
    renice -n -10 -p "$BASHPID" >/dev/null 2>&1 || true
    exec setsid "$@" </dev/null >>"$dir/log/$node.log" 2>&1 9>&-
  ) &
  child=$!
  disown "$child" # or the shell tells of its death
  until [[ -s $dir/run/$node.pid ]] || ! kill -0 "$child" 2>/dev/null; do
    sleep 0.01
  done
}

# identity PID: the pid, when it started and in which boot. No two processes
# share all three, so a stale file never points at a stranger.
identity() {
  local stat fields
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -ra fields <<<"${stat##*) }" # from the third field on; the second may hold anything
  # A zombie is gone, but only when no other thread keeps its ports open.
  [[ ${fields[0]} != Z || ${fields[17]} -gt 1 ]] || return 1
  echo "$1 ${fields[19]} $(</proc/sys/kernel/random/boot_id)"
}

pid_of() {
  local pid
  read -r pid _ 2>/dev/null <"$dir/run/$1.pid" && echo "$pid"
}

alive() {
  local noted pid
  noted=$(cat "$dir/run/$1.pid" 2>/dev/null) || return 1
  pid=${noted%% *}
  [[ $pid =~ ^[1-9][0-9]*$ && $(identity "$pid") == "$noted" ]]
}

state_of() {
  alive "$1" || { echo down; return; }
  local stat
  stat=$(cat "/proc/$(pid_of "$1")/stat" 2>/dev/null) || { echo down; return; }
  case ${stat##*) } in
    T* | t*) echo paused ;;
    *) echo up ;;
  esac
}

# signal_process KILL|STOP|CONT NODE returns once the signal has had its effect.
signal_process() {
  local signal=$1 node=$2 wanted
  case $signal in
    KILL) wanted=down ;;
    STOP) wanted=paused ;;
    CONT) wanted=up ;;
  esac
  kill "-$signal" "$(pid_of "$node")"
  until [[ $(state_of "$node") == "$wanted" ]]; do
    sleep 0.02
  done
}

# end_process NODE kills it if it runs, and forgets it.
end_process() {
  if alive "$1"; then
    signal_process KILL "$1"
  fi
  rm -f "$dir/run/$1.pid"
}

resume_paused() {
  if [[ $(state_of "$1") == paused ]]; then
    signal_process CONT "$1"
  fi
}

# port_answers PORT [HOST]
port_answers() { (: <>"/dev/tcp/${2:-127.0.0.1}/$1") 2>/dev/null; }

# need_ports NODE... fails when one of their ports belongs to somebody else.
need_ports() {
  local name port
  for name in "$@"; do
    port=$(port_of "$name")
    ! port_answers "$port" ||
      die "port $port ($name) is in use by $(owner_of "$port"): stop that, or set BELAY_STACK_PORT"
  done
}

owner_of() {
  local owner=
  if command -v ss >/dev/null; then
    owner=$(ss -Hltnp "sport = :$1" | sed -n 's/.*users:((\("[^"]*"\),pid=\([0-9]*\).*/\1, pid \2/p' | head -n 1)
  fi
  echo "${owner:-another program}"
}

# wait_for NODE SECONDS WHAT CHECK... polls until CHECK succeeds; it gives up
# when the time is over or the node has died, and shows the end of its log.
wait_for() {
  local node=$1 seconds=$2 what=$3
  local end=$((SECONDS + seconds))
  shift 3
  until "$@"; do
    alive "$node" || fail_with_log "$node" "$node ended before $what"
    [[ $SECONDS -lt $end ]] || fail_with_log "$node" "after $seconds s still no $what"
    sleep 0.1
  done
}

# show_errors LOG prints the lines that say why, which advice may follow, and
# how full the disk is.
show_errors() {
  grep -iE 'error|fatal|cannot|killed' "$dir/log/$1.log" | tail -n 12 >&2 || true
  df -h "$dir" >&2 || true
}

fail_with_log() {
  printf 'stack %s: %s: the errors and the end of %s:\n' "$stack" "$2" "$dir/log/$1.log" >&2
  show_errors "$1"
  tail -n 12 "$dir/log/$1.log" >&2 || true
  exit 1
}
