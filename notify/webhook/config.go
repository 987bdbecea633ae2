package webhook

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/ingest"
	"github.com/belaygo/belay/internal/tlsfile"
)

// Config sets up a Publisher. The Token is required.
type Config struct {
	// Token is that of an entry of the monitor's setting ingest. It is never logged.
	Token string
	// Name identifies the Publisher in metrics. Defaults to "webhook".
	Name string
	// Timeout limits one Publish: connecting if need be, sending, and the answer.
	// Defaults to 5 seconds.
	Timeout time.Duration
	// TLS is used with https. Defaults to the system's authorities, or the files that
	// the address names.
	TLS *tls.Config
	// Logger gets refusals of the token, once per change. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "webhook")
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Logger = background.Logger(c.Logger)
	return c
}

// validate does not quote the token.
func (c Config) validate() error {
	badToken := ingest.CheckToken(c.Token)
	switch {
	case c.Token == "":
		return errors.New("webhook: Token is empty: it is that of an entry of the monitor's setting ingest")
	case badToken != nil:
		return fmt.Errorf("webhook: Token %w", badToken)
	case !utf8.ValidString(c.Name):
		return fmt.Errorf("webhook: Name %q is not UTF-8", c.Name)
	case c.Timeout < 0:
		return fmt.Errorf("webhook: Timeout %v is negative", c.Timeout)
	}
	return nil
}

// parse returns the address of a monitor without its settings of TLS, and these settings. Its
// errors do not quote the address, which may hold a password by mistake.
func parse(address string, given *tls.Config) (*url.URL, *tls.Config, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, nil, errors.New("webhook: the address can't be parsed as a URL that begins with http:// or https://")
	}
	query, badQuery := url.ParseQuery(u.RawQuery)
	files := tlsfile.Files{Authorities: query.Get("cacertfile"), Certificate: query.Get("certfile"), Key: query.Get("keyfile")}
	for _, known := range []string{"cacertfile", "certfile", "keyfile"} {
		query.Del(known)
	}
	named := files != tlsfile.Files{}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, nil, errors.New("webhook: the address does not begin with http://host or https://host")
	case u.User != nil:
		return nil, nil, errors.New("webhook: the address has a user: the monitor takes a token, Config.Token")
	case badQuery != nil || len(query) > 0 || u.Fragment != "":
		return nil, nil, errors.New("webhook: the address has parameters other than cacertfile, certfile and keyfile")
	case u.Scheme == "http" && (named || given != nil):
		return nil, nil, errors.New("webhook: certificates need https in place of http")
	case named && given != nil:
		return nil, nil, errors.New("webhook: certificates are both in the address and in Config.TLS")
	}
	if named {
		if given, err = files.Config(); err != nil {
			return nil, nil, fmt.Errorf("webhook: %w", err)
		}
	}
	u.RawQuery = ""
	return u, given, nil
}
