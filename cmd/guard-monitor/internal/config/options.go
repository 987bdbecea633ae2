package config

import (
	"errors"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/internal/rabbit"
)

// options are the settings that stand for themselves.
var options = []option[Config]{
	{ //nolint:gosec // the password is an example
		name: "amqp_url", value: "URL", env: "BELAY_AMQP_URL", secret: true, required: true, example: "amqp://monitor:...@127.0.0.1:5672/",
		usage: []string{
			"RabbitMQ to take events from, as amqp://user:password@host:port/vhost; required.",
			"Other users of this host can read a command line: prefer the environment or a file.",
		},
		set: func(c *Config, s string) error {
			if _, err := rabbit.ParseURL(s); err != nil {
				return errors.New(strings.TrimPrefix(err.Error(), "rabbitmq: "))
			}
			c.AMQPURL = s
			return nil
		},
	},
	{
		name: "db", value: "FILE", def: "guard-monitor.db",
		usage: []string{"SQLite file to keep events in; created if it is not there. Not on a network file system."},
		set: func(c *Config, s string) error {
			if s == "" {
				return errors.New("is empty")
			}
			c.DB = s
			return nil
		},
	},
	{
		name: "listen", value: "ADDR", def: "127.0.0.1:9440",
		usage: []string{
			"Address for the pages (/), the API (/api/v1), /healthz and /metrics. Port 0 takes a free",
			"one; the address is printed. One that is not loopback needs authentication: see web.",
		},
		set: setListen,
	},
	{
		name: "external_url", value: "URL", example: "https://monitor.example.com",
		usage: []string{
			"Where people reach the pages, for links in notices: without it notices have no links. Its",
			"host is answered, and its path begins all addresses, for a proxy that shares a host.",
		},
		set: webAddress(func(c *Config) *string { return &c.ExternalURL }, ""),
	},
	{
		name: "docs_url", value: "URL", def: "https://github.com/belaygo/belay/blob/main",
		usage: []string{"Where docs/alerts is read, for links in notices and on the pages."},
		set:   webAddress(func(c *Config) *string { return &c.DocsURL }, "/"),
	},
	{
		name: "web.users_file", value: "FILE", example: "/etc/guard-monitor/users",
		usage: []string{
			"Who may see the pages: lines name:hash, as htpasswd -nB NAME writes them (bcrypt). With it",
			"or a token everything but /healthz asks for one.",
		},
		set: text(func(c *Config) *string { return &c.Web.UsersFile }),
	},
	{
		name: "web.token", value: "TEXT", secret: true, example: "...",
		usage: []string{`Lets in whoever sends it as "Authorization: Bearer", such as Prometheus; at least 16 bytes.`},
		set:   text(func(c *Config) *string { return &c.Web.Token }),
	},
	{
		name: "web.tls_cert_file", value: "FILE", example: "/etc/guard-monitor/tls.crt",
		usage: []string{"Certificate of https, in PEM, with web.tls_key_file. Read again when it changes."},
		set:   text(func(c *Config) *string { return &c.Web.CertFile }),
	},
	{
		name: "web.tls_key_file", value: "FILE", example: "/etc/guard-monitor/tls.key",
		usage: []string{"Key of the certificate, in PEM."},
		set:   text(func(c *Config) *string { return &c.Web.KeyFile }),
	},
	{
		name: "web.writes", value: "true|false", def: "false",
		usage: []string{"Whether people may acknowledge, silence, replay, and have services forgotten. Each leaves an audit line."},
		set:   boolean(func(c *Config) *bool { return &c.Web.Writes }),
	},
	{
		name: "web.hosts", value: "NAME,...", example: "[monitor.internal]",
		usage: []string{"Names that requests may ask for, besides loopback and external_url's; others are refused."},
		set:   list(func(c *Config) *[]string { return &c.Web.Hosts }),
	},
	{
		name: "web.max_live", value: "NUMBER", def: "100",
		usage: []string{"How many open pages are told at once of what is new; others look every 30 s."},
		set:   number(func(c *Config) *int { return &c.Web.MaxLive }, 1, 10_000),
	},
	{
		name: "web.allow_anybody", value: "true|false", def: "false",
		usage: []string{
			"Lets guard-monitor listen on an address that is not loopback without authentication:",
			"everybody who reaches it then sees keys, services and payloads, and with web.writes can",
			"silence alerts.",
		},
		set: boolean(func(c *Config) *bool { return &c.Web.Anybody }),
	},
	{
		name: "time_zone", value: "ZONE", def: "UTC",
		usage: []string{"Of times on the pages, in their filters and in chat messages: UTC, Local, or a name such as Asia/Shanghai."},
		set:   setLocation,
	},
	{
		name: "log.level", value: "LEVEL", def: "info",
		usage: []string{"What is logged: debug, info, warn or error."},
		set:   setLevel,
	},
	{
		name: "log.format", value: "FORMAT", def: "text",
		usage: []string{"How logs are written to standard error: text or json."},
		set:   setFormat,
	},
	{
		name: "retention.events", value: "TIME", def: "30d",
		usage: []string{"How long events, and the changes that were seen in Redis, are kept."},
		set:   duration(func(c *Config) *time.Duration { return &c.Retention.Events }, time.Hour, 3650*day),
	},
	{
		name: "retention.incidents", value: "TIME", def: "365d",
		usage: []string{"How long resolved incidents and what was done about them are kept."},
		set:   duration(func(c *Config) *time.Duration { return &c.Retention.Incidents }, time.Hour, 3650*day),
	},
	{
		name: "retention.max_events", value: "NUMBER", def: "1000000",
		usage: []string{"How many events are kept at most; the oldest go first."},
		set:   number(func(c *Config) *int64 { return &c.Retention.MaxEvents }, 1000, 1_000_000_000),
	},
	{
		name: "retention.max_bytes", value: "SIZE", def: "1GiB",
		usage: []string{"How large the database may grow; the oldest events go first."},
		set:   size(func(c *Config) *int64 { return &c.Retention.MaxBytes }, 16<<20),
	},
	{
		name: "incidents.quiet", value: "TIME", def: "10m",
		usage: []string{"How long nothing may happen before an incident is resolved."},
		set:   duration(func(c *Config) *time.Duration { return &c.Incidents.Quiet }, time.Second, 7*day),
	},
	{
		name: "incidents.silent_after", value: "TIME", def: "30s",
		usage: []string{"How long a service must be silent, and miss three heartbeats, to be an incident."},
		set:   duration(func(c *Config) *time.Duration { return &c.Incidents.SilentAfter }, time.Second, day),
	},
	{
		name: "watch.interval", value: "TIME", def: "1s",
		usage: []string{"How often every watched Redis node is asked."},
		set:   duration(func(c *Config) *time.Duration { return &c.WatchInterval }, 100*time.Millisecond, time.Minute),
	},
}

