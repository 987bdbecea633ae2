package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/ingest"
)

// Diagnose returns why the monitor would not take the events of a service, or nil if it would. It
// sends one request, even if the circuit breaker is open, but no event and no heartbeat. It takes
// up to Config.Timeout. It is a part of belay.Doctor.
func (p *publisher) Diagnose(ctx context.Context, service string) []doctor.Finding {
	found, ok := p.check(ctx, service)
	if ok {
		return nil
	}
	return []doctor.Finding{found}
}

// check returns ok if the monitor would take an event of the service, or a finding with the
// reason why not.
func (p *publisher) check(ctx context.Context, service string) (_ doctor.Finding, ok bool) {
	subject := p.base.String()
	if !p.enter() {
		return doctor.MonitorServer.Failed(subject, errClosed), false
	}
	defer p.inflight.Done()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	r, err := p.send(ctx, http.MethodGet, ingest.CheckPath, service, nil)
	if err != nil {
		found := doctor.MonitorServer.Failed(subject, err)
		if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
			found = found.Fixed("give guard-monitor a certificate for the name in the address, or name its authority: ?cacertfile=ca.pem")
		}
		return found, false
	}
	switch code := r.code; {
	case r.Service != service || service == "":
		return doctor.MonitorServer.Found(subject, "it answers %d, but not as a guard-monitor with the setting ingest does: %s", code, p.reason(r.Answer)), false
	case code == http.StatusOK:
		return doctor.Finding{}, true
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return doctor.MonitorToken.Found(subject, "guard-monitor answers %d: %s", code, p.reason(r.Answer)), false
	default:
		return doctor.MonitorServer.Found(subject, "guard-monitor answers %d: %s", code, p.reason(r.Answer)).Fixed("look at the log of guard-monitor"), false
	}
}
