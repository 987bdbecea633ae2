# shellcheck shell=bash
# Starting servers for a while: those that were up before are left alone.

brought=()

# bring_up SERVER... starts those that are not up, notes which, and sets the
# variables that env prints.
bring_up() {
  local server
  for server in "$@"; do
    is_up "$server" || brought+=("$server")
  done
  "$here/stack" up "$@"
  eval "$("$here/stack" env)"
}

# is_up SERVER: some node of it runs, so somebody else wants it.
is_up() {
  "$here/stack" status | awk -v server="$1" '
    { sub(/-[0-9]$/, "", $1) }
    $1 == server && $3 != "down" { up = 1 }
    END { exit !up }'
}

# take_down_orphans stops the stacks of tests that were killed, and so cleaned
# nothing up.
take_down_orphans() {
  local owner
  for owner in "$root"/.stack/*/owner; do
    if [[ ! -e $owner ]] || kill -0 "$(<"$owner")" 2>/dev/null; then
      continue
    fi
    if BELAY_STACK=$(basename "$(dirname "$owner")") "$here/stack" down >/dev/null; then
      rm -f "$owner"
      umount --lazy "$(dirname "$owner")" 2>/dev/null || true # a disk that was to be filled
    fi
  done
}

# take_down stops the servers that bring_up started.
take_down() {
  [[ ${#brought[@]} -eq 0 ]] || "$here/stack" down "${brought[@]}" >/dev/null
}