// redisOptions are the settings of one watched Redis.
var redisOptions = []option[Redis]{
	{
		name: "name", value: "NAME", required: true, example: "main",
		usage: []string{"What incidents and metrics call it."},
		set:   text(func(r *Redis) *string { return &r.Name }),
	},
	{
		name: "nodes", value: "HOST:PORT,...", required: true, example: "[127.0.0.1:7001, 127.0.0.1:7002]",
		usage: []string{"Some nodes; the others of a cluster are found. With sentinel_master, the sentinels."},
		set:   nodes(func(r *Redis) *[]string { return &r.Nodes }),
	},
	{
		name: "sentinel_master", value: "NAME", example: "mymaster",
		usage: []string{"The name by which Sentinel knows the master. Without it nodes are Redis servers."},
		set:   text(func(r *Redis) *string { return &r.SentinelMaster }),
	},
	{
		name: "username", value: "NAME", example: "monitor",
		usage: []string{"User for all nodes. It needs INFO, CLUSTER and CONFIG GET; with CLIENT LIST it names who removed keys."},
		set:   text(func(r *Redis) *string { return &r.Username }),
	},
	{
		name: "password", value: "TEXT", secret: true, example: "secret",
		usage: []string{"Password for all nodes."},
		set:   text(func(r *Redis) *string { return &r.Password }),
	},
	{
		name: "tls", value: "true|false", def: "false",
		usage: []string{"Whether to connect with TLS."},
		set:   boolean(func(r *Redis) *bool { return &r.TLS }),
	},
	{
		name: "sentinel_username", value: "NAME", example: "monitor",
		usage: []string{"User for the sentinels."},
		set:   text(func(r *Redis) *string { return &r.SentinelUsername }),
	},
	{
		name: "sentinel_password", value: "TEXT", secret: true, example: "secret",
		usage: []string{"Password for the sentinels."},
		set:   text(func(r *Redis) *string { return &r.SentinelPassword }),
	},
}

