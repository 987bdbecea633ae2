# guard-monitor: one static program, its user, its data directory, and busybox
# for the health check.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY cmd/guard-monitor/go.mod cmd/guard-monitor/go.sum cmd/guard-monitor/
RUN go -C cmd/guard-monitor mod download
COPY . .
RUN CGO_ENABLED=0 go -C cmd/guard-monitor build -trimpath -ldflags='-s -w' -o /out/guard-monitor . \
 && go -C deploy/release run ./licences /out/guard-monitor >/out/THIRD_PARTY_LICENSES \
 && mkdir /out/data

FROM busybox:1.37-musl
# For receivers and brokers that are reached with TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/guard-monitor /usr/local/bin/
COPY --from=build /src/LICENSE /out/THIRD_PARTY_LICENSES /licenses/
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
WORKDIR /data
VOLUME /data
ENV BELAY_MONITOR_DB=/data/guard-monitor.db
# Without other settings the pages answer on loopback only: the network of another
# container, or of the host, is needed to reach them (see docker-compose.yml).
HEALTHCHECK --interval=10s --timeout=6s --start-period=10s \
  CMD ["wget", "-q", "-O", "/dev/null", "http://127.0.0.1:9440/healthz"]
ENTRYPOINT ["guard-monitor"]
