package intake

import "time"

// WithDialTimeout returns c with another limit for an attempt to connect.
func (c Config) WithDialTimeout(d time.Duration) Config {
	c.dialTimeout = d
	return c
}
