package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/internal/doctor"
)

const (
	doctorTime   = 20 * time.Second
	renewalsTime = 7 * 24 * time.Hour // in which a certificate should have been renewed
)

// diagnose prints what is wrong around guard-monitor, and returns an error if that keeps it
// from its work. It is no part of check-config, which needs no server.
func diagnose(ctx context.Context, c *call) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	redis.SetLogger(redisLog{c.logger()})
	watched, err := targets(c.cfg.Redis)
	if err != nil {
		return err
	}
	examine := []func(context.Context) []doctor.Finding{
		c.diagnoseStore,
		c.diagnoseTLS,
	}
	if c.cfg.AMQPURL != "" {
		examine = append(examine, func(ctx context.Context) []doctor.Finding { return intake.Diagnose(ctx, string(c.cfg.AMQPURL)) })
	}
	for _, t := range watched {
		examine = append(examine, func(ctx context.Context) []doctor.Finding { return watch.Diagnose(ctx, t) })
	}
	found, errors := doctor.Run(ctx, examine...), 0
	for _, f := range found {
		if f.Severity == doctor.Error {
			errors++
		}
		fmt.Fprintln(c.stdout, text.Line(f.String()))
	}
	switch {
	case errors > 0:
		return fmt.Errorf("%d of %d findings are errors", errors, len(found))
	case len(found) == 0:
		fmt.Fprintln(c.stdout, "nothing is wrong")
	}
	return nil
}

func (c *call) diagnoseStore(ctx context.Context) []doctor.Finding {
	if err := store.Probe(ctx, c.cfg.DB); err != nil {
		return []doctor.Finding{doctor.MonitorDB.Failed("db", err)}
	}
	return nil
}

func (c *call) diagnoseTLS(context.Context) []doctor.Finding {
	file := c.cfg.Web.TLSCertFile
	if file == "" {
		return nil
	}
	secure, err := web.LoadTLS(file, c.cfg.Web.TLSKeyFile)
	if err != nil {
		return []doctor.Finding{doctor.MonitorTLS.Failed("web.tls_cert_file", err)}
	}
	cert, err := secure.GetCertificate(nil)
	if err != nil || cert.Leaf == nil {
		return []doctor.Finding{doctor.MonitorTLS.Unmade("web.tls_cert_file", fmt.Errorf("no certificate: %w", err), "look at the file by hand")}
	}
	end := cert.Leaf.NotAfter
	found := doctor.MonitorTLS.Found("web.tls_cert_file", "the certificate ends at %s", end.UTC().Format(time.RFC3339))
	switch left := time.Until(end); {
	case left > renewalsTime:
		return nil
	case left > 0:
		found.Severity = doctor.Warning
	}
	return []doctor.Finding{found}
}
