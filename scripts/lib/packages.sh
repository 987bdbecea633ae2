# shellcheck shell=bash
# Debian packages that the stack and the tests need.

# ensure_packages KIND... installs what the named kinds (redis, mariadb,
# rabbitmq, compiler) lack, or says what to install when it may not.
ensure_packages() {
  local kind missing=()
  for kind in "$@"; do
    "have_$kind" || missing+=("$kind")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0

  local packages=()
  for kind in "${missing[@]}"; do
    read -ra packages <<<"${packages[*]} $(packages_of "$kind")"
  done
  if ! command -v apt-get >/dev/null || [[ $(id -u) -ne 0 ]]; then
    die "missing packages; as root: apt-get install --no-install-recommends ${packages[*]}"
  fi
  say "installing ${packages[*]}"
  apt_install "${packages[@]}"
  for kind in "${missing[@]}"; do
    "have_$kind" || die "$kind is still missing after its packages were installed"
  done
}

packages_of() {
  case $1 in
    redis) echo redis-server redis-tools ;;
    mariadb) echo mariadb-server ;;
    rabbitmq) echo rabbitmq-server ;;
    compiler) echo gcc libc6-dev ;;
  esac
}

have_redis() { command -v redis-server >/dev/null && command -v redis-cli >/dev/null; }
have_mariadb() { command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null && command -v mariadb >/dev/null; }
have_rabbitmq() { [[ -x $RABBITMQ_SERVER ]] && command -v epmd >/dev/null; }
have_compiler() { command -v gcc >/dev/null && [[ -e /usr/include/stdlib.h ]]; }

# apt_install keeps the packages from starting their own services: Debian asks
# /usr/sbin/policy-rc.d, and 101 means "do not".
apt_install() (
  policy=/usr/sbin/policy-rc.d
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if [[ ! -e $policy ]]; then
    trap 'rm -f "$log" "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt=(apt-get -q -y -o DPkg::Lock::Timeout=300)
  if ! { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "$@"; } </dev/null >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    die "apt-get could not install $*"
  fi
)
