package watch

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/redischeck"
)

// diagnoseTime bounds one query.
const diagnoseTime = 2 * time.Second

// Diagnose returns what is wrong with the servers of a Redis, and what guard-monitor may
// not see of them. It only reads.
func Diagnose(ctx context.Context, t Target) []doctor.Finding {
	if t.Master != "" {
		return underSentinel(ctx, t)
	}
	for _, addr := range t.Addrs {
		c := redis.NewClient(t.universal(addr).Simple())
		err := c.ClusterInfo(ctx).Err()
		_ = c.Close()
		if err == nil {
			cluster := redis.NewClusterClient(t.universal(t.Addrs...).Cluster())
			defer cluster.Close()
			return asMonitor(redischeck.Servers(ctx, cluster, addrOf))
		}
	}
	var found []doctor.Finding
	for _, addr := range t.Addrs {
		c := redis.NewClient(t.universal(addr).Simple())
		found = append(found, asMonitor(redischeck.Servers(ctx, c, addrOf))...)
		_ = c.Close()
	}
	return found
}

// underSentinel looks at each Sentinel, and at the master that they name.
func underSentinel(ctx context.Context, t Target) (found []doctor.Finding) {
	for _, addr := range t.Addrs {
		o := t.universal(addr).Simple()
		o.Username, o.Password = t.SentinelUsername, t.SentinelPassword
		c := redis.NewSentinelClient(o)
		if err := c.GetMasterAddrByName(ctx, t.Master).Err(); err != nil {
			found = append(found, doctor.RedisServer.Failed("Sentinel "+addr, err))
		}
		_ = c.Close()
	}
	if len(found) == len(t.Addrs) {
		return found
	}
	c := redis.NewFailoverClient(t.universal(t.Addrs...).Failover())
	defer c.Close()
	return append(found, asMonitor(redischeck.Servers(ctx, c, func(*redis.Client) string { return "the master " + t.Master }))...)
}

func addrOf(c *redis.Client) string { return c.Options().Addr }

// asMonitor makes errors of what could not be checked for want of a right: without INFO
// and CLUSTER the monitor sees nothing.
func asMonitor(found []doctor.Finding) []doctor.Finding {
	for i, f := range found {
		if f.Severity == doctor.Unchecked && redis.IsPermissionError(f.Err) {
			found[i] = doctor.RedisRights.Failed(f.Subject, f.Err).Fixed("grant +info +time +config|get +cluster to guard-monitor's user")
		}
	}
	return found
}

func (t Target) universal(addrs ...string) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs: addrs, MasterName: t.Master, Username: t.Username, Password: t.Password,
		SentinelUsername: t.SentinelUsername, SentinelPassword: t.SentinelPassword, TLSConfig: t.TLS,
		Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		DialTimeout: diagnoseTime, ReadTimeout: diagnoseTime, WriteTimeout: diagnoseTime,
	}
}
