// Package backoff has settings of reconnecting. There is no connection, so they do nothing.
package backoff

import "time"

// Config says how long to wait before the next try.
type Config struct {
	BaseDelay  time.Duration
	Multiplier float64
	Jitter     float64
	MaxDelay   time.Duration
}

// DefaultConfig is the protocol's.
var DefaultConfig = Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Minute}
