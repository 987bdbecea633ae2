// Package tlsfile makes the settings of TLS for a client from files in PEM.
package tlsfile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Files name the files. All may be empty.
type Files struct {
	Authorities string // that are trusted, in place of the system's
	Certificate string // that the client shows, with its key
	Key         string
}

// Config reads the files.
func (f Files) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.Authorities != "" {
		text, err := os.ReadFile(f.Authorities)
		if err != nil {
			return nil, fmt.Errorf("read the authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("read the authorities: there is no certificate in %s", f.Authorities)
		}
	}
	switch {
	case f.Certificate == "" && f.Key == "":
		return c, nil
	case f.Certificate == "" || f.Key == "":
		return nil, errors.New("a certificate and its key come together")
	}
	own, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate and its key: %w", err)
	}
	c.Certificates = []tls.Certificate{own}
	return c, nil
}
