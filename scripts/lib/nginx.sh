# shellcheck shell=bash
# nginx in front of the instances of a benchmark.

# stack_nginx PORT... has it spread requests over those ports of 127.0.0.1.
stack_nginx() {
  [[ $# -gt 0 ]] || die "nginx takes the ports to spread requests over"
  local port
  for port in "$@"; do
    [[ $port =~ ^[1-9][0-9]{0,4}$ && $port -le 65535 ]] || die "nginx: $port is no port"
  done
  need "the load balancer" nginx
  lock_stack
  choose_ports
  stop_nginx
  need_ports nginx
  mkdir -p "$dir/nginx/temp"
  nginx_config "$@" >"$dir/nginx/nginx.conf"
  launch nginx nginx -p "$dir/nginx/" -e stderr -c nginx.conf
  wait_for nginx 10 "answer from nginx" port_answers "$(port_of nginx)"
  touch "$dir/nginx.ready"
  say "nginx on 127.0.0.1:$(port_of nginx) spreads requests over ports $*"
}

# A request is sent to one instance only: what failed there may have happened.
nginx_config() {
  local port
  cat <<CONF
daemon off;
user $(id -un);
worker_processes auto;
worker_rlimit_nofile 65536;
pid nginx.pid;
events { worker_connections 16384; }
http {
  access_log off;
  client_body_temp_path temp/body;
  proxy_temp_path temp/proxy;
  fastcgi_temp_path temp/fastcgi;
  uwsgi_temp_path temp/uwsgi;
  scgi_temp_path temp/scgi;
  keepalive_requests 1000000;
  upstream instances {
$(for port in "$@"; do echo "    server 127.0.0.1:$port max_fails=0;"; done)
    keepalive 1024;
    keepalive_requests 1000000;
  }
  server {
    listen 127.0.0.1:$(port_of nginx) backlog=4096;
    location / {
      proxy_pass http://instances;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_next_upstream off;
      proxy_read_timeout 120s;
    }
  }
}
CONF
}

# stop_nginx ends the workers, too: after SIGKILL they would stay.
stop_nginx() {
  alive nginx || return 0
  kill -TERM "$(pid_of nginx)"
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    alive nginx || return 0
    sleep 0.05
  done
}
