package grpcguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/belaygo/belay/internal/background"
)

// Config selects the calls that take effect once. Match and Principal are required.
type Config struct {
	// Match reports whether calls of a method, such as "/shop.v1.Payments/Charge", need a
	// key. Others pass.
	Match func(fullMethod string) bool
	// Principal identifies the caller, such as a tenant and a user in one string. Its
	// error, or "", ends the call with Internal: put the interceptor behind
	// authentication. Calls served under an old spelling are forgotten under a new one: a
	// repeat after such a release takes effect again.
	Principal func(ctx context.Context) (string, error)
	// Keys returns the lock keys of the rows that the handler changes, so that guard.Do
	// can be called with them inside the handler, and conflicts on its rows get a
	// verdict. Its error ends the call with InvalidArgument. Defaults to none.
	Keys func(ctx context.Context, fullMethod string, request proto.Message) ([]string, error)
	// Optional lets calls without a key pass, unguarded.
	Optional bool
	// Wait is how long a repeat waits while the call is being served. Defaults to 0, which
	// returns Aborted at once.
	Wait time.Duration
	// Timeout limits the work on a call. Defaults to 30 s.
	Timeout time.Duration
	// MaxAnswer limits an encoded answer, in bytes. Defaults to 64 KiB.
	MaxAnswer int
	// Logger gets the errors behind Internal and Unavailable. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Keys == nil {
		c.Keys = func(context.Context, string, proto.Message) ([]string, error) { return nil, nil }
	}
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, 64<<10)
	c.Logger = background.Logger(c.Logger)
	return c
}

func (c Config) validate() error {
	switch {
	case c.Match == nil:
		return errors.New("grpcguard: Config.Match is nil: say which methods need a key")
	case c.Principal == nil:
		return errors.New("grpcguard: Config.Principal is nil: say who calls")
	case c.Timeout < 0 || c.Wait < 0:
		return fmt.Errorf("grpcguard: Timeout %v or Wait %v is negative", c.Timeout, c.Wait)
	case c.MaxAnswer < 0:
		return fmt.Errorf("grpcguard: MaxAnswer %d is negative", c.MaxAnswer)
	}
	return nil
}

// Check returns an error unless cfg matches a method of the server, and no stream. Call it
// when all services are registered.
func Check(server interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
}, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	matched := false
	for service, info := range server.GetServiceInfo() {
		for _, method := range info.Methods {
			name := "/" + service + "/" + method.Name
			if !cfg.Match(name) {
				continue
			}
			if method.IsClientStream || method.IsServerStream {
				return fmt.Errorf("grpcguard: Match has %s, which is a stream", name)
			}
			matched = true
		}
	}
	if !matched {
		return errors.New("grpcguard: Match has no method of the server")
	}
	return nil
}
