# shellcheck shell=bash
# Servers that Debian stable does not have, from Debian sid, without touching
# the system: apt resolves, downloads and verifies by a configuration of its
# own, and the packages are unpacked into one folder from which they run. All
# stacks share that folder. To get newer ones, remove it.

cache=${BELAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/belay}/sid

# The packages of each server. RabbitMQ's start script wants a small Debian
# around it.
declare -A sid_packages=(
  [mysql]=mysql-server-core
  [router]=mysql-router
  [mariadb11]=mariadb-server-core
  [rabbitmq4]="rabbitmq-server dash coreutils sed grep mawk"
  [redis8]=redis-server
  [valkey]=valkey-server
)

sid_tree() { echo "$cache/$1"; }

# sid_version SERVER: the version of its package that was fetched.
sid_version() { cat "$(sid_tree "$1")/version" 2>/dev/null; }

# sid_fetch SERVER gets it unless it is there. Status 3 is kept for "can't be
# had": no Debian, no answer from the mirror, not in sid at present.
sid_fetch() (
  server=$1
  tree=$(sid_tree "$server")
  read -ra packages <<<"${sid_packages[$server]}"
  mkdir -p "$cache"
  exec 8>"$cache/lock"
  flock -w 600 8
  [[ ! -e $tree/version ]] || return 0
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || unavailable "this is no Debian"

  say "fetching $server from Debian sid"
  rm -rf "$tree" "$tree.new"
  # A tree has its name only once all is in it.
  trap 'rm -rf "$tree.new" "$cache/archives"' EXIT
  sid_download "${packages[@]}"
  sid_unpack "$tree.new"
  sid_files "$tree.new" "${packages[0]}"
  mv "$tree.new" "$tree"
  say "fetched $server $(sid_version "$server")"
)

unavailable() {
  printf 'stack %s: %s from Debian sid is not to be had: %s\n' "$stack" "$server" "$1" >&2
  exit 3
}

# sid_download PACKAGE... leaves them and all that they depend on in archives.
# An empty status file: nothing counts as installed. A mirror may lag: for tests
# an older state will do, and its signature is checked all the same.
sid_download() {
  local mirror key
  mirror=$(debian_mirror) || unavailable "no Debian mirror among the sources of apt"
  key=$(keyring) || unavailable "no keyring of Debian's archive"
  mkdir -p "$cache/lists/partial" "$cache/archives/partial"
  : >"$cache/status"
  echo "deb [signed-by=$key] $mirror sid main" >"$cache/sources.list"
  local apt=(apt-get -q -y
    -o Dir::Etc::SourceList="$cache/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
    -o Dir::State::Lists="$cache/lists" -o Dir::State::Status="$cache/status"
    -o Dir::State::Extended_States="$cache/extended_states" -o Dir::Cache::Archives="$cache/archives"
    -o Dir::Log="$cache" -o APT::Sandbox::User=
    -o APT::Install-Recommends=false -o Acquire::Check-Valid-Until=false -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false)
  "${apt[@]}" -o APT::Update::Error-Mode=any update </dev/null >"$cache/apt.log" 2>&1 8>&- ||
    unavailable "$(apt_error)"
  "${apt[@]}" install --download-only "$@" </dev/null >>"$cache/apt.log" 2>&1 8>&- ||
    unavailable "$(apt_error)"
}

apt_error() {
  grep -E '^(E|W):' "$cache/apt.log" | head -n 1 || echo "apt-get failed, see $cache/apt.log"
}

# debian_mirror: the one that the system itself uses. A fresh machine has the
# names of its sources, but not their lists yet.
debian_mirror() {
  # shellcheck disable=SC2016 # apt's variables, not the shell's
  local targets=(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages')
  local main='$1 == "Debian" && $2 == "Debian" { print $3; found = 1; exit } END { exit !found }'
  "${targets[@]}" | awk "$main" && return
  [[ $(id -u) -eq 0 ]] && apt-get -q update </dev/null >/dev/null 2>&1 8>&- && "${targets[@]}" | awk "$main"
}

keyring() {
  local file
  for file in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
    [[ ! -e $file ]] || { echo "$file"; return; }
  done
  return 1
}

# sid_unpack TREE unpacks all archives. The links come first: Debian's packages
# expect /bin, /lib and so on to lead into /usr.
sid_unpack() {
  local tree=$1 name deb
  for name in bin sbin lib lib64; do
    mkdir -p "$tree/usr/$name"
    ln -s "usr/$name" "$tree/$name"
  done
  for deb in "$cache"/archives/*.deb; do
    dpkg -x "$deb" "$tree" || die "could not unpack ${deb##*/}"
  done
}

# sid_files TREE PACKAGE adds what the packages' own scripts would have made,
# as far as it is needed, and last the version.
sid_files() {
  local tree=$1 deb
  mkdir -p "$tree"/{dev,proc,tmp,data,root,etc}
  echo '127.0.0.1 localhost' >"$tree/etc/hosts"
  echo 'root:x:0:0:root:/root:/bin/sh' >"$tree/etc/passwd"
  [[ ! -e $tree/usr/bin/mawk ]] || ln -sf mawk "$tree/usr/bin/awk"
  deb=$(compgen -G "$cache/archives/$2_*.deb")
  dpkg-deb -f "$deb" Version >"$tree/version"
}

# sid_program SERVER FILE sets the array program to the command that runs FILE
# of its tree with the C library of its tree, which is newer than the system's.
sid_program() {
  local tree libraries loader
  tree=$(sid_tree "$1")
  libraries=$(dirname "$(compgen -G "$tree/usr/lib/*/libc.so.6")")
  loader=$(compgen -G "$tree/usr/lib*/ld-linux*.so.*" | head -n 1)
  program=("$loader" --inhibit-cache --library-path "$libraries" "$tree/$2")
}

# sid_redis SERVER prints a folder with a redis-server that is SERVER, for the front of
# PATH.
sid_redis() {
  local program file=usr/bin/redis-server folder
  [[ $1 == redis8 ]] || file=usr/bin/$1-server
  sid_program "$1" "$file"
  folder=$(sid_tree "$1")/redis
  mkdir -p "$folder"
  printf '#!/bin/sh\nexec %s "$@"\n' "${program[*]@Q}" >"$folder/redis-server"
  chmod 755 "$folder/redis-server"
  echo "$folder"
}
