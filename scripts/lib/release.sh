# shellcheck shell=bash
# What release, release-tags and release-check share.

path=github.com/belaygo/belay
released=(cmd/guard-monitor guard/guardotel guard/pgxguard grpcguard lock/etcdlock lock/zklock) # beside the root; the rest is for this repository

die() {
  printf 'belay release: %s\n' "$*" >&2
  exit 1
}

# want_version VERSION
want_version() {
  [[ $1 =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || die "want the version of the release, such as v0.1.0"
}

# download gets what the modules and their tests need, and fails if one of them is not tidy.
download() {
  local module
  for module in . "${released[@]}"; do
    go -C "$root/$module" mod tidy -diff
  done
}

# offline FOLDER COMMAND... runs a command whose go has a cache of its own in FOLDER. It gets the
# modules of this project from the tags of this clone, and others from what was downloaded before.
# With -trimpath go finds what it compiled for another folder.
offline() {
  local folder=$1 downloads
  shift
  downloads=$(go env GOMODCACHE)/cache/download
  GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$root.insteadOf" GIT_CONFIG_VALUE_0="https://$path" \
    GOPRIVATE=$path GONOSUMDB='*' GOSUMDB=off GOPROXY=file://$downloads GOVCS="*:git" \
    GOMODCACHE=$folder/cache GOBIN=$folder/bin GOFLAGS='-mod=mod -trimpath' GOWORK=off CGO_ENABLED=0 "$@"
}
