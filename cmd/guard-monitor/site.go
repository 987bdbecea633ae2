package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
)

// site is the pages and the address that serves them.
type site struct {
	handler *web.Handler
	secure  *tls.Config // nil = plain http
	ln      net.Listener
	logger  *slog.Logger
}

// newSite returns the site that base and the settings describe.
func newSite(cfg *config.Config, base web.Config) (*site, error) {
	var users []byte
	var err error
	if cfg.Web.UsersFile != "" {
		if users, err = os.ReadFile(cfg.Web.UsersFile); err != nil {
			return nil, usagef("web.users_file: %w", err)
		}
	}
	if base.Auth, err = web.NewAuth(users, string(cfg.Web.MetricsToken)); err != nil {
		return nil, usagef("web.users_file, web.metrics_token: %w", err)
	}
	if base.Auth == nil && (cfg.Web.UsersFile != "" || cfg.Web.MetricsToken != "") {
		return nil, usagef("web.users_file: names nobody")
	}
	base.Writes, base.AnyAddress, base.TrustedProxies = cfg.Web.Writes, !cfg.Loopback(), cfg.Web.Networks()
	base.ExternalURL, base.DocsURL, base.Location = cfg.ExternalURL, cfg.DocsURL, cfg.Location()
	s := &site{logger: base.Logger}
	if cfg.Web.TLSCertFile != "" {
		if s.secure, err = web.LoadTLS(cfg.Web.TLSCertFile, cfg.Web.TLSKeyFile); err != nil {
			return nil, usagef("web.tls_cert_file: %w", err)
		}
	}
	s.handler, err = web.NewHandler(base)
	return s, err
}

// listen opens the address of the settings. It fails if a loopback name leads to an
// address that is not loopback.
func (s *site) listen(ctx context.Context, cfg *config.Config) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); cfg.Loopback() && (!ok || !tcp.IP.IsLoopback()) {
		return errors.Join(fmt.Errorf("listen: %q is %v, not a loopback address", cfg.Listen, ln.Addr()), ln.Close())
	}
	s.ln = ln
	return nil
}

func (s *site) address() string {
	if s.secure != nil {
		return "https://" + s.ln.Addr().String()
	}
	return "http://" + s.ln.Addr().String()
}

func (s *site) serve(ctx context.Context) error {
	return web.Serve(ctx, s.ln, s.handler, s.secure, s.logger)
}