// receiverOptions are the settings of one receiver.
var receiverOptions = []option[Receiver]{
	{
		name: "name", value: "NAME", required: true, example: "night",
		usage: []string{"What logs and metrics call it. What it was told is remembered by this name."},
		set:   text(func(r *Receiver) *string { return &r.Name }),
	},
	{
		name: "type", value: "TYPE", required: true, example: "webhook",
		usage: []string{"webhook (as Alertmanager sends it), alertmanager, slack, dingtalk, feishu or wecom."},
		set: func(r *Receiver, s string) error {
			r.Kind = receiver.Kind(s)
			return nil
		},
	},
	{
		name: "url", value: "URL", secret: true, required: true, example: "https://hooks.example.com/belay",
		usage: []string{"Where to send to. For alertmanager the address of its start page."},
		set:   text(func(r *Receiver) *string { return &r.URL }),
	},
	{
		name: "secret", value: "TEXT", secret: true, example: "SEC...",
		usage: []string{"Signs the messages, for dingtalk and feishu; without it they are not signed."},
		set:   text(func(r *Receiver) *string { return &r.Secret }),
	},
	{
		name: "token", value: "TEXT", secret: true, example: "...",
		usage: []string{`Sent as "Authorization: Bearer", for webhook and alertmanager.`},
		set:   text(func(r *Receiver) *string { return &r.Token }),
	},
	{
		name: "mentions", value: "NAME,...", example: `["13800000000"]`,
		usage: []string{
			"Whom a robot calls: mobile numbers for dingtalk and wecom, user ids for slack and",
			"feishu; all calls everybody.",
		},
		set: list(func(r *Receiver) *[]string { return &r.Mentions }),
	},
	{
		name: "group_by", value: "LABEL,...", def: "service,cause",
		usage: []string{"Incidents that have these labels in common are told together: service, cause, cluster, shard, severity."},
		set:   labels(func(r *Receiver) *[]string { return &r.GroupBy }),
	},
	{
		name: "group_wait", value: "TIME", def: "5s",
		usage: []string{"How long to wait for more of a new group before it is told."},
		set:   duration(func(r *Receiver) *time.Duration { return &r.GroupWait }, 0, time.Hour),
	},
	{
		name: "group_interval", value: "TIME", def: "5m",
		usage: []string{"How long to wait at least between two notices of one group."},
		set:   duration(func(r *Receiver) *time.Duration { return &r.GroupInterval }, 0, day),
	},
	{
		name: "repeat_interval", value: "TIME", def: "4h",
		usage: []string{"How long after a notice an incident that goes on is told again."},
		set:   duration(func(r *Receiver) *time.Duration { return &r.RepeatInterval }, time.Minute, 30*day),
	},
	{
		name: "send_resolved", value: "true|false", def: "true",
		usage: []string{"Whether to tell that an incident is over."},
		set:   boolean(func(r *Receiver) *bool { return &r.Resolved }),
	},
	{
		name: "rate_limit", value: "NUMBER", def: "18",
		usage: []string{
			"Messages a minute at most; what is above goes into one digest. 0 = no limit. The robots",
			"of DingTalk and WeCom take 20 and then are silent for minutes.",
		},
		set: number(func(r *Receiver) *int { return &r.RatePerMinute }, 0, 100_000),
	},
	{
		name: "max_alerts", value: "NUMBER", def: "50",
		usage: []string{"Incidents in one message at most; the others are counted."},
		set:   number(func(r *Receiver) *int { return &r.MaxAlerts }, 1, 1000),
	},
}
